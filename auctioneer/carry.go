package auctioneer

import (
	"context"
	"math"

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
		for _, t := range l.markets {
			slots, idle := l.slots.of(t.Config.Classes)
			t.SetSlots(now, slots, idle)
		}
	}
	for i := range n.jobs {
		if s := l.carryJob(now, &n.jobs[i]); s != nil {
			out = append(out, s)
		}
	}
	return out
}

func (l *leader) carryJob(now messages.Time, n *jobNews) *book.Settle {
	t := l.market(n.market)
	if n.settle == nil {
		delete(l.settled, n.id)
	}
	switch {
	case n.settle != nil && !l.settled[n.id]:
		l.settled[n.id] = true
		return l.settlement(now, t, n)
	case t == nil:
		return nil
	case n.left:
		t.Remove(now, n.id)
		return nil
	}
	bid := func() *mechanism.Bid { return t.Bid(n.id, n.job.Account, n.job.Submitted, n.job.Spec) }
	t.Put(now, bid, n.id, n.started, n.pending, n.running)
	return nil
}

// settlement asks the mechanism what an ended job owes. A job whose market is
// no more owes nothing.
func (l *leader) settlement(now messages.Time, t *trading, n *jobNews) *book.Settle {
	s := &book.Settle{Job: n.id}
	if t == nil {
		s.Reason = "its market is closed"
		return s
	}
	job, shares := t.Remove(now, n.id)
	if job == nil { // it ended before this term saw it
		job = &mechanism.Job{Bid: t.Bid(n.id, n.job.Account, n.job.Submitted, n.job.Spec), Started: n.started}
		job.Pending, job.Running = make([]int, len(t.Config.Classes)), make([]int, len(t.Config.Classes))
	}
	end := mechanism.End{State: n.settle.outcome, Tasks: n.settle.total, Done: n.settle.done}
	for _, c := range shares {
		end.Shares = append(end.Shares, mechanism.Share{Allocated: c.Allocated, Received: c.Received})
		s.Shares = append(s.Shares, book.Share{Class: c.Class, Allocated: millionths(c.Allocated), Received: millionths(c.Received), Over: c.Over})
	}
	for _, p := range t.Settle(now, job, end) {
		s.Charge += p.Amount
		s.Reason = p.Reason
	}
	return s
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

// slotCount sums the slots of all nodes by class.
type slotCount struct {
	classes map[messages.Name]int // position in the sums
	slots   []int
	idle    []int
	nodes   map[uint32]*nodeNews
}

func (s *slotCount) init(markets []messages.Market) {
	s.classes, s.nodes = map[messages.Name]int{}, map[uint32]*nodeNews{}
	for _, m := range markets {
		for _, c := range m.Classes {
			if _, known := s.classes[c]; !known {
				s.classes[c] = len(s.classes)
			}
		}
	}
	s.slots, s.idle = make([]int, len(s.classes)), make([]int, len(s.classes))
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
	for i, c := range n.slots {
		if k, known := s.classes[c.Class]; known {
			s.slots[k] += sign * c.Slots
			s.idle[k] += sign * n.idle[i]
		}
	}
}

// of returns the slots, in all and idle, of some classes.
func (s *slotCount) of(classes []messages.Name) (slots, idle []int) {
	for _, c := range classes {
		slots, idle = append(slots, s.slots[s.classes[c]]), append(idle, s.idle[s.classes[c]])
	}
	return slots, idle
}
