package deadline

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/candor-grid/candor/auctioneer/mechanism"
	"github.com/candor-grid/candor/messages"
	jobmsg "github.com/candor-grid/candor/messages/job"
	marketmsg "github.com/candor-grid/candor/messages/market"
)

const second = messages.Duration(1e9)

func live(t interface{ Fatal(...any) }, lambda float64) *Mechanism {
	m, err := NewMechanism(marketmsg.Market{Name: "main", Classes: []messages.Name{"cpu"}, Slot: 10 * second, Lambda: &lambda, Scale: 4})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func at(unit int) messages.Time { return messages.Time(unit * 10_000_000) }

// bidOf returns a task as a bid on a live market.
func bidOf(id messages.JobID, task Task) *mechanism.Bid {
	value, _ := messages.RoundCredits(task.Value)
	return &mechanism.Bid{Job: id, Arrived: at(task.Arrival), Deadline: at(task.Deadline + 1), Length: messages.Duration(task.Length) * 10 * second,
		Value: value, Budget: value, Width: task.slots(), Alone: task.Width}
}

// market does what the auctioneer would do in a site: it follows the mechanism's directives, and ends a job when the
// job has run for its length.
type market struct {
	*Mechanism
	view  *mechanism.View
	units map[messages.JobID][]int
	paid  map[messages.JobID]messages.Credits
	gone  map[messages.JobID]jobmsg.State
	owing []*mechanism.Job // jobs that have completed and are not settled yet
	notes map[messages.JobID]mechanism.Note
	early map[messages.JobID]bool           // jobs that were settled before their deadline
	over  map[messages.JobID]int            // by job: the unit before which the job ended
	bids  map[messages.JobID]*mechanism.Bid // the bids of all jobs that arrived
	loses bool                              // true if a decision's notes are lost
	knows bool                              // a new mechanism gets the jobs from the job book
	leads func(unit int) bool               // whether there is a leader in a unit; nil means always
}

func noNotes(m *market) { m.loses = true }
func noJobs(m *market)  { m.knows = false }

// play runs a problem on a live market. Before and after each decision it calls the function `change`. If `change`
// returns true, a new mechanism takes over.
func play(t interface{ Fatal(...any) }, p *Problem, change func() bool, options ...func(*market)) *market {
	m := &market{Mechanism: live(t, p.Lambda), units: map[messages.JobID][]int{}, paid: map[messages.JobID]messages.Credits{}, gone: map[messages.JobID]jobmsg.State{},
		notes: map[messages.JobID]mechanism.Note{}, early: map[messages.JobID]bool{}, over: map[messages.JobID]int{}, bids: map[messages.JobID]*mechanism.Bid{}, knows: true}
	for _, o := range options {
		o(m)
	}
	m.view = &mechanism.View{Classes: []mechanism.Class{{Name: "cpu", Slots: p.Capacity}}}
	for unit, end := p.span(); unit <= end; unit++ {
		m.view.Now = at(unit)
		m.finish(p, unit)
		if change() {
			m.replace(live(t, p.Lambda))
		}
		for i, task := range p.Tasks {
			if task.Arrival == unit && !task.Impossible() {
				bid := bidOf(messages.JobID(i+1), task)
				m.bids[bid.Job] = bid
				m.view.Jobs = append(m.view.Jobs, &mechanism.Job{Bid: bid, Pending: []int{task.slots()}, Running: []int{0}, Suspended: []int{0}})
			}
		}
		slices.SortFunc(m.view.Jobs, func(a, b *mechanism.Job) int { return int(a.Job) - int(b.Job) })
		if m.leads != nil && !m.leads(unit) {
			m.work(unit)
			continue
		}
		m.settle()
		a := m.Allocate(m.view)
		if change() { // here the directives are not followed yet, and the notes are not saved yet
			m.replace(live(t, p.Lambda))
			a = m.Allocate(m.view)
		}
		m.keep()
		m.obey(a)
		if change() {
			m.replace(live(t, p.Lambda))
		}
		m.work(unit)
	}
	return m
}

func (m *market) work(unit int) {
	for _, job := range m.view.Jobs {
		if job.Running[0] > 0 {
			m.units[job.Job] = append(m.units[job.Job], unit)
			job.Received += messages.Duration(job.Running[0]) * 10 * second
		}
	}
}

// keep saves the notes about a decision, as the auctioneer does. It takes at most three notes from the mechanism at a
// time.
func (m *market) keep() {
	for more := true; more; more = m.Saved() {
		notes, whole := m.Notes(3)
		if whole || m.loses {
			clear(m.notes)
		}
		for _, n := range notes {
			if !m.loses {
				m.notes[n.Job] = n
			}
		}
	}
}

// replace replaces the mechanism by a new one, as a new leader does. The new one gets only the market's notes and the
// jobs.
func (m *market) replace(by *Mechanism) {
	var notes []mechanism.Note
	for _, id := range slices.Sorted(maps.Keys(m.notes)) {
		notes = append(notes, m.notes[id])
	}
	var jobs []messages.JobID
	if m.knows {
		jobs = slices.Sorted(maps.Keys(m.bids))
	}
	m.Mechanism = by
	m.Recall(notes, jobs, func(id messages.JobID) mechanism.Past {
		unit, ended := m.over[id]
		past := mechanism.Past{Bid: m.bids[id], Ended: ended, At: at(unit) - 1, State: m.gone[id],
			Received: messages.Duration(len(m.units[id])*m.bids[id].Width) * 10 * second}
		past.Completed = completed(past.State, past.Received, past.At)
		return past
	})
}

// completed returns when an ended job was complete, or 0 if it was not. A job counts as complete, and pays, if its
// tasks completed, or if it had slots before it ended in another way.
func completed(state jobmsg.State, received messages.Duration, at messages.Time) messages.Time {
	if state == jobmsg.Completed || state != jobmsg.Discarded && received > 0 {
		return at
	}
	return 0
}

// finish ends the jobs that have run for their length or were discarded.
func (m *market) finish(p *Problem, unit int) {
	for _, job := range slices.Clone(m.view.Jobs) {
		state, over := m.gone[job.Job]
		if len(m.units[job.Job]) == p.Tasks[job.Job-1].Length {
			state, over = jobmsg.Completed, true
		}
		if !over {
			continue
		}
		m.view.Jobs = slices.DeleteFunc(m.view.Jobs, func(j *mechanism.Job) bool { return j == job })
		m.gone[job.Job], m.over[job.Job] = state, unit
		m.owing = append(m.owing, job)
	}
}

func (m *market) settle() {
	m.owing = slices.DeleteFunc(m.owing, func(job *mechanism.Job) bool {
		end := mechanism.End{State: m.gone[job.Job], At: at(m.over[job.Job])}
		end.Completed = completed(end.State, job.Received, end.At)
		due := m.SettleAt(m.view.Now, job, end) <= m.view.Now
		if due {
			m.early[job.Job] = m.view.Now < job.Deadline
			for _, payment := range m.Settle(m.view, job, end) {
				m.paid[job.Job] += payment.Amount
			}
		}
		return due
	})
}

func (m *market) obey(a *mechanism.Allocation) {
	for _, d := range a.Directives {
		i := slices.IndexFunc(m.view.Jobs, func(j *mechanism.Job) bool { return j.Job == d.Job })
		job := m.view.Jobs[i]
		job.Pending[0], job.Suspended[0], job.Running[0] = 0, 0, 0
		switch d.Action {
		case mechanism.Start, mechanism.Resume:
			job.Running[0] = d.Slots
		case mechanism.Suspend:
			job.Suspended[0] = job.Width
		case mechanism.Discard:
			m.gone[job.Job] = jobmsg.Discarded
		}
	}
}

// drawLive draws a problem for a live market: tasks in the order of arrival, values rounded to the microcredit, some
// with tasks of several slots.
func drawLive(t *rapid.T) *Problem {
	return drawLiveUpTo(t, rapid.SampledFrom([]int{0, 0, 3}).Draw(t, "widest"))
}

// drawLiveUpTo draws a problem in the form of a live market, with tasks of at most `widest` slots. If `widest` is 0,
// all tasks have one slot.
func drawLiveUpTo(t *rapid.T, widest int) *Problem {
	p := drawProblem(t, Monotone, []float64{0, 0.6, 1})
	p.Scale = 4
	for i := range p.Tasks {
		p.Tasks[i].Width = rapid.IntRange(0, widest).Draw(t, "width")
		p.Tasks[i].Arrival += 100
		p.Tasks[i].Deadline += 100
		c, _ := messages.RoundCredits(rapid.Float64Range(1, 50).Draw(t, "value"))
		p.Tasks[i].Value = c.Float()
	}
	slices.SortStableFunc(p.Tasks, func(a, b Task) int { return a.Arrival - b.Arrival })
	return p
}

// In a live market, jobs arrive one after another. They must get the same units and pay the same as in a computation
// that knows all jobs from the beginning. This must hold even for jobs that are settled before their deadlines.
func TestLiveMarketIsTheMechanism(t *testing.T) {
	early := 0
	rapid.Check(t, func(t *rapid.T) {
		p := drawLive(t)
		o := mustRun(t, p)
		m, payments := play(t, p, func() bool { return false }), o.Payments()
		for i := range p.Tasks {
			id := messages.JobID(i + 1)
			if want := o.Units(i); len(want) == p.Tasks[i].Length && !slices.Equal(m.units[id], want) {
				t.Fatalf("job %d has units %v, want %v: %+v", id, m.units[id], want, p)
			}
			want, _ := messages.RoundCredits(payments[i])
			if d := m.paid[id] - want; d < -1 || d > 1 {
				t.Fatalf("job %d pays %v, want %v: %+v", id, m.paid[id], want, p)
			}
			if m.early[id] && m.gone[id] == jobmsg.Completed {
				early++
			}
		}
	})
	if early == 0 {
		t.Error("no job was settled before its deadline")
	}
}

// New leaders take over often, with and without the notes of the last decision. Jobs must get the same units and pay
// the same as with one leader. If no notes are left at all, jobs must still pay the same, because the job book has the
// jobs.
func TestAnotherLeaderPricesAlike(t *testing.T) {
	differ := 0 // problems whose prices change if new leaders get neither notes nor jobs
	rapid.Check(t, func(t *rapid.T) {
		p := drawLive(t)
		want := play(t, p, func() bool { return false })
		got := play(t, p, func() bool { return rapid.IntRange(0, 3).Draw(t, "change") == 0 })
		if !maps.Equal(got.paid, want.paid) || !maps.EqualFunc(got.units, want.units, slices.Equal) || !maps.Equal(got.early, want.early) {
			t.Fatalf("they pay %v for %v, and without a change %v for %v: %+v", got.paid, got.units, want.paid, want.units, p)
		}
		if unkept := play(t, p, func() bool { return true }, noNotes); !maps.Equal(unkept.paid, want.paid) {
			t.Fatalf("no decision kept, they pay %v, and without a change %v: %+v", unkept.paid, want.paid, p)
		}
		if ignorant := play(t, p, func() bool { return true }, noNotes, noJobs); !maps.Equal(ignorant.paid, want.paid) {
			differ++
		}
	})
	if differ == 0 {
		t.Error("without notes and jobs prices are the same: this shows nothing of them")
	}
}

// The market decides once in each unit of time. In this test each task has one slot, and some units have no leader, so
// nobody decides. Then the old leader continues, or a new leader takes over without the old leader's last notes. A job
// must owe at least as much under the new leader as under the old one.
func TestUnitsThatNobodyDecided(t *testing.T) {
	owed := 0
	rapid.Check(t, func(t *rapid.T) {
		p := drawLiveUpTo(t, 0)
		first, end := p.span()
		led := map[int]bool{}
		for unit := first; unit <= end; unit++ {
			led[unit] = rapid.Bool().Draw(t, "led")
		}
		led[end] = true
		absent := func(m *market) { m.leads = func(unit int) bool { return led[unit] } }
		back := play(t, p, func() bool { return false }, absent)
		other := play(t, p, func() bool { return true }, absent, noNotes)
		for id, paid := range back.paid {
			owed += min(int(paid), 1)
			if other.paid[id] < paid {
				t.Fatalf("job %d pays %v, and to another leader only %v, led %v: %+v", id, paid, other.paid[id], led, p)
			}
		}
	})
	if owed == 0 {
		t.Error("nobody owed anything: this shows nothing")
	}
}

func TestAdmit(t *testing.T) {
	m := live(t, 0.6)
	view := &mechanism.View{Now: at(5), Classes: []mechanism.Class{{Name: "cpu", Slots: 2}}}
	good := Task{Arrival: 5, Deadline: 9, Length: 5, Value: 10}
	if err := m.Admit(view, bidOf(1, good)); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		says   string
		kind   messages.Kind
		change func(b *mechanism.Bid)
	}{
		{"value: must be above 0", messages.Invalid, func(b *mechanism.Bid) { b.Value = 0 }},
		{"budget: must cover the value", messages.Invalid, func(b *mechanism.Bid) { b.Budget-- }},
		{"length: must be above 0", messages.Invalid, func(b *mechanism.Bid) { b.Length = 0 }},
		{"width: this market starts tasks one by one and cannot keep 2", messages.Invalid, func(b *mechanism.Bid) { b.Width = 2 }},
		{"needs 5 units of 10s, and 4 whole units are left", messages.Expired, func(b *mechanism.Bid) { b.Deadline-- }},
		{"needs 6 units of 10s, and 5 whole units are left", messages.Expired, func(b *mechanism.Bid) { b.Length += second }},
		{"0 whole units are left", messages.Expired, func(b *mechanism.Bid) { b.Deadline = at(3) }},
		{"deadline: is more than", messages.TooLarge, func(b *mechanism.Bid) { b.Deadline = at(5 + 2*MostUnits) }},
	} {
		b := bidOf(1, good)
		c.change(b)
		err := m.Admit(view, b)
		if messages.KindOf(err) != c.kind || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%v, want %s: %q", err, c.kind, c.says)
		}
	}
}

