package book

import (
	"cmp"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/job"
)

// The limits below are for the number of quotes that have not expired.
const (
	MaxQuotes        = 10_000
	MaxAccountQuotes = 100
	MaxVisitorQuotes = MaxQuotes / 2  // quotes of all accounts of other sites together
	MaxSiteQuotes    = MaxQuotes / 16 // quotes of all accounts of one other site; the leader enforces this limit
)

// Quote records a menu of contracts that was offered to an account. The command's result is the quote's ID.
type Quote struct {
	ID        uint64 // set by the book
	Account   messages.Name
	Market    messages.Name
	Work      []byte // digest of the work that was quoted
	Contracts []job.Contract
	Expires   messages.Time
	Job       messages.JobID // the job that accepted a contract of the quote, or 0 if none
}

// quotes has all quotes that may still be used.
type quotes struct {
	quoted   map[uint64]*Quote
	expiring sorted[*Quote]        // the quote that expires next is first
	open     map[messages.Name]int // by account: number of quotes that no job has used
	visitors int                   // quotes of users of other sites
	last     uint64
}

func newQuotes() quotes {
	return quotes{quoted: map[uint64]*Quote{}, open: map[messages.Name]int{}, expiring: sorted[*Quote]{compare: func(p, q *Quote) int {
		return cmp.Or(cmp.Compare(p.Expires, q.Expires), cmp.Compare(p.ID, q.ID))
	}}}
}

func (s *quotes) quote(q *Quote, now messages.Time) (uint64, error) {
	for o, ok := s.expiring.first(); ok && o.Expires < now; o, ok = s.expiring.first() {
		s.expiring.remove(o)
		delete(s.quoted, o.ID)
		s.count(o, -1)
	}
	if messages.IsVisitor(q.Account) && s.visitors >= MaxVisitorQuotes {
		return 0, messages.Errorf(messages.Exhausted, "users of other sites have %d valid quotes, the limit; wait until some quotes expire", s.visitors)
	}
	if own := s.open[q.Account]; own >= MaxAccountQuotes || len(s.quoted) >= MaxQuotes {
		return 0, messages.Errorf(messages.Exhausted, "%s has %d valid quotes, and the site has %d, the limit; wait until some quotes expire", q.Account, own, len(s.quoted))
	}
	s.last++
	given := *q
	given.ID, given.Job = s.last, 0
	s.enter(&given)
	return given.ID, nil
}

func (s *quotes) enter(q *Quote) {
	s.quoted[q.ID] = q
	s.expiring.add(q)
	s.count(q, 1)
}

// count adds `change`, 1 or −1, to the counts for a quote.
func (s *quotes) count(q *Quote, change int) {
	if messages.IsVisitor(q.Account) {
		s.visitors += change
	}
	if q.Job == 0 {
		s.countOpen(q, change)
	}
}

func (s *quotes) countOpen(q *Quote, change int) {
	if s.open[q.Account] += change; s.open[q.Account] == 0 {
		delete(s.open, q.Account)
	}
}

func (s *quotes) take(q *Quote, job messages.JobID) {
	s.countOpen(q, -1)
	q.Job = job
}

// find returns a quote, or nil if there is none, or it has expired.
func (s *quotes) find(id uint64, now messages.Time) *Quote {
	if q := s.quoted[id]; q != nil && q.Expires >= now {
		return q
	}
	return nil
}

// accepted returns the quote whose contract a submission accepts. It returns nil if the submission accepts no contract,
// and an error if another job has accepted a contract of the same quote.
func (s *quotes) accepted(account messages.Name, id uint64, now messages.Time) (*Quote, error) {
	if id == 0 {
		return nil, nil
	}
	q := s.find(id, now)
	switch {
	case q == nil || q.Account != account:
		return nil, messages.Errorf(messages.Expired, "contract: its quote has expired; ask for another quote")
	case q.Job != 0:
		return nil, messages.Errorf(messages.Conflict, "contract: job %d has accepted a contract of this quote; ask for another quote", q.Job)
	}
	return q, nil
}
