package state

import (
	"slices"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/job"
)

// slots has the classes of slots of the node. Their number never changes.
type slots []class

// class has the slots of one class. Every slot is free, or waits for the answer to a claim, or has a task.
type class struct {
	name     messages.Name
	slots    int
	tasks    int // tasks that have a slot: they have not ended and are not suspended
	claiming int // slots with a claim in the exchange under way
	awake    int // free slots that will claim in the next exchange
	stock
}

func newSlots(offered []job.ClassSlots) slots {
	all := make(slots, 0, len(offered))
	for _, c := range offered {
		all = append(all, class{name: c.Class, slots: c.Slots})
	}
	return all
}

// free returns the number of slots without a task or a claim.
func (c *class) free() int { return max(0, c.slots-c.tasks-c.claiming) }

// index returns the position of a class, or -1.
func (s slots) index(name messages.Name) int {
	return slices.IndexFunc(s, func(c class) bool { return c.name == name })
}

// awake returns how many slots have a claim in the next exchange.
func (s slots) awake() (n int) {
	for i := range s {
		n += s[i].awake
	}
	return n
}

// sleep cancels all claims of all slots: the claims that were sent, and the claims that are planned for the next
// exchange.
func (s slots) sleep() {
	s.answered()
	for i := range s {
		s[i].awake = 0
	}
}

func (s slots) answered() {
	for i := range s {
		s[i].claiming = 0
	}
}
