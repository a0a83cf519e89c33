package auctioneer

import (
	"cmp"
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"

	"github.com/candor-grid/candor/auctioneer/archive"
	"github.com/candor-grid/candor/auctioneer/filter"
	"github.com/candor-grid/candor/auctioneer/notify"
	"github.com/candor-grid/candor/auctioneer/quota"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/bus"
	"github.com/candor-grid/candor/messages/clearing"
	"github.com/candor-grid/candor/messages/job"
	"github.com/candor-grid/candor/messages/mailbox"
	"github.com/candor-grid/candor/messages/market"
)

// Config is the configuration of one replica of a site's auctioneer.
type Config struct {
	Site    messages.Name
	Replica string
	Bus     bus.Bus // connected as the identity "$auctioneer"
	// Open connects the replica's state to the log of the group.
	Open      func(mailbox.Machine) (mailbox.Mailbox, error)
	Markets   []market.Market // the first market is used for submissions that name no market
	Operators []messages.Name // accounts that may see and cancel all jobs
	// Lease is how long an agent may run tasks without an answer to an exchange; default 30 s. Its claims are taken
	// back after 1.5 times this time.
	Lease messages.Duration
	// HoldFor is how long the bank keeps a job's credits if the auctioneer does not extend the hold; default 1 h.
	HoldFor messages.Duration
	// RemoteFor is the time in which a job at another site must end; default 7 days. The bank sets the budget aside for
	// this time plus the margin of an authorisation.
	RemoteFor messages.Duration
	// LeastVisit is the smallest amount that another site must authorise for a job; default 0.01 credits.
	LeastVisit messages.Credits
	Limits     quota.Rules // limits of each account; the zero value sets no limits
	// MostMemory is the maximum memory that a task may ask for, by class, in bytes. Other classes have no limit.
	MostMemory map[messages.Name]int64
	// Licenses has the number of licences of each name at the site.
	Licenses job.Licenses
	// Slurm says what names of Slurm mean at this site. If it is nil, they mean nothing.
	Slurm *market.SlurmNames
	// Filter is a program that is asked about each submitted job, or nil.
	Filter *filter.Filter
	// Notify sends notifications about jobs. The zero value of its NotifyRules allows no receiver.
	Notify      *notify.Sender
	NotifyRules notify.Rules
	// Archive gets the records of ended jobs that leave the book, and is closed with the replica. Without it, the
	// records are lost.
	Archive *archive.Archive
	// Past is the file with the history of markets and nodes. If it is "", the history is only in memory.
	Past string
	// Restored is 0, or the replica's state was restored from a backup. Then it is the time at which the backup began.
	Restored messages.Time
	Log      *zap.Logger
	Metrics  prometheus.Registerer
	Clock    func() messages.Time // default: the wall clock
	// ClockKnown reports whether Clock agrees with the clocks of the site's other hosts; default: always true.
	ClockKnown func() bool
	Mono       func() messages.Duration // a clock that nobody can set; default: the clock of the process
}

// Validate returns an error about the first field that is missing or wrong.
func (c *Config) Validate() error {
	switch {
	case !messages.ValidName(c.Site):
		return fmt.Errorf("auctioneer: site %q is not a valid name", c.Site)
	case c.Bus == nil || c.Open == nil:
		return fmt.Errorf("auctioneer: a bus and a mailbox are needed")
	case len(c.Markets) == 0:
		return fmt.Errorf("auctioneer: a site needs at least one market")
	case c.RemoteFor != 0 && (c.RemoteFor < clearing.MinInterval || c.RemoteFor > clearing.MaxInterval):
		return fmt.Errorf("auctioneer: jobs at other sites can be given from %v to %v", clearing.MinInterval, clearing.MaxInterval)
	case c.Lease < 0 || c.HoldFor < 0:
		return fmt.Errorf("auctioneer: lease and hold time cannot be negative")
	}
	if err := c.Licenses.Validate("licenses"); err != nil {
		return fmt.Errorf("auctioneer: %w", err)
	}
	if err := c.Limits.Validate(); err != nil {
		return fmt.Errorf("auctioneer: limits: %w", err)
	}
	if i, err := checkMarkets(c.Markets); err != nil {
		return fmt.Errorf("auctioneer: market %s: %w", c.Markets[i].Name, err)
	}
	return nil
}

func (c *Config) defaults() {
	c.Lease = cmp.Or(c.Lease, messages.Duration(30*time.Second))
	c.HoldFor = cmp.Or(c.HoldFor, messages.Duration(time.Hour))
	c.RemoteFor = cmp.Or(c.RemoteFor, messages.Duration(7*24*time.Hour))
	c.LeastVisit = cmp.Or(c.LeastVisit, clearing.LeastVisit)
	c.Log = cmp.Or(c.Log, zap.NewNop())
	c.Metrics = cmp.Or[prometheus.Registerer](c.Metrics, prometheus.NewRegistry())
	if c.Clock == nil {
		c.Clock = func() messages.Time { return messages.TimeOf(time.Now()) }
	}
}