// Explain must tell a job its rank, and a value with which the job would get a slot.
func TestExplain(t *testing.T) {
	m := live(t, 0.6)
	rich := &mechanism.Job{Bid: bidOf(1, Task{Arrival: 1, Deadline: 9, Length: 2, Value: 20}), Pending: []int{1}, Running: []int{0}}
	poor := &mechanism.Job{Bid: bidOf(2, Task{Arrival: 1, Deadline: 9, Length: 4, Value: 8}), Pending: []int{1}, Running: []int{0}}
	late := &mechanism.Job{Bid: bidOf(3, Task{Arrival: 2, Deadline: 9, Length: 1, Value: 1}), Pending: []int{1}, Running: []int{0}}
	view := &mechanism.View{Now: at(1), Classes: []mechanism.Class{{Name: "cpu", Slots: 1}}, Jobs: []*mechanism.Job{rich, poor, late}}
	a := m.Allocate(view)
	if a.Weights[0][0] != 1 || a.Weights[1][0] != 0 || a.Prices[0] != 2 || a.Wake != at(2) {
		t.Fatalf("%+v", a)
	}
	for _, c := range []struct {
		job          *mechanism.Job
		reason, says string
	}{
		{rich, "HoldsSlot", "a value above 4 credits would be enough"},
		{poor, "Outranked", "rank 2 of 2 for 1 slots"},
		{late, "WaitingForUnit", "units of 10s"},
	} {
		e := m.Explain(view, c.job)
		if e.Reason != c.reason || !strings.Contains(e.Message, c.says) {
			t.Errorf("%+v, want %s: %q", e, c.reason, c.says)
		}
	}
	if e := m.Explain(view, poor); !strings.Contains(strings.Join(e.Change, "\n"), "a value above 40 credits would have been enough") {
		t.Errorf("%+v", e)
	}
	rich.Account = "rival"
	for _, job := range []*mechanism.Job{rich, poor} {
		if e := m.Explain(view, job); strings.Contains(e.Message+strings.Join(e.Change, "\n"), "credits") {
			t.Errorf("tells the bid of the only rival: %+v", e)
		}
	}
	view.Now = at(7)
	a = m.Allocate(view)
	if e := m.Explain(view, poor); e.Reason != "CannotMakeDeadline" || !slices.ContainsFunc(a.Directives, func(d mechanism.Directive) bool {
		return d.Job == 2 && d.Action == mechanism.Discard
	}) {
		t.Errorf("%+v, %+v", e, a.Directives)
	}
}

