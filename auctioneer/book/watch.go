package book

import "github.com/candor-grid/candor/messages"

// Changes lists the jobs and nodes that changed since the last call that returned changes.
type Changes struct {
	Jobs    []messages.JobID // ascending, without duplicates
	Nodes   []uint32         // positions, ascending, without duplicates
	Effects bool
	Notices bool
	// Licenses means that the number of free licences has changed.
	Licenses bool
	// Bounds means that the bounds of markets have changed.
	Bounds bool
	// Owners are the owners for whom bounds exist, and whose tasks now use more or less than before.
	Owners []Owner
}

// watch collects changes for an observer in the same process. It is not part of the book's state.
type watch struct {
	watched bool
	changed Changes
}

func (w *watch) touch(job messages.JobID) {
	if n := len(w.changed.Jobs); w.watched && (n == 0 || w.changed.Jobs[n-1] != job) {
		w.changed.Jobs = append(w.changed.Jobs, job)
	}
}

func (w *watch) touchNode(i uint32) {
	if n := len(w.changed.Nodes); w.watched && (n == 0 || w.changed.Nodes[n-1] != i) {
		w.changed.Nodes = append(w.changed.Nodes, i)
	}
}

func (w *watch) touchOwner(o Owner) {
	if n := len(w.changed.Owners); w.watched && (n == 0 || w.changed.Owners[n-1] != o) {
		w.changed.Owners = append(w.changed.Owners, o)
	}
}

func (w *watch) touchEffects() { w.changed.Effects = true }
