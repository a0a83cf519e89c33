package state

import (
	"time"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/agent"
	"github.com/candor-grid/candor/nodeagent/sampler"
)

// mostClaims is the largest number of claims in one exchange. If more slots should claim, the slots above this number
// wait for the next vector.
const mostClaims = 1024

// claims makes the claims of an exchange. Idle slots that should claim are called awake. claims draws a job for each
// awake slot, and for each task that should wait on the node. A slot for which there is no work is no longer awake. The
// argument `ends` is the number of ended tasks that the exchange reports. In a market that directs (see directing), the
// agent also claims for each slot of these ended tasks, because only the leader knows which job is next.
func (k *markets) claims(trip time.Duration, ends int) (claims []agent.Claim) {
	for _, m := range k.all {
		for at := range m.classes {
			m.classes[at].claimed = false
		}
	}
	for at := range k.slots {
		c := &k.slots[at]
		ahead, most := k.ahead(at, trip)
		awake := min(c.awake, c.free())
		for i := range awake + ahead {
			m := k.draw(at)
			if m == nil || len(claims) == mostClaims {
				break
			}
			mc := &m.classes[at]
			mc.claimed, mc.sentTerm, mc.sentSeq = true, m.term, m.seq
			claims = add(claims, agent.Claim{Market: m.name, Class: c.name, Job: mc.jobs.Draw(k.rng), Slots: 1, Ahead: most})
			if i < awake {
				c.claiming++
			}
		}
		c.awake = 0
		if n := min(c.free(), ends); n > 0 && !k.shut && len(claims) < mostClaims {
			if m := k.directing(at); m != nil {
				if mc := &m.classes[at]; !mc.claimed { // this claim was not drawn from a vector
					mc.claimed, mc.sentTerm, mc.sentSeq = true, 0, 0
				}
				c.claiming += n
				claims = append(claims, agent.Claim{Market: m.name, Class: c.name, Slots: n})
			}
		}
	}
	return claims
}

// directing returns the only market of a class if it directs: it decides itself which job gets a free slot. Otherwise
// directing returns nil.
func (k *markets) directing(at int) (only *market) {
	for _, m := range k.all {
		switch {
		case !m.classes[at].served:
		case only != nil || m.ahead:
			return nil
		default:
			only = m
		}
	}
	return only
}

// Returns how many more tasks of a class the agent should claim without a slot, and how many such tasks it should hold
// in all. Both numbers are 0 unless there is more work than the idle slots can take, and all markets of the class grant
// tasks in advance.
func (k *markets) ahead(at int, trip time.Duration) (more, most int) {
	c := &k.slots[at]
	most, _ = c.wanted(trip)
	left := 0
	for _, m := range k.all {
		mc := &m.classes[at]
		if mc.work() > 0 {
			left += mc.rest
		}
		if mc.jobs.Len() > 0 && !m.ahead {
			most = 0
		}
	}
	if k.shut || most == 0 {
		return 0, 0
	}
	return max(0, min(most-len(c.waits), left)), most
}

// Reports whether the slots of a class will use up its waiting tasks during one exchange.
func (k *markets) low(trip time.Duration) bool {
	for at := range k.slots {
		c := &k.slots[at]
		if _, low := c.wanted(trip); c.free() == 0 && len(c.waits) <= low {
			if more, _ := k.ahead(at, trip); more > 0 {
				return true
			}
		}
	}
	return false
}

// Draws a market for a slot, in proportion to the markets' pending work. It returns nil if there is no work.
func (k *markets) draw(at int) *market {
	all := 0
	for _, m := range k.all {
		all += m.classes[at].work()
	}
	if all == 0 || k.shut {
		return nil
	}
	x := k.rng.IntN(all)
	for _, m := range k.all {
		if x -= m.classes[at].work(); x < 0 {
			return m
		}
	}
	return nil
}

// add adds one slot to the claim for the same market, class and job. If there is no such claim, it appends the new
// claim.
func add(claims []agent.Claim, c agent.Claim) []agent.Claim {
	for i := range claims {
		if claims[i].Market == c.Market && claims[i].Class == c.Class && claims[i].Job == c.Job {
			claims[i].Slots++
			return claims
		}
	}
	return append(claims, c)
}

