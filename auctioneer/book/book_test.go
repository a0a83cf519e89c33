package book

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/agent"
	"github.com/candor-grid/candor/messages/expect"
	jobmsg "github.com/candor-grid/candor/messages/job"
	"github.com/candor-grid/candor/messages/market"
)

// site is a book under test with one node, and a clock that only the test moves.
type site struct {
	*Book
	t  testing.TB
	at messages.Time

	project messages.Name // the project that pays for submitted jobs
}

func newSite(t testing.TB) *site { return &site{Book: New(), t: t} }

func (s *site) apply(c Command) any {
	s.t.Helper()
	s.at++
	c.At = s.at
	data, err := c.Encode()
	if err != nil {
		s.t.Fatal(err)
	}
	decoded, err := Decode(data)
	if err != nil {
		s.t.Fatal(err)
	}
	result := s.Apply(decoded)
	if err := invariant(s.Book); err != nil {
		s.t.Fatal(err)
	}
	return result
}

func (s *site) submit(key string, stages ...jobmsg.Stage) messages.JobID {
	s.t.Helper()
	r, ok := s.apply(Command{Submit: &Submit{Account: "alice", Key: key, Payer: "alice", Hold: key, Held: 100, Spec: &jobmsg.JobSpec{
		Market: "main", Budget: 100, Stages: stages, Project: s.project, Together: len(stages) > 1 && stages[1].Allocation}}}).(Receipt)
	if !ok {
		s.t.Fatal("submission refused")
	}
	return r.Job
}

func (s *site) register(node string, session uint64, slots int, running ...messages.Attempt) []messages.Attempt {
	return s.apply(Command{Register: &Register{Node: node, Session: session, Running: running,
		Slots: []jobmsg.ClassSlots{{Class: "map", Slots: slots}}}}).([]messages.Attempt)
}

func (s *site) claim(node string, session, seq uint64, slots int, jobs ...messages.JobID) []agent.Grant {
	s.t.Helper()
	g, ok := s.apply(Command{Exchange: &Exchange{Node: node, Session: session, Seq: seq,
		Claims: []Claim{{Class: "map", Slots: slots, Jobs: jobs}}}}).([]agent.Grant)
	if !ok {
		s.t.Fatal("claim refused")
	}
	return g
}

func (s *site) finish(node string, session, seq uint64, outcome agent.Outcome, exit int, attempts ...messages.Attempt) {
	x := &Exchange{Node: node, Session: session, Seq: seq}
	for _, a := range attempts {
		x.Finished = append(x.Finished, agent.Finished{Attempt: a, Outcome: outcome, ExitCode: exit})
	}
	s.apply(Command{Exchange: x})
}

func mapStage(tasks int) jobmsg.Stage {
	return jobmsg.Stage{Name: "map", Class: "map", Tasks: tasks, Attempts: 3, Command: []string{"true"}}
}

// invariant returns what is wrong with a book, or nil.
func invariant(b *Book) error {
	for _, check := range []func(*Book) error{accounted, claimed, effective, indexed, counted, licensed, bounded} {
		if err := check(b); err != nil {
			return err
		}
	}
	return paid(b)
}

