package proportional

import (
	"fmt"
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/candor-grid/candor/auctioneer/mechanism"
	"github.com/candor-grid/candor/messages"
	jobmsg "github.com/candor-grid/candor/messages/job"
)

func TestLevel(t *testing.T) {
	type bidder struct {
		account messages.Name
		budget  float64 // in credits
		tasks   int
	}
	for _, c := range []struct {
		name    string
		alpha   float64
		bidders []bidder
		slots   int
		want    float64
	}{
		{"nobody", 0.5, nil, 0, 0},
		{"a slot for every task", 0.5, []bidder{{"a", 1, 2}, {"b", 1, 2}}, 4, 0},
		{"one account with many jobs", 0.5, []bidder{{"a", 1, 9}, {"a", 5, 9}}, 4, 0},
		{"two equal accounts", 0.5, []bidder{{"a", 1, 9}, {"b", 1, 9}}, 4, 0.5},
		{"two equal accounts, one with two jobs", 1, []bidder{{"a", 2, 9}, {"a", 2, 9}, {"b", 4, 9}}, 4, 0.5},
		{"ten equal accounts", 0.5, []bidder{{"a", 1, 9}, {"b", 1, 9}, {"c", 1, 9}, {"d", 1, 9}, {"e", 1, 9}, {"f", 1, 9}, {"g", 1, 9}, {"h", 1, 9}, {"i", 1, 9}, {"j", 1, 9}}, 4, 0.9},
		{"next to nothing bid by another", 0.5, []bidder{{"a", 1, 9}, {"b", 1e-6, 1}}, 4, 0},
		{"three times the power", 0.5, []bidder{{"a", 9, 9}, {"b", 1, 9}}, 4, 0.4}, // powers 3 and 1: 1 − 10/16 = 0.375
		{"budgets do not count", 0, []bidder{{"a", 9, 9}, {"b", 1e-6, 9}}, 4, 0.5},
	} {
		k := NewContention(c.alpha)
		for _, b := range c.bidders {
			budget, _ := messages.RoundCredits(b.budget)
			k.Enter(b.account, budget)
			k.Count(b.tasks)
		}
		if got := k.Level(c.slots); got != c.want {
			t.Errorf("%s: level %v, want %v", c.name, got, c.want)
		}
	}
}

func TestContentionForgets(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		type job struct {
			account messages.Name
			budget  messages.Credits
		}
		alpha := rapid.SampledFrom([]float64{0, 0.3, 0.5, 1}).Draw(t, "alpha")
		k, fresh := NewContention(alpha), NewContention(alpha)
		var jobs []job
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			if len(jobs) > 0 && rapid.Bool().Draw(t, "leave") {
				i := rapid.IntRange(0, len(jobs)-1).Draw(t, "which")
				k.Leave(jobs[i].account, jobs[i].budget)
				jobs = append(jobs[:i], jobs[i+1:]...)
				continue
			}
			j := job{fmt.Sprint("u", rapid.IntRange(1, 4).Draw(t, "account")), messages.Credits(rapid.Int64Range(1, int64(messages.MaxCredits)).Draw(t, "budget"))}
			k.Enter(j.account, j.budget)
			jobs = append(jobs, j)
		}
		for _, j := range jobs {
			fresh.Enter(j.account, j.budget)
		}
		k.Count(1)
		fresh.Count(1)
		if k.total != fresh.total || k.hi != fresh.hi || k.lo != fresh.lo || len(k.accounts) != len(fresh.accounts) || k.Level(0) != fresh.Level(0) {
			t.Fatalf("after %d jobs: %+v, made anew %+v", len(jobs), k, fresh)
		}
	})
}

// Slot time that was lost by the site's fault must not be charged. It must also be subtracted from Whole, the slot time
// that the job had used when each of its tasks had ended once.
func TestTimeThatTheSiteTookOffIsNotOwed(t *testing.T) {
	mech := live(t, 0.5)
	const second = messages.Duration(1e9)
	for _, c := range []struct {
		received  messages.Duration
		contended messages.Credits
		want      messages.Credits
	}{
		{8 * second, 4e6, 1000}, // a task is retried while nobody waits
		{0, 0, 0},
		{second / 2, 5e5, 500},
		{4 * second, 0, 0}, // a task is retried while nobody waits; all earlier time was lost by the site's fault
	} {
		job := &mechanism.Job{Bid: &mechanism.Bid{Job: 1, Budget: 1000}, Received: c.received, Accrued: c.contended, Complete: true,
			Whole: &mechanism.Used{Received: 4 * second, Accrued: 4e6}}
		if p := mech.Settle(view(), job, mechanism.End{State: jobmsg.Cancelled, Tasks: 1, Began: 1}); p[0].Amount != c.want {
			t.Errorf("with slots for %v, %d µs of it contended: owes %d, want %d: %s", c.received.Std(), c.contended, p[0].Amount, c.want, p[0].Reason)
		}
	}
}

