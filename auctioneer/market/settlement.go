package market

import (
	"math"

	"github.com/candor-grid/candor/auctioneer/book"
	"github.com/candor-grid/candor/auctioneer/mechanism"
	"github.com/candor-grid/candor/messages"
)

// Ending is a copy of what the book knows of an ended job that is to be settled.
type Ending struct {
	job      *book.Job // its immutable parts only
	outcome  messages.State
	started  messages.Time
	ended    messages.Time
	total    int
	done     int
	cost     messages.Credits
	slotTime messages.Duration
	left     messages.Credits // of the hold
	ordered  bool
	fixed    *book.Fixed
}

// EndingOf copies what the settlement of an ended job rests on.
func EndingOf(b *book.Book, j *book.Job) *Ending {
	total, _, done := j.Count()
	e := &Ending{job: j, outcome: j.Outcome, started: j.Started, ended: j.Ended, total: total, done: done,
		left: j.Left(), ordered: j.Order != nil, fixed: j.Fixed}
	e.cost, e.slotTime = b.Used(j, j.Ended)
	return e
}

// Settlement is what an ended job owes, which the mechanism may be able to say
// only later.
type Settlement struct {
	At     messages.Time // when it can be said
	market *Market
	job    *mechanism.Job
	end    mechanism.End
	settle *book.Settle
	left   messages.Credits
	said   bool // without the mechanism
}

// Settlement takes an ended job out of the market, to be settled.
func (m *Market) Settlement(now messages.Time, e *Ending) *Settlement {
	s := &Settlement{market: m, settle: &book.Settle{Job: e.job.ID}, left: e.left}
	job, shares := m.Remove(now, e.job.ID)
	if job == nil { // it ended before this market saw it
		job = &mechanism.Job{Bid: m.BidOf(e.job), Started: e.started}
		job.Pending, job.Running = make([]int, len(m.Config.Classes)), make([]int, len(m.Config.Classes))
	}
	job.Accrued, job.Received = e.cost, e.slotTime
	s.job, s.end = job, mechanism.End{State: e.outcome, Tasks: e.total, Done: e.done, At: e.ended}
	for _, c := range shares {
		s.end.Shares = append(s.end.Shares, mechanism.Share{Allocated: c.Allocated, Received: c.Received})
		s.settle.Shares = append(s.settle.Shares, book.Share{Class: c.Class, Allocated: millionths(c.Allocated), Received: millionths(c.Received), Over: c.Over})
	}
	if s.said = m.Commits() && e.ordered; s.said {
		s.settle.Charge, s.settle.Reason = e.settledBefore()
		return s
	}
	s.At = max(m.SettleAt(job, s.end), e.ended)
	return s
}

// settledBefore is what a job owes whose price was decided with its start. A job that
// could not be started as promised owes nothing.
func (e *Ending) settledBefore() (messages.Credits, string) {
	switch f := e.fixed; {
	case f == nil:
		return 0, "owes nothing more: the payments of its decision were made then"
	case e.outcome == messages.Failed && e.started == 0:
		return 0, "owes nothing: its reservation was not honoured"
	default:
		return min(f.Amount, e.left), f.Reason
	}
}

// Settle lets the mechanism say what the job owes, as of the settlement's time.
func (s *Settlement) Settle() *book.Settle {
	if s.said {
		return s.settle
	}
	for _, p := range s.market.Settle(s.At, s.job, s.end) {
		s.settle.Charge += p.Amount
		s.settle.Reason = p.Reason
	}
	s.settle.Charge = max(0, min(s.settle.Charge, s.left))
	return s.settle
}

// Dues are settlements that wait for their time.
type Dues struct{ waiting []*Settlement }

// Take settles at once what can be, and lets the rest wait; nil: it waits.
func (d *Dues) Take(now messages.Time, s *Settlement) *book.Settle {
	if s.At > now {
		d.waiting = append(d.waiting, s)
		return nil
	}
	return s.Settle()
}

// Due returns the settlements whose time has come.
func (d *Dues) Due(now messages.Time) (out []*book.Settle) {
	waiting := d.waiting[:0]
	for _, s := range d.waiting {
		if s.At > now {
			waiting = append(waiting, s)
		} else {
			out = append(out, s.Settle())
		}
	}
	clear(d.waiting[len(waiting):])
	d.waiting = waiting
	return out
}

// Next is when the first of them is due; 0: there are none.
func (d *Dues) Next() (at messages.Time) {
	for _, s := range d.waiting {
		if at == 0 || s.At < at {
			at = s.At
		}
	}
	return at
}

func millionths(x float64) int64 { return int64(math.RoundToEven(x * 1e6)) }
