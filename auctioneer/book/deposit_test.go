package book

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/candor-grid/candor/messages"
	jobmsg "github.com/candor-grid/candor/messages/job"
)

// secured submits a job with a budget of 100 and a deposit of 7. The argument `most` is the limit on pending jobs.
func (s *site) secured(key string, most int) any {
	s.t.Helper()
	return s.apply(Command{Submit: &Submit{Account: "alice", Key: key, Payer: "alice", Hold: key, Held: 107, Deposit: 7, Most: most,
		Spec: &jobmsg.JobSpec{Market: "main", Budget: 100, Stages: []jobmsg.Stage{mapStage(1)}}}})
}

// accounted returns an error if pending jobs are counted wrong, or if a job owes more than its hold.
func accounted(b *Book) error {
	pending := map[messages.Name]int{}
	for id, j := range b.every {
		if !j.State.Final() {
			pending[j.Account]++
		}
		if j.Deposit.Amount < 0 || j.Owed+j.Paid > j.Held {
			return fmt.Errorf("job %d owes %v and paid %v of %v held", id, j.Owed, j.Paid, j.Held)
		}
		if j.Settled && !j.Deposit.Kept && j.Owed > j.Held-j.Deposit.Amount {
			return fmt.Errorf("job %d owes %v of a budget of %v: its deposit is not kept", id, j.Owed, j.Held-j.Deposit.Amount)
		}
	}
	for _, r := range b.remote.remoteJobs {
		if r.Phase <= There {
			pending[r.Account]++
		}
	}
	if fmt.Sprint(pending) != fmt.Sprint(b.index.pending) {
		return fmt.Errorf("pending are %v, counted %v", pending, b.index.pending)
	}
	return nil
}

// A market keeps the deposit of a cancelled job only if the owner cancels soon after the submission (within the
// market's window), and before a task has started.
func TestDepositIsKept(t *testing.T) {
	for name, c := range map[string]struct {
		by    messages.Name
		after messages.Time
		start bool
		kept  bool
	}{
		"by the owner at once":      {by: "alice", kept: true},
		"by the owner in time":      {by: "alice", after: 8, kept: true},
		"by the owner, too late":    {by: "alice", after: 10},
		"by an operator":            {by: "operator"},
		"by the owner, once it ran": {by: "alice", start: true},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t)
			job := s.secured("k", 0).(Receipt).Job
			if c.start {
				s.register("n1", 7, 1)
				s.claim("n1", 7, 1, 1, job)
			}
			s.at += c.after
			s.apply(Command{Cancel: &Cancel{Job: job, By: c.by, Window: 10_000}}) // 10 µs
			refusal(t, s.apply(Command{Settle: &Settle{Job: job, Charge: 101}}), messages.Invalid)
			s.apply(Command{Settle: &Settle{Job: job, Charge: 3, Reason: "for trying"}})
			j, want, why := s.Job(job), messages.Credits(3), "for trying"
			if c.kept { // the state contains these texts, so they are the same in all releases
				want, why = want+7, "deposit of 0.000007 kept: cancelled by its owner before it was started; for trying"
			}
			if j.Owed != want || j.Deposit.Kept != c.kept {
				t.Errorf("owes %v, kept %v; want %v", j.Owed, j.Deposit.Kept, want)
			}
			if j.Why != why {
				t.Errorf("the reason is %q, not %q", j.Why, why)
			}
		})
	}
}

func TestPendingJobsAreBounded(t *testing.T) {
	s := newSite(t)
	first := s.secured("a", 2).(Receipt).Job
	if _, ok := s.secured("b", 2).(Receipt); !ok {
		t.Fatal("a second job is refused")
	}
	refusal(t, s.secured("c", 2), messages.Exhausted)
	if again := s.secured("a", 2).(Receipt); again.Job != first {
		t.Errorf("the first request again made job %d", again.Job)
	}
	s.apply(Command{Cancel: &Cancel{Job: first, By: "alice"}})
	refusal(t, s.secured("c", 2), messages.Exhausted) // the job is not settled yet
	s.apply(Command{Settle: &Settle{Job: first}})
	s.apply(Command{Confirm: &Confirm{Effects: []Confirmation{{Effect: slices.Collect(s.EachEffect)[0].ID}}}})
	if _, ok := s.secured("c", 2).(Receipt); !ok {
		t.Error("with room again, a job is refused")
	}
}

func TestDepositsInRandomHistories(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		s, other := newSite(t), New()
		for i := range rapid.IntRange(1, 30).Draw(rt, "commands") {
			job := messages.JobID(rapid.IntRange(1, 5).Draw(rt, "job"))
			by := rapid.SampledFrom([]messages.Name{"alice", "operator"}).Draw(rt, "by")
			c := Command{At: messages.Time(i + 1)}
			switch rapid.IntRange(0, 4).Draw(rt, "kind") {
			case 0, 1:
				c.Submit = &Submit{Account: by, Key: fmt.Sprint(job), Held: 107, Deposit: messages.Credits(rapid.IntRange(0, 7).Draw(rt, "deposit")), Most: rapid.IntRange(0, 3).Draw(rt, "most"),
					Spec: &jobmsg.JobSpec{Market: "main", Budget: 100, Stages: []jobmsg.Stage{mapStage(1)}}}
			case 2:
				c.Cancel = &Cancel{Job: job, By: by, Window: messages.Duration(rapid.IntRange(0, 20_000).Draw(rt, "window"))}
			case 3:
				c.Settle = &Settle{Job: job, Charge: messages.Credits(rapid.IntRange(-1, 110).Draw(rt, "charge"))}
			case 4:
				c.Confirm = &Confirm{Effects: []Confirmation{{Effect: rapid.Uint64Range(1, 8).Draw(rt, "effect"), Amount: 5}}}
			}
			s.Apply(&c)
			if err := invariant(s.Book); err != nil {
				rt.Fatal(err)
			}
			if rapid.IntRange(0, 9).Draw(rt, "restart") == 0 {
				copyInto(t, s.Book, other)
				s.Book, other = other, s.Book
			}
		}
	})
}
