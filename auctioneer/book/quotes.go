package book

import (
	"cmp"
	"slices"
	"strings"

	"github.com/candor-grid/candor/messages"
)

// Limits on quotes that have not expired.
const (
	MaxQuotes        = 10_000
	MaxAccountQuotes = 100
	MaxVisitorQuotes = MaxQuotes / 2  // of all accounts of other sites together
	MaxSiteQuotes    = MaxQuotes / 16 // of all accounts of one of them, which the leader sees to
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

// quotes are those that may still hold.
type quotes struct {
	quoted []*Quote // ascending IDs
	last   uint64
}

// quote remembers a quote and returns its number.
func (s *quotes) quote(q *Quote, now messages.Time) (uint64, error) {
	s.quoted = slices.DeleteFunc(s.quoted, func(o *Quote) bool { return o.Expires < now })
	own, visitors := 0, 0
	for _, o := range s.quoted {
		if o.Account == q.Account && o.Job == 0 {
			own++
		}
		if messages.IsVisitor(o.Account) {
			visitors++
		}
	}
	if messages.IsVisitor(q.Account) && visitors >= MaxVisitorQuotes {
		return 0, messages.Errorf(messages.Exhausted, "users of other sites have %d valid quotes, the limit; wait until some quotes expire", visitors)
	}
	if own >= MaxAccountQuotes || len(s.quoted) >= MaxQuotes {
		return 0, messages.Errorf(messages.Exhausted, "%s has %d valid quotes, and the site has %d, the limit; wait until some quotes expire", q.Account, own, len(s.quoted))
	}
	s.last++
	given := *q
	given.ID, given.Job = s.last, 0
	s.quoted = append(s.quoted, &given)
	return given.ID, nil
}

// QuotesOf counts the quotes of another site's users that hold still.
func (s *quotes) QuotesOf(home messages.Name, now messages.Time) (n int) {
	for _, q := range s.quoted {
		if _, of, visits := strings.Cut(q.Account, "@"); visits && of == home && q.Expires >= now {
			n++
		}
	}
	return n
}

// find returns a quote, nil if there is none that holds.
func (s *quotes) find(id uint64, now messages.Time) *Quote {
	i, ok := slices.BinarySearchFunc(s.quoted, id, func(q *Quote, id uint64) int { return cmp.Compare(q.ID, id) })
	if !ok || s.quoted[i].Expires < now {
		return nil
	}
	return s.quoted[i]
}

// accepted returns the quote of the contract that a submission names, if no other job
// has accepted a contract of this quote; nil: the submission names no contract.
func (s *quotes) accepted(c *Submit, now messages.Time) (*Quote, error) {
	if c.Quote == 0 {
		return nil, nil
	}
	q := s.find(c.Quote, now)
	switch {
	case q == nil || q.Account != c.Account:
		return nil, messages.Errorf(messages.Expired, "contract: its quote has expired; ask for another quote")
	case q.Job != 0:
		return nil, messages.Errorf(messages.Conflict, "contract: job %d has accepted a contract of this quote; ask for another quote", q.Job)
	}
	return q, nil
}
