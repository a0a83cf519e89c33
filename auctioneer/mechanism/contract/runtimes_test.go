package contract

import (
	"strings"
	"testing"

	"github.com/candor-grid/candor/auctioneer/mechanism"
	"github.com/candor-grid/candor/auctioneer/mechanism/deadlineaware"
	marketmsg "github.com/candor-grid/candor/messages/market"
)

// If enough runs of a job's tasks were seen, a task is planned with the robust quantile of the seen run times.
// Otherwise it is planned with the declared length. Explain must say which of the two is used.
func TestPlansWithWhatWasSeen(t *testing.T) {
	samples := []float64{20, 30, 40, 50}
	robust, err := deadlineaware.RobustQuantile(samples, 0.1, deadlineaware.DefaultQuantile)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name string
		seen *mechanism.Runtimes
		want float64
		says string
	}{
		{"nothing", nil, 10, "the declared run time of 10 s, because no run of such tasks was seen"},
		{"too few", &mechanism.Runtimes{Seconds: samples, Divergence: 0.1, Runs: 2}, 10, "the declared run time of 10 s, because only 2 runs"},
		{"enough", &mechanism.Runtimes{Seconds: samples, Divergence: 0.1, Runs: 3}, robust, "from 3 runs of such tasks (the job declares 10 s)"},
		{"none of any use", &mechanism.Runtimes{Runs: 9}, 10, "the declared run time of 10 s"},
	} {
		m, view := market(t, marketmsg.Market{}), grid(1, 0)
		bid := bidOf(1, view.Now, 2)
		bid.Runtimes = c.seen
		job := take(t, quote(t, m, view, bid, 1), bid)
		view.Jobs = []*mechanism.Job{job}
		if got := problem(view).Jobs[0].Demand; got != 2*c.want {
			t.Errorf("%s: two tasks are planned with %v s, want %v", c.name, got, 2*c.want)
		}
		if e := m.Explain(view, job); !strings.Contains(e.Message, c.says) {
			t.Errorf("%s: %q does not say %q", c.name, e.Message, c.says)
		}
	}
}

// If tasks are known to take longer than declared, quotes must have later completion times.
func TestQuotesFollowWhatWasSeen(t *testing.T) {
	m, view := market(t, marketmsg.Market{}), grid(1, 1)
	first := func(seen *mechanism.Runtimes) float64 {
		bid := bidOf(1, view.Now, 3)
		bid.Runtimes = seen
		return quote(t, m, view, bid, 1).Contracts[0].Completion.Sub(view.Now).Seconds()
	}
	if got := first(nil); got != 30 {
		t.Errorf("as declared it is quoted for after %v s, want 30", got)
	}
	if got := first(&mechanism.Runtimes{Seconds: []float64{20, 20, 20}, Runs: 30}); got != 60 {
		t.Errorf("as seen it is quoted for after %v s, want 60", got)
	}
}
