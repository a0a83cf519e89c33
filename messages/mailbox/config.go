package mailbox

import (
	"cmp"
	"crypto/tls"
	"fmt"
	"net"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/raft"
	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"

	"github.com/candor-grid/candor/messages"
)

// Config configures a replica's log. ID, Dir and an address to listen on are required. Other fields may be zero; their
// comments give the default.
type Config struct {
	// ID is the replica's name in its group. It is unique and never changes.
	ID string
	// Name is the actor's name in metrics and logs; default "mailbox".
	Name string
	// Dir has the log, the votes and the snapshots. It is created if needed, and locked against other processes.
	Dir string

	// Local connects the replicas of a group that all run in this process. No port is opened, and the fields from
	// Listen to TLS are unused.
	Local *Local
	// Listen is the TCP address on which the replica serves the group, such as "10.0.0.1:7000".
	Listen string
	// Resolve returns the present address of a replica, or an error for an unknown ID. In a group of one replica,
	// Resolve may be nil.
	Resolve func(id string) (address string, err error)
	// Group is part of the names in the certificates of the group. Each certificate has one DNS name: the replica's ID,
	// a dot and Group, such as "rack2.bank.west". So a certificate of another group is refused, even from the same
	// authority.
	Group string
	// TLS is for connections in both directions, with mutual authentication. It needs a certificate, RootCAs,
	// ClientCAs, RequireAndVerifyClientCert and TLS 1.3.
	TLS *tls.Config

	// Bootstrap lists the IDs of the replicas of a new group. Each replica must have the same list. The list is used
	// only if Dir has no state. A replica whose disk was lost may also be started with this list. Such a replica has no
	// vote until it has caught up with its peers.
	Bootstrap []string
	// SegmentBytes is the size of one file of the log, which is reserved on the disk in advance; default 64 MiB, at
	// least 64 KiB.
	SegmentBytes int

	// Timeout is the least time after which a replica that hears from no leader starts an election. The actual time is
	// random, up to three times as long. A leader that does not hear from a majority for this time steps down. Default
	// 350 ms.
	Timeout time.Duration

	// SnapshotBytes is how many bytes of entries the log may grow before a snapshot is written and the log is cut;
	// default 64 MiB. A snapshot is also written after 32,768 entries, or after entries that took a second to apply.
	// TrailingEntries is how many entries are kept for replicas that are a little behind; default 1,024.
	SnapshotBytes, TrailingEntries uint64

	// MinFreeBytes is the least free space on the disk of Dir, in bytes. Below it, proposals are refused with
	// ErrNoSpace. Default 256 MiB.
	MinFreeBytes uint64
	// Log is the logger; the default is no log.
	Log *zap.Logger
	// Metrics is the registry of the metrics candor_<Name>_log_*. They have a label for the replica. Close removes them
	// from the registry. By default, they are not registered.
	Metrics prometheus.Registerer

	limits limits
	faults faults
}

// limits are settings that only tests change.
type limits struct {
	command int // maximum size of a command, in bytes
	// maximum size of the commands in a log entry, in bytes; a larger command gets its own entry
	batchBytes  int
	queueBytes  int           // maximum size of the commands that wait for the log, in bytes; above it Propose waits
	markEntries uint64        // smallest number of entries between two comparisons of the replicas' states
	level       int           // level of this release
	raiseAfter  time.Duration // how long all replicas can work with a higher level before the leader raises the level
	slowAfter   time.Duration // time after which a leader's write or sync counts as hanging
	scrubEvery  time.Duration // pause between two scrubs of all files
	scrubPause  time.Duration // pause after each part of a scrub
	stuckAfter  time.Duration // time after which a hanging write or sync ends the process
}

// faults are functions of tests that replace functions of the system.
type faults struct {
	wrap    func(raft.LogStore) raft.LogStore        // wraps the store of the log
	free    func(dir string) (bytes uint64, _ error) // returns the disk's free space
	room    func(dir string, bytes int64) error      // returns an error if a file of a size has no room
	segment func() error                             // called before a file of the log is made; nil means no call
	// stuck is called once: when a write hangs or fails, or when the state or the log is wrong. Usually it logs the
	// error and ends the process, and does not return. If it returns, for example in a test, the replica leaves its
	// group: its connections are closed, and every call fails.
	stuck     func(error)
	listener  net.Listener      // used instead of Listen; closed with the mailbox
	transport func(below) below // put between the gate and the network
}

// This method puts the tests' faulty transport between the gate and the network, if a test has set such a transport. It
// returns the transport that the gate uses.
func (f *faults) between(t below) below {
	if f.transport == nil {
		return t
	}
	return f.transport(t)
}

