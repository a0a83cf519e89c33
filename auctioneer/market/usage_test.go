package market

import (
	"testing"

	"github.com/candor-grid/candor/auctioneer/book"
	"github.com/candor-grid/candor/messages/job"
)

// A task of four slots pays for four slots, and the statement says so.
func TestAChargeTellsTheSlotTimeOfWideTasks(t *testing.T) {
	for width, want := range map[int]string{0: "at the posted price; used 2s of processor time", 4: "at the posted price; used 40s of slot time (a task takes up to 4 slots, and is charged for slots that are kept for it), 2s of processor time"} {
		j := &book.Job{Why: "at the posted price", Spec: &job.JobSpec{Stages: []job.Stage{{Name: "s", Class: "cpu", Width: width}}}, Stages: []book.Stage{{SlotTime: 40e9, CPU: 2e9}}}
		if got := Used(j); got != want {
			t.Errorf("width %d: %q, want %q", width, got, want)
		}
	}
}