// A job lost its slot to other jobs, and then could not meet its deadline. The text that the job gets must say that the
// slot was taken away, and not that the job never had one.
func TestADiscardedJobIsNotToldThatItHadNoSlot(t *testing.T) {
	for received, want := range map[messages.Duration]string{0: "never had a slot", 10 * second: "took the slots away"} {
		m := live(t, 0)
		job := &mechanism.Job{Bid: bidOf(1, Task{Arrival: 1, Deadline: 2, Length: 2, Value: 20}), Pending: []int{1}, Running: []int{0}, Received: received}
		m.Allocate(&mechanism.View{Now: at(1), Classes: []mechanism.Class{{Name: "cpu", Slots: 1}}, Jobs: []*mechanism.Job{job}})
		got := m.Settle(&mechanism.View{Now: at(2), Classes: []mechanism.Class{{Name: "cpu", Slots: 1}}}, job, mechanism.End{State: jobmsg.Discarded})
		if len(got) != 1 || got[0].Amount != 0 || !strings.Contains(got[0].Reason, want) {
			t.Errorf("%v on slots: %+v, want %q", received, got, want)
		}
	}
}

// A job owes its critical value in two cases. In the first case, it was complete for prices by its deadline. In the
// second case, it had all its declared units. What happened later does not matter. A job owes nothing if neither case
// holds, because it was late or was discarded before.
func TestSettleChargesWhatWasDelivered(t *testing.T) {
	for _, c := range []struct {
		state    jobmsg.State
		complete int // the unit at whose start the job was complete for prices; 0 means never
		received messages.Duration
		pays     messages.Credits
	}{
		{jobmsg.Completed, 3, 10 * second, 4 * messages.Credit}, {jobmsg.Completed, 12, 10 * second, 0}, {jobmsg.Discarded, 0, 10 * second, 0},
		// The owner decides whether the program succeeds, so failed jobs pay too.
		{jobmsg.Failed, 3, 10 * second, 4 * messages.Credit}, {jobmsg.Cancelled, 3, 10 * second, 4 * messages.Credit}, {jobmsg.Failed, 12, 10 * second, 0},
		// The first attempt had ended before the deadline, so the price counted the job as complete. Later attempts ran
		// until the deadline.
		{jobmsg.Discarded, 2, 10 * second, 4 * messages.Credit}, {jobmsg.Failed, 2, 10 * second, 4 * messages.Credit},
		// In this case the program printed its result, and then slept until the deadline.
		{jobmsg.Discarded, 0, 20*second - second/20, 4 * messages.Credit},
	} {
		m := live(t, 0)
		one := &mechanism.Job{Bid: bidOf(1, Task{Arrival: 1, Deadline: 2, Length: 2, Value: 20}), Pending: []int{1}, Running: []int{0}}
		two := &mechanism.Job{Bid: bidOf(2, Task{Arrival: 1, Deadline: 9, Length: 4, Value: 8}), Pending: []int{1}, Running: []int{0}}
		view := &mechanism.View{Now: at(1), Classes: []mechanism.Class{{Name: "cpu", Slots: 1}}, Jobs: []*mechanism.Job{one, two}}
		m.Allocate(view)
		view.Now, view.Jobs = at(max(3, c.complete)), []*mechanism.Job{two}
		one.Received = c.received // the job declared 20 s
		end := mechanism.End{State: c.state, At: view.Now}
		if c.complete != 0 {
			end.Completed = at(c.complete)
		}
		m.SettleAt(view.Now, one, end)
		m.Allocate(view)
		got := m.Settle(view, one, end)
		if len(got) != 1 || got[0].Amount != c.pays || got[0].From != 1 || got[0].To != 0 || got[0].Reason == "" {
			t.Errorf("%v, complete at %d: %+v, want %v", c.state, c.complete, got, c.pays)
		}
	}
}

