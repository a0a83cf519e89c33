package book

import (
	"testing"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/agent"
	"github.com/candor-grid/candor/messages/job"
)

// The end of a task is reported late, because its site had no connection. The slot time, the cost and the run time must
// follow from the times that the agent reports. The slot time and the run time must be from 0 to the time since the
// claim, and the cost must not be negative.
func TestAnAttemptHadWhatItsAgentSays(t *testing.T) {
	const second = 1_000_000
	for name, c := range map[string]struct {
		started, ended messages.Time // in seconds of the agent's clock
		paused         messages.Time // when it was suspended for 2 s; 0 means never
		left           messages.Time // when it was suspended and not resumed, in seconds; 0 means never
		exit           int
		had            messages.Duration
	}{
		"four seconds, heard of after ten": {started: 2, ended: 6, had: 4e9},
		"on another clock":                 {started: 5002, ended: 5006, had: 4e9},
		"it failed":                        {started: 2, ended: 6, exit: 1, had: 4e9},
		"longer than it had its claim":     {started: 2, ended: 100, had: 14e9},
		"less than nothing":                {started: 6, ended: 2, had: 0},
		"nobody says":                      {had: 14e9},
		"four seconds, and two suspended":  {started: 2, ended: 8, paused: 3, had: 4e9},
		"it ended as it was resumed":       {started: 2, ended: 4, paused: 3, had: 1e9},
		"it ended before all this":         {started: 2, ended: 6, paused: 9, had: 4e9},
		"it ended before it was suspended": {started: 2, ended: 6, left: 9, had: 4e9},
		"it was suspended before it ended": {started: 2, ended: 14, left: 9, had: 7e9},
	} {
		t.Run(name, func(t *testing.T) {
			w := &timed{site: newSite(t), session: 7}
			id := w.submit("k", mapStage(1))
			w.register("n1", 7, 1)
			w.do(1, Command{Decide: &Decide{Market: "main", Tariffs: []Tariff{{Class: "map", Price: 3}}}})
			w.passTo(2 * second)
			a := w.claims(id)
			if c.paused != 0 {
				w.do(c.paused, Command{Decide: &Decide{Market: "main", Suspend: []messages.Attempt{a}}})
				w.do(c.paused+2, Command{Decide: &Decide{Market: "main", Resume: []messages.Attempt{a}}})
			}
			if c.left != 0 {
				w.passTo(c.left * second)
				w.apply(Command{Decide: &Decide{Market: "main", Suspend: []messages.Attempt{a}}})
			}
			w.passTo(16 * second)
			w.seq++
			w.apply(Command{Exchange: &Exchange{Node: "n1", Session: 7, Seq: w.seq, Finished: []agent.Finished{
				{Attempt: a, Outcome: agent.Exited, ExitCode: c.exit, Started: c.started * second, Ended: c.ended * second}}}})
			j := w.Job(id)
			task := &j.Stages[0].Tasks[0]
			cost, used := w.Used(j, w.Now())
			if want := messages.Credits(3 * c.had / 1e9); used != c.had || cost != want {
				t.Errorf("it used %v for %v, want %v for %v", used, cost, c.had, want)
			}
			if ran := task.Ended.Sub(task.Claimed) - task.PausedTime(); c.exit == 0 && ran != c.had || j.Completion().Delivered != c.had {
				t.Errorf("it ran for %v, and %v were delivered; want %v", ran, j.Completion().Delivered, c.had)
			}
		})
	}
}

