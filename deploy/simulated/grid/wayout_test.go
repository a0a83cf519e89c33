package grid

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/candor-grid/candor/deploy/simulated/core"
	"github.com/candor-grid/candor/deploy/simulated/network"
	"github.com/candor-grid/candor/deploy/simulated/rules"
	"github.com/candor-grid/candor/messages/job"
	"github.com/candor-grid/candor/messages/market"
)

// In every market, a job must not pay less if it fails or is cancelled when its owner has the results. The control
// shows that the test can fail: without the rule about completion (Config.Forgetful), jobs must pay less in markets
// that are settled on completion.
func TestNoWayOut(t *testing.T) {
	control := false // whether a job paid less without the rule
	for _, settle := range []string{"", market.SettleOnCompletion} {
		for _, mechanism := range rules.Mechanisms() {
			switch mechanism {
			case rules.Proportional, rules.Deadline:
			default:
				if settle != "" {
					continue
				}
			}
			t.Run(mechanism+settle, func(t *testing.T) {
				rapid.Check(t, func(t *rapid.T) {
					p := study(t, mechanism)
					p.Market.Settle, p.Record = settle, false
					i := rapid.IntRange(0, len(p.Work.Jobs)-1).Draw(t, "who")
					p.Work.Jobs[i].Runtime += 10 // a task that fails at once may have failed because of its node
					state := rapid.SampledFrom([]job.State{job.Failed, job.Cancelled}).Draw(t, "end")
					c := Config{Network: network.Config{Delay: ms / 10}}
					well := run(t, p, c)
					c.Owners = map[int]*Owner{i: {Exits: 1, Attempts: 1}}
					if state == job.Cancelled {
						c.Owners[i] = &Owner{Acts: []Act{{Do: Cancel, When: Printed}}}
					}
					// A job that is cancelled may pay a little less. Its cancellation may arrive up to a tenth of a
					// second before the report that the task has ended, and the task runs for at least ten seconds.
					tolerance := 0.01 + 0.001*well.Jobs[i].Paid.Float()
					if mechanism == rules.Proportional {
						tolerance += 0.02 * p.Bids[i].Budget
					}
					less := func(other *core.Outcome) bool {
						return well.Jobs[i].Fate == core.Completed && other.Jobs[i].Paid.Float() < well.Jobs[i].Paid.Float()-tolerance
					}
					if other := run(t, p, c); less(other) {
						t.Fatalf("job %d is %v and pays %v, completed it pays %v", i, state, other.Jobs[i].Paid, well.Jobs[i].Paid)
					}
					if c.Forgetful = true; mechanism == rules.Proportional && settle != "" && !control {
						control = less(run(t, p, c))
					}
				})
			})
		}
	}
	if !control { // prices of deadline are mostly 0 in small studies
		t.Error("proportional with settle: on-completion: without the rule nobody pays less by failing, so that this test has no power")
	}
}

func run(t *rapid.T, p *core.Problem, c Config) *core.Outcome {
	o, _, err := Run(p, c)
	if err != nil {
		t.Fatal(err)
	}
	return o
}
