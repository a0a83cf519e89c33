package federation

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/candor-grid/candor/auctioneer/book"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/clearing"
	"github.com/candor-grid/candor/messages/expect"
	"github.com/candor-grid/candor/messages/job"
)

// A peer's report can change only its own job, and only to possible values.
func TestHeard(t *testing.T) {
	r := &book.RemoteJob{Spec: &job.JobSpec{Budget: 5, Stages: []job.Stage{{Tasks: 3}}}}
	for name, said := range map[string]job.JobSummary{
		"too much":   {State: 200, Charged: 1 << 60, Tasks: 1 << 40, Running: 1 << 40, Done: 1 << 40, Market: "a b", Reason: strings.Repeat("é", 1000), Name: "x"},
		"too little": {Charged: -1, Running: -1, Done: -1, Started: -1, Ended: -1},
	} {
		got := Heard(&said, r)
		if got.State > job.Discarded || got.Charged < 0 || got.Charged > 5 || got.Tasks != 3 || got.Running < 0 || got.Running > 3 || got.Done < 0 || got.Done > 3 ||
			got.Market != "" || len(got.Reason) > maxHeard || got.Started < 0 || got.Ended < 0 {
			t.Errorf("%s: heard %+v", name, got)
		}
	}
}

func TestScreened(t *testing.T) {
	offers := []clearing.Offer{{Site: "north", Market: "main", Value: 100, Contract: "q1-1", Basis: strings.Repeat("b", 10_000)},
		{Market: "a b"}, {Market: "main", Price: -1}, {Market: "main", Completion: 1},
		{Market: "main", Completion: now.Add(clearing.MaxInterval + messages.Duration(time.Second))}}
	for range 1000 {
		offers = append(offers, clearing.Offer{Market: "main"})
	}
	got := Screened("east", offers, now)
	if len(got) != maxOffers-4 {
		t.Fatalf("%d offers", len(got))
	}
	if o := got[0]; o.Site != "east" || o.Value != 0 || o.Contract != "east/q1-1" || len(o.Basis) > 4*maxHeard {
		t.Errorf("got %+v", o)
	}
}

func TestHomeOf(t *testing.T) {
	for caller, want := range map[messages.Name]messages.Name{"$west": "west", "west": "", "alice": "", "$": "", "$auctioneer": "", "$bank": "", "$depot": "", "$We": "", "$a@b": ""} {
		got, err := HomeOf(caller)
		if got != want || (err == nil) != (want != "") {
			t.Errorf("%q: got %q, %v", caller, got, err)
		}
	}
}

func TestLastCall(t *testing.T) {
	const start = messages.Time(1_000_000_000)
	for had, want := range map[time.Duration]time.Duration{time.Minute: 54 * time.Second, time.Hour: 54 * time.Minute, 100 * time.Hour: 100*time.Hour - 10*time.Minute, -time.Hour: -time.Hour} {
		if got := LastCall(start, start.Add(messages.Duration(had))).Sub(start).Std(); got != want {
			t.Errorf("with %v: after %v, want %v", had, got, want)
		}
	}
}

// hosts is a site that other sites' jobs visit: its book, and the parts that answer the other sites.
type hosts struct {
	*testing.T
	*Visits
	errands *Errands
	book    *book.Book
	last    messages.JobID
}

func newHosts(t *testing.T) *hosts {
	h := &hosts{T: t, Visits: NewVisits(7), errands: NewErrands(0, nil), book: book.New()}
	h.book.Watch(true)
	return h
}

func (h *hosts) do(at messages.Time, c *book.Command) {
	c.At = at
	h.book.Apply(c)
	changed := h.book.TakeChanges().Jobs
	h.Changed(h.book, changed)
	h.errands.Changed(h.book, changed)
}

// visit commits a job of a peer. The authorisation of the job ends when the given time has passed.
func (h *hosts) visit(home messages.Name, for_ time.Duration) *book.Job {
	h.last++
	v := job.Visit{Home: home, Job: 100 + h.last}
	h.do(now, &book.Command{Submit: &book.Submit{Account: messages.VisitorName("ada", home), Key: v.Job.String(), Digest: []byte(fmt.Sprint(v)), Payer: "ada@" + home, Held: 5 * c,
		Spec:  &job.JobSpec{Market: "main", Budget: 5 * c, Stages: []job.Stage{{Name: "a", Class: "cpu", Tasks: 1, Command: []string{"true"}}}},
		Visit: &book.Visit{Visit: v, Authorisation: "a", Until: now.Add(messages.Duration(for_))}}})
	return h.book.Visitor(v)
}

// The authorisation of a visiting job ends at a fixed time. Shortly before this time, the job must be ended. Other jobs
// must go on.
func TestEnding(t *testing.T) {
	h := newHosts(t)
	short, long := h.visit("east", time.Minute), h.visit("east", time.Hour)
	if out := h.errands.Ending(now.Add(53*second), h.book); len(out) != 0 {
		t.Errorf("ended too early: %+v", out)
	}
	late := now.Add(55 * second)
	out := h.errands.Ending(late, h.book)
	if len(out) != 1 || len(out[0].Decide.Discard) != 1 || out[0].Decide.Discard[0].Job != short.ID || out[0].Decide.Market != "main" {
		t.Fatalf("ended are %+v", out)
	}
	h.do(late, out[0])
	if short.State == job.Waiting || long.State != job.Waiting {
		t.Errorf("the jobs are %v and %v", short.State, long.State)
	}
	if again := h.errands.Ending(late, h.book); len(again) != 0 || !h.errands.Open() {
		t.Errorf("ended once more: %+v; visitors are left: %v", again, h.errands.Open())
	}
}

