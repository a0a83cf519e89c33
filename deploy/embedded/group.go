package embedded

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"

	"github.com/candor-grid/candor/auctioneer"
	"github.com/candor-grid/candor/auctioneer/archive"
	"github.com/candor-grid/candor/auctioneer/filter"
	"github.com/candor-grid/candor/auctioneer/notify"
	"github.com/candor-grid/candor/bank"
	"github.com/candor-grid/candor/bank/history"
	"github.com/candor-grid/candor/deploy/identity"
	"github.com/candor-grid/candor/deploy/identity/certificate"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/bus"
	"github.com/candor-grid/candor/messages/mailbox"
	"github.com/candor-grid/candor/messages/proof"
)

// segmentBytes is the size of a log segment, in bytes, if all replicas share a disk. Each replica reserves one
// segment in advance.
const segmentBytes = 16 << 20

// localTimeout is how long a replica waits for a message of the leader if all replicas are in this process. These
// replicas stop together, so more frequent heartbeats would gain nothing.
const localTimeout = time.Second

type replicated interface {
	Status() mailbox.Status
	Close() error
}

type kind struct {
	actor string
	start func(ctx context.Context, c *Config, r seat) (replicated, error)
}

type seat struct {
	replica  string
	bus      bus.Bus
	open     func(mailbox.Machine) (mailbox.Mailbox, error)
	dir      string       // directory of the replica's log
	signer   proof.Signer // signs for the site; nil if the site's keys are elsewhere
	keys     bank.Keys    // the site's keys; nil if they are elsewhere
	log      *zap.Logger
	metrics  prometheus.Registerer
	clock    func() messages.Time
	known    func() bool   // reports whether the clock agrees with the clocks of the other hosts
	restored messages.Time // begin of the backup that the replica was restored from; 0: it was not restored
}

var auctioneerKind = kind{
	actor: messages.Auctioneer,
	start: func(ctx context.Context, c *Config, r seat) (replicated, error) {
		_, most := c.memoryOf()
		sender, err := notify.New(c.Site, c.Notify)
		if err != nil {
			return nil, err
		}
		records, err := archive.Open(archive.Config{Dir: filepath.Join(r.dir, archiveDir), Retention: c.Archive.Retention, MostBytes: c.Archive.MiB << 20,
			Log: r.log, Clock: r.clock, Metrics: r.metrics})
		if err != nil {
			return nil, err
		}
		return auctioneer.Start(ctx, auctioneer.Config{
			Archive: records, Past: filepath.Join(r.dir, pastFile), Restored: r.restored, Site: c.Site, Replica: r.replica, Bus: r.bus, Open: r.open,
			Markets: c.Markets, Operators: c.Operators, Lease: c.Lease, RemoteFor: c.RemoteFor, LeastVisit: c.LeastVisit, Limits: c.Limits, MostMemory: most, Licenses: c.Licenses, Slurm: c.Slurm, Filter: filter.New(c.Site, c.SubmitFilter),
			Notify: sender, NotifyRules: c.Notify, Clock: r.clock, ClockKnown: r.known, Log: r.log, Metrics: r.metrics,
		})
	},
}

var bankKind = kind{
	actor: messages.Bank,
	start: func(ctx context.Context, c *Config, r seat) (replicated, error) {
		journal, err := history.Directory(filepath.Join(r.dir, historyDir))
		if err != nil {
			return nil, err
		}
		return bank.Start(ctx, bank.Config{
			Restored: r.restored,
			Site:     c.Site, Replica: r.replica, Replicas: c.replicaIDs(), Bus: r.bus, Open: r.open, History: journal, Signer: r.signer, Keys: r.keys,
			Operators: c.Operators, Services: []messages.Name{messages.ServiceIdentity(messages.Auctioneer)},
			Attempt: peerAttempt, LastBackoff: peerBackoff, LeastVisit: c.LeastVisit, SilentAfter: c.SilentAfter, Opening: c.opening(), AccountsTold: c.MetricsAccounts,
			Clock: r.clock, ClockKnown: r.known, Log: r.log, Metrics: r.metrics,
		})
	},
}

