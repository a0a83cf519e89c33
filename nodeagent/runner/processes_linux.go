package runner

import (
	"cmp"
	"errors"
	"fmt"
	"hash/fnv"
	"maps"
	"math"
	"os"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/agent"
	"github.com/candor-grid/candor/nodeagent/runner/access"
	"github.com/candor-grid/candor/nodeagent/runner/cell"
	"github.com/candor-grid/candor/nodeagent/runner/lane"
	"github.com/candor-grid/candor/nodeagent/runner/launch"
	"github.com/candor-grid/candor/nodeagent/runner/machine"
	"github.com/candor-grid/candor/nodeagent/runner/program"
	"github.com/candor-grid/candor/nodeagent/runner/room"
	"github.com/candor-grid/candor/nodeagent/runner/session"
	"github.com/candor-grid/candor/nodeagent/runner/store"
	"github.com/candor-grid/candor/nodeagent/runner/stream"
	"github.com/candor-grid/candor/nodeagent/runner/users"
)

var _ Real = (*Processes)(nil)

// Processes is a [Real] that starts the processes itself, and keeps their output.
type Processes struct {
	config Config
	store  *store.Store
	cells  *cell.Cells
	notes  *session.Handles
	null   *os.File
	watch  lane.Watcher
	forge  *launch.Forge
	ends   *launch.Ends
	rooms  *room.Rooms  // nil if tasks have the namespaces of this process
	loose  bool         // tasks are not in control groups
	lacks  error        // why there are no rooms although Config.Apart asks for them
	adopts bool         // if a descendant's parent ends, the kernel makes the descendant a child of this process
	forks  launch.Forks // processes that this runner started
	// freeze is [cell.Cell.Freeze], or a replacement that a test sets.
	freeze func(c *cell.Cell, frozen bool) (bool, error)

	stock *machine.Stock // says which tasks have which parts of the machine

	ownPeak atomic.Int64 // the largest known memory of this process, in bytes

	following sync.Mutex // held during followSpace; lock it before mu

	until atomic.Int64 // the last end of the lease that tasks were told, on the clock of package boottime

	streams *stream.Streams

	mu        sync.Mutex
	running   map[messages.Attempt]*process
	checks    *time.Timer // timer of the checks of output, memory and disk
	wake      alarm       // wakes followSpace
	seldom    bool        // checks are rare, because no task runs
	summing   bool        // the disk space of accounts is being measured
	sumNext   time.Time   // earliest time of the next measurement
	quiet     bool        // the free space is read rarely, because no task runs
	relieving bool        // space is being freed
	braking   bool        // tasks are suspended until it is known which tasks fill the disk
	acted     struct {    // the last action of followSpace: the free space at that time, the time, and when tasks were last resumed
		free    int64
		at      time.Time
		braked  int64
		resumed time.Time
	}
	looked struct { // the last measurement of followSpace
		free int64
		at   time.Time
	}
	closed bool
	tasks  sync.WaitGroup
}

