package market

import (
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/candor-grid/candor/messages"
	agentmsg "github.com/candor-grid/candor/messages/agent"
)

const (
	// MostJobs is the maximum number of jobs of one class in a vector. It bounds the memory of an agent and the cost of
	// publishing. If more jobs wait, the vector has only a part of them, a systematic sample: on average over many
	// samples, the weight of each job equals its share. A new sample is drawn every ResampleAfter.
	MostJobs      = 1024
	ResampleAfter = messages.Duration(1e9)
	// changeThreshold is the smallest relative change of a weight that is published.
	changeThreshold = 1e-3
	// Published weights are shares divided by a factor, the scale. leastScale is the smallest scale, and 1/leastScale
	// is the largest. The scale may change, because only the proportions of weights count.
	leastScale = 1e-12
)

// Publisher computes the vectors of a market under one term. It remembers the last vector, to publish only changes.
type Publisher struct {
	term, seq uint64
	classes   []published
	whole     bool // the next vector must be complete
	pace      pace
}

// published is the state of a class that agents know from the vectors.
type published struct {
	jobs    []agentmsg.JobWeight
	sampled messages.Time // when the sample was drawn; 0 if the vector has all jobs
	// A job without a claimable task is not in the vector. left has the last published weights of such jobs. If a job
	// gets a claimable task again and its weight is the same, the weight need not be published.
	left map[messages.JobID]float32
}

// NewPublisher returns the publisher of a term. Its first vector has the number 1.
func NewPublisher(term uint64, m *Market) *Publisher {
	return &Publisher{term: term, classes: make([]published, len(m.Config.Classes))}
}

// Continue makes the next vector complete, and gives it the number seq + 1. A leader uses it when agents cannot apply
// changes to the earlier vectors of this term.
func (p *Publisher) Continue(seq uint64) { p.seq, p.whole = seq, true }

// Seq returns the number of the last vector.
func (p *Publisher) Seq() uint64 { return p.seq }

// Next returns the next vector. The vector has either the changes since the last vector or all weights, whichever list
// is shorter. If no weight has changed, Next returns a vector only if `announce` is true. This vector tells agents how
// much work there is.
func (p *Publisher) Next(m *Market, now messages.Time, rng *rand.Rand, announce bool) (v agentmsg.Vector, ok bool) {
	whole, changes := 0, 0
	delta, same := p.header(m), make([]bool, len(p.classes))
	for k := range p.classes {
		next := p.target(m, k, now, rng)
		rescale(next.jobs, p.classes[k].jobs)
		delta.Classes[k].Jobs, same[k] = p.classes[k].difference(m, next.jobs)
		p.classes[k] = merged(p.classes[k], next, delta.Classes[k].Jobs)
		whole, changes = whole+len(next.jobs), changes+len(delta.Classes[k].Jobs)
	}
	if changes == 0 && !announce && !p.whole {
		return v, false
	}
	p.seq++
	if p.seq == 1 || p.whole || changes > whole {
		p.whole = false
		v = p.Whole(m)
	} else {
		v = delta
		v.Seq, v.Base = p.seq, p.seq-1
	}
	for k := range same {
		if same[k] {
			v.Classes[k].SetSame()
		}
	}
	return v, true
}

// Whole returns the vector that was published last, in complete form. It has the same number as the published one.
func (p *Publisher) Whole(m *Market) agentmsg.Vector {
	v := p.header(m)
	v.Seq = p.seq
	for k := range p.classes {
		v.Classes[k].Jobs = slices.Clone(p.classes[k].jobs)
	}
	return v
}

func (p *Publisher) header(m *Market) agentmsg.Vector {
	v := agentmsg.Vector{Market: m.Config.Name, Term: p.term, Classes: make([]agentmsg.ClassVector, len(p.classes))}
	for k, c := range m.view.Classes {
		v.Classes[k] = agentmsg.ClassVector{Class: c.Name, Idle: c.Idle, Pending: m.open[k]}
	}
	return v
}