// peerAttempt is how long a bank waits for the answer of a peer's bank. peerBackoff is the longest pause before it asks
// again. Both are short, so that the books of two sites agree within five seconds after a cut.
const (
	peerAttempt = messages.Duration(2 * time.Second)
	peerBackoff = messages.Duration(3 * time.Second)
)

// group has the replicas of one actor that run in this process. On a site of several hosts, a process has one of the
// replicas. On any other site, it has all of them.
type group struct {
	site *share
	kind
	all []string // IDs of every replica of the group
	// hush is the level of the log. When the group stops, the replicas lose their connections to each other, and would
	// log each loss. So the level is raised before the group stops.
	hush  zap.AtomicLevel
	local *mailbox.Local // connects the replicas if all of them are in this process

	mu      sync.Mutex
	running map[string]*running
	boxes   map[string]mailbox.Mailbox // logs of the started replicas, by ID
}

type running struct {
	replicated
	bus     bus.Bus
	metrics *prometheus.Registry
	cancel  context.CancelFunc // stops its goroutines
}

func newGroup(s *share, k kind) *group {
	return &group{site: s, kind: k, all: s.config.replicaIDs(), hush: zap.NewAtomicLevelAt(s.log.Level()),
		local: mailbox.NewLocal(), running: map[string]*running{}, boxes: map[string]mailbox.Mailbox{}}
}

// address returns the Raft address of the actor's replica on a host.
func (g *group) address(h *Host) string {
	if g.actor == messages.Bank {
		return h.Bank
	}
	return h.Auctioneer
}

// localReplicas returns the IDs of the replicas that belong to this process.
func (g *group) localReplicas() []string {
	if g.site.host != nil {
		return []string{g.site.host.Name}
	}
	return g.all
}

func (g *group) startAll() error { return Each(g.localReplicas(), g.start1) }

func (g *group) start1(id string) error {
	g.mu.Lock()
	_, runs := g.running[id]
	g.mu.Unlock()
	if runs {
		return messages.Errorf(messages.Conflict, "%s replica %s: runs already", g.actor, id)
	}
	b, err := g.site.connectAs(identity.Service, messages.ServiceIdentity(g.actor))
	if err != nil {
		return err
	}
	registry := g.site.metrics.add()
	replica, err := g.kind.start(g.site.patience, &g.site.config, seat{
		replica: id, bus: b, open: g.opener(id, registry), dir: g.dir(id), signer: g.site.signer(), keys: g.site.provingKeys(),
		log: g.site.log.Named(g.actor), metrics: labelled(registry, "replica", id), clock: g.site.clock.Now, known: g.site.clock.Known,
		restored: restoredFrom(g.site.config.State),
	})
	if err != nil {
		g.site.metrics.remove(registry)
		return errors.Join(fmt.Errorf("%s replica %s: %w", g.actor, id, err), b.Close())
	}
	ctx, cancel := context.WithCancel(g.site.ctx)
	if err := g.site.tellClock(ctx, b); err != nil {
		g.site.log.Warn("this host does not receive the times of the other hosts' clocks", zap.Error(err))
	}
	g.mu.Lock()
	g.running[id] = &running{replica, b, registry, cancel}
	g.mu.Unlock()
	return nil
}

// opener returns a function that connects a state machine to the group's log.
func (g *group) opener(id string, registry prometheus.Registerer) func(mailbox.Machine) (mailbox.Mailbox, error) {
	c := mailbox.Config{
		ID: id, Name: g.actor, Dir: g.dir(id), Bootstrap: g.founders(id), Log: g.site.log.WithOptions(zap.IncreaseLevel(g.hush)), Metrics: registry,
		SnapshotBytes: g.site.options.snapshotBytes,
	}
	return func(m mailbox.Machine) (mailbox.Mailbox, error) {
		if err := g.connect(&c); err != nil {
			return nil, err
		}
		box, err := mailbox.OpenRaft(c, m)
		if err == nil {
			g.mu.Lock()
			g.boxes[id] = box
			g.mu.Unlock()
		}
		return box, err
	}
}

