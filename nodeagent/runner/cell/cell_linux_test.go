package cell_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/candor-grid/candor/messages/agent"
	"github.com/candor-grid/candor/nodeagent/runner/cell"
)

func open(t *testing.T) *cell.Cells {
	return openAs(t, "test-"+filepath.Base(t.TempDir())+"-"+strings.ToLower(t.Name()))
}

// openAs opens the cells of a node's name. Several runs of a node can share the name.
func openAs(t *testing.T, name string) *cell.Cells {
	c := cell.Open(name)
	t.Logf("this machine has %v", c.Abilities())
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	return c
}

func take(t *testing.T, c *cell.Cells, l cell.Limits) *cell.Cell {
	inside, err := c.Take(l, nil)
	if err != nil {
		t.Fatal(err)
	}
	return inside
}

func start(t *testing.T, inside *cell.Cell, script string) (*exec.Cmd, *strings.Builder) {
	cmd, out := exec.Command("/bin/sh", "-c", script), new(strings.Builder)
	cmd.Stdout, cmd.SysProcAttr = out, &syscall.SysProcAttr{Setsid: true}
	inside.Attributes(cmd.SysProcAttr)
	var err error
	inside.Run(func() { err = cmd.Start() })
	if err != nil {
		t.Fatal(err)
	}
	return cmd, out
}

func run(t *testing.T, inside *cell.Cell, script string) string {
	cmd, out := start(t, inside, script)
	_ = cmd.Wait()
	return out.String()
}

// TestEscapeIsEnded checks that a process that left its session and lost its parents ends with the task.
func TestEscapeIsEnded(t *testing.T) {
	for _, l := range kinds {
		escapes(t, l)
	}
}

// kinds are limits for which the runner uses different kinds of cells.
var kinds = []cell.Limits{{}, {Pids: 100}}

func escapes(t *testing.T, l cell.Limits) {
	c := open(t)
	inside := take(t, c, l)
	pid := filepath.Join(t.TempDir(), "pid")
	run(t, inside, "setsid sh -c 'echo $$ > "+pid+".new; mv "+pid+".new "+pid+"; exec sleep 1000' >/dev/null 2>&1 & while ! [ -e "+pid+" ]; do :; done")
	b, err := os.ReadFile(pid)
	if err != nil {
		t.Fatal(err)
	}
	c.Leave(inside)
	alive := dirExists("/proc/" + strings.TrimSpace(string(b)))
	if slices.Contains(c.Abilities(), agent.AbilityFreeze) && alive {
		t.Errorf("process %s outlived its task", b)
	}
	if alive {
		exec.Command("kill", "-9", strings.TrimSpace(string(b))).Run()
	}
}

func dirExists(path string) bool {
	b, err := os.ReadFile(path + "/stat")
	return err == nil && !strings.Contains(string(b), ") Z ")
}

// TestEarlierRunEndsBesideALaterOne: the state directory of an executor was replaced, and a later executor was started.
// Both executors run, and have their cells in the same group. When the earlier executor ends, it must not remove cells
// of the later executor.
func TestEarlierRunEndsBesideALaterOne(t *testing.T) {
	for _, l := range kinds {
		for _, later := range []string{"new", "free", "used"} {
			t.Run(later, func(t *testing.T) { endsBeside(t, l, later) })
		}
	}
}

func endsBeside(t *testing.T, l cell.Limits, later string) {
	earlier := openAs(t, "test-shared")
	if l == (cell.Limits{}) { // other cells may have a thread of this process inside, so the later run would kill this process
		earlier.Leave(take(t, earlier, l))
	}
	c := openAs(t, "test-shared")
	var inside *cell.Cell
	if later != "new" {
		inside = take(t, c, l)
	}
	if later == "free" {
		c.Leave(inside)
	}
	if err := earlier.Close(); err != nil {
		t.Errorf("%v: the earlier run: %v", l, err)
	}
	if later != "used" {
		inside = take(t, c, l)
	}
	cmd, _ := start(t, inside, "sleep 1000 >/dev/null")
	if _, err := inside.Freeze(true); err != nil {
		t.Errorf("%v: %v", l, err)
	}
	c.Leave(inside) // this ends the process that sleeps, but not if there are no cells
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
}

func TestMemoryIsBounded(t *testing.T) {
	c := open(t)
	inside := take(t, c, cell.Limits{Memory: 32 << 20})
	out := run(t, inside, "head -c 200000000 /dev/zero | tail -c 150000000 | wc -c")
	exceeded := inside.OutOfMemory()
	if slices.Contains(c.Abilities(), agent.AbilityMemory) && (!exceeded || strings.TrimSpace(out) == "150000000") {
		t.Errorf("150 MB were kept within 32 MiB: %q, exceeded %v", out, exceeded)
	}
	c.Leave(inside)

	next := take(t, c, cell.Limits{Pids: 100}) // takes the same cell again, for a task without a memory limit
	defer c.Leave(next)
	if out := run(t, next, "head -c 200000000 /dev/zero | tail -c 100000000 | wc -c"); strings.TrimSpace(out) != "100000000" {
		t.Errorf("%q: a limit outlived its task", out)
	}
	if next.OutOfMemory() {
		t.Error("one task's end was put down to the next")
	}
}

func TestForksAreBounded(t *testing.T) {
	c := open(t)
	if !slices.Contains(c.Abilities(), agent.AbilityPids) {
		t.Log("processes cannot be bounded here")
		return
	}
	inside := take(t, c, cell.Limits{Pids: 20})
	cmd, _ := start(t, inside, "for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30; do sleep 1000 >/dev/null & done; wait")
	err := cmd.Wait() // the shell exits with an error when it cannot fork
	if err == nil {
		t.Error("thirty processes were begun within a bound of twenty")
	}
	c.Leave(inside)
}

// TestFreeze checks that a frozen task gets no processor time, and goes on after it is thawed.
func TestFreeze(t *testing.T) {
	for _, l := range kinds {
		freezes(t, l)
	}
}

func freezes(t *testing.T, l cell.Limits) {
	c := open(t)
	inside := take(t, c, l)
	defer c.Leave(inside)
	cmd, _ := start(t, inside, "while :; do :; done")
	ok, err := inside.Freeze(true)
	if err != nil {
		t.Fatal(err)
	}
	if ok {
		before := ticks(t, cmd.Process.Pid)
		spin(50 * time.Millisecond)
		if after := ticks(t, cmd.Process.Pid); after != before {
			t.Errorf("a frozen process ran: %s, then %s", before, after)
		}
		if _, err := inside.Freeze(false); err != nil {
			t.Fatal(err)
		}
		for ticks(t, cmd.Process.Pid) == before { // wait until the process gets processor time again
		}
		if _, err := inside.Freeze(true); err != nil {
			t.Fatal(err)
		}
	}
	if err := inside.Kill(); err != nil { // kill the frozen cell
		t.Error(err)
	}
	if !ok {
		_ = cmd.Process.Kill()
	}
	_ = cmd.Wait()
}

func spin(d time.Duration) {
	for until := time.Now().Add(d); time.Now().Before(until); {
	}
}

// ticks returns the processor time of a process, as /proc writes it.
func ticks(t *testing.T, pid int) string {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		t.Fatal(err)
	}
	return strings.Fields(string(b[strings.LastIndexByte(string(b), ')'):]))[12]
}
