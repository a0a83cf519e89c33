package estimator

import (
	"cmp"
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/bus"
	"github.com/candor-grid/candor/messages/job"
	"github.com/candor-grid/candor/messages/market"
)

// Config configures one estimator of a site.
type Config struct {
	Site      messages.Name
	Bus       bus.Bus         // connected as "$estimator"
	Operators []messages.Name // may ask about the jobs of all accounts
	// Markets are the site's markets. The estimator uses them for jobs that do not name their market or classes.
	Markets []market.Market
	// Profiles are the site's job profile classes.
	Profiles []job.Profile
	// Dir has the snapshot from which a restart continues. "" means none: each start reads the stream from its
	// beginning.
	Dir string
	// Every is the time between two snapshots, by default a minute, if something changed. Close also writes a snapshot.
	Every   time.Duration
	Log     *zap.Logger           // default: no log
	Metrics prometheus.Registerer // default: no metrics
}

const (
	// retryInterval is the wait before the stream is opened again after an error.
	retryInterval = time.Second
	// saveEvery is the default of Config.Every.
	saveEvery = time.Minute
)

// Validate returns an error for the first field that is wrong or missing.
func (c *Config) Validate() error {
	switch {
	case !messages.ValidName(c.Site):
		return fmt.Errorf("estimator: Site %q is not a valid name", c.Site)
	case c.Bus == nil:
		return fmt.Errorf("estimator: Bus is nil: connect one")
	case c.Every < 0:
		return fmt.Errorf("estimator: the field Every is %v; it must not be negative", c.Every)
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
