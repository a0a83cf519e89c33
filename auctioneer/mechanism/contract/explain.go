package contract

import (
	"fmt"

	"github.com/candor-grid/candor/auctioneer/mechanism"
	"github.com/candor-grid/candor/auctioneer/mechanism/deadlineaware"
	"github.com/candor-grid/candor/messages"
)

// GivenUp is the reason of a job that comes too late to be worth anything: all others are
// served before.
const GivenUp = "GivenUp"

// Explain says where a job stands, what it was promised and what is planned now.
func (m *Mechanism) Explain(view *mechanism.View, job *mechanism.Job) mechanism.Explanation {
	promised := "it has no contract"
	if c := job.Contract; c != nil {
		promised = fmt.Sprintf("its contract promises completion by %v for %v credits", c.Completion, c.Price)
	}
	s, err := deadlineaware.New(problem(view))
	if err != nil {
		return mechanism.Explain(mechanism.WaitingForTurn, promised+"; "+messages.AsError("", err).Message, "fewer jobs")
	}
	ahead, at := before(view, s, job)
	if at < 0 {
		return mechanism.Explain(mechanism.WaitingForTurn, promised+", and is not among the market's jobs", "submitting it")
	}
	planned := fmt.Sprintf("%s; it is planned to complete by %v; %s", promised, view.Now.Add(seconds(s.Completion[at])), basis(job.Bid))
	switch {
	case total(job.Running) > 0:
		return mechanism.Explain(mechanism.Running, fmt.Sprintf("%d of its tasks run and %d can start; %s", total(job.Running), job.Pending[0], planned))
	case job.Pending[0] == 0:
		return mechanism.Explain(mechanism.WaitingForStage, "none of its tasks can start before an earlier stage is done; "+planned, "the stages it comes after finishing")
	case s.GivenUp[at]:
		return mechanism.Explain(GivenUp, "it cannot complete in time to be worth anything as it is scheduled: all others are served before; "+planned, "others completing early", "more slots")
	case ahead > 0:
		return mechanism.Explain(mechanism.WaitingForTurn, fmt.Sprintf("%d jobs with tasks to start are served before it; %s", ahead, planned), "others completing early", "more slots")
	default:
		return mechanism.Explain(mechanism.NextInTurn, "it is served next; "+planned, "a slot coming free")
	}
}

// before is how many jobs that have tasks to start are served before a job, and
// its position; −1 if the view does not have it.
func before(view *mechanism.View, s *deadlineaware.Schedule, job *mechanism.Job) (ahead, at int) {
	for _, i := range s.Order {
		switch {
		case view.Jobs[i].Job == job.Job:
			return ahead, i
		case view.Jobs[i].Pending[0] > 0:
			ahead++
		}
	}
	return ahead, none
}

// seconds is a span, at most a century.
func seconds(x float64) messages.Duration {
	const century = 100 * 365.25 * 86400
	return messages.Duration(min(x, century) * 1e9)
}
