package mailbox

import (
	"sync/atomic"
	"time"

	"github.com/hashicorp/raft"
	"go.uber.org/zap"
)

// leadership follows whether this replica leads.
type leadership struct {
	*engine
	applier *applier
	gained  func()                 // called before leadership is announced
	heard   func(term uint64) bool // that this leader has heard of all others, or cannot

	current atomic.Pointer[tenure] // nil unless leading, past the barrier
	changes chan Leadership
}

// tenure is the part of a term in which this replica leads, from its barrier on.
type tenure struct {
	term    uint64
	barrier uint64        // index of the barrier, applied here
	lost    chan struct{} // closed when leadership is lost
}

// Leadership reports changes; see [Mailbox].
func (l *leadership) Leadership() <-chan Leadership { return l.changes }

// leads is 1 while this replica leads.
func (l *leadership) leads() uint64 {
	if l.current.Load() != nil {
		return 1
	}
	return 0
}

// lead follows Raft's word on leadership. Gained is announced when the barrier
// of the term has been applied: all earlier terms' entries are in the state.
func (l *leadership) lead() {
	var begun *tenure // that Raft says is ours
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

// leave ends a tenure, and says so if it had been announced.
func (l *leadership) leave(o *tenure) {
	if o == nil {
		return
	}
	close(o.lost)
	if l.current.CompareAndSwap(o, nil) {
		l.announce(Leadership{Leads: false, Term: o.term})
	}
}

// announce replaces a change that the receiver has not read yet. Only lead calls it.
func (l *leadership) announce(change Leadership) {
	select {
	case <-l.changes:
	default:
	}
	l.changes <- change
	l.config.Log.Info("leadership", zap.Bool("leads", change.Leads), zap.Uint64("term", change.Term))
}

// barrierRetry is how long to wait when Raft cannot take a barrier: it is
// handing leadership over, and may keep it after all.
const barrierRetry = 20 * time.Millisecond

// A new leader serves once each other replica has answered it, or cannot be reached, at the latest
// after mostSilence: one of them may have what was acknowledged and is lost here.
const (
	mostSilence = 300 * time.Millisecond
	heardEvery  = 2 * time.Millisecond
)

// enter applies the barrier of a new tenure, and tells when it is done.
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
	if l.guard.broken.Load() != nil {
		return
	}
	select {
	case entered <- o:
	case <-o.lost:
	}
}

// tryBarrier applies a barrier. The term read before and after it is its own
// term, since terms only grow and a replica leads a term at most once.
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
