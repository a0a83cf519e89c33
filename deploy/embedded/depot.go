package embedded

import (
	"errors"

	"github.com/candor-grid/candor/deploy/depot"
	"github.com/candor-grid/candor/deploy/identity"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/bus"
)

// depotService is the started depot and its connection.
type depotService struct {
	*depot.Depot
	bus bus.Bus
}

// startDepot starts the depot of this process. With hosts each has one, and any of
// them answers.
func (s *Site) startDepot() error {
	b, err := s.connectAs(identity.Service, messages.ServiceIdentity(messages.Depot))
	if err != nil {
		return err
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
		return errors.Join(err, b.Close())
	}
	s.depot = &depotService{started, b}
	return nil
}

func (d *depotService) close() error { return errors.Join(d.Close(), d.bus.Close()) }
