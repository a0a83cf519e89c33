package market

import (
	"math"

	"github.com/candor-grid/candor/auctioneer/book"
	"github.com/candor-grid/candor/auctioneer/mechanism"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/job"
)

// Settlement computes what an ended job owes. Some mechanisms can compute this only some time after the job's end.
type Settlement struct {
	At     messages.Time // when the mechanism can compute the settlement
	market *Market
	job    *mechanism.Job
	end    mechanism.End
	settle *book.Settle
	left   messages.Credits // credits that are left of the hold
	said   bool             // the decision to start the job fixed the charge; the mechanism is not asked
}

// Settlement is called when a job of the book has ended. It removes the job from the market, and returns the job's
// settlement.
func (m *Market) Settlement(now messages.Time, b *book.Book, j *book.Job) *Settlement {
	job, shares := m.Remove(now, j.ID)
	if job == nil { // the job ended before this market saw it
		job = &mechanism.Job{Bid: m.BidOf(j), Started: j.Started}
		job.Pending, job.Running = make([]int, len(m.Config.Classes)), make([]int, len(m.Config.Classes))
	}
	job.Accrued, job.Received = b.Used(j, j.Ended)
	total, _, _ := j.Count()
	c := j.Completion()
	s := &Settlement{market: m, settle: &book.Settle{Job: j.ID}, left: j.Left(), job: job,
		end: mechanism.End{State: j.Outcome, Tasks: total, Done: c.Tasks, Began: j.Began(), At: j.Ended, Completed: c.At, Delivered: c.Delivered}}
	for _, c := range shares {
		s.end.Shares = append(s.end.Shares, mechanism.Share{Allocated: c.Allocated, Received: c.Received})
		s.settle.Shares = append(s.settle.Shares, book.Share{Class: c.Class, Allocated: millionths(c.Allocated), Received: millionths(c.Received), Over: c.Over})
	}
	if s.said = m.manner.Commits && j.Order != nil; s.said {
		s.settle.Charge, s.settle.Reason = settledBefore(j)
		return s
	}
	s.At = j.Ended
	s.putOff(now)
	return s
}

// putOff asks the mechanism when it can compute the settlement, and reports whether that is later than now.
func (s *Settlement) putOff(now messages.Time) bool {
	if s.said {
		return s.At > now
	}
	if d, ok := s.market.mech.(mechanism.Deferred); ok {
		s.At = max(s.At, d.SettleAt(now, s.job, s.end))
	}
	return s.At > now
}

// settledBefore returns what a job owes if its market set the price when it decided to start the job. If the job failed
// because it could not start as promised, it owes nothing.
func settledBefore(j *book.Job) (messages.Credits, string) {
	switch f := j.Fixed; {
	case f == nil:
		return 0, "all payments were made when the market decided about the job, and the job owes nothing more"
	case j.Outcome == job.Failed && j.Started == 0:
		return 0, "the reservation of the job was not honoured"
	default:
		return min(f.Amount, j.Left()), f.Reason
	}
}

// Settle returns the command that records what the job owes.
func (s *Settlement) Settle() *book.Settle {
	if s.said {
		return s.settle
	}
	if q, ok := s.market.mech.(mechanism.Quoter); ok {
		switch kept, known := q.Kept(s.job, s.end); {
		case kept:
			s.settle.Promise = book.KeptPromise
		case known:
			s.settle.Promise = book.BrokenPromise
		}
	}
	for _, p := range s.market.Settle(s.At, s.job, s.end) {
		s.settle.Charge += p.Amount
		s.settle.Reason = p.Reason
	}
	s.settle.Charge = max(0, min(s.settle.Charge, s.left))
	return s.settle
}

// Dues are settlements that must wait: their mechanisms can compute the amounts only at a later time.
type Dues struct{ waiting []*Settlement }

// Settle settles a job if its mechanism can compute the amounts now. Otherwise it keeps the settlement for later and
// returns nil.
func (d *Dues) Settle(now messages.Time, s *Settlement) *book.Settle {
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
		if s.At > now || s.putOff(now) {
			waiting = append(waiting, s)
		} else {
			out = append(out, s.Settle())
		}
	}
	clear(d.waiting[len(waiting):])
	d.waiting = waiting
	return out
}

// Next returns the earliest time of a waiting settlement, or 0 if none waits.
func (d *Dues) Next() (at messages.Time) {
	for _, s := range d.waiting {
		at = messages.Earlier(at, s.At)
	}
	return at
}

func millionths(x float64) int64 { return int64(math.RoundToEven(x * 1e6)) }
