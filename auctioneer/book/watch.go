package book

import "github.com/candor-grid/candor/messages"

// Changes is what commands touched since it was last taken.
type Changes struct {
	Jobs    map[messages.JobID]bool
	Nodes   map[uint32]bool
	Effects bool
}

// watch collects changes for the local observer. It is no part of the state.
type watch struct {
	watched bool
	changes Changes
}

func newChanges() Changes {
	return Changes{Jobs: map[messages.JobID]bool{}, Nodes: map[uint32]bool{}}
}

// TakeChanges returns what was touched since the last call.
func (w *watch) TakeChanges() Changes {
	c := w.changes
	w.changes = newChanges()
	return c
}

func (w *watch) touch(job messages.JobID) {
	if w.watched {
		w.changes.Jobs[job] = true
	}
}

func (w *watch) touchNode(i uint32) {
	if w.watched {
		w.changes.Nodes[i] = true
	}
}

func (w *watch) touchEffects() { w.changes.Effects = true }
