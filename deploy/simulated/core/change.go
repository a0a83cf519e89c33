package core

import (
	"cmp"
	"slices"
)

// Change is what a decision did to some of a job's running or suspended tasks.
type Change struct {
	At    float64 // seconds from the log's beginning
	Job   int     // job of the workload
	What  What
	Slots int // number of slots
}

// The things that can happen to tasks.
type What uint8

// The changes.
const (
	Suspended What = iota // lost their slots, and continue later where they were
	Resumed               // got slots again
	Requeued              // lost their slots or their nodes, to run again from the beginning
)

// order puts the changes in the order of time; at one instant slots are lost
// before others get them.
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
