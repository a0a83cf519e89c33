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
	clearingmsg "github.com/candor-grid/candor/messages/clearing"
	"github.com/candor-grid/candor/messages/proof"
)

// Host gives access to the bank's replicated state at its leader.
type Host interface {
	// Propose commits a command and returns its result. An error says why the command was not committed. After the
	// error Unknown, the command may have been committed.
	Propose(ctx context.Context, c clearing.Command) (clearing.Result, error)
	// Read calls f with the state, which does not change during the call. f must not keep the state.
	Read(f func(*clearing.State))
	// Verify waits until Read shows all changes whose answers were sent before the call of Verify.
	Verify(ctx context.Context) error
}

// Config configures the courier of one replica of a site's bank.
type Config struct {
	Site   messages.Name
	Bus    bus.Bus      // the bus also reaches the banks of peers
	Host   Host         // the bank
	Signer proof.Signer // the bank's key; the peers have its public part

	// If the state was restored from a backup, Restored is when this backup began. Otherwise it is 0.
	Restored messages.Time

	Operator func(messages.Name) bool // Operator reports whether a caller may set terms, close cycles and see everything
	Service  func(messages.Name) bool // Service reports whether a caller may accept and charge authorisations

	// Attempt is how long one message waits for its answer; default 5 s. FirstBackoff and LastBackoff are the shortest
	// and longest wait between attempts; defaults 100 ms and 30 s.
	Attempt, FirstBackoff, LastBackoff messages.Duration
	// LeastVisit is the smallest authorisation that this site accepts, and the smallest remittance; default 0.01
	// credits. Small amounts cost the banks as much work as large ones.
	LeastVisit messages.Credits
	// SilentAfter is the longest time that a peer's bank may leave messages unanswered; the default is an hour. After
	// this time, the peer is suspended. A peer's bank for which this site has no message gets a greeting in each
	// quarter of this time.
	SilentAfter messages.Duration
	// Tick is the time between two checks for authorisations and other data that have expired; default 1 s.
	Tick messages.Duration

	Log     *zap.Logger           // default: none
	Metrics prometheus.Registerer // default: nowhere
	Clock   func() messages.Time  // default: the wall clock
}

// Validate returns an error for the first field that is wrong or missing.
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
		return fmt.Errorf("courier: Operator and Service are needed: they decide who may send which request")
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
	c.LeastVisit = cmp.Or(c.LeastVisit, clearingmsg.LeastVisit)
	c.Log = cmp.Or(c.Log, zap.NewNop())
	c.Metrics = cmp.Or[prometheus.Registerer](c.Metrics, prometheus.NewRegistry())
	if c.Clock == nil {
		c.Clock = func() messages.Time { return messages.TimeOf(time.Now()) }
	}
}
