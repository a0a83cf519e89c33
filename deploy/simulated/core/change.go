package core

import (
	"cmp"
	"slices"
)

// Change is the effect of a decision on some tasks of a job. These tasks ran or were suspended before.
type Change struct {
	At    float64 // seconds from the log's beginning
	Job   int     // job of the workload
	What  What
	Slots int // number of slots
}

// What says what happened to the tasks: they were suspended, resumed, or put back to run again from the beginning.
type What uint8

// These are the kinds of changes.
const (
	Suspended What = iota // tasks lost their slots, and will continue later where they were
	Resumed               // tasks got slots again
	Requeued              // tasks lost their slots or their nodes, and will run again from the beginning
)

// order sorts the changes of running tasks by time. Among changes at the same time, losses of slots come before gains.
func (o *Outcome) order() {
	slices.SortStableFunc(o.Changes, func(a, b Change) int {
		return cmp.Or(cmp.Compare(a.At, b.At), cmp.Compare(a.What, b.What), cmp.Compare(a.Job, b.Job))
	})
}

// Note records a change, if the study asks for changes.
func (o *Outcome) Note(p *Problem, c Change) {
	if p.Record {
		o.Changes = append(o.Changes, c)
	}
}
