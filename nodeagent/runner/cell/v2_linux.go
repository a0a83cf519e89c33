package cell

import (
	"cmp"
	"crypto/rand"
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

const v2Mount = "/sys/fs/cgroup"

// v2 has the control groups of version 2. Even without controllers, they keep processes together, suspend them and end
// them.
type v2 struct {
	mount, path string // mount is the file system's mount point; path is the node's group, below mount
	dir         string // mount and path joined
	controllers []string
	filters     bool    // cells can have filters of devices
	left        []group // groups of an earlier run
}

// topV2 returns a path for the control groups of a node. The path is outside of the groups of services and sessions.
// Inside a service's group, new groups would get no controllers while the service itself has processes there.
func topV2(name string) string { return filepath.Join("/candor", name) }

// ownV2 returns the path of a control group (version 2) below the control group of this process.
func ownV2(name string) string {
	return filepath.Join("/", ownGroups()[""], "candor-"+name)
}

// openV2 makes the node's group at a path. It returns nil if there are no control groups of version 2, or if a needed
// controller is missing.
func openV2(mount, path string, more []string, needed ...string) *v2 {
	if _, err := os.Stat(filepath.Join(mount, "cgroup.procs")); err != nil {
		return nil
	}
	g := &v2{mount: mount, path: path, dir: filepath.Join(mount, path)}
	if os.MkdirAll(g.dir, 0o755) != nil {
		return nil
	}
	for _, c := range append([]string{memory, pids, cpu}, more...) {
		if c != Devices && len(needed) > 0 && g.enable(c) == nil {
			g.controllers = append(g.controllers, c)
		}
	}
	for _, c := range append([]string{"cgroup.kill", "cgroup.freeze"}, needed...) {
		_, err := os.Stat(filepath.Join(g.dir, c))
		if err != nil && !slices.Contains(g.controllers, c) {
			_ = rmdirBase(g.dir)
			return nil
		}
	}
	g.filters = slices.Contains(more, Devices) && canFilter(g.dir)
	g.weigh()
	g.left = endOld(g.dir, g.open)
	if !g.takes() {
		_ = rmdirBase(g.dir)
		return nil
	}
	return g
}

// takes reports whether a process that is cloned into a new group survives. If the control group of this process was
// killed at some earlier time, the kernel may also kill each such process. The process executes a file that is not
// executable, so it ends at once in any case.
func (g *v2) takes() bool {
	made, err := g.make("cell-" + rand.Text())
	if err != nil {
		return false
	}
	var sys syscall.SysProcAttr
	made.clone(&sys)
	pid, err := syscall.ForkExec(os.DevNull, []string{os.DevNull}, &syscall.ProcAttr{Sys: &sys})
	if err == nil { // the process was killed before the exec could fail
		_, _ = unix.Wait4(pid, nil, 0, nil)
	}
	return made.remove() == nil && errors.Is(err, unix.EACCES)
}

func (g *v2) again() error {
	if err := os.Mkdir(g.dir, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	for _, c := range g.controllers {
		if err := g.enable(c); err != nil {
			return err
		}
	}
	g.weigh()
	return nil
}

// enable makes a controller available to the control groups below the node's group. It writes to each group on the
// path. Only the error of the last write counts: the groups above may have the controller already, and refuse the
// write.
func (g *v2) enable(controller string) (err error) {
	at := g.mount
	for step := range strings.SplitSeq(g.path, "/") {
		at = filepath.Join(at, step)
		err = write(at, "cgroup.subtree_control", "+"+controller)
	}
	return err
}

// weigh sets the weight of all tasks of the node together, and their largest number of processes.
func (g *v2) weigh() {
	if slices.Contains(g.controllers, cpu) {
		_ = write(g.dir, "cpu.weight", int64(nodeWeight*100)) // the error does not matter: without a weight, tasks only wait longer
	}
	if slices.Contains(g.controllers, pids) {
		_ = write(g.dir, "pids.max", machineProcesses()/machineShare*(machineShare-1))
	}
}

func (g *v2) abilities() []messages.Name {
	all := []messages.Name{agent.AbilityFreeze}
	for c, ability := range abilityOf {
		if slices.Contains(g.controllers, c) {
			all = append(all, ability)
		}
	}
	return all
}

func (g *v2) make(name string) (group, error) {
	if err := mkdir(g.dir, name, g.again); err != nil {
		return nil, err
	}
	return g.open(name)
}

func (g *v2) open(name string) (group, error) {
	if slices.Contains(g.controllers, pids) {
		if err := write(filepath.Join(g.dir, name), "pids.max", int64(DefaultPids)); err != nil {
			return nil, err
		}
	}
	dir, err := os.Open(filepath.Join(g.dir, name))
	if err != nil {
		return nil, err
	}
	events, err := openCounter(filepath.Join(dir.Name(), "cgroup.events"))
	if err != nil {
		return nil, errors.Join(err, dir.Close())
	}
	memory, _ := openCounter(filepath.Join(dir.Name(), "memory.current")) // without the memory controller, this file does not exist
	return &v2Group{dir: dir, events: events, memory: memory, controllers: g.controllers, filters: g.filters, filter: noFilter}, nil
}

func (g *v2) close() error { return rmdirBase(g.dir) }

type v2Group struct {
	dir         *os.File
	events      *counter // open for as long as the group exists
	memory      *counter // nil without the memory controller
	controllers []string
	filters     bool   // the group can have a filter of devices
	filter      filter // the filter in force
	devices     string // the devices for which the filter was made, as in [Limits]
}

func (*v2Group) threaded() bool { return false }

func (*v2Group) enter() error { return nil }

func (g *v2Group) clone(a *syscall.SysProcAttr) {
	a.UseCgroupFD, a.CgroupFD = true, int(g.dir.Fd())
}

func (g *v2Group) limit(l Limits) error {
	const unbounded = "max"
	most, swap, quota := unbounded, unbounded, unbounded
	if l.Memory > 0 {
		most, swap = strconv.FormatInt(l.Memory, 10), "0"
	}
	period := cpuPeriod.Microseconds()
	if l.CPU > 0 {
		quota = strconv.FormatInt(int64(l.CPU*float64(period)), 10)
	}
	for controller, value := range map[string]string{
		memory: most,
		pids:   strconv.FormatInt(cmp.Or(l.Pids, DefaultPids), 10),
		cpu:    fmt.Sprintf("%s %d", quota, period),
	} {
		if slices.Contains(g.controllers, controller) {
			if err := write(g.dir.Name(), controller+".max", value); err != nil {
				return err
			}
		}
	}
	if g.memory != nil {
		_ = write(g.dir.Name(), "memory.swap.max", swap) // some kernels cannot count swap
	}
	if slices.Contains(g.controllers, Set) { // "" means the processors of the parent group
		if err := write(g.dir.Name(), "cpuset.cpus", l.Set+"\n"); err != nil {
			return err
		}
	}
	return g.limitDevices(l.Devices)
}

// limitDevices restricts the devices of the group to the given list. An earlier task of this group may have left a
// filter. The new filter takes effect before the old one is removed.
func (g *v2Group) limitDevices(devices string) error {
	if !g.filters || devices == g.devices {
		return nil
	}
	next := noFilter
	if devices != "" {
		var err error
		if next, err = newFilter(devices); err != nil {
			return err
		}
		if err := next.attach(g.dir); err != nil {
			next.close()
			return err
		}
	}
	before := g.filter
	g.filter, g.devices = next, devices
	return before.detach(g.dir)
}

func (g *v2Group) freeze(frozen bool) error {
	state := "0"
	if frozen {
		state = "1"
	}
	return write(g.dir.Name(), "cgroup.freeze", state)
}

func (g *v2Group) kill() error {
	if err := write(g.dir.Name(), "cgroup.kill", "1"); err != nil {
		return err
	}
	for range killRounds {
		if g.empty() {
			return nil
		}
		time.Sleep(killPause)
	}
	return errNotEnding
}

func (g *v2Group) empty() bool {
	return g.events.number("populated ") == 0
}

func (g *v2Group) processes() (pids []int) {
	b, _ := os.ReadFile(filepath.Join(g.dir.Name(), "cgroup.procs"))
	for _, line := range strings.Fields(string(b)) {
		if pid, err := strconv.Atoi(line); err == nil {
			pids = append(pids, pid)
		}
	}
	return pids
}

func (g *v2Group) killed() uint64 {
	b, _ := os.ReadFile(filepath.Join(g.dir.Name(), "memory.events"))
	return after(string(b), "oom_kill ")
}

func (g *v2Group) used() uint64 { return g.memory.number("") }

func (g *v2Group) remove() error {
	if err := rmdirs(g.dir.Name()); err != nil {
		return err
	}
	g.events.close()
	g.memory.close()
	g.filter.close()
	_ = g.dir.Close()
	return nil
}
