package mailbox

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/hashicorp/raft"
	"go.uber.org/zap"

	"github.com/candor-grid/candor/messages/beat"
)

// replicated is a mailbox over hashicorp/raft.
type replicated struct {
	*engine
	*leadership
	*proposer
	*verifier
	*members
	*levels

	applier   *applier
	disk      *disk
	stream    *stream
	transport *transport
	gate      *gate
	standing  *standing
	yielder   *yielder
	scrubber  *scrubber
	meters    *meters

	closing sync.Once
	closed  error              // result of the first Close
	halt    func() raft.Future // shuts Raft down once
	abandon func()             // sets the outcome of everything in flight to unknown, once
	running sync.WaitGroup
	probing chan struct{} // closed when the probe of the disk has ended
}

// OpenRaft opens a replica's log and joins its group. It restores the machine from the latest snapshot before it
// returns; later entries are applied after that.
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
	e := &engine{config: c, lacks: machine.Weak, check: machine.Check, opened: make(chan struct{}), stopping: make(chan struct{}), gone: make(chan struct{}), unknown: make(chan struct{})}
	m := &replicated{engine: e, applier: newApplier(machine, named), probing: make(chan struct{})}
	m.applier.own = c.limits.level
	m.halt = sync.OnceValue(func() raft.Future { return e.raft.Shutdown() })
	m.abandon = sync.OnceFunc(func() { close(e.unknown) })
	e.guard = newGuard(c, m.fail)
	e.guard.damaged, e.guard.applied, e.guard.stopping = m.damaged, m.applier.index.Load, e.stopping
	m.applier.damaged, m.applier.unable = m.damaged, e.guard.fail
	return m
}

// open opens the replica's directory, begins to listen for the other replicas, and starts Raft. The method release
// closes them again.
func (m *replicated) open() (err error) {
	if m.disk, err = openDisk(m.config, m.guard); err != nil {
		return err
	}
	m.guard.lookAtSpace()
	if m.stream, err = openStream(m.config); err != nil {
		return err
	}
	m.transport = newTransport(m.config, m.stream)
	m.disk.sealed.needed = m.transport.needed
	m.standing = newStanding(m.config, m.disk.promises, m.guard.fail)
	m.standing.settled, m.standing.termAt, m.standing.sumAt = m.disk.sealed.settled, m.disk.sealed.termAt, m.disk.sealed.sumAt
	m.leadership = &leadership{engine: m.engine, applier: m.applier, changes: make(chan Leadership, 1)}
	m.gate = newGate(m.config.faults.between(m.transport))
	m.gate.engine, m.gate.leadership, m.gate.standing, m.gate.applier, m.gate.log = m.engine, m.leadership, m.standing, m.applier, m.disk.sealed
	m.gate.exchange = newExchange(m.stream, m.gate.meets)
	m.yielder = &yielder{engine: m.engine, leadership: m.leadership, standing: m.standing}
	m.leadership.gained = func() {
		m.standing.leads()
		m.gate.catching.Clear()
	}
	m.levels = &levels{engine: m.engine, leadership: m.leadership, standing: m.standing, applier: m.applier}
	m.leadership.heard, m.leadership.agree = m.gate.heardAll, m.levels.begin
	m.verifier = &verifier{engine: m.engine, leadership: m.leadership, transport: m.transport, applier: m.applier, rounds: &rounds{kick: make(chan struct{}, 1)}}
	m.members = &members{engine: m.engine, leadership: m.leadership, transport: m.transport, standing: m.standing, former: &m.applier.former}
	m.scrubber = &scrubber{engine: m.engine, standing: m.standing, disk: m.disk, applied: m.applier.index.Load, damaged: m.damaged}
	if m.meters, err = newMeters(m); err != nil {
		return err
	}
	m.proposer = newProposer(m.engine, m.leadership, m.levels, m.meters.commit, m.yielder.noSpace)
	return m.openRaft()
}

func (m *replicated) openRaft() (err error) {
	settings := raftSettings(m.config)
	if err := m.bootstrap(settings); err != nil {
		return err
	}
	var refused []error // why the machine refused the latest snapshots; the latest first
	m.applier.refused = func(err error) { refused = append(refused, err) }
	// Raft panics if no snapshot can be restored and the log does not begin at entry 1.
	err = safely(func() (err error) {
		m.raft, err = raft.NewRaft(settings, m.applier, m.disk.logs, m.disk.stable, m.disk.snapshots, m.gate)
		return err
	})
	if len(refused) > 0 {
		err = m.passOver(refused, err)
	}
	if err != nil {
		if m.raft != nil {
			_ = m.raft.Shutdown().Error()
			m.raft = nil
		}
		return fmt.Errorf("mailbox: cannot open the log in %s: %w", m.config.Dir, err)
	}
	m.applier.refused = m.refusedSnapshot
	m.gate.start()
	m.stream.member.Store(new(m.isMember))
	m.stream.asked.Store(new(m.gate.exchange.serve))
	return nil
}

// A leader waits until a replica has restored an image. It waits one timeout longer for each patientBytes of the image.
// A bank's replica checks a few thousand signatures a second, and an image has two or three bytes for each of its
// records. If a leader did not wait long enough, it would send the image again for ever.
const patientBytes = 1 << 10