// claimed returns an error if tasks, nodes and counts disagree about the claims.
func claimed(b *Book) error {
	held, nodes := map[messages.TaskRef]int{}, map[messages.TaskRef]int{}
	for _, n := range b.nodes.inOrder {
		for _, g := range n.Gatherings {
			nodes[messages.TaskRef{Job: g.Job, Stage: g.Stage}]++
		}
		used, ahead := make([]int, len(n.Slots)), make([]int, len(n.Slots))
		for r, h := range n.Claims {
			held[r]++
			switch i := n.class(h.Class); {
			case i < 0 || h.Halt == Suspended:
			case h.Halt == Ahead:
				ahead[i]++
			default:
				used[i] += h.slots()
			}
			if j := b.Job(r.Job); j != nil {
				if t := j.Stages[r.Stage].Tasks[r.Index]; t.Phase != Claimed || t.Attempt != h.Attempt {
					return fmt.Errorf("node %s holds %v.%d, but the task is %v by attempt %d", n.Name, r, h.Attempt, t.Phase, t.Attempt)
				}
			}
		}
		for i := range ahead {
			if ahead[i] != n.waiting(i) {
				return fmt.Errorf("node %s has %v claims ahead, its claims are %v", n.Name, n.Ahead, ahead)
			}
		}
		if !slices.Equal(used, n.Used) {
			return fmt.Errorf("node %s uses %v slots, its claims are %v", n.Name, n.Used, used)
		}
	}
	for id, j := range b.every {
		for i := range j.Stages {
			s := &j.Stages[i]
			if n := nodes[messages.TaskRef{Job: id, Stage: uint32(i)}]; n != s.Nodes {
				return fmt.Errorf("job %d stage %d counts %d nodes that gather, and there are %d", id, i, s.Nodes, n)
			}
			if err := tallied(b, j, i); err != nil {
				return err
			}
			count := map[Phase]int{}
			for k, t := range s.Tasks {
				count[t.Phase]++
				ref := messages.TaskRef{Job: id, Stage: uint32(i), Index: uint32(k)}
				if t.Phase == Claimed && held[ref] != 1 {
					return fmt.Errorf("task %v is claimed %d times", ref, held[ref])
				}
			}
			failed := s.Failed + s.Cancelled - int(s.Skipped.Count())
			if failed > count[Failed] || j.Active() && failed < count[Failed] || j.Active() && s.over() != (s.Ended != 0) && s.Started != 0 && !j.Spec.Stages[i].Gang {
				return fmt.Errorf("job %d stage %d counts %d failed and ended at %v; its tasks say %v", id, i, s.Failed, s.Ended, count)
			}
			if count[Claimed] != s.Running || count[Done] != s.Done || count[Pending] != len(s.Again)-s.gone {
				return fmt.Errorf("job %d stage %d counts %d running, %d done, %d again; its tasks say %v", id, i, s.Running, s.Done, len(s.Again), count)
			}
		}
	}
	return nil
}

func counted(b *Book) error {
	present, taking := 0, map[messages.Name]int{}
	for _, n := range b.nodes.inOrder {
		if !n.Removed {
			present++
		}
		for _, c := range n.Slots {
			if n.takes(c.Class) {
				taking[c.Class]++
			}
		}
	}
	if present != b.nodes.present || !maps.Equal(taking, b.nodes.taking) {
		return fmt.Errorf("%d nodes are there, and counted are %d; %v accept work, and counted are %v", present, b.nodes.present, taking, b.nodes.taking)
	}
	return nil
}

// licensed returns an error if the book's count of the licences in use differs from the licences that the claims need.
func licensed(b *Book) error {
	used := map[messages.Name]int{}
	for _, n := range b.nodes.inOrder {
		for r, h := range n.Claims {
			if j := b.Job(r.Job); j != nil && h.Halt != Ahead {
				for _, of := range licensesOf(&j.Spec.Stages[r.Stage], r.Index) {
					used[of.Name] += of.Count
				}
			}
		}
	}
	for _, l := range b.Licenses() {
		if used[l.Name] != l.Used {
			return fmt.Errorf("tasks have %d licences of %s, and %d are counted", used[l.Name], l.Name, l.Used)
		}
		delete(used, l.Name)
	}
	if len(used) > 0 {
		return fmt.Errorf("licences %v are not counted", used)
	}
	return nil
}

// The book has the numbers of claimed tasks and slots of each owner, and compares them with the owner's bounds. bounded
// returns an error if these numbers differ from the sums over the owner's claims.
func bounded(b *Book) error {
	used := map[Owner]market.Bound{}
	gangs := map[messages.TaskRef]bool{}
	for _, n := range b.nodes.inOrder {
		for r, h := range n.Claims {
			j := b.Job(r.Job)
			if j == nil || h.Halt == Ahead {
				continue
			}
			of := &j.Spec.Stages[r.Stage]
			first := messages.TaskRef{Job: r.Job, Stage: r.Stage}
			if j.Spec.Together {
				first.Stage = 0
			}
			if of.Gang && gangs[first] {
				continue
			}
			gangs[first] = of.Gang
			for _, o := range j.Owners() {
				u, need := used[o], Needs(j.Spec, int(r.Stage))
				used[o] = market.Bound{Slots: u.Slots + need.Slots, GPUs: u.GPUs + need.GPUs, Tasks: u.Tasks + need.Tasks}
			}
		}
	}
	if !maps.Equal(used, b.bounds.used) {
		return fmt.Errorf("claims have %v, and counted are %v", used, b.bounds.used)
	}
	return nil
}

