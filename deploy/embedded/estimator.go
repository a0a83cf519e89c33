package embedded

import (
	"errors"
	"fmt"
	"path/filepath"

	"github.com/candor-grid/candor/deploy/identity"
	"github.com/candor-grid/candor/estimator"
	"github.com/candor-grid/candor/messages"
)

// estimatorOf is the name of the estimator of a host; nil: of a site without hosts.
func estimatorOf(h *Host) string {
	if h == nil {
		return "1"
	}
	return h.Name
}

// estimatorDir is where an estimator keeps what it has learned.
func (c *Config) estimatorDir(replica string) string {
	return filepath.Join(c.State, messages.Estimator, replica)
}

// startEstimator starts the estimator of this process. With hosts each has
// one: they learn the same from the same stream, and any of them answers.
func startEstimator(s *share) (*service, error) {
	b, err := s.connectAs(identity.Service, messages.ServiceIdentity(messages.Estimator))
	if err != nil {
		return nil, err
	}
	registry := s.metrics.add()
	replica := estimatorOf(s.host)
	started, err := estimator.Start(s.ctx, estimator.Config{
		Site: s.config.Site, Bus: b, Operators: s.config.Operators, Markets: s.config.Markets, Profiles: s.config.Profiles,
		Dir: s.config.estimatorDir(replica),
		Log: s.log.Named(messages.Estimator), Metrics: labelled(registry, "replica", replica),
	})
	if err != nil {
		s.metrics.remove(registry)
		return nil, errors.Join(fmt.Errorf("estimator: %w", err), b.Close())
	}
	return &service{started, b}, nil
}
