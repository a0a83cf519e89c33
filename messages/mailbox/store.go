package mailbox

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/hashicorp/raft"
	wal "github.com/hashicorp/raft-wal"
	"golang.org/x/sys/unix"

	"github.com/candor-grid/candor/messages"
)

// disk is the durable state of a replica, in one directory.
type disk struct {
	lock      *os.File
	store     *wal.WAL // the log, and Raft's votes
	logs      raft.LogStore
	stable    *guardedStable
	snapshots *sealedSnapshots
	promises  *promises
	sealed    *sealedLog
	last      tail // last entry of the log when it was opened, or of the snapshot if that is later
}

// retainedSnapshots is 2: the latest snapshot and the one before it are kept, in case the latest cannot be read.
const retainedSnapshots = 2

// recentEntries is how many entries of the log are kept in memory. Soon after an entry was written, it is read several
// times: once for each follower to which it is sent, and once to apply it.
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

const (
	walDir   = "wal"
	boltFile = "log.bolt" // older releases could keep the log in a bolt file with this name
)

func openStore(c *Config) (*wal.WAL, error) {
	segments, old := filepath.Join(c.Dir, walDir), filepath.Join(c.Dir, boltFile)
	if _, err := os.Stat(old); err == nil {
		return nil, messages.Errorf(messages.Invalid, "%s: is a log of the store bolt, which this release does not read; if a majority of the group has logs of the store wal, move %s away: this replica then copies their entries; if not, start the previous release", old, c.Dir)
	}
	if err := os.MkdirAll(segments, 0o700); err != nil {
		return nil, fmt.Errorf("mailbox: cannot make the log's directory: %w", err)
	}
	return wal.Open(segments, wal.WithSegmentSize(c.SegmentBytes), wal.WithSegmentFiler(newSegments(c, segments)), wal.WithLogger(newRaftLog(c.Log)))
}

// lockDir locks the directory for this process. The kernel releases the lock when the process ends, even if the process
// is killed.
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

// unlock releases a lock at once. Closing the file is not enough: a process that is just being started may have the
// file open too.
func unlock(f *os.File) error {
	return errors.Join(unix.Flock(int(f.Fd()), unix.LOCK_UN), f.Close())
}

func (d *disk) close() error {
	var err error
	if d.store != nil {
		err = safely(d.store.Close)
	}
	if d.promises != nil {
		err = errors.Join(err, d.promises.close())
	}
	return errors.Join(err, unlock(d.lock))
}

// freeBytes returns how many bytes a process without privileges can still write on dir's disk.
func freeBytes(dir string) (uint64, error) {
	var s unix.Statfs_t
	if err := unix.Statfs(dir, &s); err != nil {
		return 0, err
	}
	return uint64(s.Bavail) * uint64(s.Bsize), nil
}