// tallied returns an error if the counts of a stage differ from its claims. It also returns an error if only a part of
// a gang runs, although the gang was not broken.
func tallied(b *Book, j *Job, stage int) error {
	s, going := &j.Stages[stage], 0
	var seen Stage
	for k := range s.Tasks {
		r := messages.TaskRef{Job: j.ID, Stage: uint32(stage), Index: uint32(k)}
		if s.Tasks[k].Phase != Claimed {
			continue
		}
		h := b.nodes.inOrder[s.Tasks[k].Node].Claims[r]
		seen.tally(h, 1)
		if h.Halt == Goes && !h.Leaving {
			going++
		}
	}
	if seen.Suspended != s.Suspended || seen.Gathering != s.Gathering || seen.Leaving != s.Leaving || seen.Ahead != s.Ahead {
		return fmt.Errorf("job %d stage %d counts %d suspended, %d gathering, %d leaving, %d ahead; its claims say %d, %d, %d, %d",
			j.ID, stage, s.Suspended, s.Gathering, s.Leaving, s.Ahead, seen.Suspended, seen.Gathering, seen.Leaving, seen.Ahead)
	}
	if j.Spec.Stages[stage].Gang && j.Active() && !s.Broken && going > 0 && going+s.Suspended+s.Done != s.Total {
		return fmt.Errorf("job %d stage %d: %d of a gang of %d run, %d are done", j.ID, stage, going, s.Total, s.Done)
	}
	for i := range j.Stages {
		if of := &j.Stages[i]; j.Spec.Together && j.Active() && going > 0 && !s.Broken && (of.Gathering > 0 || of.Leaving == 0 && of.Running+of.Done < of.Total) {
			return fmt.Errorf("job %d: tasks of stage %d run, and of the %d of stage %d only %d have slots (%d gather)", j.ID, stage, of.Total, i, of.Running, of.Gathering)
		}
	}
	return nil
}

// paid returns an error if the payments between jobs do not add up, or exceed the holds.
func paid(b *Book) error {
	var sum messages.Credits
	for id, j := range b.every {
		sum += j.Paid - j.Gained + j.Back
		if j.Paid < 0 || j.Gained < 0 || j.Drawn > j.Paid || j.Paid+j.Owed > j.Held {
			return fmt.Errorf("job %d: held %v, owes %v, paid %v (%v drawn), gained %v", id, j.Held, j.Owed, j.Paid, j.Drawn, j.Gained)
		}
	}
	if sum != 0 {
		return fmt.Errorf("jobs paid one another %v more than they received", sum)
	}
	return nil
}

func refusal(t *testing.T, result any, kind messages.Kind) {
	t.Helper()
	err, ok := result.(error)
	if !ok || !errors.Is(err, &messages.Error{Kind: kind}) {
		t.Fatalf("result is %v, want an error of kind %v", result, kind)
	}
}

func TestTwoStagesRunInOrder(t *testing.T) {
	s := newSite(t)
	reduce := jobmsg.Stage{Name: "reduce", Class: "map", Tasks: 1, After: []string{"map"}}
	id := s.submit("k", mapStage(2), reduce)
	s.register("n1", 7, 3)
	g := s.claim("n1", 7, 1, 3, id)
	if len(g) != 2 {
		t.Fatalf("granted %d tasks, want the 2 of the first stage", len(g))
	}
	s.finish("n1", 7, 2, agent.Exited, 0, g[0].Attempt)
	if got := s.claim("n1", 7, 3, 3, id); len(got) != 0 {
		t.Fatalf("granted %v before the first stage was done", got)
	}
	s.finish("n1", 7, 4, agent.Exited, 0, g[1].Attempt)
	last := s.claim("n1", 7, 5, 3, id)
	if len(last) != 1 || last[0].Attempt.Task.Stage != 1 {
		t.Fatalf("granted %v, want the task of the second stage", last)
	}
	s.finish("n1", 7, 6, agent.Exited, 0, last[0].Attempt)
	if j := s.Job(id); j.State != jobmsg.Settling || j.Outcome != jobmsg.Completed {
		t.Fatalf("job is %v, to be %v", j.State, j.Outcome)
	}
}