// A job had all its declared units by its deadline. Normally it must pay, even if it ends later or fails. In a market
// with the setting "settle on completion", such a job pays nothing.
func TestBeingLateOnPurpose(t *testing.T) {
	for _, settle := range []string{"", marketmsg.SettleOnCompletion} {
		m := live(t, 0)
		m.config.Settle = settle
		one := &mechanism.Job{Bid: bidOf(1, Task{Arrival: 1, Deadline: 2, Length: 2, Value: 20}), Pending: []int{1}, Running: []int{0}}
		two := &mechanism.Job{Bid: bidOf(2, Task{Arrival: 1, Deadline: 9, Length: 4, Value: 8}), Pending: []int{1}, Running: []int{0}}
		view := &mechanism.View{Now: at(1), Classes: []mechanism.Class{{Name: "cpu", Slots: 1}}, Jobs: []*mechanism.Job{one, two}}
		m.Allocate(view)
		view.Now, view.Jobs, one.Received = at(4), []*mechanism.Job{two}, 20*second
		want := 4 * messages.Credit
		if settle != "" {
			want = 0
		}
		for _, state := range []jobmsg.State{jobmsg.Completed, jobmsg.Failed, jobmsg.Cancelled} {
			if got := m.Settle(view, one, mechanism.End{State: state, At: at(4), Completed: at(4)}); got[0].Amount != want {
				t.Errorf("%q, %v late: %+v, want %v", settle, state, got, want)
			}
		}
	}
}

