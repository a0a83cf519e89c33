package mailbox

import (
	"errors"
	"slices"
	"time"

	"github.com/hashicorp/raft"
	"go.uber.org/zap"
)

// office is one stretch of leadership of this replica, from its barrier on.
type office struct {
	term    uint64
	barrier uint64        // index of the barrier, applied here
	lost    chan struct{} // closed when leadership is lost
}

// lead follows Raft's word on leadership. Gained is announced when the barrier
// of the term has been applied: all earlier terms' entries are in the state.
func (m *replicated) lead() {
	var current *office // leadership that Raft says is ours
	entered := make(chan *office)
	for {
		select {
		case leads := <-m.raft.LeaderCh():
			m.leave(current)
			current = nil
			if leads {
				current = &office{lost: make(chan struct{})}
				go m.enter(current, entered)
			}
		case o := <-entered:
			if o == current {
				m.standing.leads()
				m.gate.clear()
				m.office.Store(o)
				m.announce(Leadership{Leads: true, Term: o.term})
			}
		case <-m.gone:
			m.leave(current)
			return
		}
	}
}

// leave ends an office, and says so if it had been announced.
func (m *replicated) leave(o *office) {
	if o == nil {
		return
	}
	close(o.lost)
	if m.office.CompareAndSwap(o, nil) {
		m.announce(Leadership{Leads: false, Term: o.term})
	}
}

// announce replaces what the receiver has not taken yet. Only lead calls it.
func (m *replicated) announce(l Leadership) {
	select {
	case <-m.leadership:
	default:
	}
	m.leadership <- l
	m.config.Log.Info("leadership", zap.Bool("leads", l.Leads), zap.Uint64("term", l.Term))
}

// barrierRetry is how long to wait when Raft cannot take a barrier: it is
// handing leadership over, and may keep it after all.
const barrierRetry = 20 * time.Millisecond

// enter applies the barrier of a new office, and tells when it is done.
func (m *replicated) enter(o *office, entered chan<- *office) {
	for !m.tryBarrier(o) {
		select {
		case <-time.After(barrierRetry):
		case <-o.lost:
			return
		}
	}
	select {
	case entered <- o:
	case <-o.lost:
	}
}

// tryBarrier applies a barrier. The term read before and after it is its own
// term, since terms only grow and a replica leads a term at most once.
func (m *replicated) tryBarrier(o *office) bool {
	o.term = m.raft.CurrentTerm()
	f := m.raft.Barrier(0)
	if err := await(f, o.lost); err != nil {
		return false
	}
	if indexed, ok := f.(raft.IndexFuture); ok {
		o.barrier = indexed.Index()
	}
	m.applier.advance(o.barrier)
	return m.raft.State() == raft.Leader && m.raft.CurrentTerm() == o.term
}

// transferOut hands leadership to another replica, if there is one to take it.
// It waits at most two election timeouts.
func (m *replicated) transferOut() {
	if m.raft.State() != raft.Leader || len(m.voters()) == 1 {
		return
	}
	tooLong := make(chan struct{})
	timer := time.AfterFunc(2*m.config.Timeout, func() { close(tooLong) })
	defer timer.Stop()
	if err := await(m.raft.LeadershipTransfer(), tooLong); err != nil && !errors.Is(err, raft.ErrNotLeader) {
		m.config.Log.Warn("leadership was not handed over; the group elects a leader by itself", zap.Error(err))
	}
}

// isMember says whether a replica is of the group, with a vote or without.
func (m *replicated) isMember(id string) bool {
	f := m.raft.GetConfiguration()
	return f.Error() == nil && slices.ContainsFunc(f.Configuration().Servers, func(s raft.Server) bool { return string(s.ID) == id })
}

// voters lists the group's replicas as of the latest configuration.
func (m *replicated) voters() []string {
	f := m.raft.GetConfiguration()
	if f.Error() != nil {
		return nil
	}
	var ids []string
	for _, s := range f.Configuration().Servers {
		if s.Suffrage == raft.Voter {
			ids = append(ids, string(s.ID))
		}
	}
	return ids
}
