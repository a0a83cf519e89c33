package batchqueue

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/candor-grid/candor/auctioneer/mechanism"
	"github.com/candor-grid/candor/messages"
	jobmsg "github.com/candor-grid/candor/messages/job"
	marketmsg "github.com/candor-grid/candor/messages/market"
)

const second = messages.Time(1e6)

func market(t *testing.T, c marketmsg.Market) *Mechanism {
	t.Helper()
	if c.Pricing == "" && c.PriorJobs == nil {
		c.PriorJobs = []marketmsg.QueuedType{queued(50, 2, 10), queued(90, 5, 5)}
	}
	c.Name, c.Mechanism, c.Classes = "batch", "batch-queue", []messages.Name{"cpu"}
	m, err := NewMechanism(c)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func waiting(id messages.JobID, value, delay messages.Credits, seconds, width int) *mechanism.Job {
	return &mechanism.Job{
		Bid: &mechanism.Bid{Job: id, Arrived: messages.Time(id), Budget: value * messages.Credit, Value: value * messages.Credit,
			Delay: delay * messages.Credit, Length: messages.Duration(time.Duration(seconds) * time.Second), Width: width},
		Pending: []int{width}, Running: []int{0},
	}
}

func grid(slots int, jobs ...*mechanism.Job) *mechanism.View {
	return &mechanism.View{Now: 1000 * second, Classes: []mechanism.Class{{Name: "cpu", Slots: slots}}, Jobs: jobs}
}

func run(view *mechanism.View, job *mechanism.Job) {
	job.Started, job.Running, job.Pending = view.Now, []int{job.Width}, []int{0}
}

// The first of three jobs is discarded, the second runs, and the third waits. When each of the first two jobs ends,
// credits must move, and only between the jobs that were in the queue at the decision.
func TestTheLifeOfAQueue(t *testing.T) {
	c := market(t, marketmsg.Market{})
	one, two, three := waiting(1, 50, 9, 10, 8), waiting(2, 40, 5, 10, 8), waiting(3, 70, 3, 10, 8)
	view := grid(8, one, two, three)
	for _, job := range view.Jobs {
		if err := c.Admit(view, job.Bid); err != nil {
			t.Fatal(err)
		}
	}
	// Each job runs for 10 seconds. Job 1 has the value 50. While it runs, jobs 2 and 3 wait, which costs 5 and 3
	// credits a second, together 80. So job 1 is discarded. Job 2 has the value 40. While it runs, job 3 waits, which
	// costs 30. So job 2 runs.
	a := c.Allocate(view)
	want := []mechanism.Directive{{Job: 1, Action: mechanism.Discard}, {Job: 2, Action: mechanism.Start, Slots: 8}}
	if !slices.Equal(a.Directives, want) || a.Wake != view.Now+10*second || a.Weights[1][0] != 1 || a.Weights[2][0] != 0 {
		t.Fatalf("at %v: %+v, want the directives %+v", view.Now, a, want)
	}
	if again := c.Allocate(view); !slices.Equal(again.Directives, want) {
		t.Errorf("asked again before anything was done: %+v", again.Directives)
	}
	for i, reason := range []string{Discarded, Starting, mechanism.WaitingForSlots} {
		if e := c.Explain(view, view.Jobs[i]); e.Reason != reason || e.Message == "" {
			t.Errorf("job %d: %+v, want %s", i+1, e, reason)
		}
	}
	if e := c.Explain(view, one); !strings.Contains(e.Change[0], "80 credits") {
		t.Errorf("what value would have been enough is not told: %+v", e)
	}
	one.Account = "alone"
	if e := c.Explain(view, one); strings.Contains(e.Message+e.Change[0], "80 credits") {
		t.Errorf("tells what the delay of the only other account costs: %+v", e)
	}
	view.Jobs = view.Jobs[1:]
	checkTransfers(t, c.Settle(view, one, mechanism.End{State: jobmsg.Discarded}), []*mechanism.Job{one, two, three})
	if p := c.Settle(view, one, mechanism.End{State: jobmsg.Discarded}); len(p) != 1 || p[0].Amount != 0 || !strings.Contains(p[0].Reason, "all payments were made") { // settle the job again when it has ended
		t.Errorf("when the discarded job has ended: %+v", p)
	}
	run(view, two)
	view.Now += 4 * second
	if a := c.Allocate(view); len(a.Directives) != 0 || a.Wake != view.Now+6*second || c.Explain(view, two).Reason != mechanism.Running {
		t.Errorf("while job 2 runs: %+v", a)
	}
	view.Jobs, view.Now = view.Jobs[1:], view.Now+6*second
	checkTransfers(t, c.Settle(view, two, mechanism.End{State: jobmsg.Completed}), []*mechanism.Job{two, three})
	a = c.Allocate(view)
	if len(a.Directives) != 1 || a.Directives[0].Job != 3 || a.Directives[0].Action != mechanism.Start {
		t.Errorf("alone, job 3: %+v", a)
	}
	if p := c.Settle(view, three, mechanism.End{State: jobmsg.Completed}); p[0].Amount != 0 || len(c.rounds) != 0 || len(c.owed) != 0 {
		t.Errorf("alone, job 3 pays %+v; kept are %v and %v", p, c.rounds, c.owed)
	}
	if p := c.Settle(view, three, mechanism.End{State: jobmsg.Completed}); len(p) != 1 || p[0].Amount != 0 {
		t.Errorf("settled twice: %+v", p)
	}
}

func checkTransfers(t *testing.T, payments []mechanism.Payment, among []*mechanism.Job) {
	t.Helper()
	paid := map[messages.JobID]messages.Credits{}
	for _, p := range payments {
		if p.Amount <= 0 || p.From == p.To || p.Reason == "" {
			t.Errorf("payment %+v", p)
		}
		for _, id := range []messages.JobID{p.From, p.To} {
			if !slices.ContainsFunc(among, func(j *mechanism.Job) bool { return j.Job == id }) {
				t.Errorf("payment %+v of a job that was not in the queue", p)
			}
		}
		paid[p.From] += p.Amount
	}
	for _, job := range among {
		if paid[job.Job] > job.Budget {
			t.Errorf("job %d pays %v of a budget of %v", job.Job, paid[job.Job], job.Budget)
		}
	}
}

// The prior has a single type, so the payments can be computed by hand. The transfers between jobs must be exactly
// these payments.
func TestTransfersArePayments(t *testing.T) {
	c := market(t, marketmsg.Market{PriorJobs: []marketmsg.QueuedType{queued(100, 2, 10)}, Draws: 3})
	jobs := []*mechanism.Job{waiting(1, 100, 0, 10, 8), waiting(2, 100, 1, 10, 8), waiting(3, 100, 4, 10, 8)}
	c.Allocate(grid(8, jobs...))
	// With each type that the payments consider, the front job runs. G is what this decision is expected to be worth to
	// all jobs except one. For jobs 1, 2 and 3, G is −40, 100−20 and 100−20. Each job pays the mean of the G of the two
	// other jobs, minus its own G: 80+40, 20−80 and 20−80. A job with a negative result receives this amount.
	got := fmt.Sprint(c.Settle(grid(8), jobs[0], mechanism.End{State: jobmsg.Completed}))
	reason := "what its place in the queue of job 1 is expected to cost other jobs"
	want := fmt.Sprint([]mechanism.Payment{{From: 1, To: 2, Amount: 60 * messages.Credit, Reason: reason}, {From: 1, To: 3, Amount: 40 * messages.Credit, Reason: reason}})
	if got != want { // the budget of 100 is spent before job 3 has received its 60
		t.Errorf("%s, want %s", got, want)
	}
}

// A job that is too wide for the idle slots waits, and the jobs behind it wait too. The jobs behind may start before
// the wide job only if the wide job does not even fit the whole machine.
func TestGangsPassEachOther(t *testing.T) {
	c := market(t, marketmsg.Market{})
	busy, front, narrow := waiting(1, 9, 1, 60, 5), waiting(2, 900, 1, 10, 6), waiting(3, 9, 1, 10, 2)
	view := grid(8, busy, front, narrow)
	run(view, busy)
	view.Now += 20 * second
	if a := c.Allocate(view); len(a.Directives) != 0 || a.Wake != view.Now+40*second {
		t.Errorf("%+v", a)
	}
	if e := c.Explain(view, narrow); e.Reason != mechanism.WaitingForTurn || !strings.Contains(e.Message, "1 job is before this job") {
		t.Errorf("%+v", e)
	}
	view.Classes[0].Slots = 5
	if a := c.Allocate(view); len(a.Directives) != 0 {
		t.Errorf("%+v", a)
	}
	if e := c.Explain(view, front); e.Reason != mechanism.WaitingForSlots || !strings.Contains(e.Message, "6 slots") {
		t.Errorf("%+v", e)
	}
	view.Now += 100 * second // the running job has taken longer than its declared length
	if a := c.Allocate(view); len(a.Directives) != 0 || a.Wake != view.Now+second {
		t.Errorf("%+v", a)
	}
	narrow.Pending[0] = 0
	if e := c.Explain(view, narrow); e.Reason != mechanism.WaitingForStage {
		t.Errorf("%+v", e)
	}
}

// Two new mechanisms get the same view. Both must make the same decision and ask for the same payments.
func TestANewLeaderDecidesAlike(t *testing.T) {
	var answers []string
	for range 2 {
		c, view := market(t, marketmsg.Market{}), grid(16)
		for i := range 40 {
			view.Jobs = append(view.Jobs, waiting(messages.JobID(i+1), messages.Credits(10+i*37%500), messages.Credits(i%4), 1+i%9, 1+i*7%16))
		}
		answer := fmt.Sprintf("%+v", c.Allocate(view))
		for _, job := range view.Jobs {
			answer += fmt.Sprint(c.Settle(view, job, mechanism.End{State: jobmsg.Completed}))
		}
		answers = append(answers, answer)
	}
	if answers[0] != answers[1] {
		t.Errorf("%s\nand\n%s", answers[0], answers[1])
	}
}

func TestAdmitRefuses(t *testing.T) {
	c, view := market(t, marketmsg.Market{}), grid(8)
	for says, change := range map[string]func(b *mechanism.Bid){
		"value":  func(b *mechanism.Bid) { b.Value = -1 },
		"delay":  func(b *mechanism.Bid) { b.Delay = -1 },
		"length": func(b *mechanism.Bid) { b.Length = 0 },
		"width":  func(b *mechanism.Bid) { b.Width = 9 },
		"budget": func(b *mechanism.Bid) { b.Budget = b.Value - 1 },
	} {
		b := *waiting(1, 50, 1, 10, 8).Bid
		change(&b)
		if err := c.Admit(view, &b); messages.KindOf(err) != messages.Invalid || !strings.HasPrefix(messages.Detail(err), says+": ") {
			t.Errorf("%s: %v", says, err)
		}
	}
}

func TestConfigRefuses(t *testing.T) {
	for _, classes := range [][]messages.Name{nil, {"a", "b"}} {
		if _, err := NewMechanism(marketmsg.Market{Classes: classes}); messages.KindOf(err) != messages.Invalid {
			t.Errorf("%v: %v", classes, err)
		}
	}
	if _, err := NewMechanism(marketmsg.Market{Classes: []messages.Name{"a"}, Pricing: PivotPricing}); err != nil {
		t.Error(err)
	}
}

// From second 100 to second 200, maintenance takes 5 of 8 slots, or all of them. The front job may start only if it
// ends before second 100, or if it fits on the slots that stay open. Otherwise the job behind it must start: that job
// runs for 60 s on all slots, and loses 2 credits for each second of delay.
func TestJobsWaitForMaintenance(t *testing.T) {
	closing := func(slots int, jobs ...*mechanism.Job) *mechanism.View {
		view := grid(8, jobs...)
		if slots > 0 {
			view.Classes[0].Closings = []mechanism.Closing{{From: view.Now + 100*second, To: view.Now + 200*second, Slots: slots}}
		}
		return view
	}
	for _, c := range []struct {
		closed, seconds, width int
		starts                 messages.JobID
		cost                   float64 // what the run of the front job costs the job behind it
	}{
		{0, 150, 4, 1, 300},
		{5, 100, 4, 1, 400}, // the other job starts in second 200
		{5, 50, 4, 1, 400},
		{5, 30, 4, 1, 60},
		{5, 150, 3, 1, 400},
		{5, 150, 4, 2, 0},
		{8, 101, 4, 2, 0},
		{8, 100, 4, 1, 400},
	} {
		view := closing(c.closed, waiting(1, 1000, 0, c.seconds, c.width), waiting(2, 1000, 2, 60, 8))
		m := market(t, marketmsg.Market{})
		if d := m.decide(m.queue(view)); d.Threshold != c.cost {
			t.Errorf("%+v: costs the other job %v", c, d.Threshold)
		}
		if e := m.Explain(view, view.Jobs[0]); strings.Contains(e.Message, "before maintenance") != (c.starts == 2) {
			t.Errorf("%+v: %s", c, e.Message)
		}
		if a := m.Allocate(view); len(a.Directives) != 1 || a.Directives[0].Job != c.starts {
			t.Errorf("%+v: %+v", c, a.Directives)
		}
	}
	runs, next := waiting(1, 1000, 0, 50, 8), waiting(2, 1000, 0, 60, 8)
	view := closing(8, runs, next)
	run(view, runs)
	if a, want := market(t, marketmsg.Market{}).Allocate(view), view.Now+40*second+1; a.Wake != want {
		t.Errorf("behind a job that leaves too little time before maintenance, the queue decides again at %v, want %v", a.Wake, want)
	}
}
