package mailbox

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/hashicorp/raft"

	"github.com/candor-grid/candor/messages"
)

// Saved describes a state that was saved from a replica, or that Plant puts into a new one.
type Saved struct {
	Index   uint64        `json:"index"` // index of the last log entry that the state contains
	Term    uint64        `json:"term"`
	Since   uint64        `json:"since"` // index of the log entry that set the group's members
	Members []SavedMember `json:"members"`
	Size    int64         `json:"size"` // size of the state in bytes
}

// SavedMember is a replica of the group, with the fields of Raft's configuration.
type SavedMember struct {
	ID      string `json:"id"`
	Address string `json:"address"`
	Votes   bool   `json:"votes"`
}

// Archiver is a mailbox that can save its state while it works. The mailboxes that [OpenRaft] returns are Archivers.
type Archiver interface {
	// Save returns a state with at least all entries that were applied here before the call. The group continues to
	// work. The caller must close the reader.
	Save(ctx context.Context) (Saved, io.ReadCloser, error)
}

// saveAgain is the pause before another try if Raft could not make a snapshot.
const saveAgain = 50 * time.Millisecond

// Save implements [Archiver]. It makes a snapshot, which the replica itself uses too.
func (m *replicated) Save(ctx context.Context) (Saved, io.ReadCloser, error) {
	again := time.NewTicker(saveAgain)
	defer again.Stop()
	for {
		meta, state, err := m.save()
		if err == nil {
			return savedAs(meta), state, nil
		}
		if errors.Is(err, raft.ErrRaftShutdown) || errors.Is(err, errGone) {
			return Saved{}, nil, ErrClosed
		}
		select {
		case <-ctx.Done():
			return Saved{}, nil, fmt.Errorf("mailbox: cannot save the state: %w", errors.Join(ctx.Err(), err))
		case <-again.C:
		}
	}
}

func (m *replicated) save() (*raft.SnapshotMeta, io.ReadCloser, error) {
	applied := m.applier.index.Load()
	err := await(m.raft.Snapshot(), m.gone)
	if err != nil && !errors.Is(err, raft.ErrNothingNewToSnapshot) {
		return nil, nil, err
	}
	all, err := m.disk.snapshots.List()
	if err != nil {
		return nil, nil, err
	}
	if len(all) == 0 || all[0].Index < applied {
		return nil, nil, fmt.Errorf("the latest snapshot ends before entry %d", applied)
	}
	return m.disk.snapshots.Open(all[0].ID)
}

func savedAs(meta *raft.SnapshotMeta) Saved {
	s := Saved{Index: meta.Index, Term: meta.Term, Since: meta.ConfigurationIndex, Size: meta.Size}
	for _, one := range meta.Configuration.Servers {
		s.Members = append(s.Members, SavedMember{string(one.ID), string(one.Address), one.Suffrage == raft.Voter})
	}
	return s
}

// Plant makes the directory of a replica from a saved state, for example of a backup. Replicas that are made from the
// same saved state form a new group. A replica of the old group cannot join it. The argument `began` is the time at
// which the backup began.
func Plant(dir, id string, s Saved, began time.Time, state io.Reader) (err error) {
	if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
		return messages.Errorf(messages.Conflict, "%s: exists already; put a saved state into a new directory", dir)
	}
	group, err := s.group(id)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("mailbox: cannot make the log's directory: %w", err)
	}
	c := (&Config{ID: id, Dir: dir, SegmentBytes: 16 << 20}).withDefaults()
	files, err := raft.NewFileSnapshotStoreWithLogger(dir, retainedSnapshots, newRaftLog(c.Log))
	if err != nil {
		return fmt.Errorf("mailbox: cannot make the snapshots in %s: %w", dir, err)
	}
	snapshots := &sealedSnapshots{SnapshotStore: files, dir: filepath.Join(dir, snapshotsDir)}
	_, names := raft.NewInmemTransport("") // needed only to read the names of replicas in old snapshots
	sink, err := snapshots.Create(raft.SnapshotVersionMax, s.Index, s.Term, group, s.Since, names)
	if err != nil {
		return fmt.Errorf("mailbox: cannot make a snapshot in %s: %w", dir, err)
	}
	if n, err := io.Copy(sink, state); err != nil || n != s.Size {
		return errors.Join(fmt.Errorf("mailbox: only %d of %d bytes of a saved state were written: %w", n, s.Size, orNone(err)), sink.Cancel())
	}
	if err := sink.Close(); err != nil {
		return fmt.Errorf("mailbox: cannot make a snapshot in %s: %w", dir, err)
	}
	return errors.Join(plantVotes(c, s.Term), plantPromises(c, s, began))
}

// plantVotes stores the term of the restored state as the present term. So the next election begins a higher term.
func plantVotes(c *Config, term uint64) error {
	store, err := openStore(c)
	if err != nil {
		return err
	}
	if err := errors.Join(store.SetUint64(keyTerm, term), store.Close()); err != nil {
		return fmt.Errorf("mailbox: cannot write the votes in %s: %w", c.Dir, err)
	}
	return nil
}

// plantPromises writes the promises file of a replica whose state is from a backup. The file says that the state is
// from a backup. So the replica does not join replicas that were not restored.
func plantPromises(c *Config, s Saved, began time.Time) error {
	r := record{Disk: newDisk(), Standing: standingWhole, Sealed: 1, Origin: origin{At: time.Now().UnixNano(), From: began.UnixNano()}}
	p, err := createPromises(c.Dir, r)
	if err != nil {
		return err
	}
	return errors.Join(p.lowered(s.Index, s.Term), p.close())
}

// group returns the members of the group as a configuration of Raft. It returns an error if the replica `id` is not
// among the members.
func (s *Saved) group(id string) (c raft.Configuration, err error) {
	found := false
	for _, m := range s.Members {
		one := raft.Server{ID: raft.ServerID(m.ID), Address: raft.ServerAddress(m.Address), Suffrage: raft.Nonvoter}
		if m.Votes {
			one.Suffrage = raft.Voter
		}
		c.Servers, found = append(c.Servers, one), found || m.ID == id
	}
	if !found {
		return c, messages.Errorf(messages.NotFound, "replica %q: was not in the group when the state was saved", id)
	}
	return c, nil
}
