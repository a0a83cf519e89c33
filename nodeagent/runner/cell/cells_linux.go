package cell

import (
	"crypto/rand"
	"errors"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/candor-grid/candor/messages"
)

// Limits bounds what a task may use; 0: not bounded.
type Limits struct {
	Memory int64   // bytes, of all its processes together
	Pids   int64   // processes and threads
	CPU    float64 // processors
	// Set is the processors that it may use, as in "0-3,8"; "": all.
	Set string
	// Devices is which devices it may open and which not, as in "c 195:0 + c 195:1 -"; "": as this process.
	Devices string
}

// DefaultPids bounds the processes and threads of a task of which nothing is said,
// at once where that costs nothing, and else as often as somebody looks.
const DefaultPids = 4096

// Cells is the cells of one node. It is safe for concurrent use.
type Cells struct {
	limited pool // of cells that can bound a task
	plain   pool // of cells that cannot, and cost less; none: limited serves all
}

// pool is the cells of one kind. Without groups they hold nothing.
type pool struct {
	groups groups

	mu   sync.Mutex
	free []*Cell
	late late // cells that could not be removed yet
}

// groups makes control groups of one version.
type groups interface {
	abilities() []messages.Name
	// make makes a group of a name that nobody else on this machine uses: an
	// earlier run of the node may still be ending, and ends what has its names.
	make(name string) (group, error)
	// close removes the group of all of them, unless a later run of the node has
	// made its own in it.
	close() error
}

// group is a control group.
type group interface {
	// threaded says that what a thread forks, which is inside, is inside.
	threaded() bool
	enter() error // puts the calling thread inside
	// clone makes a process begin inside, where that is how to get in.
	clone(*syscall.SysProcAttr)
	limit(Limits) error
	freeze(bool) error
	kill() error // everything but this process
	empty() bool
	processes() []int
	killed() uint64 // how many processes the memory limit has ended
	used() uint64   // memory that counts against the limit, in bytes; 0 where nobody counts
	remove() error
}

// Open finds out what kind of cells can be had here, and ends what an earlier
// run of the node left in them. Name is the node's own on this machine. Tasks may have processors and devices of
// their own only where more names the controllers for that, [Set] and [Devices].
func Open(name string, more ...string) *Cells {
	cells := new(Cells)
	beside := v2Mount + "/unified" // groups of version 1
	var at unix.Statfs_t
	if unix.Statfs(v2Mount, &at) == nil && at.Type == unix.CGROUP2_SUPER_MAGIC {
		if g := openV2(v2Mount, topV2(name), more, "memory", "pids"); g != nil {
			cells.limited.use(g, g.left)
			return cells
		}
		beside = v2Mount
	}
	if g := openV2(beside, ownV2(name), nil); g != nil {
		cells.plain.use(g, g.left)
	}
	if g := openV1(name, more); g != nil {
		cells.limited.use(g, g.left)
	}
	return cells
}

// Holds reports whether cells can hold tasks by a controller, such as [Devices].
func (c *Cells) Holds(controller string) bool {
	switch g := c.limited.groups.(type) {
	case *v1:
		return g.bases[controller] != ""
	case *v2:
		return slices.Contains(g.controllers, controller)
	}
	return false
}

// Clones reports whether there are cells into which processes are started by clone3.
func (c *Cells) Clones() bool {
	_, plain := c.plain.groups.(*v2)
	_, limited := c.limited.groups.(*v2)
	return plain || limited
}

// use has a pool make its cells of groups, and removes the groups that an earlier run
// left and that could not be removed yet.
func (p *pool) use(g groups, left []group) {
	p.groups = g
	p.late.add(left...)
}

