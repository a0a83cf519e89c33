package cell

import (
	"cmp"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/containerd/cgroups/v3"
	"github.com/containerd/cgroups/v3/cgroup1"
	"github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"

	"github.com/candor-grid/candor/messages"
)

// v1 is control groups of version 1, those controllers of them that may be used.
type v1 struct {
	path cgroup1.Path
	root cgroup1.Cgroup
	use  []cgroup1.Subsystem
	left []group // of an earlier run
}

// nodeWeight is how much all tasks of a node together weigh against one process
// outside when processor time is short: a group counts as one process otherwise,
// however much is in it. Among themselves the tasks weigh the same.
const nodeWeight = 64

// abilityOf names what each controller is for.
var abilityOf = map[cgroup1.Name]messages.Name{
	cgroup1.Freezer: messages.AbilityFreeze,
	cgroup1.Memory:  messages.AbilityMemory,
	cgroup1.Pids:    messages.AbilityPids,
	cgroup1.Cpu:     messages.AbilityCPU,
}

// openV1 finds the controllers of version 1 that may be used; nil: there is none.
func openV1(name string) *v1 {
	if cgroups.Mode() == cgroups.Unified || cgroups.Mode() == cgroups.Unavailable {
		return nil
	}
	all, err := cgroup1.Default()
	if err != nil {
		return nil
	}
	g := &v1{path: cgroup1.NestedPath("candor-" + name)}
	for _, s := range all {
		if _, wanted := abilityOf[s.Name()]; wanted && g.usable(s) {
			g.use = append(g.use, s)
		}
	}
	if len(g.use) == 0 {
		return nil
	}
	if g.root, err = g.base(); err != nil {
		return nil
	}
	g.clear()
	return g
}

// base makes the group of all groups.
func (g *v1) base() (cgroup1.Cgroup, error) {
	weight := uint64(nodeWeight * 1024)
	return cgroup1.New(g.path, &specs.LinuxResources{CPU: &specs.LinuxCPU{Shares: &weight}}, g.hierarchy())
}

func (g *v1) hierarchy(only ...cgroup1.Subsystem) cgroup1.InitOpts {
	if only == nil {
		only = g.use
	}
	return cgroup1.WithHierarchy(func() ([]cgroup1.Subsystem, error) { return slices.Clone(only), nil })
}

// usable reports whether a group of a controller can be made.
func (g *v1) usable(s cgroup1.Subsystem) bool {
	_, err := cgroup1.New(g.path, &specs.LinuxResources{}, g.hierarchy(s))
	return err == nil
}

// clear ends what an earlier run left behind.
func (g *v1) clear() {
	for _, s := range g.use {
		dir := g.dir(s.Name())
		g.left = append(g.left, endOld(dir, func(name string) (group, error) {
			return &v1Group{name: s.Name(), dirs: map[cgroup1.Name]string{s.Name(): filepath.Join(dir, name)}}, nil
		})...)
	}
}

// endOld ends and removes the groups below a directory, and returns those that cannot
// be removed yet.
func endOld(dir string, open func(name string) (group, error)) (left []group) {
	entries, _ := os.ReadDir(dir)
	for _, e := range entries {
		if !e.IsDir() {
			continue
		}
		if old, err := open(e.Name()); err == nil && (old.kill() != nil || old.remove() != nil) {
			left = append(left, old)
		}
	}
	return left
}

// dir is the group of a controller in the file system.
func (g *v1) dir(name cgroup1.Name) string {
	for _, s := range g.use {
		if p, ok := s.(interface{ Path(string) string }); ok && s.Name() == name {
			at, _ := g.path(name)
			return p.Path(at)
		}
	}
	return ""
}

func (g *v1) abilities() (all []messages.Name) {
	for _, s := range g.use {
		all = append(all, abilityOf[s.Name()])
	}
	return all
}

