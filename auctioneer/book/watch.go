package book

import (
	"slices"

	"github.com/candor-grid/candor/messages"
)

// Changes is what commands touched since the changes before were taken.
type Changes struct {
	Jobs    []messages.JobID // ascending, each once
	Nodes   []uint32         // ascending, each once
	Effects bool
	Notices bool
}

// watch collects changes for the local observer. It is no part of the state.
type watch struct {
	watched bool
	changed Changes
}

// TakeChanges returns the changes since the last call.
func (w *watch) TakeChanges() Changes {
	c := w.changed
	w.changed = Changes{}
	slices.Sort(c.Jobs)
	slices.Sort(c.Nodes)
	c.Jobs, c.Nodes = slices.Compact(c.Jobs), slices.Compact(c.Nodes)
	return c
}

// Touched reports whether jobs or nodes have changed since the last call of TakeChanges.
func (w *watch) Touched() bool { return len(w.changed.Jobs)+len(w.changed.Nodes) > 0 }

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

func (w *watch) touchEffects() { w.changed.Effects = true }
