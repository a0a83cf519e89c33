package batchqueue

import (
	"cmp"
	"slices"

	"github.com/candor-grid/candor/auctioneer/mechanism"
	"github.com/candor-grid/candor/messages"
	marketmsg "github.com/candor-grid/candor/messages/market"
)

const (
	fewest = 20   // with fewer considered jobs, the prior is used
	most   = 1000 // number of the latest considered jobs that are kept
)

// Beliefs are the types that jobs are expected to have. They do not depend on what these jobs announce. A type is a
// value or cost of delay, a length and a width. Announcements of accounts with a job in the queue do not count:
// otherwise an owner could influence its own payments.
type Beliefs struct {
	prior []marketmsg.QueuedType // what the operator configured; no job of the market changes it
	seen  []considered           // the oldest first
}

// considered is the announcement of a job that was run or discarded.
type considered struct {
	account messages.Name
	job     marketmsg.QueuedType
}

// NewBeliefs returns the beliefs of a market in which no job was considered yet.
func NewBeliefs(prior []marketmsg.QueuedType) *Beliefs { return &Beliefs{prior: prior} }

// Clone returns an independent copy.
func (b *Beliefs) Clone() *Beliefs { return &Beliefs{b.prior, slices.Clone(b.seen)} }

// Consider adds the announcement of a job that was run or discarded.
func (b *Beliefs) Consider(account messages.Name, t marketmsg.QueuedType) {
	if len(b.seen) == most {
		b.seen = slices.Delete(b.seen, 0, 1)
	}
	b.seen = append(b.seen, considered{account, t})
}

// Returns the types that jobs are expected to have, for a queue in which the present accounts have jobs. These are the
// types of considered jobs of other accounts. With fewer than 20 of them (the constant fewest), it returns the prior.
func (b *Beliefs) without(present map[messages.Name]bool) []marketmsg.QueuedType {
	var out []marketmsg.QueuedType
	for _, s := range b.seen {
		if !present[s.account] {
			out = append(out, s.job)
		}
	}
	if len(out) < fewest {
		return b.prior
	}
	return out
}

// Priors returns the expected types of the jobs of a queue. The argument `accounts` has their accounts, by position. A
// type without a width gets the job's announced width.
func (b *Beliefs) Priors(q *Queue, accounts []messages.Name) []Prior {
	present := map[messages.Name]bool{}
	for _, a := range accounts {
		present[a] = true
	}
	types := b.without(present)
	out := make([]Prior, len(q.Jobs))
	waiting := q.points(types, false)
	for i := range out {
		out[i].Points = waiting
	}
	out[0].Points = q.points(types, true)
	return out
}

// points converts types of the front job, or of a waiting job, to jobs with probabilities. A type without a width gets
// one slot.
func (q *Queue) points(types []marketmsg.QueuedType, front bool) []Point {
	sum := 0.0
	for i := range types {
		sum += cmp.Or(types[i].Weight, 1)
	}
	out := make([]Point, len(types))
	for i, t := range types {
		job := Job{Length: t.Length.Seconds(), Width: min(cmp.Or(t.Width, 1), max(1, q.Nodes))}
		if front {
			job.Value = t.Value.Float()
		} else {
			job.Delay = t.Delay.Float()
		}
		out[i] = Point{job, cmp.Or(t.Weight, 1) / sum}
	}
	return out
}

func typeOf(job *mechanism.Job) marketmsg.QueuedType {
	return marketmsg.QueuedType{Value: job.Value, Delay: job.Delay, Length: job.Length, Width: width(job)}
}

// mode returns the configured mode. The default is Priority.
func (c *Mechanism) mode() Mode { return cmp.Or(Mode(c.config.Mode), Priority) }
