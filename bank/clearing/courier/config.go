package courier

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"

	"github.com/candor-grid/candor/bank/clearing"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/bus"
	"github.com/candor-grid/candor/messages/proof"
)

// Host is the bank's replicated state, as the leader has it.
type Host interface {
	// Propose commits a command and returns what it came to. The error is what
	// kept it from being committed, Unknown if it may have been.
	Propose(ctx context.Context, c clearing.Command) (clearing.Result, error)
	// Read calls f on the state while it does not change. f must not keep it.
	Read(f func(*clearing.State))
	// Verify makes sure that what is read after it shows all that was answered
	// before.
	Verify(ctx context.Context) error
}

// Config is the courier of one replica of a site's bank.
type Config struct {
	Site   messages.Name
	Bus    bus.Bus      // reaches the peers' banks too
	Host   Host         // the bank
	Signer proof.Signer // the bank's key, whose public part its peers were given

	// Restored is when the backup began from which the state was restored; 0: it was not.
	Restored messages.Time

	Operator func(messages.Name) bool // may set terms, close cycles and see everything
	Service  func(messages.Name) bool // may accept and charge authorisations

	// Attempt is how long one message may wait for its answer; default 5 s.
	// FirstBackoff and LastBackoff bound the waits between attempts; defaults
	// 100 ms and 30 s.
	Attempt, FirstBackoff, LastBackoff messages.Duration
	// LeastVisit is the least amount of an authorisation of another site that is
	// accepted, and of a remittance: what is trivial costs the banks as much work as any
	// other. Default 0.01 credits.
	LeastVisit messages.Credits
	// SilentAfter is how long a peer's bank may leave unanswered what is sent to it
	// before the peer is suspended, until it answers; default an hour. A quarter of
	// it is how often a peer is asked that there is nothing else to say to.
	SilentAfter messages.Duration
	// Tick is how often the courier looks for what has expired; default 1 s.
	Tick messages.Duration

	Log     *zap.Logger           // default: none
	Metrics prometheus.Registerer // default: nowhere
	Clock   func() messages.Time  // default: the wall clock
}

// Validate reports the first thing that is wrong or missing.
func (c *Config) Validate() error {
	switch {
	case !messages.ValidName(c.Site):
		return fmt.Errorf("courier: Site %q is not a valid name", c.Site)
	case c.Bus == nil:
		return fmt.Errorf("courier: Bus is nil: connect one")
	case c.Host == nil:
		return fmt.Errorf("courier: Host is nil: give the bank")
	case c.Signer == nil:
		return fmt.Errorf("courier: Signer is nil: give the bank's key")
	case c.Operator == nil || c.Service == nil:
		return fmt.Errorf("courier: Operator and Service say who may ask for what: give both")
	case c.LeastVisit < 0:
		return fmt.Errorf("courier: LeastVisit %v must not be negative", c.LeastVisit)
	case c.SilentAfter < 0:
		return fmt.Errorf("courier: SilentAfter %v must not be negative", c.SilentAfter)
	case c.Attempt < 0 || c.FirstBackoff < 0 || c.LastBackoff < 0 || c.Tick < 0:
		return fmt.Errorf("courier: Attempt, FirstBackoff, LastBackoff and Tick must not be negative")
	}
	return nil
}

func (c *Config) defaults() {
	c.Attempt = cmp.Or(c.Attempt, messages.Duration(5*time.Second))
	c.FirstBackoff = cmp.Or(c.FirstBackoff, messages.Duration(100*time.Millisecond))
	c.LastBackoff = cmp.Or(c.LastBackoff, messages.Duration(30*time.Second))
	c.Tick = cmp.Or(c.Tick, messages.Duration(time.Second))
	c.SilentAfter = cmp.Or(c.SilentAfter, messages.Duration(time.Hour))
	c.LeastVisit = cmp.Or(c.LeastVisit, messages.LeastVisit)
	c.Log = cmp.Or(c.Log, zap.NewNop())
	c.Metrics = cmp.Or[prometheus.Registerer](c.Metrics, prometheus.NewRegistry())
	if c.Clock == nil {
		c.Clock = func() messages.Time { return messages.TimeOf(time.Now()) }
	}
}
