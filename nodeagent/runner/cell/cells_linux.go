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

// Limits bounds the resources of a task. In each number, 0 means no bound.
type Limits struct {
	Memory int64   // bytes, of all processes of the task together
	Pids   int64   // processes and threads
	CPU    float64 // processors
	// Set lists the processors that the task may use, such as "0-3,8". "" means all processors.
	Set string
	// Devices lists the devices that a task may open (+) and may not open (-), such as "c 195:0 + c 195:1 -". "" means
	// no change.
	Devices string
}

// DefaultPids is the maximum number of processes and threads of a task without a limit of its own. The kernel enforces
// the maximum if this costs nothing. Otherwise the runner counts the processes at intervals.
const DefaultPids = 4096

// Cells has the cells of one node. It is safe for concurrent use.
type Cells struct {
	limited pool // cells that can bound a task
	plain   pool // cells that bound nothing and cost less; without such cells, all tasks use `limited`
}

// pool has the cells of one kind. The field `groups` makes a control group for each cell. If it is nil, the cells have
// no control groups.
type pool struct {
	groups groups

	mu   sync.Mutex
	free []*Cell
	late late // cells that could not be removed yet
}

type groups interface {
	abilities() []messages.Name
	// make makes a group with a name that is unique on this machine. An earlier run of the node may still be ending,
	// and would end every group whose name it has used.
	make(name string) (group, error)
	// close removes the group above all cells, unless a later run of the node has cells in it.
	close() error
}

type group interface {
	// threaded reports whether a child is in the group if a thread in the group has forked it.
	threaded() bool
	enter() error // puts the calling thread into the group
	// clone sets the attributes that start a process inside the group, if the group needs them.
	clone(*syscall.SysProcAttr)
	limit(Limits) error
	freeze(bool) error
	kill() error // kills every process in the group, except this process
	empty() bool
	processes() []int
	killed() uint64 // number of processes that the memory limit has killed
	used() uint64   // bytes that count against the memory limit; 0 if unknown
	remove() error
}

// Open finds out what kind of cells this machine offers. It ends processes that an earlier run of the node left in
// cells. The argument `name` identifies the node on this machine. The argument `more` can list the controllers [Set]
// and [Devices]: with them, tasks can have processors or devices of their own.
func Open(name string, more ...string) *Cells {
	cells := new(Cells)
	beside := v2Mount + "/unified" // groups of version 2, on a machine that also has version 1
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

// Holds reports whether cells can limit tasks with a controller, such as [Devices].
func (c *Cells) Holds(controller string) bool {
	switch g := c.limited.groups.(type) {
	case *v1:
		return g.bases[controller] != ""
	case *v2:
		return controller == Devices && g.filters || slices.Contains(g.controllers, controller)
	}
	return false
}

// Clones reports whether some cells can start a process inside themselves only with clone3.
func (c *Cells) Clones() bool {
	_, plain := c.plain.groups.(*v2)
	_, limited := c.limited.groups.(*v2)
	return plain || limited
}

// use tells a pool in which control groups to make its cells. The argument `left` lists groups of an earlier run that
// could not be removed: the pool tries again to remove them.
func (p *pool) use(g groups, left []group) {
	p.groups = g
	p.late.add(left...)
}

// Abilities returns the abilities of cells on this machine.
func (c *Cells) Abilities() (all []messages.Name) {
	for _, p := range []*pool{&c.limited, &c.plain} {
		if p.groups != nil {
			all = append(all, p.groups.abilities()...)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// Take returns an empty cell with these limits, in the group of an account, or of none if the argument `of` is nil.
// Give the cell back with [Cells.Leave].
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
			cell.Retire() // the group may be gone, so the next task would fail too
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

// Shared memory that a task left in a cell must not count for the cell's next task. So a cell is used again only if at
// most mostLeft bytes of memory still count for it.
const mostLeft = 8 << 20

// Clean reports whether the cell needs no clean-up, so that [Cells.Leave] takes no time. After a call of Clean, start
// nothing in the cell.
func (c *Cell) Clean() bool {
	c.clean = c.group == nil || !c.retired.Load() && c.group.empty() && c.group.used() <= mostLeft
	return c.clean
}

// Leave ends all processes in a cell and makes the cell available for the next task. A cell is removed instead if it is
// retired, or if more than mostLeft bytes of memory are still charged to it.
func (*Cells) Leave(cell *Cell) {
	if !cell.clean && !cell.Clean() {
		if !cell.group.empty() {
			_ = cell.Kill() // processes that survive are killed again before the cell is removed
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

// Close removes the cells. All must have been given back before.
func (c *Cells) Close() error { return errors.Join(c.plain.close(), c.limited.close()) }

func (p *pool) close() error {
	err := p.empty()
	if p.groups != nil {
		err = errors.Join(err, p.groups.close())
	}
	return err
}

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
	group group       // control group; nil means that this machine has none
	work  chan func() // functions for the thread in the cell; nil means that there is no such thread
	// Thread is data about the thread in the cell. The caller of Run stores it, and must use it only on that thread.
	Thread  any
	limits  Limits
	of      *Account // account in which the task is counted; nil means none
	counted Limits   // the limits that were added to that account
	killed  uint64   // processes that the memory limit had killed before this task
	// The field `retired` is true for a cell that will be removed after its task. A cell is retired in three cases: it
	// was killed or suspended, no process could start in it, or it still counts memory of its task.
	retired atomic.Bool
	clean   bool // nothing is left in the cell since its task ended
}

// Retire marks the cell, so that no other task gets it.
func (c *Cell) Retire() { c.retired.Store(true) }

// OnThread calls f on a new thread that ends after f, because f may change the thread in ways that would harm other
// goroutines. Call it in a separate goroutine.
func OnThread(f func()) {
	runtime.LockOSThread() // never unlocked, so the thread ends
	if unix.Gettid() != unix.Getpid() {
		f()
		return
	}
	// This goroutine runs on the first thread of the process. That thread never ends, and /proc shows its data for the
	// whole process, so f must not run on it. While this goroutine is locked to the first thread, Go runs the goroutine
	// of f on another thread.
	defer runtime.UnlockOSThread()
	begun := make(chan struct{})
	go OnThread(func() {
		close(begun)
		f()
	})
	<-begun
}

// serve enters the cell, and calls the functions that Run sends.
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

// Run calls f. Processes that f starts with [Cell.Attributes] are inside the cell.
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

// Threaded reports whether [Cell.Run] always uses the same thread of the cell.
func (c *Cell) Threaded() bool { return c.work != nil }

// Attributes sets the attributes that start a process inside the cell. Call it in the function that [Cell.Run] runs.
func (c *Cell) Attributes(a *syscall.SysProcAttr) {
	if c.group != nil {
		c.group.clone(a)
	}
}

// Freeze suspends or resumes all processes of the cell. It returns false if the machine cannot do
// this.
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

// Kill ends every process of the cell, and retires the cell. It cannot be used again: if a group was killed once,
// recent kernels also kill each process that is cloned into it later.
func (c *Cell) Kill() error {
	if c.group == nil {
		return nil
	}
	c.Retire()
	return c.group.kill()
}

// Processes lists the processes in the cell. The result `known` is false if the machine cannot list them.
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
	errNoFreezer = errors.New("the control group has no freezer")
	errNotEnding = errors.New("processes of a task were killed, but do not end")
)
