package cell

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/agent"
)

type v1 struct {
	bases map[string]string // directory of the group above all cells, by controller
	left  []group           // groups of an earlier run
}

// nodeWeight is the weight of all tasks of a node together when processor time is short. A process that belongs to no
// task has weight 1. Without nodeWeight, all tasks together would get only as much time as one such process.
const nodeWeight = 64

// These are the controllers of version 1 of Linux control groups that the package uses.
const (
	cpu     = "cpu"
	freezer = "freezer"
	memory  = "memory"
	pids    = "pids"
	Set     = "cpuset"
	Devices = "devices"
)

var abilityOf = map[string]messages.Name{
	freezer: agent.AbilityFreeze,
	memory:  agent.AbilityMemory,
	pids:    agent.AbilityPids,
	cpu:     agent.AbilityCPU,
}

// openV1 returns the usable controllers of control groups of version 1, or nil if there are none. It uses a controller
// in two cases: the controller gives the node an ability, or `more` contains its name.
func openV1(name string, more []string) *v1 {
	g := &v1{bases: map[string]string{}}
	for controller, own := range ownV1() {
		dir := filepath.Join(own, "candor-"+name)
		if (abilityOf[controller] != "" || slices.Contains(more, controller)) && isV1(own) && os.MkdirAll(dir, 0o755) == nil {
			g.bases[controller] = dir
		}
	}
	if len(g.bases) == 0 || g.again() != nil {
		return nil
	}
	for controller, base := range g.bases {
		g.left = append(g.left, endOld(base, func(name string) (group, error) {
			return &v1Group{name: controller, dirs: map[string]string{controller: filepath.Join(base, name)}}, nil
		})...)
	}
	return g
}

// ownGroups returns the control groups of this process, by controller; "" is the group of version
// 2.
func ownGroups() map[string]string {
	own := map[string]string{}
	text, _ := os.ReadFile("/proc/self/cgroup") // lines like 4:cpu,cpuacct:/user
	for line := range strings.Lines(string(text)) {
		if part := strings.SplitN(strings.TrimSuffix(line, "\n"), ":", 3); len(part) == 3 {
			for controller := range strings.SplitSeq(part[1], ",") {
				own[controller] = part[2]
			}
		}
	}
	return own
}

// ownV1 returns the directories of this process's control groups of version 1, by controller. In a container, a mount
// may show only a part of the tree of groups. So the paths are computed relative to the group at which the mount
// begins.
func ownV1() map[string]string {
	own, dirs := ownGroups(), map[string]string{}
	text, _ := os.ReadFile("/proc/self/mountinfo")
	for line := range strings.Lines(string(text)) {
		mount, system, _ := strings.Cut(line, " - ") // example of a line: 35 31 0:32 /seen /mounted rw - cgroup cgroup rw,memory
		m, s := strings.Fields(mount), strings.Fields(system)
		if len(m) < 5 || len(s) < 3 || s[0] != "cgroup" {
			continue
		}
		for controller := range strings.SplitSeq(s[2], ",") {
			below, err := filepath.Rel(m[3], own[controller])
			if err == nil && own[controller] != "" && dirs[controller] == "" {
				dirs[controller] = filepath.Join(m[4], filepath.Join("/", below))
			}
		}
	}
	return dirs
}

// isV1 reports whether a directory is a control group of version 1. In a container, another file system may be mounted
// over the control groups. The directories of such a file system are not control groups, and a limit in them has no
// effect.
func isV1(dir string) bool {
	var s unix.Statfs_t
	return unix.Statfs(dir, &s) == nil && s.Type == unix.CGROUP_SUPER_MAGIC
}

func write[T string | int64](dir, file string, value T) error {
	return os.WriteFile(filepath.Join(dir, file), fmt.Append(nil, value), 0)
}

// This method makes the parent groups of all cells if they are missing, and sets their limits.
func (g *v1) again() error {
	for _, dir := range g.bases {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
	}
	if dir := g.bases[memory]; dir != "" {
		_ = write(dir, buffers, machineBuffers()/machineShare*(machineShare-1)) // some kernels cannot count buffers
	}
	if dir := g.bases[pids]; dir != "" {
		if err := write(dir, "pids.max", machineProcesses()/machineShare*(machineShare-1)); err != nil {
			return err
		}
	}
	if dir := g.bases[Set]; dir != "" {
		if err := inheritSet(dir); err != nil {
			return err
		}
	}
	if dir := g.bases[cpu]; dir != "" {
		return write(dir, "cpu.shares", int64(nodeWeight*1024))
	}
	return nil
}

