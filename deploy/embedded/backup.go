package embedded

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"go.uber.org/zap"
	"golang.org/x/sys/unix"

	"github.com/candor-grid/candor/auctioneer/archive"
	"github.com/candor-grid/candor/bank/history"
	"github.com/candor-grid/candor/deploy/backup"
	"github.com/candor-grid/candor/deploy/depot"
	"github.com/candor-grid/candor/deploy/identity"
	"github.com/candor-grid/candor/estimator"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/clearing"
	"github.com/candor-grid/candor/messages/durable"
	"github.com/candor-grid/candor/messages/mailbox"
	"github.com/candor-grid/candor/messages/money"
)

// A running site's backup can be read from this socket in the state directory. Backups contain the site's keys, which
// must not travel over the network.
const backupSocket = "backup.sock"

// BackupSocket returns the path of the socket for backups in a state directory.
func BackupSocket(state string) string { return filepath.Join(state, backupSocket) }

// Build is the name of the program that a backup records as its maker.
var Build = "candor"

// Backup writes a backup of the site while the site serves. The backup has everything that was acknowledged before the
// call.
func (s *Site) Backup(ctx context.Context, w io.Writer) error {
	stream := backup.NewStream(w, backup.About{Site: s.config.Site, Host: s.options.Host, Build: Build, Began: time.Now().UTC()})
	return stream.End((&saving{s, stream}).all(ctx))
}

type saving struct {
	*Site
	to *backup.Stream
}

// The method `all` saves everything, in a fixed order. Package backup gives the reasons for the order.
func (s *saving) all(ctx context.Context) error {
	for _, step := range []func(context.Context) error{
		func(context.Context) error { return s.file(shapeFile) },
		func(context.Context) error { // the checkpoints of the books that the site signed
			return s.extras(s.banks, historyDir, func(name string) bool { return name == history.CheckpointsFile })
		},
		func(ctx context.Context) error { return s.group(ctx, s.auctioneers) },
		func(context.Context) error { return s.extras(s.auctioneers, archiveDir, archive.IsSegment) },
		func(ctx context.Context) error { return s.group(ctx, s.banks) },
		func(context.Context) error { return s.extras(s.banks, historyDir, history.IsSegment) },
		s.depot,
		func(context.Context) error {
			return s.copy(messages.Estimator, filepath.Join(s.config.estimatorDir(serviceOf(s.host)), estimator.SnapshotFile))
		},
		func(context.Context) error { return s.keysAndFiles() },
	} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return nil
}

// group saves the state of an actor from one of its replicas in this process.
func (s *saving) group(ctx context.Context, g *group) error {
	reply, err := ask[messages.ReplicasReply](ctx, s.operator, g.actor, messages.VerbReplicas, messages.Empty{})
	if err != nil {
		return fmt.Errorf("%s: %w", g.actor, err)
	}
	if reply.Applied == 0 {
		return messages.Errorf(messages.Unavailable, "the leader of the %s does not know whether it leads; try again", g.actor)
	}
	id, err := g.caughtUp(ctx, reply.Applied)
	if err != nil {
		return err
	}
	saved, state, err := g.archiver(id).Save(ctx)
	if err != nil {
		return fmt.Errorf("%s replica %s: %w", g.actor, id, err)
	}
	defer state.Close()
	if err := s.to.JSON(g.actor+"/saved.json", saved); err != nil {
		return err
	}
	return s.to.Add(g.actor+"/state", saved.Size, state)
}

// extras saves files of a directory in a replica's state. The argument `dir` is the name of this directory. The
// function `wanted` gets a file's name, and returns true if the file must be saved. A file may grow while it is saved;
// then it is saved up to the end that it had at first. A file may also be removed before it is saved. This is no error.
func (s *saving) extras(g *group, dir string, wanted func(name string) bool) error {
	from := filepath.Join(g.dir(g.localReplicas()[0]), dir)
	entries, err := os.ReadDir(from)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if wanted(e.Name()) {
			if err := s.copy(g.actor+"/"+dir, filepath.Join(from, e.Name())); err != nil {
				return err
			}
		}
	}
	return nil
}