// Abilities says what cells can do here.
func (c *Cells) Abilities() (all []messages.Name) {
	for _, p := range []*pool{&c.limited, &c.plain} {
		if p.groups != nil {
			all = append(all, p.groups.abilities()...)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// Take returns a cell of an account that nothing runs in, with these limits; nil: of no account's. It must be given
// back by [Cells.Leave].
func (c *Cells) Take(l Limits, of *Account) (*Cell, error) {
	counted := of != nil && of.sum != nil
	p := &c.limited
	switch {
	case c.plain.groups != nil && (l == (Limits{}) || c.limited.groups == nil):
		p = &c.plain
	case counted:
		p = &of.pool
	}
	cell, err := p.take()
	if err != nil || cell.group == nil {
		return cell, err
	}
	if counted {
		cell.of, cell.counted = of, l
		if err := of.begin(l); err != nil {
			cell.Retire()
			c.Leave(cell)
			return nil, messages.Errorf(messages.Unavailable, "limits of the account: %v", err)
		}
	}
	if cell.limits != l {
		if err := cell.group.limit(l); err != nil {
			cell.Retire() // it may be gone, and would fail the next task too
			c.Leave(cell)
			return nil, messages.Errorf(messages.Unavailable, "limits of the task: %v", err)
		}
		cell.limits = l
	}
	if l.Memory > 0 {
		cell.killed = cell.group.killed()
	}
	return cell, nil
}

func (p *pool) take() (*Cell, error) {
	p.mu.Lock()
	if n := len(p.free); n > 0 {
		cell := p.free[n-1]
		p.free = p.free[:n-1]
		p.mu.Unlock()
		return cell, nil
	}
	p.mu.Unlock()
	cell := &Cell{pool: p}
	if p.groups == nil {
		return cell, nil
	}
	if err := cell.make("cell-" + rand.Text()); err != nil {
		return nil, messages.Errorf(messages.Unavailable, "control group: %v", err)
	}
	return cell, nil
}

func (c *Cell) make(name string) (err error) {
	if c.group, err = c.pool.groups.make(name); err != nil || !c.group.threaded() {
		return err
	}
	c.work = make(chan func())
	ready := make(chan error)
	go OnThread(func() { c.serve(ready) })
	return <-ready
}

// mostLeft is how much memory a cell may count, in bytes, when its task has ended: what the
// task left in shared memory is none of the next one's.
const mostLeft = 8 << 20

// Clean reports whether the cell is as the next task may find it: [Cells.Leave] takes no time then.
// Nothing may be started in the cell any more.
func (c *Cell) Clean() bool {
	c.clean = c.group == nil || !c.retired.Load() && c.group.empty() && c.group.used() <= mostLeft
	return c.clean
}

// Leave ends whatever is left in a cell and gives it to the next task, unless it
// is retired, or counts too much memory: such a cell is removed.
func (*Cells) Leave(cell *Cell) {
	if !cell.clean && !cell.Clean() {
		if !cell.group.empty() {
			_ = cell.Kill() // what does not end is killed again before the cell is removed
		}
		cell.Retire()
	}
	cell.clean = false
	if cell.of != nil {
		cell.of.end(cell.counted)
		cell.of = nil
	}
	cell.pool.leave(cell)
}

func (p *pool) leave(cell *Cell) {
	if cell.retired.Load() && cell.group != nil {
		p.remove(cell)
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.free = append(p.free, cell)
}

// Close removes the cells, which must all have been given back.
func (c *Cells) Close() error { return errors.Join(c.plain.close(), c.limited.close()) }

func (p *pool) close() error {
	err := p.empty()
	if p.groups != nil {
		err = errors.Join(err, p.groups.close())
	}
	return err
}

// empty removes the cells.
func (p *pool) empty() (err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, cell := range p.free {
		err = errors.Join(err, cell.close())
	}
	p.free = nil
	return errors.Join(err, p.late.retry(true))
}

// Cell holds one task.
type Cell struct {
	pool  *pool
	group group       // nil: there are none here
	work  chan func() // to the thread inside; nil: there is none
	// Thread is what whoever calls Run knows of that thread; touched there only.
	Thread  any
	limits  Limits
	of      *Account // whose task it holds, if that is counted
	counted Limits   // as what it is counted there
	killed  uint64   // by the memory limit, before this task
	// retired cells are removed after their task: they were killed, or suspended, or
	// failed to take a process, or count memory that was left.
	retired atomic.Bool
	clean   bool // known to be, since its task has ended
}

// Retire keeps the cell from being given to another task.
func (c *Cell) Retire() { c.retired.Store(true) }

// OnThread calls f on a thread that ends with f: the thread may change in ways that
// other goroutines could not bear. It is to be called by a goroutine of its own.
func OnThread(f func()) {
	runtime.LockOSThread() // and never unlocked
	if unix.Gettid() != unix.Getpid() {
		f()
		return
	}
	// The first thread of a process never ends, and stands for the whole process in
	// /proc: another thread must do it.
	defer runtime.UnlockOSThread()
	begun := make(chan struct{})
	go OnThread(func() {
		close(begun)
		f()
	})
	<-begun
}

// serve goes inside the cell, and runs there what is to be run.
func (c *Cell) serve(ready chan<- error) {
	err := c.group.enter()
	ready <- err
	if err != nil {
		return
	}
	for f := range c.work {
		f()
	}
}

// Run calls f; what f forks, with [Cell.Attributes], is inside the cell.
func (c *Cell) Run(f func()) {
	if c.work == nil {
		f()
		return
	}
	done := make(chan struct{})
	c.work <- func() {
		defer close(done)
		f()
	}
	<-done
}

// Threaded reports whether the cell has a thread of its own for [Cell.Run], always
// the same one.
func (c *Cell) Threaded() bool { return c.work != nil }

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
	c.Retire() // a task may end while it is being suspended, and leave the cell frozen
	err := c.group.freeze(frozen)
	if errors.Is(err, errNoFreezer) {
		return false, nil
	}
	return true, err
}

// Kill ends every process of the cell, and retires it: under recent kernels a
// group that was killed once kills whatever is cloned into it later.
func (c *Cell) Kill() error {
	if c.group == nil {
		return nil
	}
	c.Retire()
	return c.group.kill()
}

// Processes lists the processes in the cell; known: the machine tells.
func (c *Cell) Processes() (numbers []int, known bool) {
	if c.group == nil {
		return nil, false
	}
	return c.group.processes(), true
}

// OutOfMemory reports whether the memory limit ended a process of the task.
func (c *Cell) OutOfMemory() bool {
	return c.group != nil && c.limits.Memory > 0 && c.group.killed() > c.killed
}

func (c *Cell) close() error {
	if c.work != nil {
		close(c.work)
	}
	if c.group == nil {
		return nil
	}
	return c.group.remove()
}

var (
	errNoFreezer = errors.New("there is no freezer here")
	errNotEnding = errors.New("processes of a task do not end though they were killed")
)