func TestRepeatedExchangeHasTheFirstAnswer(t *testing.T) {
	s := newSite(t)
	id := s.submit("k", mapStage(9))
	s.register("n1", 7, 2)
	first := s.claim("n1", 7, 1, 1, id)
	again := s.claim("n1", 7, 1, 1, id)
	if !slices.Equal(first, again) || s.Job(id).Stages[0].Running != 1 {
		t.Fatalf("first %v, repeated %v, %d running", first, again, s.Job(id).Stages[0].Running)
	}
	refusal(t, s.apply(Command{Exchange: &Exchange{Node: "n1", Session: 7, Seq: 0, Claims: []Claim{{}}}}), messages.Fenced)
	refusal(t, s.apply(Command{Exchange: &Exchange{Node: "n1", Session: 8, Seq: 2}}), messages.Fenced)
}

func TestANodeThatIsDownCanBeRemoved(t *testing.T) {
	s := newSite(t)
	s.register("n1", 7, 1)
	remove := Command{Drain: &Drain{Node: "n1", Remove: true}}
	refusal(t, s.apply(remove), messages.Conflict)
	s.apply(Command{Drain: &Drain{Node: "n1", Until: 9, Reason: "new disk"}})
	s.apply(Command{Lost: &Lost{Node: "n1", Session: 8, Stopped: true}}) // a message of another session
	if n := s.Node("n1"); !n.Up || n.Stopped || n.DrainReason != "new disk" {
		t.Fatalf("%+v", n)
	}
	s.apply(Command{Lost: &Lost{Node: "n1", Session: 7, Stopped: true}})
	if n := s.Node("n1"); n.Up || !n.Stopped {
		t.Fatalf("%+v", n)
	}
	s.apply(remove)
	refusal(t, s.apply(remove), messages.NotFound)
	refusal(t, s.apply(Command{Drain: &Drain{Node: "n1", Until: 9}}), messages.NotFound)
	s.register("n1", 8, 1)
	n := s.Node("n1")
	expect.Same(t, "Up", n.Up, true, "Removed", n.Removed, false, "Stopped", n.Stopped, false, "Drain", n.Drain, 0, "DrainReason", n.DrainReason, "",
		"len(s.Nodes())", len(s.Nodes()), 1)
}

func TestLostNodeGivesBackWithoutCountingTheAttempt(t *testing.T) {
	s := newSite(t)
	stage := mapStage(1)
	stage.Attempts = 1
	id := s.submit("k", stage)
	s.register("n1", 7, 1)
	old := s.claim("n1", 7, 1, 1, id)[0].Attempt
	if n := s.apply(Command{Lost: &Lost{Node: "n1", Session: 7}}); n != 1 {
		t.Fatalf("took back %v claims, want 1", n)
	}
	s.register("n2", 8, 1)
	next := s.claim("n2", 8, 1, 1, id)[0].Attempt
	if next.Number != old.Number+1 {
		t.Fatalf("attempt %d after %d", next.Number, old.Number)
	}
	s.register("n1", 9, 1)
	s.finish("n1", 9, 1, agent.Exited, 0, old)
	if j := s.Job(id); j.Stages[0].Done != 0 {
		t.Fatal("a fenced attempt was accepted")
	}
	s.finish("n2", 8, 2, agent.Exited, 0, next)
	if j := s.Job(id); j.Outcome != jobmsg.Completed {
		t.Fatalf("job is to be %v", j.Outcome)
	}
}

