package intake

import (
	"github.com/candor-grid/candor/auctioneer/book"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/job"
	"github.com/candor-grid/candor/messages/market"
)

// The account and the project that pays have bounds on what their tasks may hold at the same time. A job can never
// start if one of its tasks needs more than such a bound. checkBounds returns an error for such a job.
func checkBounds(account messages.Name, spec *job.JobSpec, m *market.Market) error {
	for i := range spec.Stages {
		who := "a task takes"
		if spec.Stages[i].Gang {
			who = "its tasks start together and take"
		}
		need := book.Needs(spec, i)
		for _, owner := range []struct {
			kind, name messages.Name
			bound      market.Bound
		}{
			{"account", account, m.AtOnce.Find(messages.Participant(account), false)},
			{"project", spec.Project, m.AtOnce.Find(spec.Project, true)},
		} {
			if owner.name == "" {
				continue
			}
			for _, d := range []struct {
				needs, most int
				what        string
			}{{need.Slots, owner.bound.Slots, "slots"}, {need.GPUs, owner.bound.GPUs, "GPUs"}, {need.Tasks, owner.bound.Tasks, "tasks"}} {
				if d.most > 0 && d.needs > d.most {
					return messages.Errorf(messages.TooLarge, "stages[%d]: %s %d %s, and %s %s may have %d at once in market %s; ask for less, or use another market", i, who, d.needs, d.what, owner.kind, owner.name, d.most, m.Name)
				}
			}
		}
	}
	return nil
}
