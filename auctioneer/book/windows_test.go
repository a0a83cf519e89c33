package book

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/agent"
	"github.com/candor-grid/candor/messages/expect"
	"github.com/candor-grid/candor/messages/job"
	"github.com/candor-grid/candor/messages/market"
)

const hour = messages.Duration(time.Hour)

// limited returns a stage of tasks with a time limit.
func limited(tasks int, limit messages.Duration) job.Stage {
	s := mapStage(tasks)
	s.TimeLimit = limit
	return s
}

// window adds a maintenance window for nodes. The arguments `from` and `to` count from now.
func (s *site) window(from, to messages.Duration, nodes ...messages.Name) market.Window {
	s.t.Helper()
	w, ok := s.apply(Command{ChangeWindows: &ChangeWindows{Add: &market.Window{Nodes: nodes, From: s.at.Add(from), To: s.at.Add(to), Reason: "new disks"}}}).(market.Window)
	if !ok {
		s.t.Fatal("the window was refused")
	}
	return w
}

// The method `again` writes the book's image, and restores the book from this image.
func (s *site) again() {
	s.t.Helper()
	var image bytes.Buffer
	if _, err := s.Capture().WriteTo(&image); err != nil {
		s.t.Fatal(err)
	}
	before := s.Hash()
	if err := s.Restore(&image); err != nil {
		s.t.Fatal(err)
	}
	if s.Hash() != before {
		s.t.Fatal("the restored book has another image")
	}
}

// When the window begins, the node must drain. When the window ends, the node takes tasks again. The other node must
// not change.
func TestNoTaskPassesTheBeginningOfAWindow(t *testing.T) {
	for _, restored := range []bool{false, true} {
		t.Run(fmt.Sprint("restored ", restored), func(t *testing.T) {
			s := newSite(t)
			s.register("n1", 7, 9)
			s.register("n2", 8, 9)
			short, long, endless := s.submit("a", limited(9, hour)), s.submit("b", limited(9, 5*hour)), s.submit("c", limited(9, 0))
			w := s.window(3*hour, 6*hour, "n1", "n1")
			seq := uint64(0)
			takes := func(when string, n1, n2 int, jobs ...messages.JobID) {
				t.Helper()
				if restored {
					s.again()
				}
				seq++
				if got := s.claim("n2", 8, seq, 1, jobs...); len(got) != n2 {
					t.Errorf("%s: n2 gets %d tasks, want %d", when, len(got), n2)
				}
				if got := s.claim("n1", 7, seq, 1, jobs...); len(got) != n1 {
					t.Errorf("%s: n1 gets %d tasks, want %d", when, len(got), n1)
				}
			}
			takes("a task that ends before", 1, 1, short)
			takes("a task that ends in the window", 0, 1, long)
			takes("a task without a limit", 0, 1, endless)
			takes("the next task", 1, 1, long, short)
			if at := s.NextBegin(); at != w.From {
				t.Errorf("the next time is %v, want %v", at, w.From)
			}
			s.at = w.From.Add(-hour - 2000)
			takes("just in time", 1, 1, short)
			takes("too late", 0, 1, short)
			s.at = w.From
			s.apply(Command{Begin: &Begin{}})
			n := s.Node("n1")
			expect.Same(t, "Drain", n.Drain, ToTheirEnd, "Window", n.Window, w.ID, "DrainReason", n.DrainReason, "new disks", "len(n.Claims)", len(n.Claims), 3)
			takes("in the window", 0, 1, short)
			s.at = w.To
			takes("after the window", 1, 1, endless)
			n = s.Node("n1")
			expect.Same(t, "Drain", n.Drain, 0, "Window", n.Window, 0, "DrainReason", n.DrainReason, "", "len(s.Windows())", len(s.Windows()), 0,
				"NextBegin", s.NextBegin(), 0)
		})
	}
}

// A maintenance window has a notice of half an hour. For half an hour before the window, the node must drain. Then the
// task that still runs must be ended.
func TestAWindowGivesNotice(t *testing.T) {
	s := newSite(t)
	s.register("n1", 7, 2)
	id := s.submit("a", mapStage(1))
	s.claim("n1", 7, 1, 1, id)
	w := s.apply(Command{ChangeWindows: &ChangeWindows{Add: &market.Window{Nodes: []messages.Name{"n1"}, From: 1000, To: s.at.Add(hour), Notice: new(hour / 2)}}}).(market.Window)
	s.at = w.From
	s.apply(Command{Begin: &Begin{}})
	n := s.Node("n1")
	if n.Drain != w.From.Add(hour/2) {
		t.Fatalf("it drains until %v", n.Drain)
	}
	s.at = n.Drain
	s.apply(Command{Drain: &Drain{Node: "n1", Until: n.Drain, Evict: true}})
	if len(n.Stop) != 1 {
		t.Errorf("the node must end %v", n.Stop)
	}
}

