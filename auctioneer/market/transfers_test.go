package market

import (
	"testing"

	"github.com/candor-grid/candor/auctioneer/book"
	"github.com/candor-grid/candor/messages"
)

// TestTheReasonOfAChargeStays: an attempt that ends after its job changes nothing of the
// transfer, which the bank may be asked for again. An attempt that ended before is told.
func TestTheReasonOfAChargeStays(t *testing.T) {
	used := func(ended messages.Time) string {
		j := &book.Job{Ended: 100, Why: "job 1", Spec: &messages.JobSpec{Stages: []messages.Stage{{Name: "s"}}}, Stages: []book.Stage{{Tasks: make([]book.Task, 1)}}}
		if ended > 0 {
			j.Kept = []book.Kept{{Ended: ended, Reason: messages.EndNodeLost, Attempt: 1}}
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
