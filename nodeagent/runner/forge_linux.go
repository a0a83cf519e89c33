package runner

import (
	"golang.org/x/sys/unix"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/nodeagent/runner/cell"
)

// forge starts tasks on confined threads: on the thread of the task's cell where the
// cell has one, else on one thread for all tasks.
type forge struct {
	work   chan func(*anvil)
	clones bool // the one thread for all has to start tasks by clone3
}

// anvil is a thread's state, touched by that thread only.
type anvil struct {
	confined bool
	room     *room // in whose namespaces it is; nil: this process's
}

func newForge(clones bool) *forge {
	f := &forge{work: make(chan func(*anvil)), clones: clones}
	go cell.OnThread(func() {
		a := new(anvil)
		for do := range f.work {
			do(a)
		}
	})
	return f
}

func (f *forge) close() { close(f.work) }

// run calls start on a confined thread inside the cell and in a room's namespaces.
func (f *forge) run(c *cell.Cell, r *room, asRoot bool, start func() error) (err error) {
	do := func(a *anvil) {
		if err = a.prepare(r, asRoot, f.clones && !c.Threaded()); err == nil {
			err = start()
		}
	}
	if c.Threaded() {
		c.Run(func() {
			a, known := c.Thread.(*anvil)
			if !known {
				a = new(anvil)
				c.Thread = a
			}
			do(a)
		})
		return err
	}
	done := make(chan struct{})
	f.work <- func(a *anvil) {
		defer close(done)
		c.Run(func() { do(a) })
	}
	<-done
	return err
}

// prepare confines the thread and goes into a room. clones as for [callFilter].
func (a *anvil) prepare(r *room, asRoot, clones bool) error {
	if !a.confined {
		err := confine(clones)
		if _, harmless := err.(errKeepsBounding); harmless && !asRoot {
			err = filterCalls(clones)
		}
		if err == nil {
			err = unix.Unshare(unix.CLONE_FS) // so that it can change its mount namespace
		}
		if err != nil {
			return messages.Errorf(messages.Unavailable, "the task could not be contained: %v", err)
		}
		a.confined = true
	}
	if a.room == r { // either all tasks have rooms or none has: no thread has to go back
		return nil
	}
	if err := r.enter(); err != nil {
		return messages.Errorf(messages.Unavailable, "the task's namespaces: %v", err)
	}
	a.room = r
	return nil
}
