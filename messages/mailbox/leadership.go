package mailbox

import (
	"sync/atomic"
	"time"

	"github.com/hashicorp/raft"
	"go.uber.org/zap"
)

type leadership struct {
	*engine
	applier *applier
	gained  func()                 // called when leadership is gained, before the change is announced
	agree   func(o *tenure) bool   // makes the group agree on a level, if it has none; false: leadership was lost
	heard   func(term uint64) bool // reports whether every other replica has answered this leader or cannot be reached

	current atomic.Pointer[tenure] // nil unless this replica leads and its barrier is applied
	changes chan Leadership
}

// tenure is the time in which this replica leads a term. It begins when the replica has applied the term's barrier: a
// log entry after which its state has all entries of earlier terms.
type tenure struct {
	term    uint64
	barrier uint64        // index of the barrier; it is applied here
	lost    chan struct{} // closed when leadership is lost
}

// Leadership returns the channel of changes; see [Mailbox].
func (l *leadership) Leadership() <-chan Leadership { return l.changes }

// leads returns 1 while this replica leads, and 0 otherwise, for a metric.
func (l *leadership) leads() uint64 {
	if l.current.Load() != nil {
		return 1
	}
	return 0
}

// lead follows Raft's leadership. It announces that this replica leads only after the barrier of the term was applied:
// then the state has all entries of earlier terms.
func (l *leadership) lead() {
	var begun *tenure // the tenure that has begun according to Raft
	entered := make(chan *tenure)
	for {
		select {
		case leads := <-l.raft.LeaderCh():
			l.leave(begun)
			begun = nil
			if leads {
				begun = &tenure{lost: make(chan struct{})}
				go l.enter(begun, entered)
			}
		case o := <-entered:
			if o == begun {
				l.gained()
				l.current.Store(o)
				l.announce(Leadership{Leads: true, Term: o.term})
			}
		case <-l.gone:
			l.leave(begun)
			return
		}
	}
}

// leave ends a tenure. It announces the end if it announced the beginning.
func (l *leadership) leave(o *tenure) {
	if o == nil {
		return
	}
	close(o.lost)
	if l.current.CompareAndSwap(o, nil) {
		l.announce(Leadership{Leads: false, Term: o.term})
	}
}

// announce tells the receiver about a change of leadership. If the receiver has not read the previous change yet, the
// new change replaces it. Only lead calls announce.
func (l *leadership) announce(change Leadership) {
	select {
	case <-l.changes:
	default:
	}
	l.changes <- change
	l.config.Log.Info("leadership", zap.Bool("leads", change.Leads), zap.Uint64("term", change.Term))
}

// barrierRetry is the pause before this replica asks Raft again for a barrier. Raft refuses a barrier during a handover
// of the leadership. If the handover fails, this replica still leads and needs the barrier.
const barrierRetry = 20 * time.Millisecond

// A new leader begins to serve when each other replica has answered it or cannot be reached, or after mostSilence. It
// waits, because another replica may have acknowledged entries that this leader lacks.
const (
	mostSilence = 300 * time.Millisecond
	heardEvery  = 2 * time.Millisecond
)

func (l *leadership) enter(o *tenure, entered chan<- *tenure) {
	began := time.Now()
	for !l.tryBarrier(o) {
		select {
		case <-time.After(barrierRetry):
		case <-o.lost:
			return
		}
	}
	for !l.heard(o.term) && time.Since(began) < mostSilence {
		select {
		case <-time.After(heardEvery):
		case <-o.lost:
			return
		}
	}
	if !l.agree(o) || l.guard.broken.Load() != nil {
		return
	}
	select {
	case entered <- o:
	case <-o.lost:
	}
}

// A barrier is an entry that Raft applies after all earlier entries. tryBarrier writes a barrier, and waits until Raft
// has applied it. It returns true only if this replica leads, and if Raft has the same term after the barrier as before
// it. Terms only grow, so the barrier was then written in this term.
func (l *leadership) tryBarrier(o *tenure) bool {
	o.term = l.raft.CurrentTerm()
	f := l.raft.Barrier(0)
	if err := await(f, o.lost); err != nil {
		return false
	}
	if indexed, ok := f.(raft.IndexFuture); ok {
		o.barrier = indexed.Index()
	}
	l.applier.advance(o.barrier)
	return l.raft.State() == raft.Leader && l.raft.CurrentTerm() == o.term
}