// target returns the jobs and weights of class k that agents should now know.
func (p *Publisher) target(m *Market, k int, now messages.Time, rng *rand.Rand) published {
	if m.bidding[k] <= MostJobs {
		bidders := m.bidders(k)
		jobs := make([]agentmsg.JobWeight, len(bidders))
		for i, e := range bidders {
			jobs[i] = agentmsg.JobWeight{Job: e.job.Job, Weight: weight(e.pull(k))}
		}
		return published{jobs: jobs}
	}
	held := p.classes[k]
	if held.sampled != 0 && now.Sub(held.sampled) < ResampleAfter {
		held.jobs = slices.DeleteFunc(slices.Clone(held.jobs), func(j agentmsg.JobWeight) bool {
			e := m.number.get(j.Job)
			return e == nil || e.open(k) == 0
		})
		if len(held.jobs) > MostJobs/2 {
			return held
		}
	}
	return published{jobs: m.sample(k, rng), sampled: now}
}

// sample is used if more jobs wait than a vector can have. It draws a job MostJobs times, with probabilities in
// proportion to the shares. A job's weight is in proportion to how often it was drawn.
func (s *roster) sample(k int, rng *rand.Rand) []agentmsg.JobWeight {
	out := make([]agentmsg.JobWeight, 0, MostJobs)
	s.systematic(k, MostJobs, rng.Float64(), func(e *entry) {
		if n := len(out); n > 0 && out[n-1].Job == e.job.Job {
			out[n-1].Weight += 1.0 / MostJobs
			return
		}
		out = append(out, agentmsg.JobWeight{Job: e.job.Job, Weight: 1.0 / MostJobs})
	})
	return out
}

// weight converts a share to the weight that is published. A share of 0 becomes a very small positive weight, because a
// job with the weight 0 gets nothing.
func weight(share float64) float32 {
	return float32(max(share, math.SmallestNonzeroFloat32*(1<<24)))
}

// rescale multiplies all new weights by one factor. With this factor, the jobs that are in both lists have the same sum
// of weights in the old list and in the new list. So when jobs leave, the weights of the other jobs do not change, and
// agents can still use the jobs that they have drawn. Both lists are ordered by job.
func rescale(is, was []agentmsg.JobWeight) {
	now, before := 0.0, 0.0
	for _, j := range is {
		for len(was) > 0 && was[0].Job < j.Job {
			was = was[1:]
		}
		if len(was) > 0 && was[0].Job == j.Job {
			now, before = now+float64(j.Weight), before+float64(was[0].Weight)
		}
	}
	by := before / now
	if !(by > leastScale && by < 1/leastScale) { // no job is in both lists, or the scale leaves the range of float32
		return
	}
	for i := range is {
		is[i].Weight = weight(float64(is[i].Weight) * by)
	}
}

// difference returns the changes from the published list to the list `is`. These are the new and changed weights, and
// weight 0 for each job that has no claimable task any more. The result `same` is true if no job has a new weight: jobs
// only left, or came back with the weight that they had before. Both lists are ordered by job.
func (p *published) difference(m *Market, is []agentmsg.JobWeight) (out []agentmsg.JobWeight, same bool) {
	const mostLeft = 4 * MostJobs
	if p.left == nil || len(p.left) > mostLeft {
		p.left = map[messages.JobID]float32{}
	}
	was := p.jobs
	out, same = []agentmsg.JobWeight{}, true
	for len(was) > 0 || len(is) > 0 {
		switch {
		case len(is) == 0 || len(was) > 0 && was[0].Job < is[0].Job:
			out = append(out, agentmsg.JobWeight{Job: was[0].Job})
			if m.number.get(was[0].Job) != nil {
				p.left[was[0].Job] = was[0].Weight
			}
			was = was[1:]
		case len(was) == 0 || is[0].Job < was[0].Job:
			out = append(out, is[0])
			same = same && !differs(p.left[is[0].Job], is[0].Weight)
			is = is[1:]
		default:
			if differs(was[0].Weight, is[0].Weight) {
				out, same = append(out, is[0]), false
			}
			was, is = was[1:], is[1:]
		}
	}
	return out, same
}

