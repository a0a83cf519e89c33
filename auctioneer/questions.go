package auctioneer

import (
	"context"
	"sync"

	"github.com/candor-grid/candor/auctioneer/quota"
	"github.com/candor-grid/candor/messages"
)

// questions limits the work for what-if questions: each account has a limited rate of questions (askedRules), and one
// question is computed at a time.
type questions struct {
	mu      sync.Mutex
	buckets quota.Buckets
	one     chan struct{}
}

// askedRules allows bursts, because a user who moves a slider in the console asks several times in a short time.
var askedRules = quota.Rules{PerSecond: 4, Burst: 16}

// Only one question is computed at a time. enter waits until no other question is being computed. It returns an error
// if the account asks too often. When the caller's question has been computed, the caller must call the function
// `leave`.
func (q *questions) enter(ctx context.Context, now messages.Time, account messages.Name) (leave func(), err error) {
	q.mu.Lock()
	ok, again := q.buckets.Take(&askedRules, now, account)
	q.mu.Unlock()
	if !ok {
		return nil, messages.Errorf(messages.Exhausted, "account %s asks about changed bids more than %v times a second; ask again at %v", account, askedRules.PerSecond, again)
	}
	select {
	case q.one <- struct{}{}:
		return func() { <-q.one }, nil
	case <-ctx.Done():
		return nil, messages.Errorf(messages.Unavailable, "the site is still answering other users' questions about changed bids; ask again")
	}
}