func (s *saving) depot(ctx context.Context) error {
	b, err := s.connectAs(identity.Service, messages.ServiceIdentity(messages.Depot))
	if err != nil {
		return err
	}
	defer b.Close()
	reply, err := ask[money.AccountsReply](ctx, s.operator, messages.Bank, messages.VerbAccounts, messages.Empty{})
	if err != nil {
		return err
	}
	peers, err := ask[clearing.PeersReply](ctx, s.operator, messages.Bank, clearing.VerbPeers, messages.Empty{})
	if err != nil {
		return err
	}
	var owners []messages.Name
	for _, account := range reply.Accounts {
		owners = append(owners, account.Account)
	}
	for i := range peers.Peers {
		owners = append(owners, depot.VisitorsOf(peers.Peers[i].Peer))
	}
	for _, owner := range owners {
		err := depot.Save(ctx, b, s.config.Site, owner, func(object string, data []byte) error {
			return s.to.Bytes(filepath.Join(messages.Depot, owner, object), data)
		})
		if err != nil {
			return fmt.Errorf("files of %s: %w", owner, err)
		}
	}
	return nil
}

func (s *saving) keysAndFiles() error {
	for _, name := range []string{toldFile, usersFile} {
		if err := s.file(name); err != nil {
			return err
		}
	}
	for name, dir := range map[string]string{"keys": s.config.KeysDir(), "creds": filepath.Join(s.config.State, "creds")} {
		err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
			if err != nil || !e.Type().IsRegular() {
				return err
			}
			below, err := filepath.Rel(dir, filepath.Dir(path))
			if err != nil {
				return err
			}
			return s.copy(filepath.Join(name, below), path)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func (s *saving) file(name string) error { return s.copy("", filepath.Join(s.config.State, name)) }

// copy saves a file in a directory of the backup, if the file exists.
func (s *saving) copy(below, path string) error {
	content, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return s.to.Bytes(filepath.Join(below, filepath.Base(path)), content)
}

// caughtUp waits until a replica of this process has applied a log entry. It returns the ID of the replica.
func (g *group) caughtUp(ctx context.Context, index uint64) (id string, err error) {
	err = again(ctx, 10*time.Millisecond, func() (bool, error) {
		for _, s := range g.statuses() {
			if s.Applied >= index {
				id = s.ID
				return false, nil
			}
		}
		return true, messages.Errorf(messages.Unavailable, "no replica of the %s on this host has the latest entries of the leader; check whether this host is cut off", g.actor)
	})
	return id, err
}

func (g *group) archiver(id string) mailbox.Archiver {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.boxes[id].(mailbox.Archiver)
}

// backupWithin bounds the time of a backup without the files of the depot. Each of those files has a separate limit.
const backupWithin = 10 * time.Minute

// serveBackups writes a backup to each process that connects to the socket, one after another. It serves only root
// and the user that runs the site.
func (s *Site) serveBackups() error {
	path := BackupSocket(s.config.State)
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) { // a process that was killed may have left the socket
		return fmt.Errorf("backups: %w", err)
	}
	var err error
	if s.backups, err = net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"}); err != nil {
		s.log.Warn("a backup of the running site is not possible: its socket cannot be opened; try a shorter path of the state directory", zap.Error(err))
		s.backups = nil
		return nil
	}
	if err := os.Chmod(path, 0o600); err != nil {
		return fmt.Errorf("backups: %w", err)
	}
	s.watchers.Go(func() {
		for {
			c, err := s.backups.AcceptUnix()
			if err != nil {
				return // the listener was closed
			}
			s.answerBackup(c)
		}
	})
	return nil
}

func (s *Site) answerBackup(c *net.UnixConn) {
	defer c.Close()
	if !mayHaveKeys(c) {
		s.log.Warn("refused a backup to another user of this machine")
		return
	}
	ctx, cancel := context.WithTimeout(s.ctx, backupWithin)
	defer cancel()
	defer context.AfterFunc(ctx, func() { _ = c.SetDeadline(time.Now()) })()
	if err := s.Backup(ctx, c); err != nil {
		s.log.Warn("a backup was requested, but could not be sent", zap.Error(err))
		return
	}
	s.log.Info("handed out a backup")
}

// mayHaveKeys reports whether the process at the other end of a connection runs as root or as the user of this process.
// Such a process could read the site's keys anyway.
func mayHaveKeys(c *net.UnixConn) bool {
	raw, err := c.SyscallConn()
	if err != nil {
		return false
	}
	var peer *unix.Ucred
	var asked error
	if err := raw.Control(func(fd uintptr) { peer, asked = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED) }); err != nil || asked != nil {
		return false
	}
	return peer.Uid == 0 || int(peer.Uid) == os.Getuid()
}