// inheritSet gives a cpuset group of version 1 the processors and the memory nodes of its parent. A new group of this
// kind has no processors, and accepts no process until it has some.
func inheritSet(dir string) error {
	for _, file := range []string{"cpuset.cpus", "cpuset.mems"} {
		above, err := os.ReadFile(filepath.Join(filepath.Dir(dir), file))
		if err == nil {
			err = write(dir, file, strings.TrimSpace(string(above)))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// endOld ends all processes in the control groups below a directory, and removes these groups. It returns the groups
// that cannot be removed yet.
func endOld(dir string, open func(name string) (group, error)) (left []group) {
	entries, _ := os.ReadDir(dir)
	for _, e := range entries {
		if !e.IsDir() {
			continue
		}
		if strings.HasPrefix(e.Name(), accountPrefix) {
			left = append(left, endOld(filepath.Join(dir, e.Name()), func(name string) (group, error) {
				return open(filepath.Join(e.Name(), name))
			})...)
		}
		if old, err := open(e.Name()); err == nil && (old.kill() != nil || old.remove() != nil) {
			left = append(left, old)
		}
	}
	return left
}

func (g *v1) abilities() (all []messages.Name) {
	for controller := range g.bases {
		if ability := abilityOf[controller]; ability != "" {
			all = append(all, ability)
		}
	}
	return all
}

func (g *v1) make(name string) (group, error) {
	made := &v1Group{dirs: map[string]string{}}
	for controller, base := range g.bases {
		if err := mkdir(base, name, g.again); err != nil {
			return nil, err
		}
		made.dirs[controller] = filepath.Join(base, name)
		if controller == Set {
			if err := inheritSet(made.dirs[Set]); err != nil {
				return nil, err
			}
		}
		if controller != freezer {
			made.name = controller
		}
	}
	made.oom = made.open(memory, "memory.oom_control")
	made.pids = made.open(pids, "pids.current")
	made.memory = made.open(memory, "memory.usage_in_bytes")
	return made, nil
}

func (g *v1) close() (err error) {
	for _, base := range g.bases {
		err = errors.Join(err, rmdirBase(base))
	}
	return err
}

type v1Group struct {
	name string            // the controller whose group lists the processes
	dirs map[string]string // directory of the group, by controller

	devices string // list of devices, as in [Limits]

	oom, pids, memory *counter // nil if there is none
}

func (g *v1Group) open(of, file string) *counter {
	if g.dirs[of] == "" {
		return nil
	}
	c, _ := openCounter(filepath.Join(g.dirs[of], file))
	return c
}

func (*v1Group) threaded() bool { return true }

// enter puts the thread into every group except the group of the freezer. If only this thread were frozen, its process
// could not end, not even when it is killed.
func (g *v1Group) enter() error {
	for controller, dir := range g.dirs {
		if controller == freezer {
			continue
		}
		if err := write(dir, "tasks", int64(unix.Gettid())); err != nil {
			return err
		}
	}
	return nil
}

func (*v1Group) clone(*syscall.SysProcAttr) {}

// withSwap is the file that bounds the sum of memory and swap.
const withSwap = "memory.memsw.limit_in_bytes"

// cpuPeriod is the time over which processor time is counted.
const cpuPeriod = 100 * time.Millisecond

func (g *v1Group) limit(l Limits) error {
	period, quota := cpuPeriod.Microseconds(), int64(-1)
	if l.CPU > 0 {
		quota = int64(l.CPU * float64(period))
	}
	if dir := g.dirs[memory]; dir != "" { // the parent group counts only memory that this group bounds
		_ = write(dir, buffers, cmp.Or(l.Memory, machineBuffers()/machineShare))
		_ = write(dir, withSwap, int64(-1)) // this limit must not be below the limit of the memory alone
	}
	for _, f := range []struct {
		of, file string
		value    int64
	}{
		{memory, "memory.limit_in_bytes", cmp.Or(l.Memory, -1)},
		{pids, "pids.max", cmp.Or(l.Pids, DefaultPids) + 1}, // one more for the runner's thread in the group
		{cpu, "cpu.cfs_period_us", period},
		{cpu, "cpu.cfs_quota_us", quota},
	} {
		if dir := g.dirs[f.of]; dir != "" {
			if err := write(dir, f.file, f.value); err != nil {
				return err
			}
		}
	}
	if dir := g.dirs[memory]; dir != "" && l.Memory > 0 {
		_ = write(dir, withSwap, l.Memory) // some kernels cannot count swap
	}
	if err := g.limitSet(l.Set); err != nil {
		return err
	}
	return g.limitDevices(l.Devices)
}

// limitSet limits the group to some processors; "" means all processors of its parent.
func (g *v1Group) limitSet(set string) error {
	switch dir := g.dirs[Set]; {
	case dir == "":
		return nil
	case set == "":
		return inheritSet(dir)
	default:
		return write(dir, "cpuset.cpus", set)
	}
}

// limitDevices lets the tasks in this group use the devices that the list marks with +, and not the devices that it
// marks with -. It first undoes what the earlier task's list has changed.
func (g *v1Group) limitDevices(devices string) error {
	dir := g.dirs[Devices]
	if dir == "" || devices == g.devices {
		return nil
	}
	for _, list := range []string{strings.ReplaceAll(g.devices, "-", "+"), devices} {
		for _, d := range devicesOf(list) {
			file := "devices.deny"
			if d.allowed {
				file = "devices.allow"
			}
			if err := write(dir, file, d.kind+" "+d.number+" rwm"); err != nil {
				return err
			}
		}
	}
	g.devices = devices
	return nil
}

// freeze suspends the processes of the group, or lets them continue. It moves the processes into the freezer's group
// only when it is called, and not when the task starts: most tasks are never suspended.
func (g *v1Group) freeze(frozen bool) error {
	dir := g.dirs[freezer]
	switch {
	case dir == "" || g.name == "":
		return errNoFreezer
	case !frozen:
		return g.await("THAWED")
	}
	if err := write(dir, freezerState, "FROZEN"); err != nil {
		return err
	}
	procs := filepath.Join(dir, "cgroup.procs")
	for until := time.Now().Add(freezeWithin); time.Now().Before(until); {
		inside, _ := os.ReadFile(procs)
		left := outside(g.processes(), inside)
		if len(left) == 0 {
			return g.await("FROZEN")
		}
		for _, pid := range left { // a process that has ended meanwhile does no harm
			_ = os.WriteFile(procs, []byte(strconv.Itoa(pid)), 0)
		}
	}
	return errors.New("the task creates processes faster than they can be suspended")
}

const freezerState = "freezer.state"

// await writes the given state to the freezer again and again, until all processes of the group have this state. A
// process that was forked meanwhile is suspended only by the next write.
func (g *v1Group) await(state string) error {
	for until := time.Now().Add(freezeWithin); time.Now().Before(until); time.Sleep(time.Millisecond) {
		if err := write(g.dirs[freezer], freezerState, state); err != nil {
			return err
		}
		now, err := os.ReadFile(filepath.Join(g.dirs[freezer], freezerState))
		if err != nil || strings.TrimSpace(string(now)) == state {
			return err
		}
	}
	return fmt.Errorf("the task's processes are not %s yet", strings.ToLower(state))
}

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
		return g.pids.number("") <= 1 // only the runner's thread may be left
	}
	return len(g.processes()) == 0
}

// processes lists the living processes in the group, except this process.
func (g *v1Group) processes() (pids []int) {
	b, _ := os.ReadFile(filepath.Join(g.dirs[g.name], "cgroup.procs"))
	for _, line := range strings.Fields(string(b)) {
		if pid, err := strconv.Atoi(line); err == nil && pid != os.Getpid() && alive(line) {
			pids = append(pids, pid)
		}
	}
	return pids
}

// alive reports whether a process has not ended. An ended process stays in its group until its parent asks for the exit
// status.
func alive(pid string) bool {
	b, err := os.ReadFile("/proc/" + pid + "/stat")
	return err == nil && !strings.HasPrefix(string(b[strings.LastIndexByte(string(b), ')')+1:]), " Z")
}

// A killed process ends soon, unless it waits for a device. Processes that have not ended yet may fork meanwhile. So
// the processes of a group are killed in up to killRounds rounds, with a pause of killPause after each.
const (
	killRounds = 200
	killPause  = 5 * time.Millisecond
	// A group is suspended in two steps: its processes are moved into the group of the freezer, and then suspended
	// there. Each step may take freezeWithin.
	freezeWithin = time.Second
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
		if dir := g.dirs[freezer]; dir != "" {
			_ = write(dir, freezerState, "THAWED") // a frozen process does not end
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

// mkdir makes a control group below the node's control group. An earlier run of the node may have removed the node's
// group. Then mkdir calls the function `again`, which makes the node's group. After that, mkdir tries a second time.
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

// rmdirBase removes the node's control group `dir`. The groups of the tasks of this process were removed before. If
// `dir` still has groups, they are left from an earlier process of the node, and rmdirBase does nothing.
func rmdirBase(dir string) error {
	entries, _ := os.ReadDir(dir)
	if slices.ContainsFunc(entries, fs.DirEntry.IsDir) {
		return nil
	}
	return rmdir(dir)
}

// rmdir removes a group. The kernel keeps a group busy for a moment after everything in it has ended.
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

// rmdirs removes a control group, and the groups below it that a task made.
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

// counter is an open file of a control group. Its value is read for every task. It is not an [os.File]: the Go runtime
// would poll such a file, and would wake up whenever the group gets its first process or loses its last one.
type counter struct{ fd int }

func openCounter(path string) (*counter, error) {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: path, Err: err}
	}
	return &counter{fd}, nil
}

// number reads a number from the file. If `key` is not "", it reads the number after this key. If there is no number,
// the result is 0.
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

// The function `after` returns the number that follows a key at the beginning of a line; 0 if there is none.
func after(text, key string) uint64 {
	_, rest, _ := strings.Cut("\n"+text, "\n"+key)
	digits, _, _ := strings.Cut(rest, "\n")
	v, _ := strconv.ParseUint(strings.TrimSpace(digits), 10, 64)
	return v
}