// A peer asks for the jobs that changed since its last request. It must get each changed job once, in order and in
// pages. In a new epoch it must get all its jobs.
func TestSince(t *testing.T) {
	h := newHosts(t)
	if _, r, ready := h.Since("east", clearing.PeerJobsRequest{Epoch: 7}); ready || r.Whole || r.Next != 0 {
		t.Errorf("nothing has changed: %+v", r)
	}
	var all []messages.JobID
	for range pageOfJobs + 1 {
		all = append(all, h.visit("east", time.Hour).ID)
	}
	h.visit("north", time.Hour)
	ids, r, ready := h.Since("east", clearing.PeerJobsRequest{Epoch: 6, After: 1 << 40})
	expect.Same(t, "ready", ready, true, "Whole", r.Whole, true, "More", r.More, true, "Epoch", r.Epoch, 7, "jobs", len(ids), pageOfJobs, "the first job", ids[0], all[0])
	ids, r, ready = h.Since("east", clearing.PeerJobsRequest{Epoch: r.Epoch, After: r.Next})
	expect.Same(t, "ready", ready, true, "Whole", r.Whole, false, "More", r.More, false, "jobs of the last page", ids, all[pageOfJobs:])
	h.do(now, &book.Command{Cancel: &book.Cancel{Job: all[3], By: "ada@east"}})
	ids, _, ready = h.Since("east", clearing.PeerJobsRequest{Epoch: r.Epoch, After: r.Next})
	if !ready || len(ids) != 1 || ids[0] != all[3] {
		t.Errorf("changed are %v", ids)
	}
	if _, _, ready := h.Since("nowhere", clearing.PeerJobsRequest{Epoch: 6}); !ready {
		t.Error("a peer of another epoch waits")
	}
}

// Two requests for the same visiting job may not be served at the same time. Only a limited number of requests is
// served at the same time. One peer may use only a part of this number.
func TestTake(t *testing.T) {
	v := NewVisits(7)
	for i := range messages.JobID(maxEntering) {
		if err := v.Begin(job.Visit{Home: "east", Job: i}); err != nil {
			t.Fatal(err)
		}
	}
	for visit, want := range map[job.Visit]messages.Kind{{Home: "east", Job: 0}: messages.Unavailable, {Home: "east", Job: 999}: messages.Unavailable, {Home: "north", Job: 0}: messages.KindOf(nil)} {
		if err := v.Begin(visit); messages.KindOf(err) != want {
			t.Errorf("%v: %v", visit, err)
		}
	}
	v.End(job.Visit{Home: "east", Job: 0})
	if err := v.Begin(job.Visit{Home: "east", Job: 0}); err != nil {
		t.Error(err)
	}
}

func TestPoll(t *testing.T) {
	v := NewVisits(7)
	for range maxPolls {
		if err := v.Poll("east"); err != nil {
			t.Fatal(err)
		}
	}
	if messages.KindOf(v.Poll("east")) != messages.Exhausted || v.Poll("north") != nil {
		t.Error("polls are not bounded by peer")
	}
	v.Polled("east")
	if err := v.Poll("east"); err != nil {
		t.Error(err)
	}
}

// If a submission from a peer is refused, its authorisation is given back to the bank. This must happen only if the
// bank may have accepted the authorisation in an earlier try.
func TestDecline(t *testing.T) {
	h := newHosts(t)
	taken := h.visit("east", time.Hour).Visit.Visit
	r := &clearing.PeerSubmitRequest{Job: 1, Account: "ada"}
	r.Authorisation.Authorisation = clearing.Authorisation{ID: "a", Issuer: "east", Peer: "west"}
	for name, x := range map[string]struct {
		job      messages.JobID
		accepted error
		why      error
		want     bool
	}{
		"refused by the market":      {1, nil, forbid, true},
		"refused by the bank":        {1, forbid, forbid, false},
		"not known to be refused":    {1, nil, silent, false},
		"taken by another try":       {taken.Job, nil, forbid, false},
		"the bank was silent before": {1, silent, forbid, true},
	} {
		again := *r
		again.Job = x.job
		a, err := Arrive("west", "east", &again)
		if err != nil {
			t.Fatal(err)
		}
		a.Accepted(x.accepted)
		if charge, is := a.Decline(h.book, x.why); is != x.want || is && (charge.ID != "a" || charge.Issuer != "east" || charge.Amount != 0) {
			t.Errorf("%s: %+v, %v", name, charge, is)
		}
	}
	if _, err := Arrive("north", "east", r); messages.KindOf(err) != messages.PermissionDenied {
		t.Errorf("an authorisation for another site: %v", err)
	}
}

// A site can use the number of a visiting job again, for example after it was restored from a backup. The answer to the
// new job must not name the earlier job, even if both have the same content.
func TestANumberThatIsGivenAgain(t *testing.T) {
	h := newHosts(t)
	j := h.visit("west", time.Hour)
	r := &clearing.PeerSubmitRequest{Job: j.Visit.Job, Account: "ada"}
	r.Authorisation.Authorisation = clearing.Authorisation{Issued: now, Interval: messages.Duration(time.Hour)}
	if known, err := Known(h.book, "west", r, j.Digest); known != j || err != nil {
		t.Fatalf("asked again: %v, %v", known, err)
	}
	r.Authorisation.Authorisation.Issued++
	if _, err := Known(h.book, "west", r, j.Digest); messages.KindOf(err) != messages.Conflict {
		t.Errorf("given again: %v", err)
	}
}
