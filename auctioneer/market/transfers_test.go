package market

import (
	"testing"

	"github.com/candor-grid/candor/auctioneer/book"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/job"
	"github.com/candor-grid/candor/messages/money"
)

// An attempt can end after its job. The transfer of the job's charge has a reason, a text about the job's attempts. The
// reason must not change when such an attempt ends, because the leader may send the same transfer again. It must name
// an attempt that ended before the job.
func TestTheReasonOfAChargeStays(t *testing.T) {
	used := func(ended messages.Time) string {
		j := &book.Job{Ended: 100, Why: "job 1", Spec: &job.JobSpec{Stages: []job.Stage{{Name: "s"}}}, Stages: []book.Stage{{Tasks: make([]book.Task, 1)}}}
		if ended > 0 {
			j.Kept = []book.Kept{{Ended: ended, Reason: job.EndNodeLost, Attempt: 1}}
		}
		return Used(j)
	}
	if used(101) != used(0) {
		t.Errorf("an attempt that ends after its job makes of %q the reason %q", used(0), used(101))
	}
	if used(99) == used(0) {
		t.Errorf("an attempt that was lost is not told: %q", used(99))
	}
}

// A job pays taxes, and gets a part of the taxes back. Each line of its statement must have a reason. A job that
// receives credits must not learn why another job paid them.
func TestEachLineOfARoundHasItsReason(t *testing.T) {
	b := book.New()
	for _, account := range []messages.Name{"bob", "carol"} {
		spec := &job.JobSpec{Market: "main", Budget: 100, Stages: []job.Stage{{Name: "s", Class: "cpu", Script: "true"}}}
		if err, refused := b.Apply(&book.Command{Submit: &book.Submit{Account: account, Key: account, Payer: account, Spec: spec, Held: 100}}).(error); refused {
			t.Fatal(err)
		}
	}
	e := &book.Effect{ID: 7, Legs: []book.Leg{{From: 1, Amount: 30, Reason: "tax"}, {From: 2, Amount: 10, Reason: "other tax"}, {To: 1, Amount: 6, Reason: "part"}, {From: 1, To: 2, Amount: 1, Reason: "gift"}}}
	for _, transfer := range Round(b, e, 0) {
		want := map[money.TransferKind]map[messages.JobID]string{
			money.Post:   {1: "tax", 2: "other tax"},
			money.Hold:   {1: "what is left of its budget", 2: "what is left of its budget"},
			money.Posted: {1: "part", 2: "gift"},
		}[transfer.Kind][transfer.Job]
		if transfer.Reason != want {
			t.Errorf("%v of job %v: the reason is %q, want %q", transfer.Kind, transfer.Job, transfer.Reason, want)
		}
	}
}
