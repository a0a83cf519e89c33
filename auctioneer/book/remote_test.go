package book

import (
	"bytes"
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/clearing"
	"github.com/candor-grid/candor/messages/expect"
	"github.com/candor-grid/candor/messages/job"
)

func roamSpec() *job.JobSpec {
	return &job.JobSpec{Name: "r", Budget: 5, Stages: []job.Stage{{Name: "a", Class: "cpu", Tasks: 2, Command: []string{"true"}}}}
}

func (b *Book) must(t interface{ Fatalf(string, ...any) }, c *Command) any {
	result := b.Apply(c)
	if err, ok := result.(error); ok {
		t.Fatalf("%+v: %v", c, err)
	}
	return result
}

func stepOf(s Step) *Command { return &Command{At: 10, Advance: &Advance{Steps: []Step{s}}} }

func TestRoamPhases(t *testing.T) {
	b := New()
	depart := &Command{At: 5, EnterRemote: &EnterRemote{Account: "ada", Key: "k", Digest: []byte{1}, Payer: "lab", Spec: roamSpec(), Peer: "east"}}
	p := b.must(t, depart).(RemoteReceipt)
	if want := (RemoteReceipt{Job: 1, Payer: "lab", Held: 5, Tasks: 2, Peer: "east"}); p != want {
		t.Errorf("got %+v, want %+v", p, want)
	}
	if again := b.must(t, depart).(RemoteReceipt); again != p {
		t.Errorf("again: %+v", again)
	}
	other := *depart.EnterRemote
	other.Digest = []byte{2}
	if err, _ := b.Apply(&Command{EnterRemote: &other}).(error); messages.KindOf(err) != messages.Conflict {
		t.Errorf("the same key for another job: %v", err)
	}
	r := b.Remote(1)
	at := func(phase RemotePhase, state job.State) {
		t.Helper()
		if r.Phase != phase || r.Status.State != state {
			t.Fatalf("it is %v and %v, want %v and %v", r.Phase, r.Status.State, phase, state)
		}
	}
	running, done := &job.JobSummary{State: job.Running, Running: 1}, &job.JobSummary{State: job.Completed, Done: 2}
	b.must(t, stepOf(Step{Job: 1, Status: running}))
	b.must(t, stepOf(Step{Job: 1, Told: true}))
	b.must(t, stepOf(Step{Job: 1, Released: true}))
	at(Authorising, job.Waiting)
	b.must(t, stepOf(Step{Job: 1, Authorised: &clearing.SignedAuthorisation{Signature: []byte{9}}}))
	at(Sending, job.Waiting)
	b.must(t, stepOf(Step{Job: 1, Arrived: running}))
	at(There, job.Running)
	b.must(t, stepOf(Step{Job: 1, Refused: messages.Errorf(messages.Invalid, "too late")}))
	b.must(t, stepOf(Step{Job: 1, Arrived: &job.JobSummary{}}))
	at(There, job.Running)
	if was := b.must(t, stepOf(Step{Job: 1, Cancel: "ada"})); was != job.Running || !r.Cancelled {
		t.Errorf("cancelled from %v", was)
	}
	b.must(t, stepOf(Step{Job: 1, Status: done}))
	at(Over, job.Completed)
	b.must(t, stepOf(Step{Job: 1, Status: running}))
	at(Over, job.Completed)
	if err, _ := b.Apply(stepOf(Step{Job: 1, Cancel: "ada"})).(error); messages.KindOf(err) != messages.Ended {
		t.Errorf("cancelled after its end: %v", err)
	}
	s := r.Summary()
	expect.Same(t, "Job", s.Job, 1, "Account", s.Account, "ada", "Payer", s.Payer, "lab", "Budget", s.Budget, 5, "Phase", s.Away.Phase, "Ended",
		"Known", s.Away.Known, 10)
}

// A remote job is cancelled, and then the other site refuses it. It must end as cancelled.
func TestRoamCancelledOnItsWay(t *testing.T) {
	b := New()
	b.must(t, &Command{EnterRemote: &EnterRemote{Account: "ada", Key: "k", Payer: "ada", Spec: roamSpec(), Peer: "east"}})
	b.must(t, stepOf(Step{Job: 1, Authorised: &clearing.SignedAuthorisation{}}))
	b.must(t, stepOf(Step{Job: 1, Cancel: "ada"}))
	if r := b.Remote(1); r.Phase != Sending || r.Summary().Reason != "Cancelling" || b.Pending("ada") != 1 {
		t.Errorf("on its way: %+v", r)
	}
	b.must(t, stepOf(Step{Job: 1, Refused: messages.Errorf(messages.NotFound, "no market")}))
	r := b.Remote(1)
	expect.Same(t, "Phase", r.Phase, Releasing, "State", r.Status.State, job.Cancelled, "Reason", r.Status.Reason, "CancelledByUser",
		"b.Pending('ada')", b.Pending("ada"), 0)
}