func TestAgentKeepsItsTasksOverARestart(t *testing.T) {
	s := newSite(t)
	id := s.submit("k", mapStage(2))
	s.register("n1", 7, 2)
	g := s.claim("n1", 7, 1, 2, id)
	stop := s.register("n1", 8, 2, g[0].Attempt, messages.Attempt{Task: messages.TaskRef{Job: 99}, Number: 1})
	if len(stop) != 1 || stop[0].Task.Job != 99 {
		t.Fatalf("told to stop %v, want the attempt nobody knows", stop)
	}
	if n := s.Node("n1"); len(n.Claims) != 1 || s.Job(id).Claimable(0) != 1 {
		t.Fatalf("%d claims kept, %d claimable; want 1 and 1", len(n.Claims), s.Job(id).Claimable(0))
	}
}

func TestTaskFailsAfterItsAttempts(t *testing.T) {
	for _, c := range []struct {
		name     string
		attempts int // maximum number of attempts for each task; 0 means not set
		outcome  agent.Outcome
		tries    int
		reason   string
	}{
		{"exit code", 0, agent.Exited, 1, "TaskFailed"},
		{"exit code, with attempts", 3, agent.Exited, 3, "TaskFailed"},
		{"cannot start", 0, agent.Unstartable, 3, "CannotStart"},
		{"cannot start, with attempts", 2, agent.Unstartable, 2, "CannotStart"},
		{"time limit is not tried again", 3, agent.TimedOut, 1, "TimeLimit"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newSite(t)
			stage := mapStage(1)
			stage.Attempts = c.attempts
			id := s.submit("k", stage)
			s.register("n1", 7, 1)
			tries := 0
			for seq := uint64(1); s.Job(id).Active(); seq += 2 {
				g := s.claim("n1", 7, seq, 1, id)
				s.finish("n1", 7, seq+1, c.outcome, 5, g[0].Attempt)
				tries++
			}
			j := s.Job(id)
			expect.Same(t, "tries", tries, c.tries, "Outcome", j.Outcome, jobmsg.Failed, "Reason", j.Reason, c.reason, "ExitCode", j.ExitCode, 5)
		})
	}
}

func TestCancelStopsWhatRuns(t *testing.T) {
	s := newSite(t)
	id := s.submit("k", mapStage(3))
	s.register("n1", 7, 2)
	g := s.claim("n1", 7, 1, 2, id)
	if was := s.apply(Command{Cancel: &Cancel{Job: id, By: "alice"}}); was != jobmsg.Running {
		t.Fatalf("was %v", was)
	}
	if stop := s.Node("n1").Stop; len(stop) != 2 {
		t.Fatalf("to stop: %v", stop)
	}
	s.finish("n1", 7, 2, agent.Stopped, 143, g[0].Attempt, g[1].Attempt)
	if n := s.Node("n1"); len(n.Stop) != 0 || n.Used[0] != 0 {
		t.Fatalf("still to stop %v, %d slots used", n.Stop, n.Used[0])
	}
	refusal(t, s.apply(Command{Cancel: &Cancel{Job: id, By: "alice"}}), messages.Ended)
	refusal(t, s.apply(Command{Cancel: &Cancel{Job: 99}}), messages.NotFound)
}

func TestSubmissionKeyNamesOneJob(t *testing.T) {
	s := newSite(t)
	id := s.submit("k", mapStage(1))
	if again := s.submit("k", mapStage(1)); again != id {
		t.Fatalf("the same submission became jobs %d and %d", id, again)
	}
	refusal(t, s.apply(Command{Submit: &Submit{Account: "alice", Key: "k", Digest: []byte{1}, Spec: &jobmsg.JobSpec{}}}), messages.Conflict)
	if other := s.apply(Command{Submit: &Submit{Account: "bob", Key: "k", Spec: &jobmsg.JobSpec{}}}).(Receipt); other.Job == id {
		t.Fatal("two accounts share a key")
	}
}

