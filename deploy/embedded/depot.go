package embedded

import (
	"io"
	"os"
	"path/filepath"
	"time"

	"go.uber.org/zap"

	"github.com/candor-grid/candor/deploy/depot"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/bus"
)

// startDepot starts the depot of this process. On a site of several hosts, each host has a depot, and any of them can
// answer.
func startDepot(s *share) (*service, error) {
	return s.serving(messages.Depot, func(b bus.Bus) (io.Closer, error) {
		files := &s.config.Files
		c := depot.Config{
			Site: s.config.Site, Bus: b, Operator: s.config.Operators[0], Operators: s.config.Operators,
			Retention: files.Retention.Std(), Quota: files.QuotaMiB << 20,
			Log: s.log.Named(messages.Depot), Metrics: labelled(s.metrics.add(), "replica", serviceOf(s.host)),
		}
		if err := s.loadDepot(c); err != nil {
			return nil, err
		}
		return depot.Start(c)
	})
}

// loadDepot loads the files that candor restore left. The depot already serves meanwhile, because storing files may
// need other hosts.
func (s *share) loadDepot(c depot.Config) error {
	dir := filepath.Join(s.config.State, messages.Depot)
	if _, err := os.Stat(dir); err != nil {
		return nil // candor restore left no files
	}
	if s.host == nil {
		return s.loadFiles(c, dir)
	}
	s.watchers.Go(func() {
		if err := s.loadFiles(c, dir); err != nil {
			s.log.Error("the files of jobs could not be restored; the next start tries again", zap.String("from", dir), zap.Error(err))
		}
	})
	return nil
}

// loadFiles loads the files. It tries again while no host can store files.
func (s *share) loadFiles(c depot.Config, dir string) error {
	return again(s.ctx, 100*time.Millisecond, func() (bool, error) {
		err := depot.Load(s.ctx, c, dir)
		return err != nil && messages.KindOf(err).Retriable(), err
	})
}
