package cell

import (
	"bytes"
	"errors"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"github.com/containerd/cgroups/v3"
	"github.com/containerd/cgroups/v3/cgroup2"

	"github.com/candor-grid/candor/messages"
)

const v2Mount = "/sys/fs/cgroup"

// v2 is control groups of version 2. Without controllers, as beside those of
// version 1, they still hold processes together, suspend and end them.
type v2 struct {
	root        *cgroup2.Manager
	dir         string
	controllers []string
}

// openV2 returns nil where there is no such thing, or it lacks a controller.
func openV2(mount, name string, needed ...string) *v2 {
	if unified := cgroups.Mode() == cgroups.Unified; unified != (mount == v2Mount) {
		return nil
	}
	_, own, err := cgroups.ParseCgroupFileUnified("/proc/self/cgroup")
	if err != nil {
		return nil
	}
	path := filepath.Join("/", own, "candor-"+name)
	root, err := cgroup2.NewManager(mount, path, &cgroup2.Resources{})
	if err != nil {
		return nil
	}
	g := &v2{root: root, dir: filepath.Join(mount, path)}
	for _, c := range []string{"memory", "pids", "cpu"} {
		if len(needed) > 0 && root.ToggleControllers([]string{c}, cgroup2.Enable) == nil {
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
	g.weigh()
	g.clear()
	return g
}

// again makes the group of all groups once more.
func (g *v2) again() error {
	if err := os.Mkdir(g.dir, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	g.weigh()
	return nil
}

func (g *v2) weigh() {
	if weight := uint64(nodeWeight * 100); slices.Contains(g.controllers, "cpu") {
		_ = g.root.Update(&cgroup2.Resources{CPU: &cgroup2.CPU{Weight: &weight}}) // without, tasks only wait longer
	}
}

// clear ends what an earlier run left behind.
func (g *v2) clear() {
	entries, _ := os.ReadDir(g.dir)
	for _, e := range entries {
		if !e.IsDir() {
			continue
		}
		if old, err := g.open(e.Name()); err == nil && old.kill() == nil {
			_ = old.remove()
		}
	}
}

func (g *v2) abilities() []messages.Name {
	all := []messages.Name{messages.AbilityFreeze}
	for c, ability := range map[string]messages.Name{"memory": messages.AbilityMemory, "pids": messages.AbilityPids, "cpu": messages.AbilityCPU} {
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

// open takes a group that is there, with every controller: one that a group is
// not given has no limits in it.
func (g *v2) open(name string) (group, error) {
	r := &cgroup2.Resources{}
	if slices.Contains(g.controllers, "memory") {
		r.Memory = &cgroup2.Memory{}
	}
	if slices.Contains(g.controllers, "pids") {
		r.Pids = &cgroup2.Pids{Max: DefaultPids}
	}
	if slices.Contains(g.controllers, "cpu") {
		r.CPU = &cgroup2.CPU{}
	}
	control, err := g.root.NewChild(name, r)
	if err != nil {
		return nil, err
	}
	dir, err := os.Open(filepath.Join(g.dir, name))
	if err != nil {
		return nil, err
	}
	events, err := os.Open(filepath.Join(dir.Name(), "cgroup.events"))
	if err != nil {
		return nil, errors.Join(err, dir.Close())
	}
	return &v2Group{control: control, dir: dir, events: events, cpu: r.CPU != nil}, nil
}

func (g *v2) close() error { return rmdirBase(g.dir) }

// v2Group is one group.
type v2Group struct {
	control *cgroup2.Manager
	dir     *os.File
	events  *os.File // open for as long as the group is there: it is read for every task
	cpu     bool     // processor time can be bounded
}

func (*v2Group) threaded() bool { return false }

func (*v2Group) enter() error { return nil }

func (g *v2Group) clone(a *syscall.SysProcAttr) {
	a.UseCgroupFD, a.CgroupFD = true, int(g.dir.Fd())
}

func (g *v2Group) limit(l Limits) error {
	memory, pids := int64(math.MaxInt64), cgroup2.Pids{Max: DefaultPids} // more memory than there can be: unbounded
	if l.Memory > 0 {
		memory = l.Memory
	}
	if l.Pids > 0 {
		pids.Max = l.Pids
	}
	r := &cgroup2.Resources{Memory: &cgroup2.Memory{Max: &memory}, Pids: &pids}
	period := uint64(cpuPeriod.Microseconds())
	switch {
	case l.CPU > 0:
		quota := int64(l.CPU * float64(period))
		r.CPU = &cgroup2.CPU{Max: cgroup2.NewCPUMax(&quota, &period)}
	case g.cpu: // the limit of the task before may be there
		r.CPU = &cgroup2.CPU{Max: cgroup2.NewCPUMax(nil, &period)}
	}
	return g.control.Update(r)
}

func (g *v2Group) freeze(frozen bool) error {
	if frozen {
		return g.control.Freeze()
	}
	return g.control.Thaw()
}

func (g *v2Group) kill() error {
	if err := g.control.Kill(); err != nil {
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
	var buffer [64]byte
	n, _ := g.events.ReadAt(buffer[:], 0)
	return after(string(buffer[:n]), "populated ") == 0
}

func (g *v2Group) count() int {
	b, _ := os.ReadFile(filepath.Join(g.dir.Name(), "cgroup.procs"))
	return bytes.Count(b, []byte("\n"))
}

func (g *v2Group) killed() uint64 { return g.value("memory.events", "oom_kill ") }

func (g *v2Group) remove() error {
	_ = errors.Join(g.dir.Close(), g.events.Close())
	if err := g.control.Delete(); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil // a later run of the node did
}

// value reads a number from a file of the group, after a key where there is one.
func (g *v2Group) value(file, key string) uint64 {
	b, err := os.ReadFile(filepath.Join(g.dir.Name(), file))
	if err != nil {
		return 0
	}
	return after(string(b), key)
}
