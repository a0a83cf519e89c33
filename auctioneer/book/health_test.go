package book

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/agent"
	"github.com/candor-grid/candor/messages/job"
)

const seconds = messages.Duration(1e9)

// ward is a site whose nodes claim and end tasks in turns, one turn each second.
type ward struct {
	*site
	nodes []*patient
	bad   func(account messages.Name, node string) bool // whether a task fails at once
	ends  map[string]int                                // by node: number of tasks that ended on the node
}

type patient struct {
	name    string
	seq     uint64
	slots   int
	broken  bool // every task fails at once on the node, probes too
	silent  bool // probes on the node never end
	probes  int
	pending []agent.Grant
}

func newWard(t testing.TB, nodes int) *ward {
	w := &ward{site: newSite(t), bad: func(messages.Name, string) bool { return false }, ends: map[string]int{}}
	for i := range nodes {
		p := &patient{name: fmt.Sprint("n", i+1), slots: 2}
		w.nodes = append(w.nodes, p)
		w.register(p.name, 7, p.slots)
	}
	return w
}

func (w *ward) enter(account messages.Name, tasks, attempts int) messages.JobID {
	w.t.Helper()
	stage := mapStage(tasks)
	stage.Attempts = attempts
	r, ok := w.apply(Command{Submit: &Submit{Account: account, Payer: account, Key: fmt.Sprint(w.at), Hold: fmt.Sprint(w.at), Held: 100,
		Spec: &job.JobSpec{Market: "main", Budget: 100, Stages: []job.Stage{stage}}}}).(Receipt)
	if !ok {
		w.t.Fatal("submission refused")
	}
	return r.Job
}

func (w *ward) turn() {
	w.at = w.at.Add(seconds)
	var jobs []messages.JobID
	for id := messages.JobID(1); id <= w.LastJob(); id++ {
		jobs = append(jobs, id)
	}
	for _, p := range w.nodes {
		x := &Exchange{Node: p.name, Session: 7, Claims: []Claim{{Class: "map", Slots: p.slots, Jobs: jobs}}}
		for _, g := range p.pending {
			f := agent.Finished{Attempt: g.Attempt, Started: w.at, Ended: w.at.Add(seconds / 10)}
			if g.Attempt.Task.Job == 0 {
				p.probes++
				if p.silent {
					continue
				}
			} else if j := w.Job(g.Attempt.Task.Job); w.bad(j.Account, p.name) {
				f.ExitCode = 1
			}
			if p.broken {
				f.ExitCode = 137
			}
			x.Finished = append(x.Finished, f)
			w.ends[p.name]++
		}
		p.seq++
		x.Seq = p.seq
		p.pending, _ = w.apply(Command{Exchange: x}).([]agent.Grant)
	}
}

// The method `turns` calls the method `turn` until the function `done` returns true, but at most `most` times.
func (w *ward) turns(most int, what string, done func() bool) {
	w.t.Helper()
	for range most {
		if done() {
			return
		}
		w.turn()
	}
	if !done() {
		w.t.Fatalf("%s: not after %d turns", what, most)
	}
}

func (w *ward) ended(ids ...messages.JobID) func() bool {
	return func() bool {
		return !slices.ContainsFunc(ids, func(id messages.JobID) bool { return w.Job(id).Active() })
	}
}

func (w *ward) outcome(want job.State, ids ...messages.JobID) {
	w.t.Helper()
	for _, id := range ids {
		if j := w.Job(id); j.Outcome != want {
			w.t.Errorf("job %d is to be %v (%s), not %v", id, j.Outcome, j.Reason, want)
		}
	}
}

func (w *ward) quarantined() (names []string) {
	for _, n := range w.Nodes() {
		if n.Health.Quarantined != 0 {
			names = append(names, n.Name)
		}
	}
	return names
}

