package mailbox

import (
	"errors"
	"fmt"
	"slices"
	"syscall"
	"time"

	"github.com/hashicorp/raft"
	"go.uber.org/zap"
)

// Close hands leadership over to another replica, and stops; see [Mailbox].
func (m *replicated) Close() error {
	m.closing.Do(func() { m.closed = m.stop() })
	return m.closed
}

// stop first hands leadership over, while everything still runs. So each command in flight is either committed and
// answered, or reported as unknown.
func (m *replicated) stop() error {
	if m.guard.broken.Load() == nil {
		if !m.alone() {
			m.transferOut()
		}
		m.setAside()
	}
	close(m.stopping)
	m.queue.close(ErrClosed)
	halted := m.halt()
	cut := m.transport.Close() // close the transport first, because Raft must not wait for peers that do not answer
	stopped := awaitFor(halted, m.config.limits.stuckAfter) == nil
	close(m.gone)
	m.abandon()
	<-m.collected
	m.rounds.close(ErrClosed)
	m.running.Wait()
	if !stopped || !m.probed() {
		// The files of the log are not closed here, because a goroutine may still write to them. So the log also stays
		// locked.
		return errors.Join(fmt.Errorf("mailbox: the log in %s does not stop; its disk may hang", m.config.Dir), cut)
	}
	return errors.Join(cut, m.release())
}

// alone reports whether all other voters refuse connections, for example because the whole site is stopped. Then no
// other replica can take over. A voter that gives no answer has not refused.
func (m *replicated) alone() bool {
	return !slices.ContainsFunc(m.servers(), func(s raft.Server) bool {
		if s.Suffrage != raft.Voter || string(s.ID) == m.config.ID {
			return false
		}
		c, err := m.stream.Dial(s.Address, m.config.Timeout/2)
		if err == nil {
			_ = c.Close()
		}
		return !errors.Is(err, syscall.ECONNREFUSED) && !errors.Is(err, errNotHere)
	})
}

// probed waits until the probe of the disk has ended. It returns false if the probe takes too long.
func (m *replicated) probed() bool {
	late := time.NewTimer(m.config.limits.stuckAfter)
	defer late.Stop()
	select {
	case <-m.probing:
		return true
	case <-late.C:
		return false
	}
}

// After a planned stop, the next start may have to apply some log entries again. unsavedBytes bounds the size of these
// entries in bytes, so that applying them takes a fraction of a second.
const unsavedBytes = 256 << 10

// setAside writes a snapshot if there are many entries since the last snapshot. Without a new snapshot, the next start
// would apply all these entries again, and a leader could not serve meanwhile. If writing fails, the log still has all
// entries.
func (m *replicated) setAside() {
	if m.applier.stopped.Load() != nil || m.applier.pending.Load() < unsavedBytes {
		return
	}
	if err := awaitFor(m.raft.Snapshot(), m.config.limits.stuckAfter); err != nil {
		m.config.Log.Warn("cannot write a snapshot before the stop: the next start takes longer", zap.Error(err))
	}
}

// release frees the resources that open acquired. Raft must have stopped.
func (m *replicated) release() error {
	var err error
	if m.meters != nil && m.config.Metrics != nil {
		m.config.Metrics.Unregister(m.meters.all)
	}
	if m.gate != nil {
		err = m.gate.Close()
	}
	if m.stream != nil {
		err = errors.Join(err, m.stream.Close())
	}
	if m.stream == nil && m.config.faults.listener != nil {
		err = m.config.faults.listener.Close()
	}
	if m.disk != nil {
		err = errors.Join(err, m.disk.close())
	}
	return err
}

// damaged is called when this replica's state is wrong. If the replica has peers, its next start moves the state aside
// and gets a new state from the peers.
func (m *replicated) damaged(err error) {
	if m.disk.canHeal(m.config) {
		kept := m.disk.promises.change(func(r *record) {
			r.Disk, r.Standing, r.Why, r.Discard = newDisk(), standingDoubtful, err.Error(), true
		})
		err = errors.Join(err, kept)
	}
	m.guard.fail(err)
}

// fail is called when the disk hangs or lost a write, or when an entry cannot be carried out. The replica leaves its
// group, because a leader whose disk hangs would still send heartbeats.
func (m *replicated) fail(err error) {
	<-m.opened
	if m.raft == nil {
		return // OpenRaft has already returned this error
	}
	m.config.Log.Error("this replica of the log cannot go on", zap.Error(err))
	m.config.faults.stuck(err)
	m.queue.close(fmt.Errorf("%w: %w", ErrClosed, err))
	_ = m.stream.Close()
	m.halt()
	m.abandon()
}
