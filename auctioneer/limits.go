package auctioneer

import (
	"context"
	"sync"

	"github.com/candor-grid/candor/auctioneer/book"
	"github.com/candor-grid/candor/auctioneer/quota"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/clearing"
)

// gate enforces the site's limits on accounts. It stays when this replica's term as leader ends, so the limits hold
// over several terms.
type gate struct {
	rules   quota.Rules
	metrics *metrics

	mu       sync.Mutex
	buckets  quota.Buckets
	entering map[messages.Name]map[string]int // by account and key: number of submissions under way
	quotes   map[messages.Name]chan struct{}  // by other site: quotes that are being made
}

// All users of another site share these limits on requests: a number of requests each second, and a burst. A quote
// takes as much work as dozens of other requests. A submission takes as much work as several other requests.
var (
	quotePace  = quota.Rules{PerSecond: 25, Burst: 25}
	submitPace = quota.Rules{PerSecond: 50, Burst: 500}
	askPace    = quota.Rules{PerSecond: 200, Burst: 2000}
)

// quotesAtOnce is how many quotes are made for one other site at the same time. Further quotes wait, so that the
// processors are free for the site's own users.
const quotesAtOnce = 2

// paced lets a request of another site through, or returns an error that says when to ask again.
func (g *gate) paced(now messages.Time, home messages.Name, verb string) error {
	rules, of := &askPace, home+"//" // no account can have this name
	switch verb {
	case clearing.VerbPeerQuote:
		rules, of = &quotePace, home+"/"+verb
	case clearing.VerbPeerSubmit:
		rules, of = &submitPace, home+"/"+verb
	}
	g.mu.Lock()
	ok, again := g.buckets.Take(rules, now, of)
	g.mu.Unlock()
	if ok {
		return nil
	}
	g.metrics.limited.WithLabelValues("site").Inc()
	return messages.Errorf(messages.Unavailable, "site %s sends more than %v requests of this kind a second; ask again at %v", home, rules.PerSecond, again)
}

// quoting waits until a quote may be made for another site. The caller calls done after the quote.
func (g *gate) quoting(ctx context.Context, home messages.Name) (done func(), err error) {
	g.mu.Lock()
	if g.quotes == nil {
		g.quotes = map[messages.Name]chan struct{}{}
	}
	turns := g.quotes[home]
	if turns == nil {
		turns = make(chan struct{}, quotesAtOnce)
		g.quotes[home] = turns
	}
	g.mu.Unlock()
	select {
	case turns <- struct{}{}:
		return func() { <-turns }, nil
	case <-ctx.Done():
		return nil, messages.Errorf(messages.Unavailable, "%d quotes are being made for site %s, which is the limit; ask again", quotesAtOnce, home)
	}
}

// enter counts a submission of an account as being handled, until the caller calls leave. It returns the number of the
// account's active jobs, plus the number of its other submissions that are being handled. A submission that has just
// become a job in the book may be counted twice. enter corrects this only if the sum would otherwise reach `most`. If
// `most` is 0, there is no limit.
func (g *gate) enter(b *book.Book, account messages.Name, key string, most int) (pending int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.entering == nil {
		g.entering = map[messages.Name]map[string]int{}
	}
	if g.entering[account] == nil {
		g.entering[account] = map[string]int{}
	}
	g.entering[account][key]++
	pending = b.Pending(account)
	if all := pending + len(g.entering[account]) - 1; most == 0 || all < most {
		return all
	}
	for other := range g.entering[account] {
		if other != key && b.Entered(account, other) == nil {
			pending++
		}
	}
	return pending
}

func (g *gate) underWay(account messages.Name, key string) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.entering[account][key] > 0
}

func (g *gate) leave(account messages.Name, key string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	of := g.entering[account]
	if of[key]--; of[key] <= 0 {
		delete(of, key)
	}
	if len(of) == 0 {
		delete(g.entering, account)
	}
}

// pass lets one submission of an account through, or returns an error that says when to try again.
func (g *gate) pass(now messages.Time, account string) error {
	g.mu.Lock()
	ok, again := g.buckets.Take(&g.rules, now, account)
	g.mu.Unlock()
	if ok {
		return nil
	}
	g.metrics.limited.WithLabelValues("rate").Inc()
	return messages.Errorf(messages.Exhausted, "account %s submits faster than its limit of %v jobs a second; submit again at %v", account, g.rules.PerSecond, again)
}
