package mechanism

import (
	"fmt"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/spelling"
)

// These are the reasons why a job is in its present state. Several mechanisms use them when they explain a job to its
// owner.
const (
	Running         = "Running"         // some of the job's tasks run
	WaitingForStage = "WaitingForStage" // no task can be claimed before an earlier stage is done
	WaitingForSlots = "WaitingForSlots" // no node that is up has the class that the job waits for
	WaitingForTurn  = "WaitingForTurn"  // other jobs go first
	NextInTurn      = "NextInTurn"      // no other job goes first: the job waits for a free slot
	BudgetSpent     = "BudgetSpent"     // the job's slots have cost its whole budget
)

// Explain makes an explanation. Each sentence in the argument `change` says what would improve the job's place.
func Explain(reason, message string, change ...string) Explanation {
	return Explanation{Reason: reason, Message: message, Change: append([]string{}, change...)}
}

// AtWork says how many tasks of a job run, and how many wait for a slot.
func AtWork(running, pending int) string {
	text := spelling.Number(running, "task runs", "tasks run")
	if pending == 0 {
		return text + ", and no other task of the job can start now"
	}
	return fmt.Sprintf("%s, and %d more can start", text, pending)
}

// ExplainStage explains a job whose tasks all wait for an earlier stage.
func ExplainStage() Explanation {
	return Explain(WaitingForStage, "its tasks wait for the end of an earlier stage", "the end of the earlier stages")
}

// ExplainSlots explains why a job waits: no node that is up has slots of the classes that the job needs. The argument
// has the names of these classes.
func ExplainSlots(classes string) Explanation {
	return Explain(WaitingForSlots, "no node that is up has a slot of "+classes, "a node with slots of "+classes+" that is up")
}

// ExplainBudget explains a job whose slots have cost its whole budget.
func ExplainBudget(job *Job) Explanation {
	return Explain(BudgetSpent, fmt.Sprintf("its slots have cost %s, and its budget is %s", job.Accrued.Words(), job.Budget.Words()), "a larger budget")
}

// Rivals counts the rivals of an account: the other accounts that have jobs. The field Of names this account. All
// accounts of another site count as one rival, because that site could give its users any number of names. If the
// account itself belongs to another site, accounts of the same site are counted only if there is no other rival.
// Together they then count as one.
type Rivals struct {
	Of    messages.Name
	first messages.Name
	found int
	kin   bool
}

// Note says that a job of this owner is in the market. If the owner is a rival that was not counted yet, Note counts
// it.
func (r *Rivals) Note(owner messages.Name) {
	switch who := messages.Participant(owner); {
	case owner == r.Of:
	case who == messages.Participant(r.Of):
		r.kin = true
	case r.found == 0 || who != r.first:
		r.first, r.found = who, min(r.found+1, 2)
	}
}

// Count returns how many rivals were found. It stops counting at two.
func (r *Rivals) Count() int {
	if r.found == 0 && r.kin {
		return 1
	}
	return r.found
}

// OneRival reports whether the jobs of other accounts in a view all belong to one rival. If this is true, a number that
// is computed from the bids of others would disclose this rival's bid. An example is the bid that would be enough for a
// slot.
func OneRival(view *View, job *Job) bool {
	r := Rivals{Of: job.Account}
	for _, other := range view.Jobs {
		r.Note(other.Account)
	}
	return r.Count() == 1
}
