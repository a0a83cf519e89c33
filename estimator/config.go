package estimator

import (
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/bus"
)

// Config is one estimator of a site.
type Config struct {
	Site      messages.Name
	Bus       bus.Bus         // as the identity "$estimator"
	Operators []messages.Name // may ask about every account's jobs
	// Kinds bounds the kinds of job that are remembered; default 100,000. The
	// kind that was not seen for longest is forgotten first.
	Kinds int
	// Runs bounds the observations that are kept of one kind, the latest ones;
	// default 32.
	Runs    int
	Log     *zap.Logger           // default: none
	Metrics prometheus.Registerer // default: nowhere
}

// retryInterval is how long the estimator waits before it tries again to open
// the stream.
const retryInterval = time.Second

// Validate reports the first thing that is wrong or missing.
func (c *Config) Validate() error {
	switch {
	case !messages.ValidName(c.Site):
		return fmt.Errorf("estimator: Site %q is not a valid name", c.Site)
	case c.Bus == nil:
		return fmt.Errorf("estimator: Bus is nil: connect one")
	case c.Kinds < 0 || c.Runs < 0:
		return fmt.Errorf("estimator: Kinds %d and Runs %d cannot be negative", c.Kinds, c.Runs)
	}
	for _, name := range c.Operators {
		if !messages.ValidName(name) {
			return fmt.Errorf("estimator: Operators has %q, which is not a valid name", name)
		}
	}
	return nil
}

func (c *Config) defaults() {
	if c.Kinds == 0 {
		c.Kinds = 100_000
	}
	if c.Runs == 0 {
		c.Runs = 32
	}
	if c.Log == nil {
		c.Log = zap.NewNop()
	}
}