// The critical value of a job is the lowest value with which it would have been served. A job that ended in time must
// pay this value, even if it is settled later.
func TestSettlingLaterIsNotBeingLate(t *testing.T) {
	m := live(t, 0)
	one := &mechanism.Job{Bid: bidOf(1, Task{Arrival: 1, Deadline: 2, Length: 2, Value: 20}), Pending: []int{1}, Running: []int{0}}
	two := &mechanism.Job{Bid: bidOf(2, Task{Arrival: 1, Deadline: 9, Length: 4, Value: 8}), Pending: []int{1}, Running: []int{0}}
	view := &mechanism.View{Now: at(1), Classes: []mechanism.Class{{Name: "cpu", Slots: 1}}, Jobs: []*mechanism.Job{one, two}}
	m.Allocate(view)
	view.Now, view.Jobs = at(3), []*mechanism.Job{two}
	m.Allocate(view)
	view.Now = at(6)
	end := mechanism.End{State: jobmsg.Completed, Completed: at(3)}
	if due := m.SettleAt(end.At, one, end); due != one.Deadline {
		t.Errorf("due at %v, want its deadline", due)
	}
	if got := m.Settle(view, one, end); got[0].Amount != 4*messages.Credit {
		t.Errorf("%+v, want 4 credits", got)
	}
}