// ReceiveBackup asks a running site for a backup, and writes it into dir. The argument `state` is the site's state
// directory.
func ReceiveBackup(ctx context.Context, state, dir string) (backup.About, error) {
	var d net.Dialer
	c, err := d.DialContext(ctx, "unix", BackupSocket(state))
	if err != nil {
		if _, known := ReadInfo(state); known != nil {
			return backup.About{}, messages.Errorf(messages.NotFound, "%s: no site was ever started with this state directory; name the state directory of a running site with --state", state)
		}
		return backup.About{}, messages.Errorf(messages.Unavailable, "%s: the site with this state directory does not run, or runs as another user: %v", state, errors.Unwrap(err))
	}
	defer c.Close()
	defer context.AfterFunc(ctx, func() { _ = c.Close() })()
	about, err := backup.Receive(dir, c)
	if ctx.Err() != nil {
		return about, ctx.Err()
	}
	return about, err
}

// Restore makes a state directory from a backup. The argument `keys` is the directory for the site's keys; the default
// is the state directory. Keys that already exist stay, because they may be newer. The argument `host` names the host
// to restore, on a site of several hosts.
func Restore(dir, state, keys, host string) (about backup.About, err error) {
	b, err := backup.Open(dir)
	if err != nil {
		return about, err
	}
	if err := backup.Empty(state); err != nil {
		return b.About, err
	}
	aside := filepath.Clean(state) + ".incomplete"
	if err := os.RemoveAll(aside); err != nil { // an interrupted restore may have left this directory
		return b.About, err
	}
	if err := os.MkdirAll(aside, 0o711); err != nil {
		return b.About, err
	}
	if err := (&restoring{b, aside, host}).all(keys); err != nil {
		return b.About, errors.Join(err, os.RemoveAll(aside))
	}
	return b.About, durable.RenameTree(aside, state)
}

type restoring struct {
	*backup.Backup
	state, host string
}

func (r *restoring) all(keys string) error {
	var made shape
	if err := r.JSON(shapeFile, &made); err != nil {
		return err
	}
	ids := made.Replicas
	switch {
	case r.About.Host != "" && r.host == "":
		return messages.Errorf(messages.Invalid, "the site has the hosts %s; name the host to restore with --host", strings.Join(ids, ", "))
	case r.About.Host == "" && r.host != "":
		return messages.Errorf(messages.Invalid, "--host: the site of this backup has no hosts; leave --host out")
	case r.host != "":
		ids = []string{r.host}
	}
	for _, actor := range []string{messages.Auctioneer, messages.Bank} {
		for _, id := range ids {
			if err := r.replica(actor, id); err != nil {
				return err
			}
		}
	}
	if err := r.tree(messages.Estimator, (&Config{State: r.state}).estimatorDir(cmp.Or(r.host, serviceOf(nil)))); err != nil {
		return err
	}
	made.Restored = messages.TimeOf(r.About.Began)
	made.Sum = made.sum()
	if err := replaceJSON(filepath.Join(r.state, shapeFile), made); err != nil {
		return err
	}
	for _, name := range []string{toldFile, usersFile} {
		if r.Has(name) {
			if err := r.Copy(name, filepath.Join(r.state, name)); err != nil {
				return err
			}
		}
	}
	for _, dir := range []string{messages.Depot, "creds"} {
		if err := r.tree(dir, filepath.Join(r.state, dir)); err != nil {
			return err
		}
	}
	if keys == "" {
		return r.tree("keys", filepath.Join(r.state, "keys"))
	}
	if backup.Empty(keys) != nil {
		return nil
	}
	return r.tree("keys", keys)
}

func (r *restoring) replica(actor, id string) error {
	var saved mailbox.Saved
	if err := r.JSON(actor+"/saved.json", &saved); err != nil {
		return err
	}
	state, err := os.Open(r.Path(actor + "/state"))
	if err != nil {
		return err
	}
	defer state.Close()
	dir := filepath.Join(r.state, actor, id)
	if err := mailbox.Plant(dir, id, saved, r.About.Began, state); err != nil {
		return err
	}
	for _, beside := range []string{historyDir, archiveDir} {
		if err := r.tree(actor+"/"+beside, filepath.Join(dir, beside)); err != nil {
			return err
		}
	}
	return nil
}

func (r *restoring) tree(from, to string) error {
	for _, name := range r.Below(from) {
		if err := r.Copy(from+"/"+name, filepath.Join(to, name)); err != nil {
			return err
		}
	}
	return nil
}
