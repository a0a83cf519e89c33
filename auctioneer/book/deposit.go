package book

import (
	"fmt"

	"github.com/candor-grid/candor/messages"
)

// Deposit is what a job's hold has beside its budget.
type Deposit struct {
	Amount messages.Credits
	Kept   bool // its owner took the job back too soon
}

// depositImage is the deposit of a job, in an image.
type depositImage struct {
	Job     messages.JobID
	Deposit Deposit
}

// Left is what is left of a job's budget: of its hold, without the deposit.
func (j *Job) Left() messages.Credits { return j.Held - j.Deposit.Amount - j.Paid }

// forfeit keeps the deposit of a job that its owner cancels, within a window from
// its submission, before any task of it was started.
func (b *Book) forfeit(j *Job, c *Cancel) {
	if c.By == j.Account && j.Started == 0 && b.now.Sub(j.Submitted) < c.Window && j.Deposit.Amount > 0 {
		j.Deposit.Kept = true
	}
}

// owe notes what a job owes: what its market says, and its deposit if that is kept.
func (j *Job) owe(c *Settle) {
	j.Settled, j.Owed, j.Why, j.Shares = true, c.Charge, c.Reason, c.Shares
	if j.Deposit.Kept {
		j.Owed += j.Deposit.Amount
		j.Why = fmt.Sprintf("deposit of %v kept: cancelled by its owner before it was started", j.Deposit.Amount)
		if c.Charge > 0 {
			j.Why += "; " + c.Reason
		}
	}
}

// crowded refuses another job of an account that has as many pending as it may.
func (b *Book) crowded(c *Submit) error {
	if n := b.pending[c.Account]; c.Most > 0 && n >= c.Most {
		return messages.Errorf(messages.Exhausted, "account %s has %d jobs that have not ended, as many as it may; submit again when one has", c.Account, n)
	}
	return nil
}

// Pending is how many jobs of an account have not ended.
func (b *Book) Pending(account messages.Name) int { return b.pending[account] }

// count adds to an account's pending jobs, or takes away.
func (b *Book) count(account messages.Name, change int) {
	if b.pending[account] += change; b.pending[account] == 0 {
		delete(b.pending, account)
	}
}

// recount works out the pending jobs of all accounts.
func (b *Book) recount() {
	for _, j := range b.jobs {
		if !j.State.Final() {
			b.count(j.Account, 1)
		}
	}
}