// A node on which everything fails may take only two tasks before it fails its probe. The jobs must complete on the
// other node, even if a task may have only one attempt.
func TestNodeThatFailsEverythingIsQuarantined(t *testing.T) {
	w := newWard(t, 2)
	w.nodes[0].broken = true
	a, b := w.enter("alice", 20, 2), w.enter("bob", 20, 2)
	w.turns(60, "the jobs end", w.ended(a, b))
	w.outcome(job.Completed, a, b)
	n := w.Node("n1")
	if n.Health.Quarantined == 0 || !strings.Contains(n.Health.Reason, "exit code 137") {
		t.Fatalf("health of n1: %+v", n.Health)
	}
	if failed := w.ends["n1"] - w.nodes[0].probes; failed > w.nodes[0].slots {
		t.Errorf("%d tasks failed there", failed)
	}
	if n.Idle("map") != 0 {
		t.Error("the node still takes work")
	}

	w.nodes[0].broken = false // the node is repaired, and must leave the quarantine by itself
	w.turns(700, "the node comes back", func() bool { return len(w.quarantined()) == 0 })
	c := w.enter("carol", 4, 1)
	w.turns(20, "the next job ends", w.ended(c))
	w.outcome(job.Completed, c)
	if n.Health.Back == 0 || n.Health.Reason != "" {
		t.Errorf("health of n1: %+v", n.Health)
	}
}

func TestBrokenNodesTimeIsNotPaid(t *testing.T) {
	w := newWard(t, 1)
	w.nodes[0].broken = true
	id := w.enter("alice", 2, 8)
	var paid messages.Duration
	w.turns(10, "quarantine", func() bool {
		_, had := w.Used(w.Job(id), w.at)
		paid = max(paid, had)
		return len(w.quarantined()) > 0
	})
	if paid == 0 {
		t.Error("nothing was to be paid before the quarantine either: this test has no power")
	}
	if _, had := w.Used(w.Job(id), w.at); had != 0 {
		t.Errorf("%v on the broken node are to be paid", had)
	}
	if n := w.Job(id).Began(); n != 0 {
		t.Errorf("%d tasks began", n)
	}
}

// A job's price is fixed when each of its tasks has ended once; then the job is complete. If the node of its tasks goes
// into quarantine, these ends no longer count, and the job is not complete any more. The leader must learn of this
// change.
func TestAForgivenJobIsFollowed(t *testing.T) {
	w := newWard(t, 1)
	w.nodes[0].broken = true
	id := w.enter("alice", 2, 8)
	w.Watch(true)
	complete, told := false, false
	w.turns(10, "quarantine", func() bool {
		if len(w.quarantined()) > 0 {
			told = slices.Contains(w.TakeChanges().Jobs, id)
			return true
		}
		complete = w.Job(id).Complete()
		w.TakeChanges()
		return false
	})
	if !complete || w.Job(id).Complete() {
		t.Fatal("the quarantine made no difference to whether the job is complete: this test has no power")
	}
	if !told {
		t.Error("the leader is not told of it")
	}
}

// A job has ended and was charged. Later, the node of one of its failed attempts goes into quarantine. The site must
// then give back the charge for this attempt. The test compares this job with a job that still runs when the node goes
// into quarantine. Both jobs must have paid the same in the end.
func TestABrokenNodesTimeIsGivenBack(t *testing.T) {
	w := newWard(t, 2)
	w.apply(Command{Decide: &Decide{Market: "main", Tariffs: []Tariff{{Class: "map", Price: 100}}}})
	w.bad = func(_ messages.Name, node string) bool { return node == "n1" }
	var ids []messages.JobID
	for _, account := range []messages.Name{"alice", "bob"} {
		id := w.enter(account, 1, 3)
		ids = append(ids, id)
		w.turns(40, "the job ends", w.ended(id))
		if n := len(w.quarantined()); n != len(ids)-1 {
			t.Fatalf("after job %d %d nodes are in quarantine", id, n)
		}
		used, _ := w.Used(w.Job(id), w.at)
		w.apply(Command{Settle: &Settle{Job: id, Charge: used}})
		for e := range w.EachEffect {
			if e.Kind == Charge {
				w.apply(Command{Confirm: &Confirm{Effects: []Confirmation{{Effect: e.ID, Amount: used}}}})
			}
		}
	}
	alice, bob := w.Job(ids[0]), w.Job(ids[1])
	var refunds []Effect
	for e := range w.EachEffect {
		if e.Kind == Refund {
			refunds = append(refunds, e)
		}
	}
	if len(refunds) != 1 || refunds[0].Job != alice.ID || alice.Owed-refunds[0].Legs[0].Amount != bob.Owed {
		t.Fatalf("alice was charged %v, bob %v; %+v is given back", alice.Owed, bob.Owed, refunds)
	}
	if had := alice.Cost(); had != bob.Cost() || had == 0 {
		t.Errorf("alice pays %v in the end, bob %v", had, bob.Cost())
	}
	w.apply(Command{Confirm: &Confirm{Effects: []Confirmation{{Effect: refunds[0].ID, Refused: "no"}}}})
	if had := w.Job(alice.ID).Cost(); had != alice.Owed {
		t.Errorf("alice was given nothing back, and is said to pay %v of %v", had, alice.Owed)
	}
}

