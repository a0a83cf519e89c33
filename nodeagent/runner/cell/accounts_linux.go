package cell

import (
	"crypto/rand"
	"errors"
	"math/bits"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/sys/unix"
)

// Account is a control group that contains the cells of one account. Some memory outlives a task's cell, for example
// shared memory and the kernel's buffers for connections. Account still counts this memory, so that it stays within the
// limits of the account's tasks. The zero value bounds nothing.
type Account struct {
	sum  sum  // nil means that the machine cannot count for accounts
	pool pool // cells that can bound a task

	mu      sync.Mutex
	running int
	memory  int64 // sum of the running tasks' memory limits, in bytes
	endless int   // number of running tasks whose memory is not bounded
	most    bound // the limits that were last set
}

// bound is the limit for all tasks of an account together: the sum of the limits of the single tasks.
type bound struct {
	memory int64 // bytes; 0 means no bound
	tasks  int   // number of tasks, rounded up to a power of two
}

type sum interface {
	enter() error // puts the calling thread into the groups
	bound(b bound, pids int64) error
	remove() error
}

// Some kinds of control groups can have one group for each account, which contains the groups of the account's tasks.
// summing is implemented by these kinds.
type summing interface {
	account(name string) (groups, sum, error)
}

// sumMargin is added to the sum of the tasks' memory limits, in bytes. Without it, the kernel would look for free
// memory at the end of each task.
const sumMargin = 64 << 20

// accountPrefix is the beginning of the names of accounts' control groups. The control groups of cells are below these.
const accountPrefix = "account-"

// Account makes the group of an account. If the machine cannot have one, the result bounds nothing.
func (c *Cells) Account() *Account {
	a := new(Account)
	of, ok := c.limited.groups.(summing)
	if !ok {
		return a
	}
	below, sum, err := of.account(accountPrefix + rand.Text())
	if err != nil {
		return a
	}
	a.sum, a.pool.groups = sum, below
	return a
}

// Enter puts the calling thread into the account's group. Processes that the thread forks are in the group until they
// enter a cell.
func (a *Account) Enter() error {
	if a == nil || a.sum == nil {
		return nil
	}
	return a.sum.enter()
}

// begin counts a task before it starts, and raises the limits of the account's group if needed. The limits are never
// lowered: a change costs more than the start of a task, and the group may still have memory of earlier tasks.
func (a *Account) begin(l Limits) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.running++
	a.memory += l.Memory
	if l.Memory == 0 {
		a.endless++
	}
	want := a.most
	if a.endless > 0 {
		want.memory = 0
	} else if a.most.memory > 0 || a.most.tasks == 0 {
		want.memory = max(a.most.memory, a.memory+sumMargin)
	}
	if a.running > want.tasks {
		want.tasks = 1 << bits.Len(uint(a.running-1))
	}
	if want == a.most {
		return nil
	}
	a.most = want
	pids := l.Pids
	if pids == 0 {
		pids = DefaultPids
	}
	return a.sum.bound(want, min(pids*int64(want.tasks), machineProcesses()/machineShare))
}

func (a *Account) end(l Limits) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.running--
	a.memory -= l.Memory
	if l.Memory == 0 {
		a.endless--
	}
}

// Close removes the group. No process may run in it.
func (a *Account) Close() error {
	if a == nil || a.sum == nil {
		return nil
	}
	return errors.Join(a.pool.empty(), a.sum.remove())
}

// account makes a group for an account in each controller that can count for accounts. The other controllers get no
// such group: there the cells of all accounts are in the same parent group, so all tasks have the same weight.
func (g *v1) account(name string) (groups, sum, error) {
	s := &v1Sum{dirs: map[string]string{}}
	below := &v1{bases: map[string]string{}}
	for controller, base := range g.bases {
		below.bases[controller] = base
		if controller != memory && controller != pids {
			continue
		}
		if err := mkdir(base, name, g.again); err != nil {
			return nil, nil, errors.Join(err, s.remove())
		}
		dir := filepath.Join(base, name)
		s.dirs[controller], below.bases[controller] = dir, dir
		_ = write(dir, "memory.use_hierarchy", int64(1)) // newer kernels always count hierarchically
	}
	if len(s.dirs) == 0 {
		return nil, nil, errNotCounted
	}
	return below, s, nil
}

