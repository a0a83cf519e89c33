package mailbox

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/raft"
	"go.uber.org/zap"
)

// replicated is a mailbox over hashicorp/raft.
type replicated struct {
	config    *Config
	applier   *applier
	guard     *guard
	disk      *disk
	stream    *stream
	transport *transport
	gate      *gate
	standing  *standing
	raft      *raft.Raft
	meters    *meters

	queue     *queue
	slots     chan struct{} // a token for each entry in flight
	flights   chan flight
	collected chan struct{} // closed when the last batch has its results

	rounds   *rounds
	verified atomic.Uint64 // rounds run

	office     atomic.Pointer[office] // nil unless leading, past the barrier
	leadership chan Leadership

	closing  sync.Once
	closed   error              // what Close returned first
	halt     func() raft.Future // shuts Raft down once
	opened   chan struct{}      // closed when OpenRaft returns
	stopping chan struct{}      // closed when nothing more is to be proposed
	gone     chan struct{}      // closed when Raft has stopped
	abandon  func()             // makes unknown what is in flight, once
	unknown  chan struct{}      // closed by abandon
	running  sync.WaitGroup
}

// OpenRaft opens a replica's log and joins its group. The machine is restored
// from the latest snapshot before OpenRaft returns, and brought up to date with
// the log after that.
func OpenRaft(c Config, machine Machine) (Mailbox, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	m := newReplicated(c.withDefaults(), machine)
	defer close(m.opened)
	if err := m.open(); err != nil {
		return nil, errors.Join(err, m.release())
	}
	m.start()
	return m, nil
}

func newReplicated(c *Config, machine Machine) *replicated {
	named := c.Log.Named(c.Name + ".log").With(zap.String("replica", c.ID))
	c.Log = named
	m := &replicated{
		config: c, applier: newApplier(machine, named), queue: newQueue(c), rounds: newRounds(),
		slots: make(chan struct{}, c.InFlight), flights: make(chan flight, c.InFlight),
		leadership: make(chan Leadership, 1), collected: make(chan struct{}),
		opened: make(chan struct{}), stopping: make(chan struct{}), gone: make(chan struct{}), unknown: make(chan struct{}),
	}
	m.halt = sync.OnceValue(func() raft.Future { return m.raft.Shutdown() })
	m.abandon = sync.OnceFunc(func() { close(m.unknown) })
	m.guard = newGuard(c, m.fail)
	m.guard.damaged, m.guard.applied = m.damaged, m.applier.index.Load
	m.applier.damaged = m.damaged
	return m
}

// open acquires the disk, the network and Raft; release gives back what it got.
func (m *replicated) open() (err error) {
	if m.disk, err = openDisk(m.config, m.guard); err != nil {
		return err
	}
	m.guard.lookAtSpace()
	if m.stream, err = openStream(m.config); err != nil {
		return err
	}
	m.transport = newTransport(m.config, m.stream)
	m.standing = newStanding(m.config, m.disk.promises, m.guard.fail)
	m.gate = newGate(m, m.transport)
	if m.meters, err = newMeters(m); err != nil {
		return err
	}
	return m.openRaft()
}

func (m *replicated) openRaft() (err error) {
	settings := raftSettings(m.config)
	if err := m.bootstrap(settings); err != nil {
		return err
	}
	// Raft panics where a snapshot does not restore and the log does not go back further.
	err = safely(func() (err error) {
		m.raft, err = raft.NewRaft(settings, m.applier, m.disk.logs, m.disk.stable, m.disk.snapshots, m.gate)
		return err
	})
	if err != nil {
		return fmt.Errorf("mailbox: cannot open the log in %s: %w", m.config.Dir, err)
	}
	m.gate.start()
	m.stream.know(m.isMember)
	return nil
}

func newTransport(c *Config, s *stream) *transport {
	return &transport{
		NetworkTransport: raft.NewNetworkTransportWithConfig(&raft.NetworkTransportConfig{
			Logger: newRaftLog(c.Log), Stream: s, MaxPool: 3,
			// A peer that does not answer blocks the goroutine that waits for it, not
			// the group; five timeouts leave a slow disk its time.
			Timeout: max(5*c.Timeout, 2*time.Second), MsgpackUseNewTimeFormat: true,
		}),
		answers: map[raft.ServerID]answer{}, sights: map[raft.ServerID]sight{},
	}
}

