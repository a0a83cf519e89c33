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

// The method claims makes the claims of an exchange. An idle slot that should claim is called awake. For each awake
// slot, and for each task that should wait on the node, claims draws a job from the market's vector. If the vector has
// no work for a slot, the slot stops being awake. The argument `ends` is the number of ended tasks that the exchange
// reports. In a market that directs (see directing), each of their slots also makes a claim, because only the leader
// knows which job is next.
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

// A market can direct claims: then the market itself decides which job gets a free slot. If a class has only one
// market, and this market directs claims, directing returns the market. Otherwise it returns nil.
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

// ahead returns how many more tasks of a class the agent should claim without a slot, and how many such tasks it should
// hold in all. Both numbers are 0 in two cases: the idle slots can take all work, or a market of the class does not
// grant tasks in advance.
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

// low reports whether more tasks of some class should be claimed now. This is so in the following case. No slot of the
// class is free. During one exchange, so many slots will become free that they take all tasks that wait on this node.
// More tasks may be claimed in advance.
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

// draw draws the market that gets a slot of a class. Each market is drawn with a probability in proportion to its
// waiting work. The result is nil if there is no work.
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

// dryUp records the classes in which fewer tasks were granted than claimed. A claim may ask several markets, and the
// answer does not say which market has no more work. So each of these markets counts as having no work in the class
// until its next vector.
//
// There are two exceptions. First, a new vector of a market may have come during the exchange. Then the agent decides
// from this vector, and from its number of idle slots, whether to claim again. Second, a market that directs claims can
// give work to a slot only after it knows that the slot is free. So after an exchange that reported ended tasks, the
// idle slots claim from such a market once more.
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

// settle is called with the answer r to the last exchange. The agent drew a job for each claim in this exchange, and
// the leader granted slots to some of these jobs. settle tells the agent's lists of jobs how many slots each job was
// granted.
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

// wake goes through the idle slots of a class. For each slot, it decides at random whether the slot claims a task now.
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

// freed wakes a slot that became free, if the last vector has work for it. The field rest has the work that is left
// when each slot that was idle at the vector has taken its part. In a market that grants tasks in advance, only this
// work is left for the slot. In another market the vector's work is only for the slots that were idle then. So the slot
// wakes if the vector has any work.
func (k *markets) freed(at int) {
	c := &k.slots[at]
	for _, m := range k.all {
		if mc := &m.classes[at]; !k.shut && c.awake < c.free() && (mc.rest > 0 || !m.ahead) && mc.work() > 0 {
			c.awake++
			return
		}
	}
}

// pause(true) stops all slots from making claims. After pause(false), each idle slot decides again whether to make a
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
