package bank

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"

	"github.com/candor-grid/candor/bank/history"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/bus"
	"github.com/candor-grid/candor/messages/mailbox"
	"github.com/candor-grid/candor/messages/proof"
)

// Config is the configuration of one replica of a site's bank.
type Config struct {
	Site    messages.Name
	Replica string
	Bus     bus.Bus // connected as "$bank"
	// Replicas are the names of all replicas of the group. A replica asks them for missing files if no leader answers.
	Replicas []string
	// Open connects the replica's state to the log of the group.
	Open func(mailbox.Machine) (mailbox.Mailbox, error)
	// Operators may grant, change members, transfer, and see all accounts.
	Operators []messages.Name
	// Services may make transfers, and may see all accounts. They are the site's actors, such as "$auctioneer".
	Services []messages.Name
	// ExpiryInterval is how often the leader checks for due holds when nothing else happens; default 1 s.
	ExpiryInterval messages.Duration
	// History is where the replica stores the journal; default: in memory.
	History history.Files
	// SegmentBytes is the size of the records in one file of the journal, in bytes; default 4 MiB. It must be equal on
	// all replicas.
	SegmentBytes int
	// If the state was restored from a backup, Restored is the time when that backup began. Otherwise it is 0.
	Restored messages.Time
	// Signer signs checkpoints of the journal, and messages to the banks of other sites. Without it, there are no
	// checkpoints, and the bank does not settle with other sites.
	Signer proof.Signer
	// Keys are the site's keys, which check the signatures of requests. Without keys, this replica cannot carry out
	// commands with signatures.
	Keys Keys
	// Attempt is how long one message to another site's bank may wait for its answer; the default is 5 s. FirstBackoff
	// and LastBackoff are the shortest and the longest wait between two attempts; the defaults are 100 ms and 30 s.
	Attempt, FirstBackoff, LastBackoff messages.Duration
	// LeastVisit is the smallest amount that another site must authorise for a job; default 0.01 credits.
	LeastVisit messages.Credits
	// SilentAfter is how long another site's bank may leave messages unanswered before it is suspended; default one
	// hour.
	SilentAfter messages.Duration
	// Opening lists the accounts that a new site opens without a request of an operator.
	Opening []messages.Name
	// OnBroken is called when the journal cannot be written or read any more. By default it logs the error and ends the
	// process with status 1. Nothing is lost by this: when the replica starts again, it has everything in its snapshot
	// and log.
	OnBroken func(error)
	Log      *zap.Logger           // default: none
	Metrics  prometheus.Registerer // default: none; several replicas in one process each need a label
	Clock    func() messages.Time  // default: the wall clock
	// AccountsTold is the number of accounts that have metrics. The bank chooses the accounts that were granted the
	// most credits. The default is 0.
	AccountsTold int
	// ClockKnown reports whether Clock agrees with the clocks of the site's other hosts. By default, it always returns
	// true.
	ClockKnown func() bool
	// Mono returns the time of a clock that nobody can set. The default is the clock of the process.
	Mono func() messages.Duration
	// A hold can become due while the site does not run, or because a clock was set. Late is how long auctioneers may
	// still extend such a hold. The default is 5 minutes. A negative value means no time.
	Late messages.Duration
}

// Validate returns an error for the first field that is wrong or missing.
func (c *Config) Validate() error {
	switch {
	case !messages.ValidName(c.Site):
		return fmt.Errorf("bank: Site %q is not a valid name", c.Site)
	case c.Replica == "":
		return fmt.Errorf("bank: Replica is empty: name the replica")
	case c.Bus == nil:
		return fmt.Errorf("bank: Bus is nil: connect one")
	case c.Open == nil:
		return fmt.Errorf("bank: Open is nil: give the function that opens the replica's mailbox")
	case c.SegmentBytes < 0 || c.SegmentBytes > 1<<30:
		return fmt.Errorf("bank: SegmentBytes %d is not between 0 and 1 GiB", c.SegmentBytes)
	case c.ExpiryInterval < 0:
		return fmt.Errorf("bank: ExpiryInterval %v is negative", c.ExpiryInterval)
	}
	for _, name := range c.Operators {
		if !messages.ValidName(name) {
			return fmt.Errorf("bank: Operators has %q, which is not a valid name", name)
		}
	}
	for _, name := range c.Services {
		if !strings.HasPrefix(name, "$") || !messages.ValidName(name[1:]) {
			return fmt.Errorf("bank: Services has %q, which is not the identity of a service, such as %q", name, messages.ServiceIdentity(messages.Auctioneer))
		}
	}
	return nil
}

func (c *Config) defaults() {
	c.ExpiryInterval = cmp.Or(c.ExpiryInterval, messages.Duration(time.Second))
	c.SegmentBytes = cmp.Or(c.SegmentBytes, history.SegmentBytes)
	c.Late = cmp.Or(c.Late, messages.Duration(5*time.Minute))
	c.Log = cmp.Or(c.Log, mailbox.QuietLog())
	c.Metrics = cmp.Or[prometheus.Registerer](c.Metrics, prometheus.NewRegistry())
	if c.OnBroken == nil {
		log := c.Log
		c.OnBroken = func(err error) { log.Fatal("this replica of the bank ends", zap.Error(err)) }
	}
	if c.Mono == nil {
		began := time.Now()
		c.Mono = func() messages.Duration { return messages.Duration(time.Since(began)) }
	}
	if c.Clock == nil {
		c.Clock = func() messages.Time { return messages.TimeOf(time.Now()) }
	}
}