func TestRoamThatIsNotSent(t *testing.T) {
	for name, c := range map[string]struct {
		step   Step
		state  job.State
		reason string
	}{
		"refused":   {Step{Job: 1, Refused: messages.Errorf(messages.Insufficient, "poor")}, job.Discarded, "RefusedByBank"},
		"cancelled": {Step{Job: 1, Cancel: "ops"}, job.Cancelled, "CancelledByOperator"},
	} {
		b := New()
		b.must(t, &Command{EnterRemote: &EnterRemote{Account: "ada", Key: "k", Payer: "ada", Spec: roamSpec(), Peer: "east"}})
		b.must(t, stepOf(c.step))
		r := b.Remote(1)
		if r.Phase != Releasing || r.Status.State != c.state || r.Status.Reason != c.reason {
			t.Errorf("%s: %+v", name, r)
		}
		b.must(t, stepOf(Step{Job: 1, Authorised: &clearing.SignedAuthorisation{}}))
		b.must(t, stepOf(Step{Job: 1, Released: true}))
		if r.Phase != Over || r.Status.State != c.state {
			t.Errorf("%s, released: %+v", name, r)
		}
	}
}

// A key belongs to one job, whether it runs here or at another site.
func TestKeysOfRoams(t *testing.T) {
	b := New()
	b.must(t, &Command{EnterRemote: &EnterRemote{Account: "ada", Key: "away", Payer: "ada", Spec: roamSpec(), Peer: "east"}})
	b.must(t, &Command{Submit: &Submit{Account: "ada", Key: "here", Payer: "ada", Spec: roamSpec(), Hold: "h", Held: 5}})
	for name, c := range map[string]*Command{
		"here with a key of away": {Submit: &Submit{Account: "ada", Key: "away", Payer: "ada", Spec: roamSpec(), Hold: "h", Held: 5}},
		"away with a key of here": {EnterRemote: &EnterRemote{Account: "ada", Key: "here", Digest: []byte{1}, Payer: "ada", Spec: roamSpec(), Peer: "east"}},
	} {
		if err, _ := b.Apply(c).(error); messages.KindOf(err) != messages.Conflict {
			t.Errorf("%s: %v", name, err)
		}
	}
	if p, ok := b.Apply(&Command{EnterRemote: &EnterRemote{Account: "ada", Key: "here", Spec: roamSpec()}}).(RemoteReceipt); !ok || p.Job != 2 {
		t.Errorf("the same job again, for any site: %+v", p)
	}
}

func TestVisits(t *testing.T) {
	b := New()
	visit := &Visit{job.Visit{Home: "west", Job: 17}, "$auctioneer/job/17", 1000}
	b.must(t, &Command{Submit: &Submit{Account: "ada@west", Key: "17", Payer: "ada@west", Spec: roamSpec(), Held: 5, Visit: visit}})
	j := b.Visitor(visit.Visit)
	if j == nil || j.ID != 1 || j.HoldID() != "" || b.Visitor(job.Visit{Home: "east", Job: 17}) != nil {
		t.Errorf("found %+v", j)
	}
	if err, _ := b.Apply(&Command{Submit: &Submit{Account: "bob@west", Key: "17", Payer: "bob@west", Spec: roamSpec(), Held: 5, Visit: visit}}).(error); messages.KindOf(err) != messages.Conflict {
		t.Errorf("the same number for another account: %v", err)
	}
}

func TestRoamImages(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := New()
		for i := range rapid.IntRange(1, 40).Draw(t, "commands") {
			b.Apply(drawTravel(t, i))
		}
		var image bytes.Buffer
		if _, err := b.Capture().WriteTo(&image); err != nil {
			t.Fatal(err)
		}
		again := New()
		if err := again.Restore(bytes.NewReader(image.Bytes())); err != nil {
			t.Fatal(err)
		}
		for i := range 10 {
			if fmt.Sprint(b.index.pending, b.visitors.byVisit) != fmt.Sprint(again.index.pending, again.visitors.byVisit) {
				t.Fatalf("worked out: %v %v, and from the image %v %v", b.index.pending, b.visitors.byVisit, again.index.pending, again.visitors.byVisit)
			}
			if b.Hash() != again.Hash() {
				t.Fatalf("the books differ %d commands after the image", i)
			}
			c := drawTravel(t, 100+i)
			if got, want := fmt.Sprint(again.Apply(c)), fmt.Sprint(b.Apply(c)); got != want {
				t.Fatalf("%+v: %v, and %v from the image", c, want, got)
			}
		}
	})
}

