package book

import (
	"slices"
	"strings"

	"github.com/candor-grid/candor/messages"
)

// Limits on quotes that have not expired.
const (
	MaxQuotes        = 10_000
	MaxAccountQuotes = 100
	MaxVisitorQuotes = MaxQuotes / 2 // of all accounts of other sites together
)

// Quote is a menu that was quoted. As a command its result is its ID.
type Quote struct {
	ID        uint64 // given by the book
	Account   messages.Name
	Market    messages.Name
	Work      []byte // digest of what was to be run
	Contracts []messages.Contract
	Expires   messages.Time
	Job       messages.JobID // that took one of them; 0: none
}

func (b *Book) quote(q *Quote) any {
	b.quotes = slices.DeleteFunc(b.quotes, func(o *Quote) bool { return o.Expires < b.now })
	own, visitors := 0, 0
	for _, o := range b.quotes {
		if o.Account == q.Account && o.Job == 0 {
			own++
		}
		if visits(o.Account) {
			visitors++
		}
	}
	if visits(q.Account) && visitors >= MaxVisitorQuotes {
		return messages.Errorf(messages.Exhausted, "users of other sites have %d quotes that hold; wait until some expire", visitors)
	}
	if own >= MaxAccountQuotes || len(b.quotes) >= MaxQuotes {
		return messages.Errorf(messages.Exhausted, "%s has %d quotes that hold, and the site %d; wait until some expire", q.Account, own, len(b.quotes))
	}
	b.lastQuote++
	kept := *q
	kept.ID, kept.Job = b.lastQuote, 0
	b.quotes = append(b.quotes, &kept)
	return kept.ID
}

// visits says whether an account is one of another site.
func visits(account messages.Name) bool { return strings.Contains(account, "@") }

// Quote returns a quote, nil if there is none that holds. It must not be changed.
func (b *Book) Quote(id uint64) *Quote {
	i, ok := slices.BinarySearchFunc(b.quotes, id, func(q *Quote, id uint64) int { return int(int64(q.ID) - int64(id)) })
	if !ok || b.quotes[i].Expires < b.now {
		return nil
	}
	return b.quotes[i]
}

// take gives a quote to a job, if nobody else has it.
func (b *Book) take(c *Submit) (*Quote, error) {
	if c.Quote == 0 {
		return nil, nil
	}
	q := b.Quote(c.Quote)
	switch {
	case q == nil:
		return nil, messages.Errorf(messages.Expired, "contract: its quote does not hold any more; ask for another")
	case q.Account != c.Account:
		return nil, messages.Errorf(messages.PermissionDenied, "contract: it was quoted to another account; ask for a quote of your own")
	case q.Job != 0:
		return nil, messages.Errorf(messages.Conflict, "contract: job %d has taken one of this quote; ask for another", q.Job)
	}
	return q, nil
}