// connect sets how a replica reaches the other replicas. Replicas in one process are connected in memory. Otherwise
// they use the configured addresses, and each shows a certificate.
func (g *group) connect(c *mailbox.Config) (err error) {
	if g.site.host == nil {
		c.Local, c.SegmentBytes, c.Timeout = g.local, segmentBytes, localTimeout
		return nil
	}
	c.Listen, c.Resolve = g.address(g.site.host), g.resolve
	c.Group = certificate.Group(g.actor, g.site.config.Site)
	c.TLS, err = g.site.replicaTLS(g.actor)
	return err
}

// founders returns the IDs of the replicas that found the group: none if this replica joins an existing group.
func (g *group) founders(id string) []string {
	all := slices.DeleteFunc(slices.Clone(g.all), func(id string) bool {
		h := g.site.config.host(id)
		return h != nil && h.Joins
	})
	if !slices.Contains(all, id) {
		return nil
	}
	return all
}

// historyDir is the directory for the journal of a replica of the bank. It is next to the replica's log.
const historyDir = "history"

// archiveDir has the records of ended jobs, next to the log of an auctioneer's replica.
const archiveDir = "archive"

// pastFile has the histories of markets and nodes, next to the log of an auctioneer's replica.
const pastFile = "past"

func (g *group) dir(id string) string { return filepath.Join(g.site.config.State, g.actor, id) }

// signer signs in the site's name. It is nil if the site's keys are not on this host.
func (s *share) signer() proof.Signer {
	if s.authority == nil {
		return nil
	}
	return s.authority
}

// provingKeys returns the keys with which the bank checks who sent a request. It is nil if the keys are not on this
// host.
func (s *share) provingKeys() bank.Keys {
	if s.authority == nil {
		return nil
	}
	if s.options.Only != nil {
		return reread{s.authority}
	}
	return s.authority
}

// reread reads the site's keys at each use. It is for processes in which no server of the site runs, because only a
// server watches the keys for changes.
type reread struct{ *identity.Authority }

// RoleKeys implements [bank.Keys]. If it cannot read the keys, it returns the keys that it read last.
func (r reread) RoleKeys() []messages.RoleKey {
	if changed, err := r.Changed(); err == nil && changed {
		_ = r.Reload()
	}
	return r.Authority.RoleKeys()
}

// resolve returns the current address of another host's replica.
func (g *group) resolve(id string) (string, error) {
	if h := g.site.config.host(id); h != nil {
		return g.address(h), nil
	}
	return "", fmt.Errorf("%s replica %s: has no address", g.actor, id)
}

func (g *group) stop1(id string) error {
	g.mu.Lock()
	r, ok := g.running[id]
	delete(g.running, id)
	g.mu.Unlock()
	if !ok {
		return messages.Errorf(messages.NotFound, "%s replica %s: does not run here", g.actor, id)
	}
	r.cancel()
	err := errors.Join(r.Close(), r.bus.Close())
	g.site.metrics.remove(r.metrics)
	return err
}

// stopAll stops the followers before the leader. Otherwise a follower could become the leader just before it stops.
func (g *group) stopAll() error {
	g.hush.SetLevel(zap.ErrorLevel)
	var failed []error
	leader := g.leader()
	ids := g.ids()
	if i := slices.Index(ids, leader); i >= 0 {
		ids = append(slices.Delete(ids, i, i+1), leader)
	}
	for _, id := range ids {
		failed = append(failed, g.stop1(id))
	}
	return errors.Join(failed...)
}

func (g *group) ids() []string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.Sorted(maps.Keys(g.running))
}

// leader returns the ID of the leader, as a replica in this process knows it; "" if none knows it.
func (g *group) leader() string {
	for _, s := range g.statuses() {
		if s.Leader != "" {
			return s.Leader
		}
	}
	return ""
}

// statuses has one entry for each running replica of this process.
func (g *group) statuses() []mailbox.Status {
	g.mu.Lock()
	defer g.mu.Unlock()
	var all []mailbox.Status
	for _, id := range slices.Sorted(maps.Keys(g.running)) {
		all = append(all, g.running[id].Status())
	}
	return all
}
