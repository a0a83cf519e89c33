//go:build browser

package browser

import (
	"testing"
	"time"

	"github.com/candor-grid/candor/messages"
)

func TestSubmittedJobAppears(t *testing.T) {
	s := start(t, nil)
	w := browse(t)
	w.connect(s, "alice")
	w.shows("Nobody bids here now")
	began := time.Now()
	s.submit("alice", "flights", "sleep 60", func(j *messages.JobSpec) { j.Stages[0].Tasks = 9 })
	w.shows("flights")
	if took := time.Since(began); took > 2*time.Second {
		t.Errorf("the job appeared after %v", took)
	}
	w.fine()
}