func TestBadJobQuarantinesNobody(t *testing.T) {
	w := newWard(t, 3)
	w.bad = func(account messages.Name, _ string) bool { return account == "mallory" || account == "trudy" }
	m, tr := w.enter("mallory", 50, 3), w.enter("trudy", 50, 3)
	w.turns(300, "the bad jobs end", w.ended(m, tr))
	w.outcome(job.Failed, m, tr)
	if q := w.quarantined(); q != nil {
		t.Errorf("in quarantine: %v", q)
	}
	for _, p := range w.nodes {
		if p.probes > 7+int(w.at/messages.Time(mostBetween)) {
			t.Errorf("%s was probed %d times", p.name, p.probes)
		}
	}
}

// Two cases must not put a node into quarantine. In the first case, all tasks of one user fail on this node, and end
// well on other nodes. In the second case, many users have such tasks, while the tasks of the other users end well on
// this node.
func TestUserCannotQuarantineANode(t *testing.T) {
	w := newWard(t, 2)
	w.bad = func(account messages.Name, node string) bool { return account == "mallory" && node == "n1" }
	for range 5 {
		m := w.enter("mallory", 10, 3)
		w.turns(300, "the job ends", w.ended(m))
	}
	if q := w.quarantined(); q != nil {
		t.Errorf("one account: in quarantine: %v", q)
	}
	w.bad = func(account messages.Name, node string) bool { return account != "alice" && node == "n1" }
	for range 20 {
		w.enter("mallory", 1, 3)
		w.enter("alice", 4, 3)
		w.enter("trudy", 1, 3)
		w.turn()
		w.turn()
	}
	if q := w.quarantined(); q != nil {
		t.Errorf("several accounts: in quarantine: %v", q)
	}
}

// A node that fails for several accounts is put in quarantine. All users of one peer must count as one account. A user
// of another peer must count as a second account.
func TestAPeerCannotQuarantineANode(t *testing.T) {
	for second, want := range map[messages.Name]int{"bob@west": 0, "bob@east": 1} {
		w := newWard(t, 2)
		w.bad = func(_ messages.Name, node string) bool { return node == "n1" }
		for _, account := range []messages.Name{"alice@west", second} {
			id := w.enter(account, 1, 3)
			w.turns(40, "the job ends", w.ended(id))
		}
		if q := w.quarantined(); len(q) != want {
			t.Errorf("alice@west and %s: in quarantine: %v", second, q)
		}
	}
}

// Probes end well on a node, and tasks of users fail, for example because a file system is missing. Failures of several
// accounts must cause a quarantine. The next quarantine must be longer.
func TestNodeOnWhichOnlyTasksOfUsersFailIsFoundOut(t *testing.T) {
	w := newWard(t, 3)
	w.bad = func(_ messages.Name, node string) bool { return node == "n1" }
	work := func() {
		running := 0
		for j := range w.Jobs {
			if j.Active() {
				running++
			}
		}
		if running < 4 {
			w.enter("alice", 3, 3)
			w.enter("bob", 3, 3)
		}
	}
	stay := func() messages.Duration {
		t.Helper()
		w.turns(100, "the node is found out", func() bool { work(); return w.Node("n1").Health.Quarantined != 0 })
		if r := w.Node("n1").Health.Reason; !strings.Contains(r, "2 accounts") {
			t.Fatalf("reason %q", r)
		}
		from := w.at
		w.turns(100, "the node comes back", func() bool { return len(w.quarantined()) == 0 })
		return w.at.Sub(from)
	}
	first := stay()
	if second := stay(); second < 3*first/2 {
		t.Errorf("in quarantine for %v, then for %v", first, second)
	}
	for j := range w.Jobs {
		if j.Outcome == job.Failed {
			t.Errorf("job %d failed (%s)", j.ID, j.Reason)
		}
	}
}