func drawTravel(t *rapid.T, i int) *Command {
	id := messages.JobID(rapid.IntRange(1, 8).Draw(t, "job"))
	c := &Command{At: messages.Time(i)}
	key := fmt.Sprint(rapid.IntRange(1, 12).Draw(t, "key"))
	switch rapid.IntRange(0, 9).Draw(t, "what") {
	case 0, 1, 2:
		c.EnterRemote = &EnterRemote{Account: "ada", Key: key, Digest: []byte{1}, Payer: "ada", Spec: roamSpec(), Peer: "east"}
	case 3:
		visit := &Visit{job.Visit{Home: "west", Job: id}, "a", 9}
		c.Submit = &Submit{Account: "ada@west", Key: id.String(), Payer: "ada@west", Spec: roamSpec(), Held: 5, Visit: visit}
	case 4:
		c.Cancel = &Cancel{Job: id, By: "ada@west"}
	default:
		steps := []Step{
			{Job: id, Authorised: &clearing.SignedAuthorisation{Signature: []byte{1}}},
			{Job: id, Arrived: &job.JobSummary{State: job.Waiting}},
			{Job: id, Status: &job.JobSummary{State: job.State(rapid.IntRange(0, 6).Draw(t, "state"))}},
			{Job: id, Refused: messages.Errorf(messages.Invalid, "no")},
			{Job: id, Cancel: "ada"}, {Job: id, Told: true}, {Job: id, Released: true},
		}
		c.Advance = &Advance{Steps: []Step{rapid.SampledFrom(steps).Draw(t, "step")}}
	}
	return c
}

func TestRoamsAreForgotten(t *testing.T) {
	b := New()
	for i := range RetainEnded + 3 {
		id := b.must(t, &Command{EnterRemote: &EnterRemote{Account: "ada", Key: fmt.Sprint(i), Payer: "ada", Spec: roamSpec(), Peer: "east"}}).(RemoteReceipt).Job
		b.must(t, stepOf(Step{Job: id, Cancel: "ada"}))
		b.must(t, stepOf(Step{Job: id, Released: true}))
	}
	for what, n := range map[string][2]int{
		"whole jobs": {len(b.remote.remoteJobs), RetainWhole}, "jobs": {len(b.remote.remoteJobs) + len(b.remote.past), RetainEnded}, "keys": {len(b.index.keys), RetainEnded},
	} {
		if n[0] != n[1] {
			t.Errorf("%d %s are remembered, not %d", n[0], what, n[1])
		}
	}
	if b.Past(3) != nil || b.Past(4) == nil {
		t.Errorf("job 3 is remembered: %v, job 4: %v", b.Past(3) != nil, b.Past(4) != nil)
	}
	if !slices.IsSorted(b.remote.returned) {
		t.Error("not in the order of their ends")
	}
}

// If the site of a peer is gone for ever, this site's jobs there must still end: each job ends when its authorisation
// no longer holds the credits.
func TestUnreachableRemoteJobsEnd(t *testing.T) {
	b := New()
	enter := func(key string, steps ...Step) *RemoteJob {
		p := b.must(t, &Command{EnterRemote: &EnterRemote{Account: "ada", Key: key, Payer: "ada", Spec: roamSpec(), Peer: "east"}}).(RemoteReceipt)
		a := &clearing.SignedAuthorisation{}
		a.Authorisation.Issued, a.Authorisation.Interval, a.Authorisation.Margin = 1000, 2_000_000, 3_000_000
		for _, s := range append([]Step{{Authorised: a}}, steps...) {
			s.Job = p.Job
			b.must(t, stepOf(s))
		}
		return b.Remote(p.Job)
	}
	running := &job.JobSummary{State: job.Running, Reason: "Running", Running: 1}
	there, cancelled, sending := enter("a", Step{Arrived: running}), enter("b", Step{Arrived: running}, Step{Cancel: "ada"}), enter("c")
	ends := there.Authorisation.Authorisation.Frees()
	if steps := b.EndUnreachable(ends, nil); len(steps) != 0 {
		t.Fatalf("too early: %+v", steps)
	}
	b.must(t, &Command{Advance: &Advance{Steps: b.EndUnreachable(ends+1, nil)}})
	if there.Phase != Over || there.Status.State != job.Failed || there.Status.Reason != "SiteGone" {
		t.Errorf("there: %v %+v", there.Phase, there.Status)
	}
	if cancelled.Phase != Over || cancelled.Status.State != job.Cancelled {
		t.Errorf("cancelled: %v %+v", cancelled.Phase, cancelled.Status)
	}
	if sending.Phase != Releasing || sending.Status.State != job.Discarded {
		t.Errorf("sending: %v %+v", sending.Phase, sending.Status)
	}
	if n := b.Pending("ada"); n != 0 {
		t.Errorf("%d count still", n)
	}
}

// After a restore from a backup, the command Restored makes the next job number larger than all numbers that jobs may
// have had before. If Restored is repeated, it must not skip further numbers.
func TestARestorationLeavesNumbersOut(t *testing.T) {
	b := New()
	enter := func(key string) messages.JobID {
		return b.must(t, &Command{At: 5, EnterRemote: &EnterRemote{Account: "ada", Key: key, Digest: []byte{1}, Payer: "lab", Spec: roamSpec(), Peer: "east"}}).(RemoteReceipt).Job
	}
	enter("a")
	restored := &Command{At: 9, Restored: &Restored{Backup: 6, Last: 1000}}
	b.must(t, restored)
	if id := enter("b"); id != 1001 || b.Backup() != 6 {
		t.Errorf("the next job is %d, after backup %v", id, b.Backup())
	}
	restored.Restored.Last = 5000 // another leader sends the command for the same backup
	b.must(t, restored)
	if id := enter("c"); id != 1002 {
		t.Errorf("the next job is %d", id)
	}
}