func TestSettledOnceAndWithinTheHold(t *testing.T) {
	s := newSite(t)
	id := s.submit("k", mapStage(1))
	refusal(t, s.apply(Command{Settle: &Settle{Job: id, Charge: 1}}), messages.Invalid)
	s.apply(Command{Cancel: &Cancel{Job: id}})
	refusal(t, s.apply(Command{Settle: &Settle{Job: id, Charge: 101}}), messages.Invalid)
	refusal(t, s.apply(Command{Settle: &Settle{Job: id, Charge: -1}}), messages.Invalid)
	s.apply(Command{Settle: &Settle{Job: id, Charge: 60, Promise: KeptPromise}})
	s.apply(Command{Settle: &Settle{Job: id, Charge: 70, Promise: BrokenPromise}})
	if p := s.Promises(); len(p) != 1 || p[0] != (Promises{Market: s.Job(id).Spec.Market, Kept: 1}) {
		t.Fatalf("promises: %+v", p)
	}
	again := New()
	copyInto(t, s.Book, again)
	if p := again.Promises(); len(p) != 1 || p[0].Kept != 1 {
		t.Fatalf("promises after a restore: %+v", p)
	}
	e := slices.Collect(s.EachEffect)
	if len(e) != 1 || e[0].Kind != Charge || s.Job(id).Owed != 60 {
		t.Fatalf("effects %v, owed %v", e, s.Job(id).Owed)
	}
	s.apply(Command{Confirm: &Confirm{Effects: []Confirmation{{Effect: e[0].ID, Amount: 60}}}})
	s.apply(Command{Confirm: &Confirm{Effects: []Confirmation{{Effect: e[0].ID, Amount: 60}}}})
	if j := s.Job(id); j.State != jobmsg.Cancelled || j.Charged != 60 || s.Active() != 0 {
		t.Fatalf("job is %v, charged %v, %d active", j.State, j.Charged, s.Active())
	}
	if e := slices.Collect(s.EachEffect); len(e) != 1 || e[0].Kind != Observe {
		t.Fatalf("effects after the charge: %v", e)
	}
}

func TestMaxRunningBoundsAStage(t *testing.T) {
	s := newSite(t)
	stage := mapStage(10)
	stage.MaxRunning = 2
	id := s.submit("k", stage)
	s.register("n1", 7, 5)
	if g := s.claim("n1", 7, 1, 5, id); len(g) != 2 {
		t.Fatalf("granted %d tasks, want 2", len(g))
	}
}

// A registration arrives after a newer session of the node has begun. It must not take over the node. Otherwise other
// nodes would get the node's claims while its tasks still run.
func TestALateRegistrationChangesNothing(t *testing.T) {
	s := newSite(t)
	id := s.submit("k", mapStage(2))
	for session := uint64(1); session <= 3; session++ {
		s.register("n1", session, 2)
	}
	s.claim("n1", 3, 1, 2, id)
	late := func(b *site, session uint64) {
		t.Helper()
		err, refused := b.apply(Command{Register: &Register{Node: "n1", Session: session, Slots: []jobmsg.ClassSlots{{Class: "map", Slots: 2}}}}).(error)
		n := b.Node("n1")
		expect.Same(t, "refused", refused, true, "messages.KindOf(err)", messages.KindOf(err), messages.Fenced, "Session", n.Session, 3,
			"len(n.Claims)", len(n.Claims), 2)
	}
	late(s, 1)
	restored := newSite(t)
	restored.at = s.at
	copyInto(t, s.Book, restored.Book)
	late(restored, 2)
	if stop := s.register("n1", 3, 2); len(stop) != 0 { // a repeated registration gets the same answer
		t.Errorf("to stop: %v", stop)
	}
}

func TestLeftSessionsAreBounded(t *testing.T) {
	s := newSite(t)
	for session := uint64(1); session <= 3*keptSessions; session++ {
		s.register("n1", session, 2)
	}
	if left := s.Node("n1").Left; len(left) != keptSessions || left[keptSessions-1] != 3*keptSessions-1 {
		t.Errorf("left: %v", left)
	}
}

