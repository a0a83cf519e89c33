package embedded

import (
	"errors"

	"github.com/candor-grid/candor/deploy/depot"
	"github.com/candor-grid/candor/deploy/identity"
	"github.com/candor-grid/candor/messages"
)

// startDepot starts the depot of this process. With hosts each has one, and any of
// them answers.
func startDepot(s *share) (*service, error) {
	b, err := s.connectAs(identity.Service, messages.ServiceIdentity(messages.Depot))
	if err != nil {
		return nil, err
	}
	files, registry, replica := &s.config.Files, s.metrics.add(), "1"
	if s.host != nil {
		replica = s.host.Name
	}
	started, err := depot.Start(depot.Config{
		Site: s.config.Site, Bus: b, Operator: s.config.Operators[0], Operators: s.config.Operators,
		Retention: files.Retention.Std(), Quota: files.QuotaMiB << 20,
		Log: s.log.Named(messages.Depot), Metrics: labelled(registry, "replica", replica),
	})
	if err != nil {
		s.metrics.remove(registry)
		return nil, errors.Join(err, b.Close())
	}
	return &service{started, b}, nil
}