var errNotCounted = errors.New("this control group does not count its usage")

type v1Sum struct{ dirs map[string]string }

func (s *v1Sum) enter() error {
	for _, dir := range s.dirs {
		if err := write(dir, "tasks", int64(unix.Gettid())); err != nil {
			return err
		}
	}
	return nil
}

// machineShare is 4: the machine's processes, and the memory of its connections, are divided into four parts. The tasks
// of one account may use one part. All tasks of a node together may use three parts.
const machineShare = 4

// buffers is the file that bounds the memory of connections.
const buffers = "memory.kmem.tcp.limit_in_bytes"

func (s *v1Sum) bound(b bound, processes int64) error {
	const unbounded = -1
	if dir := s.dirs[memory]; dir != "" {
		most := b.memory
		if most == 0 {
			most = unbounded
		}
		if err := write(dir, "memory.limit_in_bytes", most); err != nil {
			return err
		}
		if most == unbounded {
			most = machineBuffers() / machineShare
		}
		_ = write(dir, buffers, most) // some kernels cannot count buffers
	}
	if dir := s.dirs[pids]; dir != "" {
		return write(dir, "pids.max", processes+int64(b.tasks)+1) // the threads that start tasks also count
	}
	return nil
}

func (s *v1Sum) remove() (err error) {
	for _, dir := range s.dirs {
		err = errors.Join(err, rmdirs(dir))
	}
	return err
}

// machineProcesses is how many processes and threads this machine can have.
var machineProcesses = sync.OnceValue(func() int64 {
	most := int64(1 << 15) // the least that kernels use
	for i, file := range []string{"/proc/sys/kernel/pid_max", "/proc/sys/kernel/threads-max"} {
		text, _ := os.ReadFile(file)
		n, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
		if err == nil && (i == 0 || n < most) {
			most = n
		}
	}
	return most
})

// machineBuffers is how much memory the connections of this machine may have together, in bytes.
var machineBuffers = sync.OnceValue(func() int64 {
	text, _ := os.ReadFile("/proc/sys/net/ipv4/tcp_mem") // the file has three numbers of pages
	f := strings.Fields(string(text))
	if len(f) != 3 {
		return 1 << 30
	}
	pages, _ := strconv.ParseInt(f[2], 10, 64)
	return pages * int64(os.Getpagesize())
})

// account makes the control group of an account, below the group g. In the new group, it enables each controller of g,
// so that the groups of the account's tasks can use these controllers.
func (g *v2) account(name string) (groups, sum, error) {
	below := &v2{mount: g.mount, path: filepath.Join(g.path, name), dir: filepath.Join(g.dir, name), controllers: g.controllers, filters: g.filters}
	if err := mkdir(g.dir, name, g.again); err != nil {
		return nil, nil, err
	}
	for _, c := range g.controllers {
		if err := write(below.dir, "cgroup.subtree_control", "+"+c); err != nil {
			return nil, nil, errors.Join(err, rmdir(below.dir))
		}
	}
	return below, &v2Sum{below.dir, g.controllers}, nil
}

type v2Sum struct {
	dir         string
	controllers []string
}

func (*v2Sum) enter() error { return nil } // every process of version 2 is in a cell

const mostWeight = 10_000

func (s *v2Sum) bound(b bound, processes int64) error {
	for _, c := range s.controllers {
		file, value := "", ""
		switch c {
		case memory:
			file, value = "memory.max", "max"
			if b.memory > 0 {
				value = strconv.FormatInt(b.memory, 10)
			}
		case pids:
			file, value = "pids.max", strconv.FormatInt(processes, 10)
		case cpu: // so that the account's tasks weigh the same as others
			file, value = "cpu.weight", strconv.Itoa(min(100*b.tasks, mostWeight))
		}
		if file == "" {
			continue
		}
		if err := write(s.dir, file, value); err != nil {
			return err
		}
	}
	return nil
}

func (s *v2Sum) remove() error { return rmdirs(s.dir) }
