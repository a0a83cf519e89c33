package cell

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
)

// TestGroupOfAllIsMadeAgain removes the group above all cells. The next cell must make it again, with the same weight.
func TestGroupOfAllIsMadeAgain(t *testing.T) {
	const name = "test-gone"
	if g := openV1(name, nil); g != nil {
		madeAgain(t, g, filepath.Join(g.bases[cpu], "cpu.shares"))
	}
	for _, g := range []*v2{openV2(v2Mount, topV2(name), nil, "memory", "pids"), openV2(v2Mount+"/unified", ownV2(name), nil)} {
		if g != nil {
			madeAgain(t, g, filepath.Join(g.dir, "cpu.weight"))
		}
	}
}

// madeAgain removes the common control group of all cells. Then it makes a new cell, which makes the common group
// again. The file at the path `weight` belongs to the group, and must have the same content before and after this. On a
// kernel without this file, both contents are empty.
func madeAgain(t *testing.T, g groups, weight string) {
	before, _ := os.ReadFile(weight)
	if err := g.close(); err != nil {
		t.Fatal(err)
	}
	made, err := g.make("cell")
	if err != nil {
		t.Fatal(err)
	}
	if after, _ := os.ReadFile(weight); string(after) != string(before) {
		t.Errorf("%s: %q, before %q", weight, after, before)
	}
	if err := made.remove(); err != nil {
		t.Error(err)
	}
	if err := g.close(); err != nil {
		t.Error(err)
	}
}

