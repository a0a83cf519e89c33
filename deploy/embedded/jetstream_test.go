package embedded

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"
	"golang.org/x/sys/unix"

	"github.com/candor-grid/candor/deploy/identity"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/await"
	"github.com/candor-grid/candor/messages/bus"
	jobmsg "github.com/candor-grid/candor/messages/job"
)

// TestJetStreamStartsAgainAfterAFullDisk stops JetStream on two of three servers, as a full disk does. The site must
// store files again without a restart.
func TestJetStreamStartsAgainAfterAFullDisk(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	c := Default()
	c.Keys, c.Replicas, c.Hosts = filepath.Join(dir, "keys"), 0, ownAddresses(t)
	if _, err := identity.Create(c.Keys, c.Site); err != nil {
		t.Fatal(err)
	}
	core, logs := observer.New(zap.WarnLevel)
	sites := startHosts(t, c, dir, func(_ int, o *Options) { o.Log = zap.New(core) })
	alice := connect(t, sites[2], "alice")
	for _, s := range sites[:2] {
		if err := s.server.ShutdownJetStream(); err != nil {
			t.Fatal(err)
		}
	}
	// The test waits for this message and not for JetStreamEnabled. JetStreamEnabled becomes true too early: at that
	// time the server does not know yet that it belongs to a cluster.
	await.Until(t, "JetStream runs", func() bool { return logs.FilterMessage("JetStream runs again").Len() == 2 })
	in, _ := alice.send("in", []byte("input"))
	if job := alice.final(alice.submit("k", withFiles(1, "cat in", nil, in))); job.State != jobmsg.Completed {
		t.Errorf("the job ended %v", job.State)
	}
	for _, s := range sites {
		if c := s.server.JetStreamConfig(); !c.SyncAlways {
			t.Errorf("%s: %+v", s.server.Name(), c)
		}
	}
}

// TestDepotTakesFilesAfterAFullDisk fills the disk of a site with one host. When there is room again, the stream must
// accept files without a restart.
func TestDepotTakesFilesAfterAFullDisk(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root, to mount a small disk")
	}
	c := small(t.TempDir())
	disk := filepath.Join(c.State, "nats")
	if err := os.Mkdir(disk, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mount("tmpfs", disk, "tmpfs", 0, "size=512m"); err != nil {
		t.Skip("cannot mount: ", err)
	}
	t.Cleanup(func() { _ = unix.Unmount(disk, unix.MNT_DETACH) })
	s := start(t, c)
	t.Cleanup(func() { closeSite(t, s) })
	alice := connect(t, s, "alice")
	put := func(content byte, patience time.Duration) error {
		data := bytes.Repeat([]byte{content}, 1<<20)
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		_, err := bus.SendFile(ctx, alice.bus, messages.Subject(alice.site, messages.Depot, jobmsg.VerbPut, alice.name), messages.Attempt{}, alice.file("in", data), bytes.NewReader(data))
		return err
	}
	if err := put(1, await.Patience); err != nil {
		t.Fatal(err)
	}
	resize := func(bytes uint64) error {
		return unix.Mount("tmpfs", disk, "tmpfs", unix.MS_REMOUNT, fmt.Sprint("size=", bytes))
	}
	await.Until(t, "the disk has no byte more than is used", func() bool {
		var used unix.Statfs_t
		// compute the size again, because more of the disk may be used now
		return unix.Statfs(disk, &used) == nil && resize((used.Blocks-used.Bfree)*uint64(used.Bsize)) == nil
	})
	if err := put(2, time.Second); err == nil {
		t.Fatal("the disk is not full")
	}
	if err := resize(512 << 20); err != nil {
		t.Fatal(err)
	}
	await.Until(t, "the depot takes a file", func() bool { return put(2, 5*time.Second) == nil })
}

// TestFreeSpaceIsNoLimitOfStreams checks that the space that is free at the start does not limit a site's streams. With
// such a limit, a site could not start again after its disk had been full.
func TestFreeSpaceIsNoLimitOfStreams(t *testing.T) {
	t.Parallel()
	s := start(t, small(t.TempDir()))
	t.Cleanup(func() { closeSite(t, s) })
	if got := s.server.JetStreamConfig().MaxStore; got != storeLimit {
		t.Errorf("streams may hold %d bytes", got)
	}
}

// The server must sync each message to the disk. An earlier version did not, and a power failure lost the files that
// tasks had left in the last two minutes.
func TestStreamsAreSynced(t *testing.T) {
	t.Parallel()
	s := start(t, small(t.TempDir()))
	t.Cleanup(func() { closeSite(t, s) })
	if c := s.server.JetStreamConfig(); !c.SyncAlways {
		t.Errorf("%+v", c)
	}
}

// If the snapshot of a host's JetStream is damaged, the host must start, say so, and keep the damaged data.
func TestADamagedClusterOfJetStreamIsSetAside(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	c := Default()
	c.Keys, c.Replicas, c.Hosts, c.State = filepath.Join(dir, "keys"), 0, ownAddresses(t), filepath.Join(dir, "state")
	authority, err := identity.Create(c.Keys, c.Site)
	if err != nil {
		t.Fatal(err)
	}
	options := func() *server.Options {
		o, err := serverOptions(&c, &c.Hosts[0], authority)
		if err != nil {
			t.Fatal(err)
		}
		return o
	}
	run := func(log *zap.Logger) {
		t.Helper()
		s, err := startServer(options(), log, prometheus.NewRegistry())
		if err != nil {
			t.Fatal(err)
		}
		s.Shutdown()
		s.WaitForShutdown()
	}
	run(zap.NewNop())
	nats := filepath.Join(c.State, "nats")
	found, err := filepath.Glob(filepath.Join(nats, "jetstream", "*", "_js_", "_meta_"))
	if err != nil || len(found) != 1 {
		t.Fatalf("found %v, %v", found, err)
	}
	snapshots := filepath.Join(found[0], "snapshots")
	if err := os.MkdirAll(snapshots, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(snapshots, "snap.1.1"), bytes.Repeat([]byte("flipped "), 20), 0o600); err != nil {
		t.Fatal(err)
	}
	core, logs := observer.New(zap.WarnLevel)
	run(zap.New(core))
	aside, _ := filepath.Glob(filepath.Join(nats, "damaged-*", "snapshots", "snap.1.1"))
	if len(aside) != 1 || logs.FilterMessageSnippet("moved aside").Len() != 1 {
		t.Errorf("aside is %v, and the log has %v", aside, logs.All())
	}
	run(zap.NewNop())
}