// The outcome of a job and its number of tasks are arbitrary. The job must owe at least 0, and at most its budget.
func TestOwed(t *testing.T) {
	const s = messages.Duration(1e9)
	for _, c := range []struct {
		had  Had
		want messages.Credits
	}{
		{Had{Time: 400 * s, Contended: 400 * s}, 1000},
		{Had{Time: 400 * s, Contended: 100 * s}, 250},
		{Had{Time: 4 * s / 10, Contended: 4 * s / 10}, 400},
		{Had{Time: 400 * s}, 0},
		{Had{Time: 400 * s, Contended: 400 * s, Lacked: 1200 * s, Began: 400}, 250},
		{Had{Time: 400 * s, Contended: 400 * s, Lacked: -100 * s, Began: 400}, 1000},
		{Had{Time: 4 * s, Contended: 4 * s, Lacked: 1200 * s, Began: 36_000}, 750}, // 36,000 tasks that end as soon as they start; each counts as 0.1 s
		{Had{}, 0},
	} {
		if got := c.had.Owed(1000); got != c.want {
			t.Errorf("%+v: owes %d, want %d", c.had, got, c.want)
		}
	}
	mech := live(t, 0.5)
	// Two halves of a job must together owe as much as the whole job, up to rounding. The test draws slot times of at
	// least a second. With less slot time, the halves may owe less: see doc.go.
	rapid.Check(t, func(t *rapid.T) {
		half := Had{Time: messages.Duration(rapid.Int64Range(int64(s), int64(1e6*s)).Draw(t, "time"))}
		half.Contended = messages.Duration(rapid.Int64Range(0, int64(half.Time)).Draw(t, "contended"))
		half.Lacked = messages.Duration(rapid.Int64Range(int64(-1e6*s), int64(1e6*s)).Draw(t, "lacked"))
		h := Had{Time: 2 * half.Time, Contended: 2 * half.Contended, Lacked: 2 * half.Lacked}
		budget := messages.Credits(rapid.Int64Range(0, int64(messages.MaxCredits)/2).Draw(t, "budget"))
		if whole, halves := h.Owed(2*budget), 2*half.Owed(budget); math.Abs(float64(whole-halves)) > 2 {
			t.Fatalf("%+v owes %d, its halves %d", h, whole, halves)
		}
	})
	rapid.Check(t, func(t *rapid.T) {
		budget := messages.Credits(rapid.Int64Range(0, int64(messages.MaxCredits)).Draw(t, "budget"))
		var h Had
		h.Time = messages.Duration(rapid.Int64Range(0, math.MaxInt64/4).Draw(t, "time"))
		h.Contended = messages.Duration(rapid.Int64Range(0, int64(h.Time)).Draw(t, "contended"))
		h.Lacked = messages.Duration(rapid.Int64().Draw(t, "lacked"))
		owed := h.Owed(budget)
		if owed < 0 || owed > budget {
			t.Fatalf("%+v owes %d of %d", h, owed, budget)
		}
		job := &mechanism.Job{Bid: &mechanism.Bid{Job: 1, Budget: budget}, Received: h.Time, Accrued: messages.Credits(h.Contended / 1000), Lacked: h.Lacked}
		var first messages.Credits
		for i, state := range []jobmsg.State{jobmsg.Completed, jobmsg.Failed, jobmsg.Cancelled} {
			p := mech.Settle(view(), job, mechanism.End{State: state, Tasks: 1 + rapid.IntRange(0, 1e6).Draw(t, "tasks"), Began: 1})
			if i == 0 {
				first = p[0].Amount
			} else if p[0].Amount != first {
				t.Fatalf("%v owes %v, completed %v", state, p[0].Amount, first)
			}
		}
	})
}

// A peer may give its users other names. This must not change any price.
func TestNamesOfAPeerContendAsOne(t *testing.T) {
	level := func(names ...messages.Name) messages.Credits {
		v := view()
		for i, name := range names {
			one := job(messages.JobID(i+1), 1, 3, 2, 9, 0)
			one.Account = name
			v.Jobs = append(v.Jobs, one)
		}
		return live(t, 0.5).Allocate(v).Tariffs[0].Rate
	}
	half := messages.Credit / 2
	for _, c := range []struct {
		names []messages.Name
		want  messages.Credits
	}{
		{[]messages.Name{"a@west", "b@west", "c@west"}, 0},
		{[]messages.Name{"a", "a", "a@west", "b@west"}, half},
		{[]messages.Name{"a@east", "b@east", "a@west", "b@west"}, half},
		{[]messages.Name{"a", "b"}, half},
	} {
		if got := level(c.names...); got != c.want {
			t.Errorf("%v: the level is %v, want %v", c.names, got, c.want)
		}
	}
}
