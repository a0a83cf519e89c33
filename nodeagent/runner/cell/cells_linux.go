package cell

import (
	"errors"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/candor-grid/candor/messages"
)

// Cells is the cells of one node. It is safe for concurrent use.
type Cells struct {
	config Config
	groups groups // nil: there are no control groups to be had

	mu   sync.Mutex
	free []*Cell
	made int
}

// groups makes control groups of one version.
type groups interface {
	abilities() []messages.Name
	make(name string) (group, error)
	// close removes the group of all of them.
	close() error
}

// group is a control group.
type group interface {
	// enter puts the calling thread inside, where that is how to get in.
	enter() error
	// clone makes a process begin inside, where that is how to get in.
	clone(*syscall.SysProcAttr)
	limit(Limits) error
	freeze(bool) error
	kill() error // everything but this process
	empty() bool
	killed() uint64 // how many processes the memory limit has ended
	remove() error
}

// Open finds out what kind of cells can be had here, and ends what an earlier
// run of the node left in them.
func Open(c Config) *Cells {
	cells := &Cells{config: c}
	if g := openV2(c.Name); g != nil {
		cells.groups = g
	} else if g := openV1(c.Name); g != nil {
		cells.groups = g
	}
	return cells
}

// Abilities says what cells can do here.
func (c *Cells) Abilities() (all []messages.Name) {
	if c.groups != nil {
		all = c.groups.abilities()
	}
	if unix.Geteuid() == 0 {
		all = append(all, messages.AbilityUser)
	}
	return all
}

// Can reports whether cells have an ability here.
func (c *Cells) Can(ability messages.Name) bool { return slices.Contains(c.Abilities(), ability) }

// Take returns a cell that nothing runs in, with these limits. It must be given
// back by [Cells.Leave].
func (c *Cells) Take(l Limits) (*Cell, error) {
	cell, err := c.take()
	if err != nil {
		return nil, err
	}
	if cell.group == nil {
		return cell, nil
	}
	if cell.limits != l {
		if err := cell.group.limit(l); err != nil {
			c.Leave(cell)
			return nil, messages.Errorf(messages.Unavailable, "limits of the task: %v", err)
		}
		cell.limits = l
	}
	cell.killed = cell.group.killed()
	return cell, nil
}

func (c *Cells) take() (*Cell, error) {
	c.mu.Lock()
	if n := len(c.free); n > 0 {
		cell := c.free[n-1]
		c.free = c.free[:n-1]
		c.mu.Unlock()
		return cell, nil
	}
	c.made++
	name := "cell" + strconv.Itoa(c.made)
	c.mu.Unlock()
	return c.make(name)
}

func (c *Cells) make(name string) (*Cell, error) {
	cell := &Cell{work: make(chan func())}
	if c.groups != nil {
		g, err := c.groups.make(name)
		if err != nil {
			return nil, messages.Errorf(messages.Unavailable, "control group: %v", err)
		}
		cell.group = g
	}
	ready := make(chan error)
	go cell.serve(c.config.MayGainPrivileges, ready)
	if err := <-ready; err != nil {
		return nil, messages.Errorf(messages.Unavailable, "control group: %v", err)
	}
	return cell, nil
}

// Leave ends whatever is left in a cell and gives it to the next task.
func (c *Cells) Leave(cell *Cell) {
	if cell.group != nil && !cell.group.empty() {
		if err := cell.Kill(); err != nil {
			cell.close() // something in it does not die: nobody else gets it
			return
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.free = append(c.free, cell)
}

// Close removes the cells, which must all have been given back.
func (c *Cells) Close() (err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, cell := range c.free {
		err = errors.Join(err, cell.close())
	}
	c.free = nil
	if c.groups != nil {
		err = errors.Join(err, c.groups.close())
	}
	return err
}

// Cell holds one task.
type Cell struct {
	group  group // nil: there are none here
	work   chan func()
	limits Limits
	killed uint64 // by the memory limit, before this task
}

// serve runs what is to be run inside the cell, on a thread that ends with it.
func (c *Cell) serve(mayGain bool, ready chan<- error) {
	runtime.LockOSThread() // and never unlocked: the thread is no good for others
	if unix.Gettid() == unix.Getpid() {
		// The first thread of a process never ends, and stands for the whole of it
		// in /proc: another one must go inside.
		defer runtime.UnlockOSThread()
		elsewhere := make(chan error)
		go c.serve(mayGain, elsewhere)
		ready <- <-elsewhere
		return
	}
	var err error
	if !mayGain {
		err = unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
	}
	if err == nil && c.group != nil {
		err = c.group.enter()
	}
	ready <- err
	if err != nil {
		return
	}
	for f := range c.work {
		f()
	}
}

// Run calls f on the cell's thread; what f forks is inside the cell.
func (c *Cell) Run(f func()) {
	done := make(chan struct{})
	c.work <- func() {
		defer close(done)
		f()
	}
	<-done
}

// Attributes completes how a process is to be started by f of [Cell.Run].
func (c *Cell) Attributes(a *syscall.SysProcAttr) {
	if c.group != nil {
		c.group.clone(a)
	}
}

// Freeze suspends all processes of the cell, or lets them go on. It reports
// false where there is no such thing.
func (c *Cell) Freeze(frozen bool) (bool, error) {
	if c.group == nil {
		return false, nil
	}
	err := c.group.freeze(frozen)
	if errors.Is(err, errNoFreezer) {
		return false, nil
	}
	return true, err
}

// Kill ends every process of the cell.
func (c *Cell) Kill() error {
	if c.group == nil {
		return nil
	}
	return c.group.kill()
}

// OutOfMemory reports whether the memory limit ended a process of the task.
func (c *Cell) OutOfMemory() bool { return c.group != nil && c.group.killed() > c.killed }

func (c *Cell) close() error {
	close(c.work)
	if c.group == nil {
		return nil
	}
	return c.group.remove()
}

var errNoFreezer = errors.New("there is no freezer here")
