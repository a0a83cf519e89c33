package mailbox

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/hashicorp/raft"
	"go.uber.org/zap"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/durable"
)

// In the directory "snapshots", Raft has a directory for each snapshot. When Raft reads or sends the snapshot's state,
// it checks the state with the checksum in meta.json. Another file in this directory is a seal. It protects the content
// of meta.json: the index, the term and the group.
const (
	snapshotsDir = "snapshots"
	snapshotMeta = "meta.json"
	snapshotSeal = "meta.sum"
)

type sealedSnapshots struct {
	raft.SnapshotStore
	dir    string
	ending sync.Mutex // held while a snapshot replaces older ones
}

// Create begins a snapshot.
func (s *sealedSnapshots) Create(v raft.SnapshotVersion, index, term uint64, group raft.Configuration, groupIndex uint64, t raft.Transport) (raft.SnapshotSink, error) {
	sink, err := s.SnapshotStore.Create(v, index, term, group, groupIndex, t)
	if err != nil {
		return nil, err
	}
	return &sealedSink{sink, s}, nil
}

type sealedSink struct {
	raft.SnapshotSink
	store *sealedSnapshots
}

// Close ends the snapshot and seals its description. After a crash in between, the snapshot has no seal, and is
// accepted without one.
func (s *sealedSink) Close() error {
	s.store.ending.Lock()
	defer s.store.ending.Unlock()
	if err := s.SnapshotSink.Close(); err != nil {
		return err
	}
	return s.store.seal(s.ID())
}

func (s *sealedSnapshots) seal(id string) error {
	digest, err := s.digest(id)
	if errors.Is(err, os.ErrNotExist) {
		return nil // the snapshot was cancelled, or a later one replaced it
	}
	if err != nil {
		return err
	}
	return writeSynced(filepath.Join(s.dir, id, snapshotSeal), []byte(digest))
}

func (s *sealedSnapshots) digest(id string) (string, error) {
	meta, err := os.ReadFile(filepath.Join(s.dir, id, snapshotMeta))
	digest := sha256.Sum256(meta)
	return hex.EncodeToString(digest[:]), err
}

// Open checks a snapshot and opens it.
func (s *sealedSnapshots) Open(id string) (*raft.SnapshotMeta, io.ReadCloser, error) {
	want, err := os.ReadFile(filepath.Join(s.dir, id, snapshotSeal))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, nil, err
	}
	if err == nil {
		if got, err := s.digest(id); err != nil || got != string(want) {
			return nil, nil, fmt.Errorf("mailbox: %s does not match its checksum in %s", filepath.Join(s.dir, id, snapshotMeta), snapshotSeal)
		}
	}
	meta, state, err := s.SnapshotStore.Open(id)
	if err != nil {
		return nil, nil, fmt.Errorf("mailbox: the snapshot in %s is damaged: %w", filepath.Join(s.dir, id), err)
	}
	return meta, state, nil
}

// newest returns the latest snapshot; index 0 if there is none.
func (s *sealedSnapshots) newest() (index, term uint64) {
	all, err := s.List()
	if err != nil || len(all) == 0 {
		return 0, 0
	}
	return all[0].Index, all[0].Term
}

// oldest returns the index of the oldest usable snapshot. If there are fewer than retainedSnapshots snapshots, it
// returns 0, so that the whole log is kept.
func (s *sealedSnapshots) oldest() uint64 {
	all, err := s.List()
	if err != nil || len(all) < retainedSnapshots {
		return 0
	}
	return all[len(all)-1].Index
}

// unreadable lists the directories of snapshots that cannot be read; Raft skips these. The result `usable` is the
// latest snapshot that can be read, or nil.
func (s *sealedSnapshots) unreadable() (damaged []string, usable *raft.SnapshotMeta, cause error) {
	entries, err := os.ReadDir(s.dir)
	if err != nil {
		return nil, nil, err
	}
	all, err := s.List()
	if err != nil {
		return nil, nil, err
	}
	good := map[string]bool{}
	for _, meta := range all {
		_, state, err := s.Open(meta.ID)
		if err != nil {
			cause = errors.Join(cause, err)
			continue
		}
		_ = state.Close()
		good[meta.ID] = true
		usable = cmp.Or(usable, meta)
	}
	for _, e := range entries {
		if !e.IsDir() || good[e.Name()] || strings.HasSuffix(e.Name(), ".tmp") {
			continue
		}
		damaged = append(damaged, e.Name())
		if cause == nil {
			cause = fmt.Errorf("mailbox: %s cannot be read", filepath.Join(s.dir, e.Name(), snapshotMeta))
		}
	}
	return damaged, usable, cause
}

