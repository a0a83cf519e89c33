package mechanism

import (
	"fmt"

	"github.com/candor-grid/candor/messages/spelling"
)

// The reasons of explanations that several mechanisms give.
const (
	Running         = "Running"         // some of the job's tasks run
	WaitingForStage = "WaitingForStage" // no task can be claimed before an earlier stage is done
	WaitingForSlots = "WaitingForSlots" // no node that is up has the class that the job waits for
	WaitingForTurn  = "WaitingForTurn"  // other jobs go first
	NextInTurn      = "NextInTurn"      // no other job goes first: the job waits for a slot
	BudgetSpent     = "BudgetSpent"     // the job's slots have cost its budget
)

// Explain makes an explanation; each sentence of change says what would change
// the job's place.
func Explain(reason, message string, change ...string) Explanation {
	return Explanation{Reason: reason, Message: message, Change: append([]string{}, change...)}
}

// AtWork says of a job how many of its tasks run, and how many others could.
func AtWork(running, pending int) string {
	text := spelling.Number(running, "task runs", "tasks run")
	if pending == 0 {
		return text + ", and no other task of the job can start now"
	}
	return fmt.Sprintf("%s, and %d more can start", text, pending)
}

// ExplainStage explains a job of which no task can start before an earlier stage is done.
func ExplainStage() Explanation {
	return Explain(WaitingForStage, "its tasks wait for the end of an earlier stage", "the end of the earlier stages")
}

// ExplainSlots explains a job whose classes, as named, no node that is up has.
func ExplainSlots(classes string) Explanation {
	return Explain(WaitingForSlots, "no node that is up has a slot of "+classes, "a node with slots of "+classes+" that is up")
}

// ExplainBudget explains a job whose slots have cost its budget.
func ExplainBudget(job *Job) Explanation {
	return Explain(BudgetSpent, fmt.Sprintf("its slots have cost %s, and its budget is %s", job.Accrued.Words(), job.Budget.Words()), "a larger budget")
}

// OneRival says whether all jobs of others in a view are one account's: what is made of
// the bids of others, such as a bid that would be enough, tells that account's bid then.
func OneRival(view *View, job *Job) bool {
	var rival *Job
	for _, other := range view.Jobs {
		switch {
		case other.Account == job.Account:
		case rival == nil:
			rival = other
		case other.Account != rival.Account:
			return false
		}
	}
	return rival != nil
}