// TestRandomHistories applies random commands, some of them late or repeated. It checks the invariant after each
// command. Another replica starts from an image that was made in the middle of the history. At the end, both must have
// the same bytes.
func TestRandomHistories(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		s, other := newSite(t), New()
		var attempts []messages.Attempt
		seqs := map[string]uint64{}
		split := rapid.IntRange(0, 60).Draw(rt, "split")
		for i := range 60 {
			if i == split {
				copyInto(t, s.Book, other)
			}
			c := command(rt, attempts, seqs)
			result := s.apply(c)
			if i >= split {
				c.At = s.at
				other.Apply(&c)
			}
			if grants, ok := result.([]agent.Grant); ok {
				for _, g := range grants {
					attempts = append(attempts, g.Attempt)
				}
			}
		}
		if split == 60 {
			copyInto(t, s.Book, other)
		}
		if s.Hash() != other.Hash() {
			rt.Fatal("replicas differ")
		}
	})
}

func copyInto(t *testing.T, from, to *Book) {
	t.Helper()
	var buf bytes.Buffer
	if _, err := from.Capture().WriteTo(&buf); err != nil {
		t.Fatal(err)
	}
	if err := to.Restore(&buf); err != nil {
		t.Fatal(err)
	}
	if from.Hash() != to.Hash() {
		t.Fatal("a restored book differs from its image")
	}
}

func command(rt *rapid.T, attempts []messages.Attempt, seqs map[string]uint64) Command {
	node := rapid.SampledFrom([]string{"n1", "n2"}).Draw(rt, "node")
	session := max(1, seqs[node+"/session"])
	if rapid.IntRange(0, 5).Draw(rt, "late") == 0 { // send the command late, or early
		session = rapid.Uint64Range(1, session+1).Draw(rt, "session")
	}
	job := messages.JobID(rapid.IntRange(1, 4).Draw(rt, "job"))
	switch rapid.IntRange(0, 14).Draw(rt, "kind") {
	case 10, 11, 12:
		return Command{Decide: decision(rt, attempts)}
	case 13:
		return Command{Disband: &Disband{Job: job, Since: messages.Time(rapid.IntRange(0, 60).Draw(rt, "since"))}}
	case 14:
		until := messages.Time(rapid.IntRange(0, 1).Draw(rt, "until"))
		return Command{Drain: &Drain{Node: node, Until: until, Evict: rapid.Bool().Draw(rt, "evict")}}
	case 0:
		stage := mapStage(rapid.IntRange(1, 5).Draw(rt, "tasks"))
		stage.Gang = rapid.Bool().Draw(rt, "gang")
		last := jobmsg.Stage{Name: "last", Class: "map", Tasks: 1, After: []string{"map"}}
		return Command{Submit: &Submit{Account: "alice", Key: fmt.Sprint(job), Held: 100, Spec: &jobmsg.JobSpec{
			Market: "main", Rate: 3, Length: 7, Stages: []jobmsg.Stage{stage, last}, AfterJobs: waits(rt, "after", job), AfterOK: waits(rt, "ok", job), AfterFailed: waits(rt, "failed", job), AfterStart: waits(rt, "start", job)}}}
	case 1:
		var running []messages.Attempt
		if len(attempts) > 0 {
			running = append(running, rapid.SampledFrom(attempts).Draw(rt, "running"))
		}
		if rapid.Bool().Draw(rt, "fresh") {
			session++
		}
		seqs[node+"/session"] = max(session, seqs[node+"/session"])
		return Command{Register: &Register{Node: node, Session: session, Slots: []jobmsg.ClassSlots{{Class: "map", Slots: 3}}, Running: running}}
	case 2:
		return Command{Lost: &Lost{Node: node, Session: session}}
	case 3:
		return Command{Cancel: &Cancel{Job: job, By: "alice"}}
	case 4:
		return Command{Settle: &Settle{Job: job, Charge: messages.Credits(rapid.IntRange(-1, 101).Draw(rt, "charge"))}}
	case 5:
		return Command{Confirm: &Confirm{Effects: []Confirmation{{Effect: rapid.Uint64Range(1, 8).Draw(rt, "effect"), Amount: 5,
			Refused: rapid.SampledFrom([]string{"", "", "no"}).Draw(rt, "refused")}}}}
	}
	if rapid.Bool().Draw(rt, "advance") {
		seqs[node]++
	}
	x := &Exchange{Node: node, Session: session, Seq: seqs[node], Claims: []Claim{{Class: "map", Slots: 2, Jobs: []messages.JobID{job, job%4 + 1}, Ahead: rapid.IntRange(0, 3).Draw(rt, "ahead")}}}
	x.Sent = messages.Time(rapid.Int64().Draw(rt, "sent"))
	for range min(2, len(attempts)) {
		x.Finished = append(x.Finished, agent.Finished{
			Attempt:  rapid.SampledFrom(attempts).Draw(rt, "attempt"),
			Outcome:  agent.Outcome(rapid.IntRange(0, 3).Draw(rt, "outcome")),
			ExitCode: rapid.IntRange(0, 1).Draw(rt, "exit"),
		})
		if rapid.Bool().Draw(rt, "passes") {
			next := &agent.Successor{Attempt: rapid.SampledFrom(attempts).Draw(rt, "next"), At: messages.Time(rapid.Int64().Draw(rt, "at"))}
			x.Finished[len(x.Finished)-1].Next = next
		}
	}
	return Command{Exchange: x}
}

