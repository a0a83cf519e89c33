package mailbox

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/hashicorp/raft"
	boltdb "github.com/hashicorp/raft-boltdb/v2"
	wal "github.com/hashicorp/raft-wal"
	"golang.org/x/sys/unix"

	"github.com/candor-grid/candor/messages"
)

// logStore is what both kinds of store are: the log, and Raft's votes.
type logStore interface {
	raft.LogStore
	raft.StableStore
	io.Closer
}

// disk is the durable state of a replica, in one directory.
type disk struct {
	lock      *os.File
	store     logStore
	logs      raft.LogStore
	stable    *guardedStable
	snapshots *sealedSnapshots
	promises  *promises
	sealed    *sealedLog
	last      tail // of the log, or the snapshot if that goes further, when opened
}

// retainedSnapshots keeps the one before the latest, in case that cannot be read.
const retainedSnapshots = 2

// recentEntries are kept in memory: each entry is read several times soon after
// it was written, by the replication to each follower and to be applied.
const recentEntries = 32

func openDisk(c *Config, g *guard) (*disk, error) {
	if err := os.MkdirAll(c.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("mailbox: cannot make the log's directory: %w", err)
	}
	lock, err := lockDir(c.Dir)
	if err != nil {
		return nil, err
	}
	d := &disk{lock: lock}
	if err := d.open(c, g); err != nil {
		return nil, errors.Join(err, d.close())
	}
	return d, nil
}

func (d *disk) open(c *Config, g *guard) (err error) {
	if err := d.inspect(c); err != nil {
		return err
	}
	var files raft.LogStore = d.store
	if c.faults.wrap != nil {
		files = c.faults.wrap(files)
	}
	d.sealed = &sealedLog{LogStore: files, guard: g, place: c.Dir, promises: d.promises,
		keep: d.snapshots.oldest, restored: d.snapshots.newest, applied: g.applied, damaged: g.damaged}
	d.sealed.last.Store(&d.last)
	if d.logs, err = raft.NewLogCache(recentEntries, d.sealed); err != nil {
		return err
	}
	d.stable = &guardedStable{StableStore: d.store, guard: g, promises: d.promises}
	return nil
}

// Where the log is, by store.
const (
	walDir   = "wal"
	boltFile = "log.bolt"
)

func openStore(c *Config) (logStore, error) {
	segments, tree := filepath.Join(c.Dir, walDir), filepath.Join(c.Dir, boltFile)
	other, kind := tree, StoreBolt
	if c.Store == StoreBolt {
		other, kind = segments, StoreWAL
	}
	if _, err := os.Stat(other); err == nil {
		return nil, messages.Errorf(messages.Invalid, "mailbox config: %s holds a log of Store %q; use that, or another Dir", c.Dir, kind)
	}
	if c.Store == StoreBolt {
		if err := checkTree(tree); err != nil {
			return nil, fmt.Errorf("its structure is broken: %w", err)
		}
		return boltdb.New(boltdb.Options{Path: tree, MsgpackUseNewTimeFormat: true})
	}
	if err := os.MkdirAll(segments, 0o700); err != nil {
		return nil, fmt.Errorf("mailbox: cannot make the log's directory: %w", err)
	}
	return wal.Open(segments, wal.WithSegmentSize(c.SegmentBytes), wal.WithLogger(newRaftLog(c.Log)))
}

// lockDir makes this process the only one with the directory's state. The
// kernel gives the lock up when the process ends, however it ends.
func lockDir(dir string) (*os.File, error) {
	f, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("mailbox: cannot open the lock of %s: %w", dir, err)
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		_ = f.Close()
		return nil, fmt.Errorf("mailbox: %s is in use by another replica or process: %w", dir, err)
	}
	return f, nil
}

func (d *disk) close() error {
	var err error
	if d.store != nil {
		err = safely(d.store.Close)
	}
	if d.promises != nil {
		err = errors.Join(err, d.promises.close())
	}
	return errors.Join(err, d.lock.Close())
}

// freeBytes is the space on dir's disk that a process without privileges may use.
func freeBytes(dir string) (uint64, error) {
	var s unix.Statfs_t
	if err := unix.Statfs(dir, &s); err != nil {
		return 0, err
	}
	return uint64(s.Bavail) * uint64(s.Bsize), nil
}
