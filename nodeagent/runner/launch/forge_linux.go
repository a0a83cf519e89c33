package launch

import (
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/nodeagent/runner/cell"
)

// Forge starts tasks on confined threads. A cell may have a thread of its own. The other cells of a room share one
// thread, which starts all their tasks. The shared thread waits in the kernel and not in the Go runtime: the runtime
// would wake it from threads that are not confined. An account's processes can make a thread hang. The forge then uses
// another thread. So only starts of this account are delayed, and only for a short time.
type Forge struct {
	may  Rules // refused calls that the thread needs to start tasks
	bell int   // an event descriptor that wakes the thread: there is work, or the forge is closed

	mu       sync.Mutex
	work     []func(*anvil)
	closed   bool
	thread   int       // number of the thread that works now
	since    time.Time // when the present work began; zero means none
	watching bool
}

// patience is how long a thread may take to start one task. After this time, another thread is used for further starts.
const patience = 100 * time.Millisecond

// Place is where tasks are started: a room (see package room).
type Place interface {
	Enter() error                // moves the calling thread, and the children that it starts, into the place
	EnterGroup() error           // moves the calling thread into the control group of the account
	Forge(Rules) (*Forge, error) // returns the forge for the tasks of the place
}

// anvil is the state of one thread of the Forge. Only that thread uses it.
type anvil struct {
	confined bool
	in       Place // where the thread is; nil means nowhere
}

func NewForge(may Rules) (f *Forge, err error) {
	f = &Forge{may: may}
	if f.bell, err = unix.Eventfd(0, unix.EFD_CLOEXEC); err != nil {
		return nil, messages.Errorf(messages.Unavailable, "runner: eventfd: %v", err)
	}
	go cell.OnThread(func() { f.serve(0) })
	return f, nil
}

// serve is the loop of one thread. The thread starts tasks until the forge is closed, or until another thread has taken
// its place.
func (f *Forge) serve(thread int) {
	a, counter := new(anvil), make([]byte, len(more))
	for {
		do, over := f.next(thread)
		switch {
		case over:
			return
		case do != nil:
			do(a)
		default:
			_, _ = unix.Read(f.bell, counter)
		}
	}
}

// next returns the next work for a thread. If the result `do` is nil, there is no work, and the thread waits for the
// event descriptor f.bell. If the result `over` is true, the thread ends.
func (f *Forge) next(thread int) (do func(*anvil), over bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case f.thread != thread:
		return nil, true
	case len(f.work) > 0:
		do, f.work, f.since = f.work[0], f.work[1:], time.Now()
		return do, false
	case f.closed:
		if f.since = (time.Time{}); f.bell >= 0 {
			_ = unix.Close(f.bell)
			f.bell = -1
		}
		return nil, true
	}
	f.work, f.since = nil, time.Time{}
	return nil, false
}

// The forge starts processes on one thread. If this thread is held up in one start for too long, watch starts another
// thread for the remaining starts.
func (f *Forge) watch() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.since.IsZero() && time.Since(f.since) >= patience {
		f.thread++
		thread := f.thread
		f.since = time.Time{}
		go cell.OnThread(func() { f.serve(thread) })
	}
	if f.watching = len(f.work) > 0 || !f.since.IsZero(); f.watching {
		time.AfterFunc(patience, f.watch)
	}
}

func (f *Forge) Close() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.closed = true
	f.wakeThread()
}

// The thread of the forge waits for an event descriptor of the kernel. more is the number 1 as eight bytes; writing
// these bytes to the descriptor wakes the thread.
var more = [8]byte{1}

func (f *Forge) wakeThread() { _, _ = unix.Write(f.bell, more[:]) }

// post makes the forge's thread call the function `do`. The thread calls the functions in the order in which they were
// posted.
func (f *Forge) post(do func(*anvil)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.work = append(f.work, do)
	if len(f.work) == 1 {
		f.wakeThread()
	}
	if !f.watching {
		f.watching = true
		time.AfterFunc(patience, f.watch)
	}
}

// Begin arranges a call of the function start, and returns at once. The call is made on a confined thread, inside the
// cell and the namespaces of a room. If this is impossible, start is called on another thread, with the error. The
// forge f is used for a task without a room; a room has its own forge.
func (f *Forge) Begin(c *cell.Cell, in Place, asRoot bool, start func(error)) {
	if !c.Threaded() {
		own, err := f, error(nil)
		if in != nil {
			if own, err = in.Forge(f.may); err != nil {
				go start(err)
				return
			}
		}
		own.post(func(a *anvil) {
			if a.in != in { // a new thread cannot find the control groups after it has entered the room
				if err := in.EnterGroup(); err != nil {
					start(messages.Errorf(messages.Unavailable, "the task cannot enter the control group of its account: %v", err))
					return
				}
			}
			start(a.prepare(in, asRoot, f.may))
		})
		return
	}
	go c.Run(func() {
		a, known := c.Thread.(*anvil)
		if !known {
			a = new(anvil)
			c.Thread = a
		}
		start(a.prepare(in, asRoot, Rules{Namespaces: f.may.Namespaces}))
	})
}

// Bind limits a launch in a cell to some processors (nil means all), and to the system calls that its site allows.
func (f *Forge) Bind(l *Launch, c *cell.Cell, affinity *unix.CPUSet) {
	l.affinity = affinity
	l.noClone3 = f.may.Namespaces && f.may.Clones && !c.Threaded()
}

// Run prepares a thread for the cell as [Forge.Begin] does, and calls `start` on this thread. It waits until `start`
// returns.
func (f *Forge) Run(c *cell.Cell, in Place, asRoot bool, start func() error) error {
	done := make(chan error, 1)
	f.Begin(c, in, asRoot, func(err error) {
		if err == nil {
			err = start()
		}
		done <- err
	})
	return <-done
}

// usualSlack is how long the kernel may delay the timers of a task, in nanoseconds. It is the kernel's default. For its
// own timers, the executor allows a longer delay.
const usualSlack = 50_000

// prepare confines the thread and enters a room.
func (a *anvil) prepare(in Place, asRoot bool, may Rules) error {
	if !a.confined {
		err := confine(may)
		if _, harmless := err.(errKeepsBounding); harmless && !asRoot {
			err = filterCalls(may)
		}
		if err == nil {
			err = unix.Unshare(unix.CLONE_FS) // the thread needs this to change its mount namespace
		}
		if err != nil {
			return messages.Errorf(messages.Unavailable, "the task could not be contained: %v", err)
		}
		_ = unix.Prctl(unix.PR_SET_TIMERSLACK, usualSlack, 0, 0, 0)
		a.confined = true
	}
	if a.in == in { // tasks have rooms either always or never, so no thread must leave a room
		return nil
	}
	if err := in.Enter(); err != nil {
		return messages.Errorf(messages.Unavailable, "the task cannot enter its namespaces: %v", err)
	}
	a.in = in
	return nil
}