// dryUp records the classes in which fewer tasks were granted than claimed. The answer does not say which market has no
// more work. So each market that was asked counts as having no work in the class until its next vector.
//
// There are two exceptions. If a market's vector came during the exchange, this vector and the number of idle slots
// decide whether to claim again. A market that directs claims can give work to a slot only after it knows that the slot
// is free. So after an exchange that reported ended tasks, the idle slots claim from such a market once more.
func (k *markets) dryUp(asked *agent.Exchange, r *agent.ExchangeReply) {
	for at := range k.slots {
		lacks := count(asked.Claims, k.slots[at].name) - granted(r, k.slots[at].name)
		if lacks <= 0 {
			continue
		}
		for _, m := range k.all {
			c := &m.classes[at]
			switch {
			case !c.claimed:
			case !m.ahead && len(asked.Finished) > 0 && c.work() > 0:
				k.slots[at].awake = min(k.slots[at].awake+lacks, k.slots[at].free())
			case c.sentTerm == m.term && c.sentSeq == m.seq:
				c.dry = true
			default:
				k.wake(at, c)
			}
		}
	}
}

// settle is called with the answer r to the last exchange. For each claim in this exchange, a job was drawn. settle
// tells each list of jobs how many slots the drawn jobs were granted.
func (k *markets) settle(r *agent.ExchangeReply) {
	granted := map[messages.JobID]int{}
	for i := range r.Grants {
		slots := 1
		if p := programOf(r, r.Grants[i].Attempt); p != nil {
			slots = max(p.Width, 1)
		}
		granted[r.Grants[i].Attempt.Task.Job] += slots
	}
	for _, m := range k.all {
		for at := range m.classes {
			m.classes[at].jobs.Settle(func(job messages.JobID) int { return granted[job] })
		}
	}
}

// sharing is called when a task of a job was granted. It returns the Stride that draws jobs for the job's market, or
// nil if this market does not share slot time.
func (k *markets) sharing(class int, job messages.JobID) *sampler.Stride {
	for _, m := range k.all {
		if jobs := &m.classes[class].jobs; m.ahead && jobs.Knows(job) {
			return jobs
		}
	}
	return nil
}

func count(claims []agent.Claim, class messages.Name) (n int) {
	for _, c := range claims {
		if c.Class == class {
			n += c.Slots
		}
	}
	return n
}

func granted(r *agent.ExchangeReply, class messages.Name) (n int) {
	for _, g := range r.Grants {
		if p := programOf(r, g.Attempt); p != nil && p.Class == class {
			n += max(p.Width, 1)
		}
	}
	return n
}

// programOf returns the program of an attempt from the grants of an answer, or nil if there is none.
func programOf(r *agent.ExchangeReply, a messages.Attempt) *agent.Program {
	for i := range r.Programs {
		if p := &r.Programs[i]; p.Job == a.Task.Job && p.Stage == a.Task.Stage {
			return p
		}
	}
	return nil
}

// wake lets each idle slot of a class decide at random whether it claims a task now.
func (k *markets) wake(at int, m *marketClass) {
	c := &k.slots[at]
	idle := c.free() - c.awake
	if k.shut || m.pending <= 0 || m.jobs.Len() == 0 || idle <= 0 {
		return
	}
	chance := m.wanted() / float64(max(m.idle, c.free()))
	woken := 0
	for range idle {
		if woken < m.pending && k.rng.Float64() < chance {
			woken++
		}
	}
	c.awake += woken
}

// Wakes a slot that became free, if the last vector has work for it. In a market that grants tasks in advance, some of
// this work must be left. Any other market counts in a vector only the work for slots that were idle when it made the
// vector. So there the slot wakes if the vector has any work.
func (k *markets) freed(at int) {
	c := &k.slots[at]
	for _, m := range k.all {
		if mc := &m.classes[at]; !k.shut && c.awake < c.free() && (mc.rest > 0 || !m.ahead) && mc.work() > 0 {
			c.awake++
			return
		}
	}
}

// pause stops all slots from making claims if shut is true. Otherwise it lets all idle slots decide again whether to
// claim.
func (k *markets) pause(shut bool) {
	k.shut = shut
	for at := range k.slots {
		k.slots[at].awake = 0
		for _, m := range k.all {
			k.wake(at, &m.classes[at])
		}
	}
}
