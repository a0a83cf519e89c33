package embedded

import (
	"errors"
	"fmt"
	"path/filepath"

	"github.com/candor-grid/candor/deploy/identity"
	"github.com/candor-grid/candor/estimator"
	"github.com/candor-grid/candor/messages"
)

// startEstimator starts the estimator of this process. With hosts each has
// one: they learn the same from the same stream, and any of them answers.
func startEstimator(s *share) (*service, error) {
	b, err := s.connectAs(identity.Service, messages.ServiceIdentity(messages.Estimator))
	if err != nil {
		return nil, err
	}
	registry := s.metrics.add()
	replica := "1"
	if s.host != nil {
		replica = s.host.Name
	}
	started, err := estimator.Start(s.ctx, estimator.Config{
		Site: s.config.Site, Bus: b, Operators: s.config.Operators, Markets: s.config.Markets, Profiles: s.config.Profiles,
		Dir: filepath.Join(s.config.State, "estimator", replica),
		Log: s.log.Named(messages.Estimator), Metrics: labelled(registry, "replica", replica),
	})
	if err != nil {
		s.metrics.remove(registry)
		return nil, errors.Join(fmt.Errorf("estimator: %w", err), b.Close())
	}
	return &service{started, b}, nil
}
