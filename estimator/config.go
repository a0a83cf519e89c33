package estimator

import (
	"cmp"
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
	// Markets of the site, for jobs that leave theirs and their classes to it.
	Markets []messages.Market
	// Profiles are the site's job profile classes.
	Profiles []messages.Profile
	// Dir keeps the snapshot that a restart goes on from; "": none is kept, and
	// the stream is read from its beginning at each start.
	Dir string
	// Every is how often a snapshot is written while there is news; default a
	// minute. One is written at Close too.
	Every   time.Duration
	Log     *zap.Logger           // default: none
	Metrics prometheus.Registerer // default: nowhere
}

const (
	// retryInterval is how long the estimator waits before it tries again to open
	// the stream.
	retryInterval = time.Second
	// saveEvery is the default of Config.Every.
	saveEvery = time.Minute
)

// Validate reports the first thing that is wrong or missing.
func (c *Config) Validate() error {
	switch {
	case !messages.ValidName(c.Site):
		return fmt.Errorf("estimator: Site %q is not a valid name", c.Site)
	case c.Bus == nil:
		return fmt.Errorf("estimator: Bus is nil: connect one")
	case c.Every < 0:
		return fmt.Errorf("estimator: Every %v cannot be negative", c.Every)
	}
	for _, name := range c.Operators {
		if !messages.ValidName(name) {
			return fmt.Errorf("estimator: Operators has %q, which is not a valid name", name)
		}
	}
	return nil
}

func (c *Config) defaults() {
	c.Every = cmp.Or(c.Every, saveEvery)
	c.Log = cmp.Or(c.Log, zap.NewNop())
	c.Metrics = cmp.Or[prometheus.Registerer](c.Metrics, prometheus.NewRegistry())
}