// moveAside moves unreadable snapshots into a separate directory. It logs the text `what` with their names.
func (s *sealedSnapshots) moveAside(c *Config, names []string, cause error, what string) error {
	c.Log.Error(what, zap.Strings("snapshots", names), zap.Error(cause))
	aside, err := asideDir(c)
	for _, name := range names {
		err = errors.Join(err, os.Rename(filepath.Join(s.dir, name), filepath.Join(aside, name)))
	}
	return errors.Join(err, durable.Sync(s.dir))
}

// passOver is called after a start at which the state machine refused the latest snapshots, and Raft failed with `err`.
// It moves these snapshots aside and continues from an older snapshot. It returns an error if the snapshots are not the
// cause, or if the log does not go back far enough.
func (m *replicated) passOver(refused []error, err error) error {
	why := errors.Join(refused...)
	if isConfig(why) || messages.KindOf(why) == messages.Unavailable {
		return why
	}
	all, listed := m.disk.snapshots.List()
	if listed != nil {
		return errors.Join(why, listed)
	}
	if err == nil && len(refused) < len(all) && m.disk.continues(all[len(refused)].Index) {
		return m.disk.snapshots.putAside(m.config, all[:len(refused)], why)
	}
	if !m.disk.canHeal(m.config) {
		return fmt.Errorf("%w; no other replica has the data: restore %s from a copy", why, m.config.Dir)
	}
	kept := m.disk.promises.change(func(r *record) {
		r.Disk, r.Standing, r.Why, r.Discard = newDisk(), standingDoubtful, why.Error(), true
	})
	return errors.Join(fmt.Errorf("%w; the next start puts the snapshot aside and copies everything from the other replicas", why), kept)
}

// continues reports whether the log continues a snapshot. For this, it must have all entries from the snapshot up to
// the last entry that this replica has acknowledged.
func (d *disk) continues(snapshot uint64) bool {
	first, err := d.logs.FirstIndex()
	last, _ := d.sealed.end()
	return err == nil && first > 0 && first <= snapshot+1 && last >= d.promises.promised()
}

// refusedSnapshot is called when the machine has refused a snapshot from the leader. It moves the snapshot aside, so
// that good snapshots stay. If the cause is not temporary, it also stops the replica, because the leader would send the
// same snapshot again.
func (m *replicated) refusedSnapshot(why error) {
	if messages.KindOf(why) != messages.Unavailable {
		defer m.applier.stop(m.applier.unable, fmt.Errorf("mailbox: the leader sent a snapshot that this replica cannot read: %w. This replica ends and keeps its own state unchanged: run the same release on every replica", why))
	}
	all, err := m.disk.snapshots.List()
	if err == nil && len(all) > 0 {
		err = m.disk.snapshots.putAside(m.config, all[:1], why)
	}
	if err != nil {
		m.config.Log.Error("cannot put a snapshot aside", zap.Error(err))
	}
}

// refusedDir has the latest refused snapshots, in a replica's directory.
const refusedDir = "damaged-snapshots"

// putAside moves refused snapshots into refusedDir. It replaces the snapshots that were moved there earlier. Otherwise
// the disk could fill, because a leader sends a snapshot again and again until it is accepted.
func (s *sealedSnapshots) putAside(c *Config, refused []*raft.SnapshotMeta, why error) error {
	aside := filepath.Join(c.Dir, refusedDir)
	err := errors.Join(os.RemoveAll(aside), os.Mkdir(aside, 0o700))
	for _, meta := range refused {
		err = errors.Join(err, os.Rename(filepath.Join(s.dir, meta.ID), filepath.Join(aside, meta.ID)))
	}
	c.Log.Error("snapshots that cannot be restored were put aside", zap.Int("snapshots", len(refused)), zap.String("aside", aside), zap.Error(why))
	return errors.Join(err, durable.Sync(s.dir))
}
