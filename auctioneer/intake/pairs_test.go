package intake_test

import (
	"strings"
	"testing"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/job"
	"github.com/candor-grid/candor/messages/market"
)

// A market that promises times refuses a job whose tasks wait for tasks of another array.
func TestWhereTimesArePromisedNoTaskWaitsForAnother(t *testing.T) {
	for mechanism, refused := range map[messages.Name]bool{market.FIFO: false, "reservation": true, "deadline": true} {
		r, b := shaped(t, mechanism)
		q := request("k")
		stage := &q.Spec.Stages[0]
		stage.Tasks, stage.Array = 0, job.Array{{First: 0, Last: 1, Step: 1}}
		q.Spec.AfterEach = 7
		s, err := r.Prepare("alice", q)
		if err == nil {
			_, err = r.Known(b, s)
		}
		if got := strings.Contains(messages.Detail(err), "after_each: market share"); got != refused || err == nil {
			t.Errorf("%s: %v", mechanism, err)
		}
	}
}