func TestConfig(t *testing.T) {
	cpu := []messages.Name{"cpu"}
	if _, err := NewMechanism(marketmsg.Market{Name: "main", Classes: cpu}); err != nil {
		t.Fatal(err)
	}
	for says, c := range map[string]marketmsg.Market{
		"classes: must be exactly one": {Name: "main"},
		"slot: must be at least":       {Name: "main", Classes: cpu, Slot: 1},
	} {
		if _, err := NewMechanism(c); !errors.Is(err, &messages.Error{Kind: messages.Invalid}) || !strings.Contains(err.Error(), says) {
			t.Errorf("%v, want %q", err, says)
		}
	}
}

// Maintenance takes both slots, or one of them, in the third and fourth of eight units. A job that cannot meet its
// deadline in the other units must be refused.
func TestDeadlinesThatMaintenanceBreaks(t *testing.T) {
	m := live(t, 0)
	for _, c := range []struct {
		closed, length, width int
		more                  mechanism.Closing // a second window
		refused               bool
	}{
		{closed: 2, length: 6, width: 1},
		{closed: 2, length: 7, width: 1, refused: true},
		{closed: 1, length: 8, width: 1},
		{closed: 1, length: 7, width: 2, refused: true},
		{closed: 2, length: 5, width: 1, more: mechanism.Closing{From: at(3), To: at(5), Slots: 2}},
		{closed: 2, length: 6, width: 1, more: mechanism.Closing{From: at(3), To: at(5), Slots: 2}, refused: true},
		{closed: 2, length: 6, width: 1, more: mechanism.Closing{From: at(8), To: at(90), Slots: 2}},
	} {
		view := &mechanism.View{Classes: []mechanism.Class{{Name: "cpu", Slots: 2, Closings: []mechanism.Closing{{From: at(2), To: at(4), Slots: c.closed}}}}}
		if c.more.Slots > 0 {
			view.Classes[0].Closings = append(view.Classes[0].Closings, c.more)
		}
		bid := &mechanism.Bid{Budget: messages.Credit, Value: messages.Credit, Length: messages.Duration(c.length) * 10 * second, Deadline: at(8), Width: c.width, Alone: c.width}
		if err := m.Admit(view, bid); (messages.KindOf(err) == messages.Expired) != c.refused || err != nil && !c.refused {
			t.Errorf("%+v: %v", c, err)
		}
	}
}