// NewProcesses makes a runner with a state directory.
func NewProcesses(c Config) (*Processes, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	if err := keepInherited(); err != nil {
		return nil, messages.Errorf(messages.Unavailable, "runner: %v", err)
	}
	p := &Processes{config: c, running: map[messages.Attempt]*process{}, stock: machine.NewStock(c.Machine)}
	p.streams = stream.NewStreams(p.runs)
	var err error
	if p.store, err = store.Open(p.storeConfig()); err != nil {
		return nil, err
	}
	if p.null, err = os.Open(os.DevNull); err != nil {
		return nil, messages.Errorf(messages.Unavailable, "runner: %v", err)
	}
	p.notes = session.OpenHandles(p.config.Dir, "CANDOR_SITE="+c.Site, "CANDOR_NODE="+c.Node)
	if p.config.Apart {
		// The field Private of the configuration says whether tasks must have namespaces. If it is not set, tasks also
		// run on a machine that has no namespaces.
		if p.rooms, err = p.config.openRooms(p.store); err != nil {
			err = messages.Errorf(messages.Unavailable, "tasks cannot have namespaces of their own here: %s", messages.Detail(err))
			if p.needsRooms() {
				return nil, err
			}
			p.lacks = err
		}
	}
	if p.rooms == nil && p.config.User != "" {
		if err := p.config.letThrough(); err != nil {
			return nil, err
		}
	}
	p.cells, p.freeze = new(cell.Cells), (*cell.Cell).Freeze
	if !p.config.NoCells {
		p.cells = cell.Open(cellsName(&p.config), p.config.Machine.Controllers()...)
	}
	p.loose = !slices.Contains(p.cells.Abilities(), agent.AbilityFreeze)
	programs := p.config.programs()
	if p.rooms != nil {
		programs.Commands = room.CommandsDir
	}
	p.store.Use(programs, program.PerAccount(p.config.User) && !p.loose)
	if p.forge, err = launch.NewForge(launch.Rules{Clones: p.cells.Clones(), Namespaces: p.config.Namespaces}); err != nil {
		return nil, err
	}
	if p.ends, err = launch.OpenEnds(); err != nil {
		return nil, err
	}
	if p.wake, err = newAlarm(); err != nil {
		return nil, err
	}
	if p.rooms != nil {
		p.rooms.Use(p.cells, p.loose)
	}
	go p.store.RemoveMoved() // in the background, because there may be many files to remove
	p.config.KeepFree = Reserve(p.config.Dir, p.config.KeepFree)
	p.config.KeptLimit = cmp.Or(p.config.KeptLimit, max(sizeOf(p.config.Dir)/keptShare, leastKept))
	p.adopts = p.config.Alone && p.rooms == nil && p.loose && unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == nil
	p.mu.Lock()
	defer p.mu.Unlock()
	p.checks = time.AfterFunc(p.config.CheckEvery, p.check)
	p.acted.braked = math.MaxInt64
	p.tasks.Add(1)
	go p.followSpace()
	return p, nil
}

func (p *Processes) storeConfig() store.Config {
	c := &p.config
	return store.Config{Dir: c.Dir, KeepJobs: c.KeepJobs, Users: c.User != "", MostOutput: c.mostOutput(), OutputTail: c.OutputTail,
		Runs: p.runs, Closing: p.closing}
}

// programs returns the part of the configuration that says how the programs of tasks are made. The state directory must
// exist.
func (c *Config) programs() program.Config {
	made := program.Config{Site: c.Site, Node: c.Node, User: c.User, Memory: c.Machine.Memory, Proxy: c.Proxy, NoExec: NoExec(c.Dir)}
	if among, is := users.Parse(c.User); is {
		made.Numbers = users.Open(c.Users, among)
	}
	return made
}

// openRooms opens the rooms of the node, if they can be made here.
func (c *Config) openRooms(s *store.Store) (*room.Rooms, error) {
	return room.Open(room.Config{Dir: c.Dir, Private: c.Private, Hide: c.Hide, Inside: c.Inside, Namespaces: c.Namespaces, Shared: c.shared()}, s.Discard)
}

// NoExec reports whether files in a state directory cannot be executed. Then scripts of jobs run as arguments of their
// interpreters, and programs there cannot run.
func NoExec(dir string) bool {
	var at unix.Statfs_t
	return unix.Statfs(dir, &at) == nil && at.Flags&unix.MS_NOEXEC != 0
}

// letThrough gives the users of tasks the right to pass through the directories above their own, but not to list them.
// Without namespaces, tasks can reach their own directories only in this way.
func (c *Config) letThrough() error {
	for _, dir := range c.Hide {
		info, err := os.Stat(dir)
		if err != nil || !access.Beneath(c.Dir, dir) {
			continue
		}
		if err := os.Chmod(dir, info.Mode().Perm()|access.ThroughDirs&0o011); err != nil {
			return messages.Errorf(messages.PermissionDenied, "runner: cannot give tasks access to the parents of their directories: %v", err)
		}
	}
	return nil
}

// keepInherited keeps tasks from inheriting files that this process itself inherited: an open descriptor gives access
// that its user may not have.
func keepInherited() error {
	err := unix.CloseRange(3, math.MaxUint32, unix.CLOSE_RANGE_CLOEXEC)
	if err == nil {
		return nil
	}
	entries, err := os.ReadDir("/proc/self/fd") // for kernels older than 5.11
	for _, e := range entries {
		if fd, err := strconv.Atoi(e.Name()); err == nil && fd > 2 {
			unix.CloseOnExec(fd)
		}
	}
	return err
}

// Lacks returns an error if tasks have no namespaces although the configuration asks for them.
func (p *Processes) Lacks() error { return p.lacks }

// needsRooms reports whether only namespaces can separate tasks as the configuration asks.
func (p *Processes) needsRooms() bool {
	return p.config.Private || p.config.User != "" && !program.PerAccount(p.config.User)
}

