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
	// jetStreamEvery is how often the server is asked whether JetStream runs.
	jetStreamEvery = time.Second
	// jetStreamRoom is how many bytes must be free before JetStream starts again, as many as
	// the logs of the replicas want.
	jetStreamRoom = 256 << 20
)

// setMetaAside moves JetStream's cluster data aside, such as which host has which stream, if it is
// damaged and the server therefore does not start. The other hosts have this data. The streams
// stay. It reports whether it moved anything.
func setMetaAside(o *server.Options, failed error) (aside string, moved bool) {
	why := failed.Error()
	if o.Cluster.Name == "" || !strings.Contains(why, "Can't start JetStream") || strings.Contains(why, unix.ENOSPC.Error()) {
		return "", false
	}
	found, _ := filepath.Glob(filepath.Join(o.StoreDir, "jetstream", "*", "_js_", "_meta_")) // the pattern is good
	if len(found) != 1 {
		return "", false
	}
	aside = filepath.Join(o.StoreDir, "damaged-"+time.Now().UTC().Format("20060102-150405.000000000"))
	return aside, os.Rename(found[0], aside) == nil
}

// keepJetStream starts JetStream again after the disk was full. In a cluster, the server stops
// JetStream after a failed write and does not start it again; this host's part of the depot and of
// the stream of observations is then missing. Without a cluster, only the streams with failed
// writes accept nothing more; here JetStream is stopped and started once there is room.
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
		// If there is no configuration, the stop is complete.
		if s.JetStreamEnabled() || s.JetStreamConfig() != nil || !s.Running() {
			continue
		}
		if !stopped {
			stopped = true
			log.Error("JetStream has stopped, and with it this host's part of the depot; it starts again when there is room on the disk", zap.String("directory", o.StoreDir), zap.Int("bytes wanted", jetStreamRoom))
			continue // the groups of its streams end a little later
		}
		if !hasRoom(o.StoreDir) {
			continue
		}
		if err := s.EnableJetStream(&server.JetStreamConfig{StoreDir: o.StoreDir, MaxStore: o.JetStreamMaxStore, SyncAlways: o.SyncAlways, Strict: !o.NoJetStreamStrict, CompressOK: true}); err != nil {
			log.Warn("JetStream does not start yet; trying again", zap.Error(err))
			_ = s.ShutdownJetStream() // stop what had started
			continue
		}
		stopped = false
		log.Warn("JetStream runs again")
	}
}

// hasRoom reports whether JetStream has enough space on the disk of its directory to start again.
func hasRoom(dir string) bool {
	var disk unix.Statfs_t
	return unix.Statfs(dir, &disk) == nil && disk.Bavail*uint64(disk.Bsize) >= jetStreamRoom
}
