package auctioneer

import (
	"context"
	"math"
	"slices"
	"time"

	"go.uber.org/zap"

	"github.com/candor-grid/candor/auctioneer/book"
	"github.com/candor-grid/candor/auctioneer/mechanism"
	"github.com/candor-grid/candor/messages"
)

// carry brings the markets up to date with the book and returns what is to be
// settled. The caller holds l.mu.
func (l *leader) carry(now messages.Time, n news) []*book.Settle {
	var out []*book.Settle
	for i := range n.nodes {
		l.slots.set(&n.nodes[i])
	}
	if len(n.nodes) > 0 {
		for i, t := range l.markets {
			slots, idle := l.slots.of(i)
			t.SetSlots(now, slots, idle)
		}
	}
	for i := range n.jobs {
		if s := l.carryJob(now, &n.jobs[i]); s != nil {
			out = append(out, s)
		}
	}
	return append(out, l.due(now)...)
}

func (l *leader) carryJob(now messages.Time, n *jobNews) *book.Settle {
	t := l.market(n.market)
	if n.settle == nil {
		delete(l.settled, n.id)
	}
	l.gather(n)
	switch {
	case n.settle != nil && !l.settled[n.id]:
		l.settled[n.id] = true
		return l.settlement(now, t, n)
	case t == nil || n.blocked:
		return nil
	case n.left:
		t.Remove(now, n.id)
		return nil
	}
	t.Put(now, func() *mechanism.Bid { return bidOf(t, n.job) }, n.id, n.progress)
	return nil
}

func bidOf(t *trading, j *book.Job) *mechanism.Bid {
	return t.Bid(j.ID, j.Account, j.Submitted, j.Spec, j.Contract)
}

// later is a settlement that waits for its time.
type later struct {
	at     messages.Time
	market *trading
	job    *mechanism.Job
	end    mechanism.End
	settle *book.Settle
	left   messages.Credits
}

// settlement asks the mechanism what an ended job owes; nil if it is too early
// to say. A job whose market is no more owes nothing.
func (l *leader) settlement(now messages.Time, t *trading, n *jobNews) *book.Settle {
	s := &book.Settle{Job: n.id}
	if t == nil {
		s.Reason = "its market is closed"
		return s
	}
	job, shares := t.Remove(now, n.id)
	if job == nil { // it ended before this term saw it
		job = &mechanism.Job{Bid: bidOf(t, n.job), Started: n.job.Started}
		job.Pending, job.Running = make([]int, len(t.Config.Classes)), make([]int, len(t.Config.Classes))
	}
	job.Accrued, job.Received = n.settle.cost, n.settle.slotTime
	end := mechanism.End{State: n.settle.outcome, Tasks: n.settle.total, Done: n.settle.done}
	for _, c := range shares {
		end.Shares = append(end.Shares, mechanism.Share{Allocated: c.Allocated, Received: c.Received})
		s.Shares = append(s.Shares, book.Share{Class: c.Class, Allocated: millionths(c.Allocated), Received: millionths(c.Received), Over: c.Over})
	}
	if t.Commits() && n.settle.ordered {
		s.Charge, s.Reason = settledBefore(n)
		return s
	}
	w := later{max(t.SettleAt(job, end), n.settle.ended), t, job, end, s, n.settle.left}
	if w.at > now {
		l.later = append(l.later, w)
		return nil
	}
	w.ask()
	return s
}

// settledBefore is what a job owes whose price was decided with its start. One
// that could not be started as promised owes nothing.
func settledBefore(n *jobNews) (messages.Credits, string) {
	f := n.settle.fixed
	switch {
	case f == nil:
		return 0, "owes nothing more: the payments of its decision were made then"
	case n.settle.outcome == messages.Failed && n.job.Started == 0:
		return 0, "owes nothing: its reservation was not honoured"
	}
	return min(f.Amount, n.settle.left), f.Reason
}

// ask lets the mechanism say what the job owes, as of the settlement's time.
func (w *later) ask() {
	for _, p := range w.market.Settle(w.at, w.job, w.end) {
		w.settle.Charge += p.Amount
		w.settle.Reason = p.Reason
	}
	w.settle.Charge = max(0, min(w.settle.Charge, w.left))
}

// due returns the settlements whose time has come.
func (l *leader) due(now messages.Time) (out []*book.Settle) {
	waiting := l.later[:0]
	for _, w := range l.later {
		if w.at > now {
			waiting = append(waiting, w)
			continue
		}
		w.ask()
		out = append(out, w.settle)
	}
	clear(l.later[len(waiting):])
	l.later = waiting
	return out
}

// soonest is how long until something waits no longer, at most a second.
func (l *leader) soonest(now messages.Time) time.Duration {
	next := time.Second
	for _, w := range l.later {
		next = min(next, max(0, w.at.Sub(now).Std()))
	}
	for g, since := range l.gangs {
		next = min(next, max(0, l.gangEnds(g, since).Sub(now).Std()))
	}
	return next
}

func millionths(x float64) int64 { return int64(math.RoundToEven(x * 1e6)) }

func (l *leader) proposeSettlements(ctx context.Context, settlements []*book.Settle) {
	for _, s := range settlements {
		go func() {
			if _, err := l.propose(ctx, &book.Command{Settle: s}); err != nil && ctx.Err() == nil {
				l.Log.Warn("settlement not committed, deciding again", zap.Stringer("job", s.Job), zap.Error(err))
				l.retrySettlement(s.Job)
			}
		}()
	}
}

// retrySettlement lets the next step settle a job again.
func (l *leader) retrySettlement(id messages.JobID) {
	l.mu.Lock()
	delete(l.settled, id)
	l.mu.Unlock()
	l.replica.mu.Lock()
	l.replica.book.Touch(id)
	l.replica.mu.Unlock()
	l.replica.wake()
}

// slotCount sums the slots of all nodes by market and class.
type slotCount struct {
	markets []marketSlots
	nodes   map[uint32]*nodeNews
}

type marketSlots struct {
	config *messages.Market
	nodes  map[messages.Name]bool // nil: all
	slots  []int                  // by class
	idle   []int
}

func (s *slotCount) init(markets []messages.Market) {
	s.markets, s.nodes = nil, map[uint32]*nodeNews{}
	for i := range markets {
		m := marketSlots{config: &markets[i], slots: make([]int, len(markets[i].Classes)), idle: make([]int, len(markets[i].Classes))}
		if len(markets[i].Nodes) > 0 {
			m.nodes = map[messages.Name]bool{}
			for _, n := range markets[i].Nodes {
				m.nodes[n] = true
			}
		}
		s.markets = append(s.markets, m)
	}
}

// set replaces what was counted for a node.
func (s *slotCount) set(n *nodeNews) {
	if was := s.nodes[n.node]; was != nil {
		s.add(was, -1)
	}
	s.nodes[n.node] = n
	s.add(n, 1)
}

func (s *slotCount) add(n *nodeNews, sign int) {
	for i := range s.markets {
		m := &s.markets[i]
		if m.nodes != nil && !m.nodes[n.name] {
			continue
		}
		for i, c := range n.slots {
			if k := slices.Index(m.config.Classes, c.Class); k >= 0 {
				m.slots[k] += sign * c.Slots
				m.idle[k] += sign * n.idle[i]
			}
		}
	}
}

// of returns the slots of a market's classes, in all and idle.
func (s *slotCount) of(market int) (slots, idle []int) {
	return s.markets[market].slots, s.markets[market].idle
}
