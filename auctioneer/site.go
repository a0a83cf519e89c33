package auctioneer

import (
	"context"
	"slices"
	"sync/atomic"
	"time"

	"github.com/candor-grid/candor/auctioneer/book"
	"github.com/candor-grid/candor/auctioneer/desk"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/mailbox"
)

// site is what the parts of a replica share: the configuration, the book and the log of commands. It remains when a
// term as leader ends.
type site struct {
	Config
	replica   *replica
	box       mailbox.Mailbox
	metrics   *metrics
	gate      *gate
	began     time.Time
	histories histories
	pastFile  pastFile
	questions questions
	endings   endings
	steps     underway
	proxied   underway // requests of tasks that are not answered yet
	paced     underway // requests of tasks that are carried out, or whose answers are ahead of the pace
	// leadingDesk gives access to the desk while this replica leads, or is nil.
	leadingDesk atomic.Pointer[func(func(*desk.Desk))]
}

func (a *site) propose(ctx context.Context, c *book.Command) (any, error) {
	c.Stamp(a.replica.time.Stamp())
	data, err := c.Encode()
	if err != nil {
		return nil, err
	}
	return outcome(a.box.Propose(ctx, data))
}

func outcome(result any, err error) (any, error) {
	if err != nil {
		return nil, mailbox.Wire(messages.Auctioneer, err)
	}
	if err, ok := result.(error); ok {
		return nil, err
	}
	return result, nil
}

// proposeInOrder commits commands, which are applied in order, and returns the result of each.
func proposeInOrder[Result any](ctx context.Context, a *site, commands []*book.Command) ([]Result, []error) {
	out, errs := make([]Result, len(commands)), make([]error, len(commands))
	var data [][]byte
	var places []int
	now, leap, carried := a.replica.time.Stamp()
	for k, c := range commands {
		c.Stamp(now, leap, carried)
		d, err := c.Encode()
		if errs[k] = err; err == nil {
			data, places = append(data, d), append(places, k)
		}
	}
	results, failed := a.box.ProposeInOrder(ctx, data)
	for i, k := range places {
		var came any
		if came, errs[k] = outcome(results[i], failed[i]); errs[k] == nil {
			out[k], _ = came.(Result) // some commands have no result
		}
	}
	return out, errs
}

func propose[Result any](ctx context.Context, a *site, c *book.Command) (result Result, err error) {
	came, err := a.propose(ctx, c)
	if err != nil {
		return result, err
	}
	return came.(Result), nil
}

// The method decided waits for all earlier proposals of this replica. It returns when each of them was applied, or can
// no longer be appended in the present term.
func (a *site) decided(ctx context.Context) error {
	if err := a.box.Decided(ctx); err != nil {
		return mailbox.Wire(messages.Auctioneer, err)
	}
	return nil
}

// verify confirms that this replica has the state on which the group agreed.
func (a *site) verify(ctx context.Context) error {
	if err := a.box.Verify(ctx); err != nil {
		return mailbox.Wire(messages.Auctioneer, err)
	}
	return nil
}

// look calls f with the book, after confirming that this replica still leads.
func (l *site) look(ctx context.Context, f func(*book.Book) error) (err error) {
	if err := l.verify(ctx); err != nil {
		return err
	}
	l.replica.read(func(b *book.Book) { err = f(b) })
	return err
}

func (a *site) operates(account messages.Name) bool {
	return slices.Contains(a.Operators, account)
}

// instant returns the present time on the wall clock and on a monotonic clock. The monotonic clock counts from the
// start of this replica.
func (a *site) instant() desk.Instant {
	wall, leap, _ := a.replica.time.Stamp()
	return desk.Instant{Wall: wall, Leap: leap, Mono: messages.Duration(time.Since(a.began))}
}

// inTerm returns an error if the term in which a request arrived has ended, even if this replica leads again. Another
// leader may have answered the same request in between.
func (a *site) inTerm(term uint64) error {
	if a.box.Status().Term != term {
		return messages.Errorf(messages.NotLeader, "another leader takes over; ask again")
	}
	return nil
}

func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}

// patiently returns a context for a proposal that may wait for other proposals. Then several proposals can share one
// log entry. The wait is at most the proposal's Patience.
func patiently(ctx context.Context, p desk.Proposal) context.Context {
	if p.Patience == 0 {
		return ctx
	}
	return mailbox.Patiently(ctx, p.Patience.Std())
}