func (g *v1) make(name string) (group, error) {
	again := func() error { _, err := g.base(); return err }
	for _, s := range g.use {
		if err := mkdir(g.dir(s.Name()), name, again); err != nil {
			return nil, err
		}
	}
	control, err := g.root.New(name, &specs.LinuxResources{})
	if err != nil {
		return nil, err
	}
	made := &v1Group{control: control, dirs: map[cgroup1.Name]string{}}
	for _, s := range g.use {
		made.dirs[s.Name()] = filepath.Join(g.dir(s.Name()), name)
		if s.Name() != cgroup1.Freezer {
			made.name = s.Name()
		}
	}
	made.oom = made.open(cgroup1.Memory, "memory.oom_control")
	made.pids = made.open(cgroup1.Pids, "pids.current")
	made.memory = made.open(cgroup1.Memory, "memory.usage_in_bytes")
	return made, nil
}

func (g *v1) close() (err error) {
	for _, s := range g.use {
		err = errors.Join(err, rmdirBase(g.dir(s.Name())))
	}
	return err
}

// v1Group is a group in each controller that is used.
type v1Group struct {
	control cgroup1.Cgroup
	name    cgroup1.Name // a controller to list processes by
	dirs    map[cgroup1.Name]string

	oom, pids, memory *counter // nil where there is none
}

func (g *v1Group) open(of cgroup1.Name, file string) *counter {
	if g.dirs[of] == "" {
		return nil
	}
	c, _ := openCounter(filepath.Join(g.dirs[of], file))
	return c
}

func (*v1Group) threaded() bool { return true }

// enter goes into every group but the freezer's: a process with a frozen thread
// cannot end, not even when it is killed.
func (g *v1Group) enter() error {
	var into []cgroup1.Name
	for name := range g.dirs {
		if name != cgroup1.Freezer {
			into = append(into, name)
		}
	}
	if len(into) == 0 {
		return nil // no name would mean all
	}
	return g.control.AddTask(cgroup1.Process{Pid: unix.Gettid()}, into...)
}

func (*v1Group) clone(*syscall.SysProcAttr) {}

// cpuPeriod is the time over which processor time is counted.
const cpuPeriod = 100 * time.Millisecond

func (g *v1Group) limit(l Limits) error {
	memory, quota := cmp.Or(l.Memory, -1), int64(-1)
	pids := cmp.Or(l.Pids, DefaultPids) + 1 // the thread inside
	if l.CPU > 0 {
		quota = int64(l.CPU * float64(cpuPeriod.Microseconds()))
	}
	period := uint64(cpuPeriod.Microseconds())
	return g.control.Update(&specs.LinuxResources{
		Memory: &specs.LinuxMemory{Limit: &memory},
		Pids:   &specs.LinuxPids{Limit: &pids},
		CPU:    &specs.LinuxCPU{Quota: &quota, Period: &period},
	})
}

// freeze suspends what is inside. The processes are brought into the freezer's
// group only now, when it freezes them as they come: so few tasks are ever
// suspended that the others need not pay for it.
func (g *v1Group) freeze(frozen bool) error {
	dir := g.dirs[cgroup1.Freezer]
	switch {
	case dir == "" || g.name == "":
		return errNoFreezer
	case !frozen:
		return g.control.Thaw()
	}
	if err := g.setFreezer(cgroup1.Frozen); err != nil {
		return err
	}
	procs := filepath.Join(dir, "cgroup.procs")
	for range killRounds {
		inside, _ := os.ReadFile(procs)
		left := outside(g.processes(), inside)
		if len(left) == 0 {
			return g.control.Freeze() // and waits until all are
		}
		for _, pid := range left { // one that ended meanwhile is no matter
			_ = os.WriteFile(procs, []byte(strconv.Itoa(pid)), 0)
		}
	}
	return errors.New("processes of a task are made faster than they can be suspended")
}

func (g *v1Group) setFreezer(s cgroup1.State) error {
	return os.WriteFile(filepath.Join(g.dirs[cgroup1.Freezer], "freezer.state"), []byte(strings.ToUpper(string(s))), 0)
}

// outside returns the processes that a list does not have.
func outside(pids []int, list []byte) (left []int) {
	known := strings.Fields(string(list))
	for _, pid := range pids {
		if !slices.Contains(known, strconv.Itoa(pid)) {
			left = append(left, pid)
		}
	}
	return left
}

func (g *v1Group) empty() bool {
	if g.pids != nil {
		return g.pids.number("") <= 1 // the thread inside
	}
	return len(g.processes()) == 0
}

