package cell

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestRetiredCellIsNotUsedAgain damages a cell in several ways. The next task must run, in another cell. In the damaged
// cell it could not run: recent kernels kill what is cloned into a group that was once killed, and a process in a
// frozen group never begins.
func TestRetiredCellIsNotUsedAgain(t *testing.T) {
	for name, spoil := range map[string]func(*testing.T, *Cell){
		"daemon left behind": func(t *testing.T, c *Cell) { runIn(t, c, "sleep 1000 >/dev/null 2>&1 &") },
		"killed":             func(t *testing.T, c *Cell) { _ = c.Kill() },
		"frozen when empty":  func(t *testing.T, c *Cell) { _, _ = c.Freeze(true) },
		"its group is gone":  func(t *testing.T, c *Cell) { c.group.remove() },
	} {
		for _, l := range []Limits{{}, {Pids: 100}} {
			cells := Open("test-retired-" + strings.ReplaceAll(name, " ", "-"))
			first := takeFrom(t, cells, l)
			if first.group == nil {
				continue
			}
			spoil(t, first)
			if name == "its group is gone" { // the runner retires a cell when it cannot start a process in it
				first.Retire()
			}
			cells.Leave(first)
			second := takeFrom(t, cells, l)
			if second == first {
				t.Errorf("%s, %+v: the cell is used again", name, l)
			}
			if out := runIn(t, second, "echo innocent"); out != "innocent\n" {
				t.Errorf("%s, %+v: the next task wrote %q", name, l, out)
			}
			cells.Leave(second)
			if err := cells.Close(); err != nil {
				t.Error(err)
			}
		}
	}
}

// TestCellOfAnOrdinaryTaskIsUsedAgain checks that a cell is used again if its task ended by itself, because making
// cells is expensive.
func TestCellOfAnOrdinaryTaskIsUsedAgain(t *testing.T) {
	cells := Open("test-again")
	defer cells.Close()
	first := takeFrom(t, cells, Limits{})
	runIn(t, first, "exit 3")
	cells.Leave(first)
	if second := takeFrom(t, cells, Limits{}); first != second {
		t.Error("another cell was made")
	} else {
		cells.Leave(second)
	}
}

func TestGroupsThatATaskMadeGoWithItsCell(t *testing.T) {
	cells := Open("test-below")
	c := takeFrom(t, cells, Limits{})
	g, ok := c.group.(*v2Group)
	if !ok {
		t.Log("no groups of version 2 here")
		return
	}
	dir := g.dir.Name()
	if err := os.MkdirAll(filepath.Join(dir, "a", "b"), 0o755); err != nil {
		t.Fatal(err)
	}
	c.Retire()
	cells.Leave(c)
	if _, err := os.Stat(dir); err == nil {
		t.Error("the cell is still there")
	}
	if err := cells.Close(); err != nil {
		t.Error(err)
	}
}

// TestGroupsAreNotReliedUponWhereTheyKill puts this process into a group that was killed, so every process that it
// clones into another group dies. Open must then not use such groups.
func TestGroupsAreNotReliedUponWhereTheyKill(t *testing.T) {
	const child = "CELL_TEST_IN_KILLED_GROUP"
	if os.Getenv(child) != "" {
		c := Open("test-inside")
		defer c.Close()
		inside := takeFrom(t, c, Limits{})
		defer c.Leave(inside)
		if out := runIn(t, inside, "echo lives"); out != "lives\n" {
			t.Errorf("the task wrote %q", out)
		}
		return
	}
	mount := v2Mount + "/unified"
	if _, err := os.Stat(mount + "/cgroup.kill"); err != nil {
		mount = v2Mount
	}
	outer := openV2(mount, ownV2("test-outer"), nil)
	if outer == nil {
		t.Log("no groups of version 2 here")
		return
	}
	defer outer.close()
	made, err := outer.make("killed")
	if err != nil {
		t.Fatal(err)
	}
	defer made.remove()
	if err := made.kill(); err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	enter := `echo $$ >"$0"/cgroup.procs && exec "$@"` // moves the process into the group, which is safe
	cmd := exec.Command("/bin/sh", "-c", enter, made.(*v2Group).dir.Name(), self, "-test.run=^"+t.Name()+"$")
	cmd.Env = append(os.Environ(), child+"=1")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, out)
	}
	_ = made.kill()
}

// stubborn is a control group whose removal fails at first.
type stubborn struct {
	group
	left atomic.Int32
	gone chan struct{}
}

func (*stubborn) kill() error { return errNotEnding }

func (s *stubborn) remove() error {
	if s.left.Add(-1) >= 0 {
		return unix.EBUSY
	}
	close(s.gone)
	return nil
}

func TestCellIsRemovedLater(t *testing.T) {
	s := &stubborn{gone: make(chan struct{})}
	s.left.Store(3)
	p := new(pool)
	c := &Cell{pool: p, group: s}
	c.Retire()
	p.leave(c)
	select {
	case <-s.gone:
	case <-time.After(time.Minute):
		t.Fatal("the cell was never removed")
	}
	if err := p.close(); err != nil || p.late.count() != 0 {
		t.Errorf("%v, %d left", err, p.late.count())
	}
}

// TestCloseSaysWhatIsLeft checks that Close returns an error for a group that still cannot be removed.
func TestCloseSaysWhatIsLeft(t *testing.T) {
	s := &stubborn{}
	s.left.Store(1 << 30)
	p := new(pool)
	p.late.add(s)
	if err := p.close(); !errors.Is(err, unix.EBUSY) {
		t.Errorf("%v", err)
	}
	if p.late.timer != nil {
		t.Error("removal is still tried after the end")
	}
}

// TestLateGroupsAreBounded checks that the list of control groups that a run of the node could not remove yet has at
// most mostLate groups. Further groups are left to the next run of the node.
func TestLateGroupsAreBounded(t *testing.T) {
	var l late
	l.closed = true
	for range 3 {
		l.add(make([]group, mostLate-1)...)
	}
	if l.count() != mostLate {
		t.Errorf("%d groups are kept", l.count())
	}
}

func takeFrom(t *testing.T, c *Cells, l Limits) *Cell {
	t.Helper()
	cell, err := c.Take(l, nil)
	if err != nil {
		t.Fatal(err)
	}
	return cell
}

func runIn(t *testing.T, c *Cell, script string) string {
	t.Helper()
	out := new(strings.Builder)
	cmd := exec.Command("/bin/sh", "-c", script)
	cmd.Stdout, cmd.SysProcAttr = out, &syscall.SysProcAttr{Setsid: true}
	c.Attributes(cmd.SysProcAttr)
	c.Run(func() {
		if err := cmd.Start(); err != nil {
			t.Error(err)
		}
	})
	_ = cmd.Wait()
	return out.String()
}

func (l *late) count() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.groups)
}
