package batchqueue

import (
	"cmp"
	"slices"

	"github.com/candor-grid/candor/auctioneer/mechanism"
	"github.com/candor-grid/candor/messages"
	marketmsg "github.com/candor-grid/candor/messages/market"
)

const (
	fewest = 20   // the prior is used if fewer jobs than this were run or discarded
	most   = 1000 // maximum number of such jobs that are kept, the latest ones
)

// Beliefs are guesses about the types of jobs, used in place of the types that the jobs announce. A type is a value or
// cost of delay, a length and a width. The guesses for a queue leave out the announcements of accounts that have a job
// in this queue: otherwise an owner could influence its own payments.
type Beliefs struct {
	prior []marketmsg.QueuedType // what the operator configured; no job of the market changes it
	seen  []considered           // the oldest first
}

// considered has the type that a job announced, after the queue has run or discarded the job.
type considered struct {
	account messages.Name
	job     marketmsg.QueuedType
}

// NewBeliefs returns the beliefs of a market in which no job was considered yet.
func NewBeliefs(prior []marketmsg.QueuedType) *Beliefs { return &Beliefs{prior: prior} }

// Clone returns an independent copy.
func (b *Beliefs) Clone() *Beliefs { return &Beliefs{b.prior, slices.Clone(b.seen)} }

// Consider is called after a decision to run or discard a job. It adds the type that the job announced to the beliefs
// about later jobs.
func (b *Beliefs) Consider(account messages.Name, t marketmsg.QueuedType) {
	if len(b.seen) == most {
		b.seen = slices.Delete(b.seen, 0, 1)
	}
	b.seen = append(b.seen, considered{account, t})
}

// The method `without` returns types from which the mechanism guesses the unknown types of the jobs of a queue. They
// are the types of earlier jobs. Jobs of accounts in the set `present` are left out, because these accounts have jobs
// in the queue now. If fewer than 20 types (the constant fewest) are left, the prior is returned instead.
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

// Priors returns the expected types of the jobs of a queue. The list `accounts` has the account of each job, in the
// order of the queue. A type without a width gets the job's announced width.
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

// A prior is a list of possible types of a job, with weights. points converts each type to a possible job with its
// probability. If `front` is true, the types are of the front job, and otherwise of a waiting job. A type without a
// width gets one slot.
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
