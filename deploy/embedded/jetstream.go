package embedded

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"go.uber.org/zap"
	"golang.org/x/sys/unix"

	"github.com/candor-grid/candor/messages/beat"
)

const (
	// jetStreamEvery is the time between two checks whether JetStream runs.
	jetStreamEvery = time.Second
	// jetStreamRoom is the free space in bytes that JetStream needs to start again. The logs of the replicas need the
	// same amount.
	jetStreamRoom = 256 << 20
)

// setMetaAside moves damaged cluster data of JetStream to another directory, if the server does not start because of
// this data. Nothing is lost: the other hosts have the same data, and the streams are not moved. It returns the new
// path, and whether the data was moved.
func setMetaAside(o *server.Options, failed error) (aside string, moved bool) {
	why := failed.Error()
	if o.Cluster.Name == "" || !strings.Contains(why, "Can't start JetStream") || strings.Contains(why, unix.ENOSPC.Error()) {
		return "", false
	}
	found, _ := filepath.Glob(filepath.Join(o.StoreDir, "jetstream", "*", "_js_", "_meta_")) // the error does not matter, because the pattern is valid
	if len(found) != 1 {
		return "", false
	}
	aside = filepath.Join(o.StoreDir, "damaged-"+time.Now().UTC().Format("20060102-150405.000000000"))
	return aside, os.Rename(found[0], aside) == nil
}

// keepJetStream starts JetStream again after the disk was full. In a cluster, the server stops JetStream after a failed
// write and never starts it again. Without a cluster, streams with failed writes refuse data until JetStream is
// restarted.
func keepJetStream(ctx context.Context, s *server.Server, o *server.Options, log *zap.Logger) {
	stopped := false
	lines, _ := s.Logger().(*natsLog)
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(beat.Until(jetStreamEvery)):
		}
		if lines != nil && lines.noSpace.Load() && s.JetStreamEnabled() && hasRoom(o.StoreDir) {
			lines.noSpace.Store(false)
			_ = s.ShutdownJetStream()
		}
		// JetStream has stopped completely when it has no configuration.
		if s.JetStreamEnabled() || s.JetStreamConfig() != nil || !s.Running() {
			continue
		}
		if !stopped {
			stopped = true
			log.Error("JetStream and this host's part of the depot have stopped; both start again when there is room on the disk", zap.String("directory", o.StoreDir), zap.Int("bytes wanted", jetStreamRoom))
			continue // streams stop a little later than JetStream itself
		}
		if !hasRoom(o.StoreDir) {
			continue
		}
		if err := s.EnableJetStream(&server.JetStreamConfig{StoreDir: o.StoreDir, MaxStore: o.JetStreamMaxStore, SyncAlways: o.SyncAlways, Strict: !o.NoJetStreamStrict, CompressOK: true}); err != nil {
			log.Warn("JetStream does not start yet; trying again", zap.Error(err))
			_ = s.ShutdownJetStream() // stop those parts of JetStream that have started
			continue
		}
		stopped = false
		log.Warn("JetStream runs again")
	}
}

func hasRoom(dir string) bool {
	var disk unix.Statfs_t
	return unix.Statfs(dir, &disk) == nil && disk.Bavail*uint64(disk.Bsize) >= jetStreamRoom
}