// If the last healthy node of a class fails a probe, it must go into quarantine, and the reason must say that it is the
// last one. If only tasks failed on it, it must still get work.
func TestLastNodeIsNotQuarantinedInSilence(t *testing.T) {
	w := newWard(t, 1)
	w.nodes[0].broken = true
	id := w.enter("alice", 1, 3)
	w.turns(10, "the node is found out", func() bool { return w.quarantined() != nil })
	if r := w.Node("n1").Health.Reason; !strings.Contains(r, "no other node has slots of class map") {
		t.Errorf("reason %q", r)
	}
	w.nodes[0].broken = false
	w.turns(100, "the job ends", w.ended(id))
	w.outcome(job.Completed, id) // the job completes, because the attempts that failed on n1 do not count

	w = newWard(t, 2)
	w.bad = func(_ messages.Name, node string) bool { return node == "n1" }
	w.enter("alice", 2, 3)
	w.enter("bob", 2, 3)
	w.turn()
	w.turn()
	w.turn() // some tasks have failed on n1, and now run on n2
	w.apply(Command{Drain: &Drain{Node: "n2", Until: w.at.Add(1e15)}})
	w.turn()
	w.turn()
	if h := w.Node("n1").Health; h.Quarantined != 0 || h.Reason != "" && !strings.Contains(h.Reason, "no other has slots") {
		t.Errorf("health of the last node: %+v", h)
	}
}

func TestProbeThatNeverEnds(t *testing.T) {
	w := newWard(t, 2)
	w.bad = func(_ messages.Name, node string) bool { return node == "n1" }
	w.nodes[0].silent = true
	id := w.enter("alice", 10, 3)
	w.turns(60, "the node is found out", func() bool { return w.quarantined() != nil })
	n := w.Node("n1")
	if !strings.Contains(n.Health.Reason, "did not end within 30s") || !slices.Contains(n.Stop, probeAttempt(1)) {
		t.Errorf("health %+v, to stop %v", n.Health, n.Stop)
	}
	w.turns(60, "the job ends", w.ended(id))
	w.outcome(job.Completed, id)
}

// If a task cannot start on a node, it must run on another node. The attempt that did not start must not count.
func TestUnstartableIsTriedElsewhere(t *testing.T) {
	s := newSite(t)
	stage := mapStage(1)
	stage.Attempts = 1
	id := s.submit("k", stage)
	s.register("n1", 7, 1)
	s.register("n2", 7, 1)
	exchange := func(node string, seq uint64, f ...agent.Finished) []agent.Grant {
		t.Helper()
		return s.apply(Command{Exchange: &Exchange{Node: node, Session: 7, Seq: seq, Finished: f,
			Claims: []Claim{{Class: "map", Slots: 1, Jobs: []messages.JobID{id}}}}}).([]agent.Grant)
	}
	g := exchange("n1", 1)
	if again := exchange("n1", 2, agent.Finished{Attempt: g[0].Attempt, Outcome: agent.Unstartable}); slices.ContainsFunc(again, func(g agent.Grant) bool { return g.Attempt.Task.Job == id }) {
		t.Fatalf("the same node got %v", again)
	}
	if j := s.Job(id); !j.Active() || j.Stages[0].Tasks[0].Tries != 0 {
		t.Fatalf("the attempt was counted: %v, %+v", j.State, j.Stages[0].Tasks[0])
	}
	g = exchange("n2", 1)
	if len(g) != 1 {
		t.Fatal("the other node got nothing")
	}
	exchange("n2", 2, agent.Finished{Attempt: g[0].Attempt, Outcome: agent.Unstartable})
	if j := s.Job(id); j.Active() || j.Reason != "CannotStart" { // the task could not start on two nodes, and there is no third node
		t.Errorf("job %v %s", j.State, j.Reason)
	}
}