// TestLimitsOfVersion2 checks which value is written to which file, and that no limit of a task stays for the next
// task. "max" means no bound; cpu.max is a quota and a period in microseconds (Control Group v2, memory.max and
// cpu.max).
func TestLimitsOfVersion2(t *testing.T) {
	dir, err := os.Open(t.TempDir()) // in place of a control group
	if err != nil {
		t.Fatal(err)
	}
	defer dir.Close()
	for _, file := range []string{"memory.max", "memory.swap.max", "pids.max", "cpu.max"} {
		if err := os.WriteFile(filepath.Join(dir.Name(), file), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	g := &v2Group{dir: dir, memory: new(counter), controllers: []string{memory, pids, cpu}}
	for _, c := range []struct {
		limits                  Limits
		memory, swap, pids, cpu string
	}{
		{Limits{Memory: 1 << 20, Pids: 20, CPU: 1.5}, "1048576", "0", "20", "150000 100000"},
		{Limits{Pids: 30}, "max", "max", "30", "max 100000"},
		{Limits{Memory: 1 << 20}, "1048576", "0", "4096", "max 100000"},
	} {
		if err := g.limit(c.limits); err != nil {
			t.Fatal(err)
		}
		for file, want := range map[string]string{"memory.max": c.memory, "memory.swap.max": c.swap, "pids.max": c.pids, "cpu.max": c.cpu} {
			got, err := os.ReadFile(filepath.Join(dir.Name(), file))
			if err != nil || string(got) != want {
				t.Errorf("%+v: %s: %q, %v; want %q", c.limits, file, got, err, want)
			}
		}
	}
}

// TestSwapCountsAsMemory gives one group of version 1 several limits in turn. The limit of memory and swap together must
// be the limit of the memory.
func TestSwapCountsAsMemory(t *testing.T) {
	g := openV1("test-"+filepath.Base(t.TempDir()), nil)
	if g == nil || g.bases[memory] == "" {
		t.Skip("nothing bounds memory with version 1 here")
	}
	defer g.close() //nolint:errcheck // an error here is of no interest
	made, err := g.make("cell")
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(g.bases[memory], "cell")
	if _, err := os.Stat(filepath.Join(dir, withSwap)); err != nil {
		t.Skip("this kernel does not count swap")
	}
	for _, most := range []int64{64 << 20, 32 << 20, 0, 128 << 20} {
		if err := made.limit(Limits{Memory: most}); err != nil {
			t.Fatal(err)
		}
		if got := after(readFile(t, dir, withSwap), ""); most > 0 && got != uint64(most) || most == 0 && got < 1<<60 {
			t.Errorf("a limit of %d bytes: memory and swap have %d", most, got)
		}
	}
	if err := made.remove(); err != nil {
		t.Error(err)
	}
}

// TestFilterOfVersion2 gives one group several lists of devices in turn. A process in the group must open exactly the
// devices that the list allows. The same must hold for a group that is counted for an account.
func TestFilterOfVersion2(t *testing.T) {
	g := openV2(v2Mount+"/unified", ownV2("test-filter"), []string{Devices})
	if g == nil {
		g = openV2(v2Mount, ownV2("test-filter"), []string{Devices})
	}
	if g == nil || !g.filters {
		t.Skip("no group of version 2 with filters of devices")
	}
	defer g.close() //nolint:errcheck // an error here is of no interest
	for _, c := range []struct {
		name    string
		account bool
	}{{"alone", false}, {"account", true}} {
		t.Run(c.name, func(t *testing.T) {
			if !c.account {
				filters(t, g)
				return
			}
			below, sum, err := g.account(accountPrefix + "filter")
			if err != nil {
				t.Fatal(err)
			}
			filters(t, below)
			if err := sum.remove(); err != nil {
				t.Error(err)
			}
		})
	}
}

func filters(t *testing.T, g groups) {
	made, err := g.make("cell")
	if err != nil {
		t.Fatal(err)
	}
	const zero, full, random = "/dev/zero", "/dev/full", "/dev/urandom" // c 1:5, c 1:7 and c 1:9
	for _, c := range []struct {
		devices string
		refused []string
	}{
		{"", nil},
		{"c 1:5 -", []string{zero}},
		{"c 1:5 + c 1:7 - c 1:9 -", []string{full, random}},
		{"b 1:5 - c 5:1 -", nil}, // another kind, and the numbers in another order
		{"c 1:9 -", []string{random}},
		{"", nil},
	} {
		if err := made.limit(Limits{Devices: c.devices}); err != nil {
			t.Fatal(err)
		}
		for _, file := range []string{zero, full, random, "/dev/null"} {
			open := exec.Command("/bin/sh", "-c", "exec 3<"+file)
			open.SysProcAttr = new(syscall.SysProcAttr)
			made.clone(open.SysProcAttr)
			if opened := open.Run() == nil; opened == slices.Contains(c.refused, file) {
				t.Errorf("devices %q: %s is opened: %v", c.devices, file, opened)
			}
		}
	}
	if err := made.limit(Limits{Devices: "c 1:x -"}); err == nil {
		t.Error("a number that is none is accepted")
	}
	if err := made.remove(); err != nil {
		t.Error(err)
	}
}

// TestAccountLeavesTheMachineProcesses checks that one account gets at most a quarter of the machine's processes, and
// all accounts of a node together at most three quarters.
func TestAccountLeavesTheMachineProcesses(t *testing.T) {
	var s written
	a := &Account{sum: &s}
	for range 100 {
		if err := a.begin(Limits{Pids: machineProcesses() / 10}); err != nil {
			t.Fatal(err)
		}
	}
	if s.processes != machineProcesses()/4 {
		t.Errorf("100 tasks may have %d processes, and the machine %d", s.processes, machineProcesses())
	}
	var of groups
	dir, name := "", "test-"+filepath.Base(t.TempDir())
	if g := openV2(v2Mount, topV2(name), nil, memory, pids); g != nil {
		of, dir = g, g.dir
	} else if g := openV1(name, nil); g != nil && g.bases[pids] != "" {
		of, dir = g, g.bases[pids]
	} else {
		t.Skip("nothing bounds processes here")
	}
	if got, want := after(readFile(t, dir, "pids.max"), ""), uint64(machineProcesses()/4*3); got != want {
		t.Errorf("all accounts may have %d processes, want %d", got, want)
	}
	if err := of.close(); err != nil {
		t.Error(err)
	}
}

type written struct{ processes int64 }

func (*written) enter() error { return nil }
func (s *written) bound(_ bound, processes int64) error {
	s.processes = processes
	return nil
}
func (*written) remove() error { return nil }

func readFile(t *testing.T, dir, name string) string {
	text, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