// processes lists what is alive inside but for this process.
func (g *v1Group) processes() (pids []int) {
	b, _ := os.ReadFile(filepath.Join(g.dirs[g.name], "cgroup.procs"))
	for _, line := range strings.Fields(string(b)) {
		if pid, err := strconv.Atoi(line); err == nil && pid != os.Getpid() && alive(line) {
			pids = append(pids, pid)
		}
	}
	return pids
}

// alive reports whether a process has not ended: one that only waits for its
// parent to ask how it ended stays in its group until then.
func alive(pid string) bool {
	b, err := os.ReadFile("/proc/" + pid + "/stat")
	return err == nil && !strings.HasPrefix(string(b[strings.LastIndexByte(string(b), ')')+1:]), " Z")
}

// A process that was killed is gone soon, unless it waits for a device; new ones
// are made meanwhile by those that are left.
const (
	killRounds = 200
	killPause  = 5 * time.Millisecond
)

func (g *v1Group) kill() error {
	for range killRounds {
		left := g.processes()
		if len(left) == 0 {
			return nil
		}
		for _, pid := range left {
			_ = unix.Kill(pid, unix.SIGKILL)
		}
		if g.dirs[cgroup1.Freezer] != "" {
			_ = g.setFreezer(cgroup1.Thawed) // a frozen process does not die
		}
		time.Sleep(killPause)
	}
	return errNotEnding
}

func (g *v1Group) killed() uint64 { return g.oom.number("oom_kill ") }

func (g *v1Group) used() uint64 { return g.memory.number("") }

func (g *v1Group) remove() (err error) {
	for _, dir := range g.dirs {
		err = errors.Join(err, rmdirs(dir))
	}
	if err != nil {
		return err
	}
	for _, c := range []*counter{g.oom, g.pids, g.memory} {
		c.close()
	}
	return nil
}

// mkdir makes a group below that of all. Where that is gone it is made again,
// once: an earlier run of the node, which shares it, removes it when it ends.
func mkdir(base, name string, again func() error) error {
	dir := filepath.Join(base, name)
	err := os.Mkdir(dir, 0o755)
	if errors.Is(err, fs.ErrNotExist) {
		if err = again(); err == nil {
			err = os.Mkdir(dir, 0o755)
		}
	}
	return err
}

// rmdirBase removes the group of all, unless others than those of this run, which
// are removed before, are in it.
func rmdirBase(dir string) error {
	entries, _ := os.ReadDir(dir)
	if slices.ContainsFunc(entries, fs.DirEntry.IsDir) {
		return nil
	}
	return rmdir(dir)
}

// rmdir removes a group, which is busy until the kernel is done with what ended
// in it just now, such as the thread inside.
func rmdir(dir string) (err error) {
	for range killRounds {
		if err = unix.Rmdir(dir); err != unix.EBUSY {
			break
		}
		time.Sleep(time.Millisecond)
	}
	if err == nil || err == unix.ENOENT {
		return nil
	}
	return &os.PathError{Op: "rmdir", Path: dir, Err: err}
}

// rmdirs removes a group with those that a task made in it.
func rmdirs(dir string) error {
	entries, _ := os.ReadDir(dir)
	for _, e := range entries {
		if e.IsDir() {
			if err := rmdirs(filepath.Join(dir, e.Name())); err != nil {
				return err
			}
		}
	}
	return rmdir(dir)
}

// counter is an open file of a group that is read for every task. As a file of package os it
// would be polled, and the Go runtime woken whenever the group fills or empties.
type counter struct{ fd int }

func openCounter(path string) (*counter, error) {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: path, Err: err}
	}
	return &counter{fd}, nil
}

// number reads a number, after a key where there is one; 0 where there is none.
func (c *counter) number(key string) uint64 {
	if c == nil {
		return 0
	}
	var buffer [256]byte
	n, _ := unix.Pread(c.fd, buffer[:], 0)
	return after(string(buffer[:max(n, 0)]), key)
}

func (c *counter) close() {
	if c != nil {
		_ = unix.Close(c.fd)
		c.fd = -1
	}
}

// after returns the number that follows a key at the beginning of a line, 0 if
// there is none.
func after(text, key string) uint64 {
	_, rest, _ := strings.Cut("\n"+text, "\n"+key)
	digits, _, _ := strings.Cut(rest, "\n")
	v, _ := strconv.ParseUint(strings.TrimSpace(digits), 10, 64)
	return v
}