// differs reports whether a weight changed so much that the agents must get the new weight.
func differs(was, is float32) bool {
	return math.Abs(float64(is-was)) > changeThreshold*float64(was)
}

// merged returns what the agents know after they have applied the changes. If a weight has changed so little that it is
// not in the changes, agents keep the old weight.
func merged(held, next published, changes []agentmsg.JobWeight) published {
	out := make([]agentmsg.JobWeight, 0, len(next.jobs))
	was := held.jobs
	for _, j := range next.jobs {
		for len(was) > 0 && was[0].Job < j.Job {
			was = was[1:]
		}
		for len(changes) > 0 && changes[0].Job < j.Job {
			changes = changes[1:]
		}
		if len(was) > 0 && was[0].Job == j.Job && (len(changes) == 0 || changes[0].Job != j.Job) {
			j = was[0]
		}
		out = append(out, j)
	}
	return published{jobs: out, sampled: next.sampled, left: held.left}
}

// Due returns the market's next vector, if one should be sent now. The argument `nodes` is the number of receivers. The
// caller must call Due after each step, and at the time that the method Wake returns.
func (p *Publisher) Due(m *Market, now messages.Time, nodes int, rng *rand.Rand) (v agentmsg.Vector, ok bool) {
	pending := m.Claimable()
	announce, due := p.pace.due(now, pending)
	if !due {
		return v, false
	}
	v, ok = p.Next(m, now, rng, announce)
	p.pace.sent(now, pending, nodes, ok)
	return v, ok
}

// Reallocated says that the weights may have changed: the next call of Due compares them with the published ones.
func (p *Publisher) Reallocated() { p.pace.reallocated = true }

// Wake returns when to call Due again even if nothing changes, or 0 for never.
func (p *Publisher) Wake() messages.Time { return p.pace.wake() }

// pace decides when a market's vector is published. There are three reasons to publish it:
//
//   - Weights have changed.
//   - There is more work for idle slots than agents were told.
//   - There are still idle slots and work for these slots. Then the vector is published again at growing intervals.
//
// pace limits the rate, so that sending vectors to all nodes takes only a part of the site's time.
type pace struct {
	reallocated bool
	pending     int           // pending tasks in classes with idle slots, as last published
	next        messages.Time // time of the next reminder; 0 means none
	after       time.Duration // how long the last reminder waited
	notBefore   messages.Time
}

const (
	remindFirst = 20 * time.Millisecond
	remindMost  = time.Second
	fanOutCost  = 50 * time.Microsecond // estimated time to send a vector to one node
)

// due returns two answers. The result `announce` says whether to publish the market's vector even if no weight changed.
// The result `due` says whether to publish it now. The argument `pending` is the number of pending tasks in classes
// with idle slots.
func (p *pace) due(now messages.Time, pending int) (announce, due bool) {
	if pending == 0 {
		p.pending, p.next = 0, 0
	}
	announce = pending > 0 && (pending > p.pending || now >= p.next)
	return announce, now >= p.notBefore && (announce || p.reallocated)
}

// sent is called after the market has decided whether to publish a vector, and has published it if necessary. If a
// vector was published, sent sets the time of the next reminder and the earliest time of the next vector.
func (p *pace) sent(now messages.Time, pending, nodes int, published bool) {
	p.reallocated = false
	if !published {
		return
	}
	if pending != p.pending || p.after == 0 {
		p.after = remindFirst
	} else {
		p.after = min(2*p.after, remindMost)
	}
	p.pending, p.next = pending, 0
	if pending > 0 {
		p.next = now.Add(messages.Duration(p.after))
	}
	p.notBefore = now.Add(messages.Duration(nodes) * messages.Duration(fanOutCost))
}

// wake returns the earliest time at which pace.due can return true if nothing changes before. It returns 0 if there is
// no such time.
func (p *pace) wake() messages.Time {
	if p.next == 0 && !p.reallocated {
		return 0
	}
	return max(p.next, p.notBefore)
}