// An attempt has ended, but its end is reported much later. Meanwhile the tariffs have changed so often that the book
// no longer has all of them. For the time from the end of the attempt to the report, the book must subtract the mean
// cost of the slot time.
func TestAnAttemptThatEndedLongAgo(t *testing.T) {
	const second = 1_000_000
	w := &timed{site: newSite(t), session: 7}
	id := w.submit("k", mapStage(1))
	w.register("n1", 7, 1)
	price := func(at messages.Time, p messages.Credits) {
		w.do(at, Command{Decide: &Decide{Market: "main", Tariffs: []Tariff{{Class: "map", Price: p}}}})
	}
	price(1, 3)
	w.passTo(2 * second)
	a := w.claims(id)
	for at := range messages.Time(2 * keptSpells) {
		price(10+at, 100+messages.Credits(at))
	}
	w.passTo(60 * second)
	j := w.Job(id)
	all, had := w.Used(j, w.Now())
	w.seq++
	w.apply(Command{Exchange: &Exchange{Node: "n1", Session: 7, Seq: w.seq, Finished: []agent.Finished{
		{Attempt: a, Outcome: agent.Exited, Started: 2 * second, Ended: 6 * second}}}})
	if cost, used := w.Used(w.Job(id), w.Now()); used != 4e9 || cost < 4*3 || cost > all/10 {
		t.Errorf("it used %v for %v, of %v for %v", used, cost, had, all)
	}
}

// The time for which a gang waits until all its tasks have slots must not count as run time.
func TestAGangRanFromWhenItWasThere(t *testing.T) {
	const second = 1_000_000
	w := &timed{site: newSite(t), session: 7}
	gang := mapStage(2)
	gang.Gang = true
	id := w.submit("k", gang)
	w.register("n1", 7, 2)
	w.passTo(2 * second)
	first := w.claims(id)
	w.passTo(5 * second)
	both := []messages.Attempt{first, w.claims(id)}
	w.passTo(20 * second)
	w.seq++
	x := Exchange{Node: "n1", Session: 7, Seq: w.seq}
	for _, a := range both {
		x.Finished = append(x.Finished, agent.Finished{Attempt: a, Outcome: agent.Exited, Started: 5 * second, Ended: 9 * second})
	}
	w.apply(Command{Exchange: &x})
	j := w.Job(id)
	if _, used := w.Used(j, w.Now()); used != 8e9 || j.Completion().Delivered != 8e9 || j.Outcome != job.Completed {
		t.Errorf("%v: it used %v, and %v were delivered", j.Outcome, used, j.Completion().Delivered)
	}
}

// A task runs from 2 s on, and its slot costs nothing at first. From 12 s on, the price is the job's bid. Then two more
// tasks of the job run, on a node that is lost at 22 s. The job need not pay for these two tasks: their time is
// subtracted from the job's cost at the mean price, which is half of the bid. Later, the agent of the first task
// reports that this task ended at 6 s, after 4 s. Without a bound, the cost that remains for these 4 s would be more
// than the bid.
func TestNoJobPaysMoreThanItBid(t *testing.T) {
	const second = 1_000_000
	w := &timed{site: newSite(t), session: 7}
	id := w.submit("k", mapStage(3))
	w.Job(id).Spec.Rate = second
	w.register("n1", 7, 1)
	price := func(at messages.Time, p messages.Credits) {
		w.do(at, Command{Decide: &Decide{Market: "main", Tariffs: []Tariff{{Class: "map", Price: p}}}})
	}
	price(1, 0)
	w.passTo(2 * second)
	kept := w.claims(id)
	price(12, second)
	w.passTo(12 * second)
	w.register("n2", 8, 2)
	broken, _ := w.apply(Command{Exchange: &Exchange{Node: "n2", Session: 8, Seq: 1, Claims: []Claim{{Class: "map", Slots: 2, Jobs: []messages.JobID{id}}}}}).([]agent.Grant)
	if len(broken) != 2 {
		t.Fatalf("granted: %+v", broken)
	}
	w.passTo(22 * second)
	w.apply(Command{Lost: &Lost{Node: "n2", Session: 8}})
	w.seq++
	w.apply(Command{Exchange: &Exchange{Node: "n1", Session: 7, Seq: w.seq, Finished: []agent.Finished{
		{Attempt: kept, Outcome: agent.Exited, Started: 2 * second, Ended: 6 * second}}}})
	if cost, used := w.Used(w.Job(id), w.Now()); used != 4e9 || cost > 4*second {
		t.Errorf("it is to pay %v for %v, and bids 1 for a second", cost, used)
	}
}
