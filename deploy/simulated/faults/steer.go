package faults

import (
	"fmt"
	"strings"

	"github.com/candor-grid/candor/auctioneer/book"
	"github.com/candor-grid/candor/auctioneer/market"
	"github.com/candor-grid/candor/messages"
)

// steer has a user steer a job that has not ended: put the job on hold and release it,
// raise its budget, have its tasks run again, or cancel some of them.
func (u *user) steer() {
	if u.peer != nil {
		return
	}
	switch u.does {
	case 1:
		u.park(false)
		for k := range 3 { // a word of the hold may still be on its way
			u.queue.Push(u.now.Add(messages.Duration(4+20*k)*second), func() { u.park(true) })
		}
	case 2:
		u.raise()
	case 3:
		u.word(&book.Command{Requeue: &book.Requeue{Job: u.job}})
	case 0:
		last := int64(u.spec.Stages[0].Tasks - 1)
		u.word(&book.Command{CancelTasks: &book.CancelTasks{Job: u.job, By: u.name, Tasks: messages.Array{{First: last, Last: last, Step: 1}}}})
	}
}

func (u *user) park(release bool) {
	u.word(&book.Command{Park: &book.Park{Job: u.job, By: u.name, Release: release}})
}

// raise raises a budget, where bids may be raised. Each user can pay three times as much.
func (u *user) raise() {
	if market.MannerOf(u.site.market.Mechanism).Raises.Budget {
		u.word(&book.Command{Change: &book.Change{Job: u.job, Key: u.key, Budget: u.spec.Budget + messages.Credit}})
	}
}

// word has a leader propose a command, until somebody answers.
func (u *user) word(c *book.Command) {
	u.call(u.clients, u.books, never, func(r *replica, answer func(any)) {
		own := *c
		r.shell.(*leader).propose(&own, answer)
	}, func(any) {})
}

// short is a planted bug: less is held than the raised budget.
func (l *leader) short(list []messages.Transfer) {
	if t := &list[len(list)-1]; l.Bug == RaiseShort && strings.HasPrefix(t.Reason, "raised budget") {
		t.Amount--
	}
}

// secured says which job that has not ended has another hold at the bank than its budget.
// While a raise waits for the bank, and where jobs pay one another, the two differ.
func (s *site) secured() error {
	if !market.MannerOf(s.market.Mechanism).Raises.Budget {
		return nil
	}
	for _, j := range jobs(s.books.reference.(*bookState).Book) {
		if !j.Active() || j.Visit != nil || j.Raise.Pending() {
			continue
		}
		h, known := s.tally.holds[j.HoldID()]
		if !known || s.tally.resolved[j.HoldID()] || h.Amount != j.Spec.Budget || j.Held != j.Spec.Budget {
			return fmt.Errorf("invariant 1: job %d has a budget of %v, and the bank holds %v of it (resolved: %v)", j.ID, j.Spec.Budget, h.Amount, s.tally.resolved[j.HoldID()])
		}
	}
	return nil
}
