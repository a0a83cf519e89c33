package embedded

import (
	"errors"
	"os"
	"path/filepath"
	"time"

	"go.uber.org/zap"

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
	c := depot.Config{
		Site: s.config.Site, Bus: b, Operator: s.config.Operators[0], Operators: s.config.Operators,
		Retention: files.Retention.Std(), Quota: files.QuotaMiB << 20,
		Log: s.log.Named(messages.Depot), Metrics: labelled(registry, "replica", replica),
	}
	if err := s.loadDepot(c); err != nil {
		return nil, errors.Join(err, b.Close())
	}
	started, err := depot.Start(c)
	if err != nil {
		s.metrics.remove(registry)
		return nil, errors.Join(err, b.Close())
	}
	return &service{started, b}, nil
}

// loadDepot takes in the files that candor restore left. Over several hosts nobody may
// keep files yet, so the depot serves meanwhile.
func (s *share) loadDepot(c depot.Config) error {
	dir := filepath.Join(s.config.State, messages.Depot)
	if _, err := os.Stat(dir); err != nil {
		return nil // none are left
	}
	if s.host == nil {
		return s.loadFiles(c, dir)
	}
	go func() {
		if err := s.loadFiles(c, dir); err != nil {
			s.log.Error("the files of jobs could not be restored; they are tried again at the next start", zap.String("from", dir), zap.Error(err))
		}
	}()
	return nil
}

// loadFiles asks again while nobody keeps files yet.
func (s *share) loadFiles(c depot.Config, dir string) error {
	again := time.NewTicker(100 * time.Millisecond)
	defer again.Stop()
	for {
		err := depot.Load(s.ctx, c, dir)
		if err == nil || !messages.KindOf(err).Retriable() {
			return err
		}
		select {
		case <-again.C:
		case <-s.ctx.Done():
			return err
		}
	}
}
