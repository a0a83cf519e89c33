package state

import "github.com/candor-grid/candor/messages"

// claims samples a job for every slot that is awake. A slot for which there is
// no work any more goes back to sleep.
func (s *State) claims() (claims []messages.Claim) {
	for _, m := range s.markets {
		for at := range m.classes {
			m.classes[at].claimed = false
		}
	}
	for at := range s.classes {
		c := &s.classes[at]
		for range min(c.awake, c.free()) {
			m := s.drawMarket(at)
			if m == nil || len(claims) == mostClaims {
				break
			}
			mc := &m.classes[at]
			mc.claimed, mc.sentTerm, mc.sentSeq = true, m.term, m.seq
			claims = add(claims, messages.Claim{Market: m.name, Class: c.name, Job: mc.jobs.Sample(s.rng.Float64()), Slots: 1})
			c.claiming++
		}
		c.awake = 0
	}
	return claims
}

// mostClaims bounds the claims of one exchange; slots beyond wait for the next vector.
const mostClaims = 1024

// drawMarket draws a market for a slot in proportion to the work pending
// there; nil if there is none.
func (s *State) drawMarket(at int) *market {
	all := s.pending(at)
	if all == 0 {
		return nil
	}
	x := s.rng.IntN(all)
	for _, m := range s.markets {
		if x -= m.classes[at].work(); x < 0 {
			return m
		}
	}
	return nil
}

// add puts claims of the same job together.
func add(claims []messages.Claim, c messages.Claim) []messages.Claim {
	for i := range claims {
		if claims[i].Market == c.Market && claims[i].Class == c.Class && claims[i].Job == c.Job {
			claims[i].Slots++
			return claims
		}
	}
	return append(claims, c)
}

// dryUp notes the classes in which fewer tasks were granted than claimed. The
// answer does not say in which market work ran out, so that all those claimed
// from are taken for dry until their next vector. Where that came while the
// answer was on its way, the slots left idle decide anew, as the others did
// when it came.
func (s *State) dryUp(asked *messages.Exchange, r *messages.ExchangeReply) {
	for at := range s.classes {
		if count(asked.Claims, s.classes[at].name) <= granted(r, s.classes[at].name) {
			continue
		}
		for _, m := range s.markets {
			c := &m.classes[at]
			switch {
			case !c.claimed:
			case c.sentTerm == m.term && c.sentSeq == m.seq:
				c.dry = true
			default:
				s.wake(at, c)
			}
		}
	}
}

func count(claims []messages.Claim, class messages.Name) (n int) {
	for _, c := range claims {
		if c.Class == class {
			n += c.Slots
		}
	}
	return n
}

func granted(r *messages.ExchangeReply, class messages.Name) (n int) {
	for _, g := range r.Grants {
		if p := programOf(r, g.Attempt); p != nil && p.Class == class {
			n++
		}
	}
	return n
}