func waits(rt *rapid.T, name string, job messages.JobID) []messages.JobID {
	if other := messages.JobID(rapid.IntRange(0, 8).Draw(rt, name)); other > 0 && other <= 4 && other != job {
		return []messages.JobID{other}
	}
	return nil
}

// decision draws a random decision, with possible and impossible parts.
func decision(rt *rapid.T, attempts []messages.Attempt) *Decide {
	d := &Decide{Market: "main"}
	job := func(name string) messages.JobID { return messages.JobID(rapid.IntRange(1, 4).Draw(rt, name)) }
	for range min(2, len(attempts)) {
		a := rapid.SampledFrom(attempts).Draw(rt, "attempt")
		switch rapid.IntRange(0, 2).Draw(rt, "what") {
		case 0:
			d.Suspend = append(d.Suspend, a)
		case 1:
			d.Resume = append(d.Resume, a)
		default:
			d.Requeue = append(d.Requeue, a)
		}
	}
	legs := []Leg{{From: job("from"), To: job("to"), Amount: messages.Credits(rapid.IntRange(-1, 60).Draw(rt, "leg"))}}
	switch rapid.IntRange(0, 5).Draw(rt, "more") {
	case 0:
		d.Start = []Starting{{Job: job("start"), Order: Order{Class: "map", Slots: 1, At: 5}, Fixed: &Fixed{Amount: 50}, Legs: legs}}
	case 1:
		d.Discard = []Discarding{{Job: job("discard"), Reason: "Outbid", Legs: legs}}
	case 2:
		d.Tariffs = []Tariff{{Class: "map", Price: messages.Credits(rapid.IntRange(0, 5).Draw(rt, "price")), OwnBid: rapid.Bool().Draw(rt, "own"),
			Length: messages.Duration(rapid.IntRange(0, 3).Draw(rt, "length")), Capped: rapid.Bool().Draw(rt, "capped")}}
	}
	return d
}

// An array can reserve a job number for each of its elements. The next submitted job must get the first number after
// these.
func TestElementsOfArraysHaveNumbers(t *testing.T) {
	s := newSite(t)
	array := mapStage(0)
	array.Tasks, array.Array = 0, jobmsg.Array{{First: 5, Last: 11, Step: 2}}
	r := s.apply(Command{Submit: &Submit{Account: "alice", Key: "a", Payer: "alice", Hold: "a", Held: 100, Spec: &jobmsg.JobSpec{
		Market: "main", Budget: 100, Numbered: true, Stages: []jobmsg.Stage{array}}}}).(Receipt)
	if !s.Job(r.Job).Summary().Numbered || s.Job(r.Job+1) != nil {
		t.Errorf("%+v", s.Job(r.Job).Summary())
	}
	var image bytes.Buffer
	if _, err := s.Capture().WriteTo(&image); err != nil {
		t.Fatal(err)
	}
	if err := s.Restore(&image); err != nil {
		t.Fatal(err)
	}
	if next := s.submit("b", mapStage(1)); next != r.Job+4 {
		t.Errorf("job %d has 4 elements, and the next job is %d", r.Job, next)
	}
	if again := s.submit("c", mapStage(1)); again != r.Job+5 {
		t.Errorf("the job after it is %d", again)
	}
}