// The first task of a gang is claimed early, and the last one late. After the late claim, the gang would still run when
// a maintenance window of the first node begins. Both tasks must be ended, and the gang starts on other nodes.
func TestAGangThatGathersTooLongStartsElsewhere(t *testing.T) {
	for _, allocation := range []bool{false, true} {
		s := newSite(t)
		for i, n := range []string{"n1", "n2", "n3"} {
			s.register(n, uint64(7+i), 1)
		}
		of := limited(2, hour)
		of.Gang, of.Allocation = true, allocation
		id := s.submit("a", of)
		w := s.window(2*hour, 3*hour, "n1")
		first := s.claim("n1", 7, 1, 1, id)
		s.at = w.From.Add(-hour / 2)
		late := s.claim("n2", 8, 1, 1, id)
		expect.Same(t, "len(first)", len(first), 1, "len(late)", len(late), 1, "len(s.Node('n1').Stop)", len(s.Node("n1").Stop), 1,
			"len(s.Node('n2').Stop)", len(s.Node("n2").Stop), 1)
		s.finish("n1", 7, 2, agent.Stopped, 143, first[0].Attempt)
		s.finish("n2", 8, 2, agent.Stopped, 143, late[0].Attempt)
		if got := s.claim("n1", 7, 3, 1, id); len(got) != 0 {
			t.Errorf("n1 gets %v", got)
		}
		s.claim("n2", 8, 3, 1, id)
		s.claim("n3", 9, 1, 1, id)
		if j := s.Job(id); j.Stages[0].Running != 2 || j.Stages[0].Gathering != 0 || j.Stages[0].Failed != 0 {
			t.Errorf("allocation %v: %+v", allocation, j.Stages[0])
		}
	}
}

// An operator's drain must go on when a maintenance window ends. If an operator lets a node work again during a window,
// the window must no longer apply to this node. When a window ends and the next one has begun, the drain by the next
// window must go on.
func TestAWindowAndAnOperator(t *testing.T) {
	s := newSite(t)
	for i := range 3 {
		s.register(fmt.Sprint("n", i), 7, 1)
	}
	first, second := s.window(hour, 3*hour, "n0", "n1", "n2"), s.window(2*hour, 5*hour, "n1")
	state := func(when string, want ...uint32) {
		t.Helper()
		for i, w := range want {
			if n := s.Node(fmt.Sprint("n", i)); n.Window != w || (n.Drain != 0) != (w != 0) {
				t.Errorf("%s: n%d drains until %v for window %d, want window %d", when, i, n.Drain, n.Window, w)
			}
		}
	}
	pass := func(at messages.Time) {
		s.at = at
		s.apply(Command{Begin: &Begin{}})
	}
	pass(first.From)
	state("in the first", 1, 1, 1)
	s.apply(Command{Drain: &Drain{Node: "n0"}})
	s.again()
	state("n0 works again", 0, 1, 1)
	if w := s.Windows(); len(w) != 2 || w[0].ID != 1 || strings.Join(w[0].Nodes, " ") != "n1 n2" {
		t.Errorf("%v", w)
	}
	s.apply(Command{Drain: &Drain{Node: "n2", Until: ToTheirEnd, Reason: "bad disk"}})
	pass(first.To)
	state("in the second", 0, 2)
	if n := s.Node("n2"); n.Drain != ToTheirEnd || n.DrainReason != "bad disk" {
		t.Errorf("n2 drains until %v: %s", n.Drain, n.DrainReason)
	}
	s.apply(Command{ChangeWindows: &ChangeWindows{Remove: second.ID}})
	state("the second is removed", 0, 0)
	s.apply(Command{Lost: &Lost{Node: "n1", Session: 7}})
	w := s.window(0, hour, "n1")
	s.apply(Command{Drain: &Drain{Node: "n1", Remove: true}})
	state("n1 is removed", 0, 0)
	s.register("n1", 8, 1)
	state("n1 is back", 0, w.ID)
}

func TestBadWindows(t *testing.T) {
	s := newSite(t)
	s.register("n1", 7, 1)
	s.at = 1000
	add := func(from, to messages.Time, nodes ...messages.Name) any {
		return s.apply(Command{ChangeWindows: &ChangeWindows{Add: &market.Window{Nodes: nodes, From: from, To: to}}})
	}
	refusal(t, add(1, 900, "n1"), messages.Invalid)
	refusal(t, add(2000, 3000, "n1", "n7"), messages.NotFound)
	refusal(t, s.apply(Command{ChangeWindows: &ChangeWindows{Remove: 7}}), messages.NotFound)
	for i := range market.MaxWindows {
		if w := add(2000, messages.Time(3000+i), "n1").(market.Window); w.ID != uint32(i+1) || add(2000, messages.Time(3000+i), "n1").(market.Window).ID != w.ID {
			t.Fatalf("window %d is the %d. one", w.ID, i)
		}
	}
	refusal(t, add(2000, 9000, "n1"), messages.Exhausted)
}
