package embedded

import (
	"fmt"
	"io"
	"path/filepath"

	"github.com/candor-grid/candor/estimator"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/bus"
)

// serviceOf returns the name of a host's service. h is nil on a site without hosts.
func serviceOf(h *Host) string {
	if h == nil {
		return "1"
	}
	return h.Name
}

// estimatorDir returns the directory where an estimator stores what it has learned.
func (c *Config) estimatorDir(replica string) string {
	return filepath.Join(c.State, messages.Estimator, replica)
}

// startEstimator starts the estimator of this process. On a site of several hosts, each host has an estimator. All
// estimators learn from the same stream, so each of them can answer.
func startEstimator(s *share) (*service, error) {
	return s.serving(messages.Estimator, func(b bus.Bus) (io.Closer, error) {
		replica := serviceOf(s.host)
		started, err := estimator.Start(s.ctx, estimator.Config{
			Site: s.config.Site, Bus: b, Operators: s.config.Operators, Markets: s.config.Markets, Profiles: s.config.Profiles,
			Dir: s.config.estimatorDir(replica),
			Log: s.log.Named(messages.Estimator), Metrics: labelled(s.metrics.add(), "replica", replica),
		})
		if err != nil {
			return nil, fmt.Errorf("estimator: %w", err)
		}
		return started, nil
	})
}
