package batchqueue

import (
	"cmp"
	"slices"

	"github.com/candor-grid/candor/auctioneer/mechanism"
	"github.com/candor-grid/candor/messages"
)

// fewest is how many types must be known to go by them.
const fewest = 20

// Believe implements mechanism.Believing.
func (c *Mechanism) Believe(types []messages.QueuedType) { c.seen = slices.Clone(types) }

var _ mechanism.Believing = (*Mechanism)(nil)

// priors are what is believed about the jobs of a queue: what was seen of earlier
// ones, or else what the market's operator thinks, or else that they are like
// those of the view. Where types are known without their widths, these are like
// those of the queue.
func (c *Mechanism) priors(view *mechanism.View, q *queue) []Prior {
	types := c.seen
	if len(types) < fewest {
		types = c.config.PriorJobs
	}
	if len(types) == 0 {
		types = declared(view)
	}
	out := make([]Prior, len(q.waiting))
	front, waiting := c.points(types, q, true), c.points(types, q, false)
	for i := range out {
		out[i].Points = waiting
	}
	out[0].Points = front
	return out
}

// points are types with their probabilities, of the front job or of one that
// waits.
func (c *Mechanism) points(types []messages.QueuedType, q *queue, front bool) []Point {
	sum, widths := 0.0, q.widths()
	for i := range types {
		sum += cmp.Or(types[i].Weight, 1)
	}
	out := make([]Point, len(types))
	for i, t := range types {
		job := Job{Length: t.Length.Seconds(), Width: min(cmp.Or(t.Width, widths[i%len(widths)]), max(1, q.Nodes))}
		if front {
			job.Value = t.Value.Float()
		} else {
			job.Delay = t.Delay.Float()
		}
		out[i] = Point{job, cmp.Or(t.Weight, 1) / sum}
	}
	return out
}

// widths are those of what runs and waits.
func (q *queue) widths() (out []int) {
	for i := range q.Running {
		out = append(out, q.Running[i].Width)
	}
	for i := range q.Jobs {
		out = append(out, q.Jobs[i].Width)
	}
	return out
}

// declared are the types of the jobs of a view.
func declared(view *mechanism.View) []messages.QueuedType {
	out := make([]messages.QueuedType, len(view.Jobs))
	for k, job := range view.Jobs {
		out[k] = messages.QueuedType{Value: job.Value, Delay: job.Delay, Length: job.Length, Width: width(job)}
	}
	return out
}

// mode says which part of others' types is taken to be unknown.
func (c *Mechanism) mode() Mode { return cmp.Or(Mode(c.config.Mode), Priority) }
