package embedded

import (
	"errors"
	"fmt"
	"path/filepath"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/candor-grid/candor/deploy/identity"
	"github.com/candor-grid/candor/estimator"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/bus"
)

// estimatorActor is the started estimator and what goes with it.
type estimatorActor struct {
	*estimator.Estimator
	bus     bus.Bus
	metrics *prometheus.Registry
}

// startEstimator starts the estimator of this process. With hosts each has
// one: they learn the same from the same stream, and any of them answers.
func (s *Site) startEstimator() error {
	b, err := s.connectAs(identity.Service, messages.ServiceIdentity(messages.Estimator))
	if err != nil {
		return err
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
		return errors.Join(fmt.Errorf("estimator: %w", err), b.Close())
	}
	s.estimator = &estimatorActor{started, b, registry}
	return nil
}

func (e *estimatorActor) close() error { return errors.Join(e.Close(), e.bus.Close()) }