func newTransport(c *Config, s *stream) *transport {
	network := raft.NewNetworkTransportWithConfig(&raft.NetworkTransportConfig{
		Logger: newRaftLog(c.Log), Stream: s, MaxPool: 3,
		// If a peer does not answer, only the goroutine that sends to this peer has to wait. So the timeout can be
		// long: five times c.Timeout is enough for a slow disk.
		Timeout: max(5*c.Timeout, 2*time.Second), MsgpackUseNewTimeFormat: true,
	})
	network.TimeoutScale = patientBytes
	return &transport{NetworkTransport: network, peers: map[raft.ServerID]*sighting{}, images: map[raft.ServerID]sentImage{}}
}

func raftSettings(c *Config) *raft.Config {
	r := raft.DefaultConfig()
	r.LocalID = raft.ServerID(c.ID)
	r.Logger = newRaftLog(c.Log)
	r.HeartbeatTimeout, r.ElectionTimeout, r.LeaderLeaseTimeout = c.Timeout, c.Timeout, c.Timeout
	// Some messages only tell followers how far the log is committed. They are sent at intervals of at most one second.
	// No caller waits for them, because callers do not wait until a follower applies entries. And each such message
	// wakes both processes.
	r.CommitTimeout = min(c.Timeout, time.Second)
	r.SnapshotInterval = snapshotEvery
	r.SnapshotThreshold = snapshotEntries
	r.TrailingLogs = c.TrailingEntries
	r.NoLegacyTelemetry = true
	// BatchApplyCh = false makes Raft's channel for proposals unbuffered. Then Raft answers every entry that it
	// accepts, even while Raft is stopping.
	r.BatchApplyCh = false
	return r
}

// bootstrap starts a new group if there is no state, Bootstrap has IDs, and this replica is not doubtful. In Raft's
// configuration, the IDs of the replicas stand in place of their addresses.
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
	h := &healer{engine: m.engine, leadership: m.leadership, members: m.members, standing: m.standing, gate: m.gate}
	c := &comparer{engine: m.engine, leadership: m.leadership, members: m.members, standing: m.standing, applier: m.applier}
	for _, run := range []func(){m.scrubber.scrub, m.lead, m.verify, m.compact, m.remember, h.heal, c.compare, m.levels.watch, m.yielder.yield, m.gate.tell, func() { m.guard.watch(m.gone) }} {
		m.running.Go(run)
	}
	go func() { // a separate goroutine, because the probe may hang with the disk
		defer close(m.probing)
		m.guard.probe(m.gone)
	}()
}

const (
	snapshotEvery   = 10 * time.Second // time between two checks of the log's growth
	snapshotEntries = 32768            // number of entries in the log after which a snapshot is written
	snapshotSpent   = time.Second      // time to apply the log's entries after which a snapshot is written
	snapshotShare   = 10               // the time to apply the entries must also be this many times the time to write the last snapshot
)

// compact writes a snapshot when the log has grown by SnapshotBytes. It also writes one when the entries since the last
// snapshot took long to apply, because a start would take as long again. Here long means at least snapshotSpent, and at
// least snapshotShare times the time to write the last snapshot. Raft itself writes a snapshot after snapshotEntries
// entries.
func (m *replicated) compact() {
	var took time.Duration // how long the last snapshot took to write
	for {
		select {
		case <-m.gone:
			return
		case <-time.After(beat.Until(snapshotEvery / 10)):
		}
		due := time.Duration(m.applier.spent.Load()) >= max(snapshotSpent, snapshotShare*took)
		if m.applier.pending.Load() < m.config.SnapshotBytes && !due {
			continue
		}
		began := time.Now()
		if err := await(m.raft.Snapshot(), m.gone); err != nil && !errors.Is(err, errGone) {
			m.config.Log.Warn("cannot write a snapshot", zap.Error(err))
		}
		took = time.Since(began)
	}
}

// Status describes the group; see [Mailbox].
func (m *replicated) Status() Status {
	_, leader := m.raft.LeaderWithID()
	return Status{
		ID: m.config.ID, Leader: string(leader), Term: m.raft.CurrentTerm(),
		Applied: m.applier.index.Load(), Entries: m.applier.entries.Load(), Commands: m.applier.commands.Load(),
		Replicas: m.voters(), Committed: m.raft.CommitIndex(),
	}
}

// Some promises, such as the index of the last committed entry, need not be durable at once. remember writes them to
// the file of promises once a second.
func (m *replicated) remember() {
	for {
		select {
		case <-m.gone:
			m.rememberCommitted()
			return
		case <-time.After(beat.Until(rememberEvery)):
		}
		m.rememberCommitted()
		if err := m.guard.write("a write of the record of acknowledged entries", m.disk.promises.flush); err != nil {
			m.config.Log.Error("cannot write the record of acknowledged entries", zap.Error(err))
		}
	}
}

func (m *replicated) rememberCommitted() {
	committed := m.raft.CommitIndex()
	m.disk.promises.learn(func(r *record) bool {
		grown := committed > min(r.Committed, r.Settled)
		r.Committed, r.Settled = max(r.Committed, committed), max(r.Settled, committed)
		return grown
	})
}

const rememberEvery = time.Second