// A task that failed on a node must wait only for a limited time for another node, because the other node may be busy
// for days.
func TestTaskWaitsForAnotherNodeOnlySoLong(t *testing.T) {
	w := newWard(t, 2)
	w.bad = func(_ messages.Name, node string) bool { return node == "n1" }
	w.nodes[1].slots = 0 // this node never claims
	id := w.enter("alice", 1, 2)
	w.turn()
	w.turn()
	from := w.at
	w.turns(100, "it is tried again", func() bool { return w.Job(id).Stages[0].Tasks[0].Attempt == 2 })
	if waited := w.at.Sub(from); waited < avoidFor-2*seconds {
		t.Errorf("it waited for %v only", waited)
	}
}

// An operator can end a quarantine. A node is probed at once after its agent registers again.
func TestOperatorLiftsAQuarantine(t *testing.T) {
	w := newWard(t, 2)
	w.nodes[0].broken = true
	w.enter("alice", 9, 3)
	w.turns(20, "the node is found out", func() bool { return w.quarantined() != nil })
	w.apply(Command{Register: &Register{Node: "n1", Session: 8, Slots: []job.ClassSlots{{Class: "map", Slots: 2}}}})
	if n := w.Node("n1"); n.Health.Quarantined == 0 || !n.Examines(w.at) {
		t.Errorf("after a restart: %+v", n.Health)
	}
	w.apply(Command{Drain: &Drain{Node: "n1"}})
	if n := w.Node("n1"); n.Health.Quarantined != 0 || n.Idle("map") != 2 {
		t.Errorf("after it was lifted: %+v", n.Health)
	}
}

func TestHealthIsKeptInAnImage(t *testing.T) {
	w := newWard(t, 2)
	w.nodes[0].broken = true
	w.enter("alice", 9, 3)
	w.turns(20, "the node is found out", func() bool { return w.quarantined() != nil })
	w.enter("bob", 3, 3)
	w.bad = func(messages.Name, string) bool { return true }
	w.turn()
	w.turn()
	restored := New()
	copyInto(t, w.Book, restored)
	if got := restored.Node("n1").Health; fmt.Sprint(got) != fmt.Sprint(w.Node("n1").Health) || doubts(restored) == 0 || doubts(restored) != doubts(w.Book) {
		t.Errorf("health %+v, want %+v", got, w.Node("n1").Health)
	}
}

// A job notes each of its tasks that failed as soon as it started on a node. doubts returns the number of these tasks
// of all jobs.
func doubts(b *Book) (n int) {
	for j := range b.Jobs {
		n += len(j.Doubts)
	}
	return n
}

// A node goes into quarantine at once if a task's prolog fails. The failed attempt must not count: even a task with
// only one allowed attempt must run again, on another node.
func TestANodeWhosePrologFailsIsQuarantined(t *testing.T) {
	s := newSite(t)
	s.register("n1", 7, 2)
	s.register("n2", 8, 2)
	stage := mapStage(1)
	stage.Attempts = 1
	id := s.submit("a", stage)
	g := s.claim("n1", 7, 1, 1, id)
	s.at += 100
	s.apply(Command{Exchange: &Exchange{Node: "n1", Session: 7, Seq: 2, Finished: []agent.Finished{{Attempt: g[0].Attempt, Outcome: agent.Unprepared, Detail: "the prolog of node n1 failed"}}}})
	if h := s.Node("n1").Health; h.Quarantined == 0 || !strings.HasPrefix(h.Reason, "the prolog of node n1 failed") {
		t.Errorf("health of n1: %+v", h)
	}
	if j := s.Job(id); !j.Active() || j.Stages[0].Tasks[0].Tries != 0 || j.Began() != 0 {
		t.Errorf("the job is %v, its task has failed %d times", j.State, j.Stages[0].Tasks[0].Tries)
	}
	again := s.claim("n2", 8, 1, 1, id)
	if len(again) != 1 {
		t.Fatalf("granted %v elsewhere", again)
	}
	s.finish("n2", 8, 2, agent.Exited, 0, again[0].Attempt)
	if j := s.Job(id); j.Outcome != job.Completed {
		t.Errorf("the job is %v", j.Outcome)
	}
}