// cellsName returns a name that no other node on this machine has. It depends on the state directory, because two nodes
// can have the same name.
func cellsName(c *Config) string {
	h := fnv.New32a()
	h.Write([]byte(c.Dir))
	return fmt.Sprintf("%s-%08x", c.Node, h.Sum32())
}

// Abilities returns what the runner can do with tasks on this machine.
func (p *Processes) Abilities() []messages.Name {
	all := p.cells.Abilities()
	if p.config.User != "" {
		all = append(all, agent.AbilityUser)
	}
	if p.config.Namespaces {
		all = append(all, agent.AbilityNamespaces)
	}
	if p.rooms != nil {
		all = append(all, agent.AbilityApart)
		if p.config.Private {
			all = append(all, agent.AbilityPrivate)
		}
	}
	slices.Sort(all)
	return all
}

// Start starts a task. The steps of the start that may take long run in a separate goroutine.
func (p *Processes) Start(task Task, done func(agent.Finished)) Process {
	t := &process{
		runner: p, task: task, done: done, opened: make(chan struct{}), ended: make(chan struct{}),
		files: p.store.Files(task.Program.Account, task.Attempt, p.config.outputLimit(task.Program.Class)),
	}
	if err := p.enter(t); err != nil {
		now := p.config.Clock()
		done(agent.Finished{Attempt: task.Attempt, Outcome: agent.Unstartable, Started: now, Ended: now, Detail: messages.Detail(err)})
		return ended{}
	}
	if t.prompt() {
		t.begin()
	} else {
		go t.begin()
	}
	return t
}

func (p *Processes) enter(t *process) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return messages.Errorf(messages.Unavailable, "the node is shutting down")
	}
	if p.running[t.task.Attempt] != nil {
		return messages.Errorf(messages.Conflict, "attempt %d of task %v is running already", t.task.Attempt.Number, t.task.Attempt.Task)
	}
	p.running[t.task.Attempt] = t
	p.tasks.Add(1)
	t.braked = p.braking
	if len(t.task.Program.Outputs) > 0 {
		p.store.Hold(t.task.Attempt)
	}
	if p.seldom {
		p.seldom = false
		p.checks.Reset(p.config.CheckEvery)
	}
	if p.quiet {
		p.quiet = false
		p.wake.ring()
	}
	return nil
}

func (p *Processes) leave(t *process) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.running, t.task.Attempt)
	close(t.ended)
}

// check checks the output and the memory of every running task, and the disk. It sets a timer for the next check.
func (p *Processes) check() {
	p.streams.Sweep()
	for _, t := range p.tasksNow() {
		if t.look() != "" {
			t.end(agent.Exceeded, t.runner.config.Grace)
		}
	}
	p.store.CloseIdle()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return
	}
	p.startSum()
	wait := p.config.CheckEvery
	if p.seldom = len(p.running) == 0; p.seldom {
		wait = max(wait, idleEvery)
	}
	p.checks.Reset(wait)
}

func (p *Processes) lookup(a messages.Attempt) *process {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.running[a]
}

func (p *Processes) runs(a messages.Attempt) bool { return p.lookup(a) != nil }

func (p *Processes) tasksNow() []*process {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Collect(maps.Values(p.running))
}

// closeWithin is how long Close waits for killed tasks. The wait has a limit because the kernel does not end a process
// while it waits for a device.
const closeWithin = 10 * time.Second

// Close kills the running tasks, and waits until all ends are reported. Kept output stays.
func (p *Processes) Close() error {
	p.mu.Lock()
	if p.closed {
		p.mu.Unlock()
		return nil
	}
	p.closed = true
	p.checks.Stop()
	p.wake.ring()
	p.mu.Unlock()
	for _, t := range p.tasksNow() {
		t.Stop(0)
	}
	ended := make(chan struct{})
	go func() { p.tasks.Wait(); close(ended) }()
	select {
	case <-ended:
		p.forge.Close()
		failed := errors.Join(p.null.Close(), p.watch.Close(), p.ends.Close(), p.cells.Close(), p.notes.Close())
		if p.rooms != nil {
			failed = errors.Join(failed, p.rooms.Close())
		}
		return failed
	case <-time.After(closeWithin):
		return messages.Errorf(messages.Unavailable, "%d tasks still run %v after they were killed", len(p.tasksNow()), closeWithin)
	}
}