var metricName = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[a-z][a-z0-9_]*$`) })

// Validate returns an error for the first invalid field.
func (c *Config) Validate() error {
	d := c.withDefaults()
	for _, check := range []func() error{d.checkIdentity, d.checkNetwork, d.checkLimits} {
		if err := check(); err != nil {
			return err
		}
	}
	return nil
}

func (c *Config) checkIdentity() error {
	switch {
	case c.ID == "" || len(c.ID) > 128:
		return invalid("ID is %q; give the replica a name of 1 to 128 bytes", c.ID)
	case c.Dir == "":
		return invalid("Dir is empty; name a directory for the log")
	case !metricName().MatchString(c.Name):
		return invalid("Name is %q; use lower-case letters, digits and _", c.Name)
	case len(c.Bootstrap) > 0 && !slices.Contains(c.Bootstrap, c.ID):
		return invalid("Bootstrap %q does not name this replica, %q", c.Bootstrap, c.ID)
	}
	return checkBootstrap(c.Bootstrap)
}

func checkBootstrap(ids []string) error {
	sorted := slices.Sorted(slices.Values(ids))
	if len(ids) > 0 && sorted[0] == "" {
		return invalid("Bootstrap holds an empty ID")
	}
	if n := len(slices.Compact(sorted)); n != len(ids) {
		return invalid("Bootstrap %q names a replica twice", ids)
	}
	return nil
}

func (c *Config) checkNetwork() error {
	if c.Local != nil {
		if c.Listen != "" || c.TLS != nil {
			return invalid("Local is for replicas of one process; leave out Listen and TLS")
		}
		return nil
	}
	switch {
	case c.Listen == "" && c.faults.listener == nil:
		return invalid("Listen is empty; give an address such as 127.0.0.1:7000")
	case c.Resolve == nil && len(c.Bootstrap) != 1:
		return invalid("Resolve is missing; say where each replica is")
	}
	return c.checkTLS()
}

func (c *Config) checkTLS() error {
	t := c.TLS
	switch {
	case t == nil:
		return invalid("TLS is missing, and without TLS anybody who can connect could write the log; give certificates, or set Local if all replicas run in one process")
	case c.Group == "":
		return invalid("Group is empty; say what the certificates of the group's replicas are for, such as bank.west")
	case t.MinVersion < tls.VersionTLS13:
		return invalid("TLS.MinVersion allows versions before 1.3; use tls.VersionTLS13")
	case len(t.Certificates) == 0 && t.GetCertificate == nil:
		return invalid("TLS has no certificate")
	case t.RootCAs == nil || t.ClientCAs == nil:
		return invalid("TLS needs RootCAs and ClientCAs of the group's own authority")
	case t.ClientAuth != tls.RequireAndVerifyClientCert:
		return invalid("TLS.ClientAuth is %v; use RequireAndVerifyClientCert", t.ClientAuth)
	case t.InsecureSkipVerify:
		return invalid("TLS.InsecureSkipVerify would let anyone write the log")
	}
	return nil
}

func (c *Config) checkLimits() error {
	switch {
	case c.Timeout < 50*time.Millisecond || c.Timeout > time.Minute:
		return invalid("Timeout is %s; use 50ms to 1m", c.Timeout)
	case c.SegmentBytes < 64<<10 || c.SegmentBytes > 1<<30:
		return invalid("SegmentBytes is %d; use 64 KiB to 1 GiB", c.SegmentBytes)
	}
	return nil
}

func (c *Config) withDefaults() *Config {
	d := *c
	fill(&d.Name, "mailbox")
	fill(&d.SegmentBytes, 64<<20)
	fill(&d.Timeout, 350*time.Millisecond)
	fill(&d.limits.command, 1<<20)
	fill(&d.limits.batchBytes, 256<<10)
	fill(&d.limits.queueBytes, 32<<20)
	fill(&d.limits.markEntries, 1024)
	fill(&d.limits.level, messages.Level)
	fill(&d.limits.raiseAfter, raiseAfter)
	fill(&d.limits.slowAfter, 2*time.Second)
	fill(&d.limits.stuckAfter, 20*time.Second)
	fill(&d.limits.scrubEvery, scrubEvery)
	fill(&d.limits.scrubPause, scrubPause)
	fill(&d.SnapshotBytes, 64<<20)
	fill(&d.TrailingEntries, 1024)
	fill(&d.MinFreeBytes, 256<<20)
	d.fillFunctions()
	return &d
}

func (c *Config) fillFunctions() {
	c.Log = cmp.Or(c.Log, QuietLog())
	if c.faults.stuck == nil {
		log := c.Log
		c.faults.stuck = func(err error) { log.Fatal("this replica of the log cannot go on; ending the process", zap.Error(err)) }
	}
	if c.faults.room == nil {
		c.faults.room = tryRoom
	}
	if c.faults.free == nil {
		c.faults.free = freeBytes
	}
}

func (c *Config) resolve(id string) (string, error) {
	if c.Resolve == nil {
		return "", fmt.Errorf("mailbox: no address is known for replica %q", id)
	}
	return c.Resolve(id)
}

// replicaOf returns the ID of the replica for which a certificate was made. The result `ok` is false if the certificate
// is for something else, or for several replicas.
func (c *Config) replicaOf(names []string) (id string, ok bool) {
	if len(names) != 1 {
		return "", false
	}
	id, ok = strings.CutSuffix(names[0], "."+c.Group)
	return id, ok && id != ""
}

func fill[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

func invalid(format string, args ...any) error {
	return messages.Errorf(messages.Invalid, "mailbox config: "+format, args...)
}