func raftSettings(c *Config) *raft.Config {
	r := raft.DefaultConfig()
	r.LocalID = raft.ServerID(c.ID)
	r.Logger = newRaftLog(c.Log)
	r.HeartbeatTimeout, r.ElectionTimeout, r.LeaderLeaseTimeout = c.Timeout, c.Timeout, c.Timeout
	r.CommitTimeout = min(50*time.Millisecond, c.Timeout/2)
	r.SnapshotInterval = snapshotEvery
	r.SnapshotThreshold = c.SnapshotEntries
	r.TrailingLogs = c.TrailingEntries
	r.NoLegacyTelemetry = true
	// Unbuffered: every entry that Raft accepts, it answers, also when it stops.
	r.BatchApplyCh = false
	return r
}

// bootstrap starts a new group where there is no state and IDs are given.
// Raft's configuration has IDs in place of addresses.
func (m *replicated) bootstrap(settings *raft.Config) error {
	exists, err := raft.HasExistingState(m.disk.logs, m.disk.stable, m.disk.snapshots)
	if err != nil {
		return fmt.Errorf("mailbox: cannot read the log in %s: %w", m.config.Dir, err)
	}
	if exists || len(m.config.Bootstrap) == 0 || m.disk.promises.now().Standing == standingDoubtful {
		return nil
	}
	var group raft.Configuration
	for _, id := range m.config.Bootstrap {
		group.Servers = append(group.Servers, raft.Server{ID: raft.ServerID(id), Address: raft.ServerAddress(id)})
	}
	err = raft.BootstrapCluster(settings, m.disk.logs, m.disk.stable, m.disk.snapshots, m.transport, group)
	if err != nil {
		return fmt.Errorf("mailbox: cannot start a new group in %s: %w", m.config.Dir, err)
	}
	return nil
}

func (m *replicated) start() {
	go m.dispatch()
	go m.collect()
	m.running.Go(m.lead)
	m.running.Go(m.verify)
	m.running.Go(m.compact)
	m.running.Go(m.heal)
	m.running.Go(m.compare)
	m.running.Go(m.remember)
	m.running.Go(func() { m.guard.watch(m.gone) })
	go m.guard.probe(m.gone) // not waited for: it may hang with the disk
}

// snapshotEvery is how often the log's growth is looked at.
const snapshotEvery = 10 * time.Second

// compact snapshots when the log has grown by SnapshotBytes; Raft itself does
// when it has grown by SnapshotEntries.
func (m *replicated) compact() {
	tick := time.NewTicker(snapshotEvery / 10)
	defer tick.Stop()
	for {
		select {
		case <-m.gone:
			return
		case <-tick.C:
		}
		if m.applier.pending.Load() < m.config.SnapshotBytes {
			continue
		}
		if err := await(m.raft.Snapshot(), m.gone); err != nil && !errors.Is(err, errGone) {
			m.config.Log.Warn("cannot write a snapshot", zap.Error(err))
		}
	}
}

// Leadership reports changes; see [Mailbox].
func (m *replicated) Leadership() <-chan Leadership { return m.leadership }

// Status describes the group; see [Mailbox].
func (m *replicated) Status() Status {
	_, leader := m.raft.LeaderWithID()
	return Status{
		ID: m.config.ID, Leader: string(leader), Term: m.raft.CurrentTerm(),
		Applied: m.applier.index.Load(), Entries: m.applier.entries.Load(), Commands: m.applier.commands.Load(),
		Replicas: m.voters(),
	}
}

// orClosed prefers to say that the mailbox is closed, or how its disk failed.
func (m *replicated) orClosed(err error) error {
	if broken := m.guard.broken.Load(); broken != nil {
		return fmt.Errorf("%w: %w", ErrClosed, *broken)
	}
	select {
	case <-m.stopping:
		return ErrClosed
	default:
		return err
	}
}
