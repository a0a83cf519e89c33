package batchqueue

import (
	"cmp"
	"slices"

	"github.com/candor-grid/candor/auctioneer/mechanism"
	"github.com/candor-grid/candor/messages"
)

const (
	fewest = 20   // types of considered jobs that must be known to go by them
	most   = 1000 // considered jobs that are remembered, the latest
)

// Beliefs are what is thought of jobs before they announce anything. No announcement
// of an account that has a job in the queue moves them: else a job would be paid by
// what its owner announces.
type Beliefs struct {
	prior []messages.QueuedType // independent of all jobs of the market
	seen  []considered          // the oldest first
}

// considered is what a job had announced that was run or discarded.
type considered struct {
	account messages.Name
	job     messages.QueuedType
}

// NewBeliefs are those before any job was considered.
func NewBeliefs(prior []messages.QueuedType) *Beliefs { return &Beliefs{prior: prior} }

// Clone is a copy that goes its own way.
func (b *Beliefs) Clone() *Beliefs { return &Beliefs{b.prior, slices.Clone(b.seen)} }

// Consider takes in the announcement of a job that was run or discarded.
func (b *Beliefs) Consider(account messages.Name, t messages.QueuedType) {
	if len(b.seen) == most {
		b.seen = slices.Delete(b.seen, 0, 1)
	}
	b.seen = append(b.seen, considered{account, t})
}

// without are the likely types of the jobs of a queue, in which these accounts have
// jobs: those of the considered jobs of other accounts, if there are enough.
func (b *Beliefs) without(present map[messages.Name]bool) []messages.QueuedType {
	var out []messages.QueuedType
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

// Priors are what is believed of the jobs of a queue, whose accounts are given by
// position. Where types are known without their widths, these are as announced.
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

// points are types with their probabilities, of the front job or of one that
// waits. A type without a width has one slot.
func (q *Queue) points(types []messages.QueuedType, front bool) []Point {
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

// typeOf is what a job announces.
func typeOf(job *mechanism.Job) messages.QueuedType {
	return messages.QueuedType{Value: job.Value, Delay: job.Delay, Length: job.Length, Width: width(job)}
}

// mode says which part of others' types is taken to be unknown.
func (c *Mechanism) mode() Mode { return cmp.Or(Mode(c.config.Mode), Priority) }
