package cell

import (
	"os"
	"path/filepath"
	"slices"
	"syscall"

	"github.com/containerd/cgroups/v3"
	"github.com/containerd/cgroups/v3/cgroup2"

	"github.com/candor-grid/candor/messages"
)

const v2Mount = "/sys/fs/cgroup"

// v2 is control groups of version 2.
type v2 struct {
	root        *cgroup2.Manager
	dir         string
	controllers []string
}

// openV2 returns nil unless memory and processes can be bounded.
func openV2(name string) *v2 {
	if cgroups.Mode() != cgroups.Unified {
		return nil
	}
	own, _, err := cgroups.ParseCgroupFileUnified("/proc/self/cgroup")
	if err != nil {
		return nil
	}
	path := filepath.Join("/", own[""], "candor-"+name)
	root, err := cgroup2.NewManager(v2Mount, path, &cgroup2.Resources{})
	if err != nil {
		return nil
	}
	g := &v2{root: root, dir: filepath.Join(v2Mount, path)}
	for _, c := range []string{"memory", "pids", "cpu"} {
		if root.ToggleControllers([]string{c}, cgroup2.Enable) == nil {
			g.controllers = append(g.controllers, c)
		}
	}
	if !slices.Contains(g.controllers, "memory") || !slices.Contains(g.controllers, "pids") {
		_ = root.Delete()
		return nil
	}
	if weight := uint64(nodeWeight * 100); slices.Contains(g.controllers, "cpu") {
		_ = root.Update(&cgroup2.Resources{CPU: &cgroup2.CPU{Weight: &weight}}) // without, tasks only wait longer
	}
	g.clear()
	return g
}

// clear ends what an earlier run left behind.
func (g *v2) clear() {
	entries, _ := os.ReadDir(g.dir)
	for _, e := range entries {
		if !e.IsDir() {
			continue
		}
		if old, err := g.make(e.Name()); err == nil && old.kill() == nil {
			_ = old.remove()
		}
	}
}

func (g *v2) abilities() []messages.Name {
	all := []messages.Name{messages.AbilityFreeze, messages.AbilityMemory, messages.AbilityPids}
	if slices.Contains(g.controllers, "cpu") {
		all = append(all, messages.AbilityCPU)
	}
	return all
}

func (g *v2) make(name string) (group, error) {
	control, err := g.root.NewChild(name, &cgroup2.Resources{})
	if err != nil {
		return nil, err
	}
	dir, err := os.Open(filepath.Join(g.dir, name))
	if err != nil {
		return nil, err
	}
	return &v2Group{control: control, dir: dir}, nil
}

func (g *v2) close() error { return g.root.Delete() }

// v2Group is one group.
type v2Group struct {
	control *cgroup2.Manager
	dir     *os.File
}

func (*v2Group) enter() error { return nil }

func (g *v2Group) clone(a *syscall.SysProcAttr) {
	a.UseCgroupFD, a.CgroupFD = true, int(g.dir.Fd())
}

func (g *v2Group) limit(l Limits) error {
	memory, pids := int64(-1), cgroup2.Pids{}
	if l.Memory > 0 {
		memory = l.Memory
	}
	if l.Pids > 0 {
		pids.Max = l.Pids
	}
	r := &cgroup2.Resources{Memory: &cgroup2.Memory{Max: &memory}, Pids: &pids}
	if l.CPU > 0 {
		quota, period := int64(l.CPU*float64(cpuPeriod.Microseconds())), uint64(cpuPeriod.Microseconds())
		r.CPU = &cgroup2.CPU{Max: cgroup2.NewCPUMax(&quota, &period)}
	}
	return g.control.Update(r)
}

func (g *v2Group) freeze(frozen bool) error {
	if frozen {
		return g.control.Freeze()
	}
	return g.control.Thaw()
}

func (g *v2Group) kill() error { return g.control.Kill() }

func (g *v2Group) empty() bool { return g.value("cgroup.events", "populated ") == 0 }

func (g *v2Group) killed() uint64 { return g.value("memory.events", "oom_kill ") }

func (g *v2Group) remove() error {
	_ = g.dir.Close()
	return g.control.Delete()
}

// value reads a number from a file of the group, after a key where there is one.
func (g *v2Group) value(file, key string) uint64 {
	b, err := os.ReadFile(filepath.Join(g.dir.Name(), file))
	if err != nil {
		return 0
	}
	return after(string(b), key)
}
