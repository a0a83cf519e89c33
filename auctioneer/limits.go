package auctioneer

import (
	"sync"

	"github.com/candor-grid/candor/auctioneer/book"
	"github.com/candor-grid/candor/auctioneer/quota"
	"github.com/candor-grid/candor/messages"
)

// gate holds accounts to the site's limits. It is the replica's, of all terms in
// which it leads.
type gate struct {
	rules   quota.Rules
	metrics *metrics

	mu      sync.Mutex
	buckets quota.Buckets
}

// pass lets one submission of an account through, or says when to try again.
func (g *gate) pass(now messages.Time, account string) error {
	g.mu.Lock()
	ok, again := g.buckets.Take(&g.rules, now, account)
	g.mu.Unlock()
	if ok {
		return nil
	}
	g.metrics.limited.WithLabelValues("rate").Inc()
	return messages.Errorf(messages.Exhausted, "account %s submits faster than the %v a second that it may; submit again at %v", account, g.rules.PerSecond, again)
}

// within holds a new submission to the limits, before anything is done for it. The
// number of pending jobs is checked again as it enters the book.
func (l *leader) within(s *submission) error {
	account := s.account
	if s.visit != nil {
		account = s.visit.Home + "/" + account // not the one of that name here
	}
	if !s.counted {
		if err := l.gate.pass(l.Clock(), account); err != nil {
			return err
		}
	}
	most, pending := l.Limits.PendingJobs, 0
	l.replica.read(func(b *book.Book) { pending = b.Pending(s.account) })
	if most > 0 && pending >= most {
		l.metrics.limited.WithLabelValues("pending").Inc()
		return messages.Errorf(messages.Exhausted, "account %s has %d jobs that have not ended, as many as it may; submit again when one has", s.account, pending)
	}
	return nil
}

// deposit is what is held beside the budget. Jobs of other sites are paid for by
// what their home site authorised, and have none.
func (l *leader) deposit(s *submission) messages.Credits {
	if s.visit != nil {
		return 0
	}
	return l.Limits.Deposit
}
