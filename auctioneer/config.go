package auctioneer

import (
	"cmp"
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"

	"github.com/candor-grid/candor/auctioneer/archive"
	"github.com/candor-grid/candor/auctioneer/notify"
	"github.com/candor-grid/candor/auctioneer/quota"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/bus"
	"github.com/candor-grid/candor/messages/mailbox"
)

// Config is one replica of a site's auctioneer.
type Config struct {
	Site    messages.Name
	Replica string
	Bus     bus.Bus // connected as the identity "$auctioneer"
	// Open joins the replica's state to the group's log.
	Open      func(mailbox.Machine) (mailbox.Mailbox, error)
	Markets   []messages.Market // the first is the default of submissions
	Operators []messages.Name   // may see and cancel everybody's jobs
	// Lease is how long an agent may run tasks without an answered exchange;
	// default 30 s. Its claims are taken back after 1.5 times as long.
	Lease messages.Duration
	// HoldFor is how long the bank keeps a job's credits without a word from
	// the auctioneer, which extends the holds of jobs that live; default 1 h.
	HoldFor messages.Duration
	// RemoteFor is how long a job that another site runs has until it must have
	// ended there: the bank sets its budget aside for that long, and for the
	// margin of an authorisation; default 7 days.
	RemoteFor messages.Duration
	// LeastVisit is the least that another site must authorise for a job: offers to its users
	// ask for no smaller budget. Default 0.01 credits.
	LeastVisit messages.Credits
	Limits     quota.Rules // limits of each account; the zero value has none
	// MostMemory is the most memory that a task may ask for, by class, in bytes. Classes that are
	// not in it have no bound.
	MostMemory map[messages.Name]int64
	// Licenses are how many licences of each name the site has.
	Licenses messages.Licenses
	// Slurm gives the meaning of names of Slurm at this site; nil: they have none.
	Slurm *messages.SlurmNames
	// Notify sends words about jobs, which the zero value of NotifyRules allows none of.
	Notify      *notify.Sender
	NotifyRules notify.Rules
	// Archive has the records of ended jobs that left the book, and is closed with the replica;
	// nil: these records are lost.
	Archive *archive.Archive
	// Past is the file that keeps the history of markets and nodes; "": it is only in memory.
	Past string
	// Restored is when the backup began from which the replica's state was restored; 0: it
	// was not.
	Restored messages.Time
	Log      *zap.Logger
	Metrics  prometheus.Registerer
	Clock    func() messages.Time // default: the wall clock
	// ClockKnown reports whether Clock agrees with the other hosts of the site; default: it does.
	ClockKnown func() bool
	Mono       func() messages.Duration // a clock that nobody sets; default: the process's
}

// Validate reports the first thing that is wrong or missing.
func (c *Config) Validate() error {
	switch {
	case !messages.ValidName(c.Site):
		return fmt.Errorf("auctioneer: site %q is not a valid name", c.Site)
	case c.Bus == nil || c.Open == nil:
		return fmt.Errorf("auctioneer: a bus and a mailbox are needed")
	case len(c.Markets) == 0:
		return fmt.Errorf("auctioneer: a site needs at least one market")
	case c.RemoteFor != 0 && (c.RemoteFor < messages.MinInterval || c.RemoteFor > messages.MaxInterval):
		return fmt.Errorf("auctioneer: jobs at other sites can be given from %v to %v", messages.MinInterval, messages.MaxInterval)
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
	c.LeastVisit = cmp.Or(c.LeastVisit, messages.LeastVisit)
	c.Log = cmp.Or(c.Log, zap.NewNop())
	c.Metrics = cmp.Or[prometheus.Registerer](c.Metrics, prometheus.NewRegistry())
	if c.Clock == nil {
		c.Clock = func() messages.Time { return messages.TimeOf(time.Now()) }
	}
}
