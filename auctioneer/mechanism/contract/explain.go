package contract

import (
	"fmt"

	"github.com/candor-grid/candor/auctioneer/mechanism"
	"github.com/candor-grid/candor/auctioneer/mechanism/deadlineaware"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/spelling"
)

// GivenUp is the reason of Explain for a job that would complete too late to have any value. All other jobs are served
// before it.
const GivenUp = "GivenUp"

// Explain says what a job was promised, what is planned for it now, and what it waits for.
func (m *Mechanism) Explain(view *mechanism.View, job *mechanism.Job) mechanism.Explanation {
	promised := "the job has no contract"
	if c := job.Contract; c != nil {
		promised = fmt.Sprintf("its contract promises completion by %v for %s", c.Completion, c.Price.Words())
	}
	s, err := deadlineaware.New(problem(view))
	if err != nil {
		return mechanism.Explain(mechanism.WaitingForTurn, promised+"; "+messages.Detail(err), "fewer jobs")
	}
	ahead, at := before(view, s, job)
	if at < 0 {
		return mechanism.Explain(mechanism.WaitingForTurn, promised+", and the market does not have the job", "a new submission")
	}
	planned := fmt.Sprintf("%s; the plan completes the job by %v; %s", promised, view.Now.Add(seconds(s.Completion[at])), basis(job.Bid))
	switch {
	case mechanism.Sum(job.Running) > 0:
		return mechanism.Explain(mechanism.Running, mechanism.AtWork(mechanism.Sum(job.Running), job.Pending[0])+"; "+planned)
	case job.Pending[0] == 0:
		return mechanism.Explain(mechanism.WaitingForStage, "its tasks wait for the end of an earlier stage; "+planned, "the end of the earlier stages")
	case s.GivenUp[at]:
		return mechanism.Explain(GivenUp, "the present schedule serves all other jobs first, and the job would complete too late to have a worth; "+planned, "other jobs that complete early", "more slots")
	case ahead > 0:
		return mechanism.Explain(mechanism.WaitingForTurn, spelling.Number(ahead, "job with waiting tasks is", "jobs with waiting tasks are")+" served before this job; "+planned, "other jobs that complete early", "more slots")
	default:
		return mechanism.Explain(mechanism.NextInTurn, "the job is served next; "+planned, "a free slot")
	}
}

// The function `before` returns how many jobs with tasks to start are served before a job. `at` is the job's position
// in the view, or −1.
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

// seconds converts seconds to a duration of at most a century.
func seconds(x float64) messages.Duration {
	const century = 100 * 365.25 * 86400
	return messages.Duration(min(x, century) * 1e9)
}
