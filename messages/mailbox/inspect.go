package mailbox

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"github.com/hashicorp/raft"
	"go.uber.org/zap"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/durable"
)

// The store of votes has these keys. Three are Raft's own. The fourth belongs to this package, and says that this
// replica has once made a file of promises.
var (
	keyTerm      = []byte("CurrentTerm")
	keyVotedTerm = []byte("LastVoteTerm")
	keyVotedFor  = []byte("LastVoteCand")
	keyPromises  = []byte("candor-promises")
)

// acceptFile is a file that an operator makes in a replica's directory. At its next start, and only then, the replica
// accepts its files as complete.
const acceptFile = "accept"

// inspect opens the files of a directory, and checks that they have everything that the replica has promised. Some
// files may be damaged. The replica can continue if the latest snapshot and the entries after it still have everything.
// If they do not, inspect moves the files aside, and the replica starts again without a vote. If the group has no other
// replica, inspect returns the damage as an error instead.
func (d *disk) inspect(c *Config) error {
	err := d.tryOpen(c)
	if _, found := errors.AsType[*damage](err); !found {
		return err
	}
	snapshot, entries, lacks := d.complete(c)
	if lacks == nil {
		if err := d.salvage(c, snapshot, entries, err); err != nil {
			return err
		}
		return d.tryOpen(c)
	}
	if !d.canHeal(c) {
		return fmt.Errorf("%w; neither another replica nor a snapshot has the data: put back a copy of %s, or restore a backup of the site (candor restore)", err, c.Dir)
	}
	aside, moved := d.putAside(c, walDir, snapshotsDir)
	if moved != nil {
		return errors.Join(err, moved)
	}
	c.Log.Error("damaged state was put aside; this replica does not vote until its peers have sent all entries",
		zap.String("aside", aside), zap.Error(err))
	if err := d.begin(c, err); err != nil {
		return err
	}
	return d.tryOpen(c)
}

// damage is an error after which a replica's state must be moved aside.
type damage struct{ cause error }

func (d *damage) Error() string { return d.cause.Error() }
func (d *damage) Unwrap() error { return d.cause }

func damaged(format string, args ...any) error {
	return &damage{fmt.Errorf("mailbox: "+format, args...)}
}

// tryOpen opens the files. The error is a *damage if they are damaged.
func (d *disk) tryOpen(c *Config) (err error) {
	d.promises, err = openPromises(c.Dir)
	missing := errors.Is(err, os.ErrNotExist)
	if err != nil && !missing && !errors.Is(err, errPromises) {
		return fmt.Errorf("mailbox: cannot open the record of acknowledged entries: %w", err)
	}
	doubt := err
	if d.promises != nil && d.promises.record.Format > logFormat {
		return messages.NewerFormat("mailbox: the log in "+c.Dir, d.promises.record.Format, logFormat)
	}
	if d.promises != nil && d.promises.record.Discard {
		return damaged("%s", d.promises.record.Why)
	}
	if err := d.openFiles(c); err != nil {
		return err
	}
	if missing {
		before, err := d.stored(keyPromises)
		if err != nil {
			return err
		}
		if len(before) == 0 {
			doubt = nil // this directory had no promises before
		} else {
			doubt = fmt.Errorf("mailbox: %s is missing", filepath.Join(c.Dir, promisesFile))
		}
	}
	if d.promises == nil {
		if err := d.promise(c, doubt); err != nil {
			return err
		}
	}
	if err := d.check(c); err != nil {
		return err
	}
	d.accept(c)
	return d.keepVotes()
}

func (d *disk) openFiles(c *Config) error {
	files, err := raft.NewFileSnapshotStoreWithLogger(c.Dir, retainedSnapshots, newRaftLog(c.Log))
	if err != nil {
		return fmt.Errorf("mailbox: cannot open the snapshots in %s: %w", c.Dir, err)
	}
	d.snapshots = &sealedSnapshots{SnapshotStore: files, dir: filepath.Join(c.Dir, snapshotsDir)}
	err = safely(func() (err error) {
		d.store, err = openStore(c)
		return err
	})
	if err != nil {
		return broken(fmt.Errorf("mailbox: cannot open the log in %s: %w", c.Dir, err))
	}
	return nil
}

// broken returns a *damage if an error comes from the content of a file. It returns other errors unchanged. The error
// EEXIST counts as damage: a segment exists, but the list of segments does not have it, so the list was lost.
func broken(err error) error {
	if no, ok := errors.AsType[syscall.Errno](err); ok && no != syscall.ENOENT && no != syscall.EEXIST || isConfig(err) {
		return err
	}
	return &damage{err}
}

// isConfig reports whether an error comes from the configuration or the release, and not from the files.
func isConfig(err error) bool {
	return messages.KindOf(err) == messages.Invalid || messages.KindOf(err) == messages.Conflict
}

// A replica's file of promises says what the replica has promised to its peers. promise makes a new file in place of a
// missing or damaged one.
func (d *disk) promise(c *Config, doubt error) error {
	last, err := d.lastEntry(c)
	if err != nil {
		return err
	}
	r := record{Disk: newDisk(), Standing: standingWhole, Sealed: last.index + 1}
	index, term := d.snapshots.newest()
	switch {
	case doubt != nil && d.canHeal(c):
		r.Standing, r.Why = standingDoubtful, doubt.Error()
		c.Log.Error("this replica does not vote until its peers accept it again", zap.Error(doubt))
	case doubt != nil:
		c.Log.Error("began a new record of acknowledged entries: no other replica has an older record", zap.Error(doubt))
	case last.index == 0 && index == 0:
		r.Standing = standingNew
	}
	if d.promises, err = createPromises(c.Dir, r); err != nil {
		return err
	}
	if last.index < index {
		last.index, last.term = index, term
	}
	return d.promises.lowered(last.index, last.term)
}

func (d *disk) lastEntry(c *Config) (t tail, err error) {
	var l raft.Log
	err = safely(func() error {
		last, err := d.store.LastIndex()
		if err != nil || last == 0 {
			return err
		}
		return d.store.GetLog(last, &l)
	})
	if err != nil {
		return tail{}, broken(fmt.Errorf("mailbox: cannot read the end of the log in %s: %w", c.Dir, err))
	}
	return tailOf(&l), nil
}

// check compares the replica's log and snapshots with each other, with its stored votes, and with the promises file.
// This file says, among other things, which entry the log must reach.
func (d *disk) check(c *Config) error {
	bad, usable, cause := d.snapshots.unreadable()
	var snapshot, snapshotTerm uint64
	if usable != nil {
		snapshot, snapshotTerm = usable.Index, usable.Term
	}
	log := &sealedLog{LogStore: d.store, place: c.Dir, promises: d.promises}
	last, first, err := log.scan()
	if err != nil {
		return broken(err)
	}
	switch {
	case last.index > 0 && first > snapshot+1:
		return damaged("the log in %s begins at entry %d, and no snapshot has all earlier entries: %w", c.Dir, first, orNone(cause))
	case last.index == 0 && snapshot == 0 && len(bad) > 0:
		return damaged("the log in %s is empty, and its snapshots cannot be read: %w", c.Dir, cause)
	}
	end := last.index
	if last.index < snapshot {
		last = tail{index: snapshot, term: snapshotTerm}
	}
	if err := d.kept(c, last); err != nil {
		return err
	}
	d.last = last
	d.promises.learn(func(r *record) bool {
		r.found(log.scanned, first, end, snapshot)
		return true
	})
	if len(bad) == 0 {
		return nil
	}
	return d.snapshots.moveAside(c, bad, cause, "put unreadable snapshots aside; the log reaches back far enough")
}

func orNone(err error) error {
	if err != nil {
		return err
	}
	return errors.New("there is none")
}

// scan reads the whole log, and checks that no entry is missing and that each entry follows the one before it.
func (s *sealedLog) scan() (last tail, first uint64, err error) {
	var end uint64
	err = safely(func() (err error) {
		if first, err = s.LogStore.FirstIndex(); err == nil {
			end, err = s.LogStore.LastIndex()
		}
		return err
	})
	if err != nil || end == 0 {
		return tail{}, 0, err
	}
	for index := first; index <= end; index++ {
		var l raft.Log
		err := s.read(index, &l)
		if errors.Is(err, raft.ErrLogNotFound) {
			return last, first, damagedEntry(s.place, index, err)
		}
		if err == nil {
			if err = last.checkChain(&l); err != nil {
				err = damagedEntry(s.place, index, err)
			}
		}
		if err != nil {
			return last, first, err
		}
		if index == s.promises.end.index && l.Term != s.promises.end.term {
			return last, first, damaged("entry %d of the log in %s has term %d, but the acknowledged entry has term %d", index, s.place, l.Term, s.promises.end.term)
		}
		if l.Type == raft.LogCommand && len(l.Data) > 0 && l.Data[0] > entryMark {
			return last, first, messages.NewerFormat(fmt.Sprintf("mailbox: entry %d of the log in %s", index, s.place), int(l.Data[0]), entryMark)
		}
		if l.Term != last.term && (index > first || index == 1) {
			s.scanned = append(s.scanned, new(l))
		}
		last = tailOf(&l)
	}
	return last, first, nil
}

// kept checks that the files have everything that this replica has promised. Its promises are the entries that it
// acknowledged and the votes that it gave.
func (d *disk) kept(c *Config, last tail) error {
	r := &d.promises.record
	if last.index < d.promises.end.index {
		return damaged("the log in %s ends at entry %d, but entries up to %d were acknowledged", c.Dir, last.index, d.promises.end.index)
	}
	term, voted, whom, err := d.votes()
	if err != nil {
		return broken(fmt.Errorf("mailbox: cannot read the votes in %s: %w", c.Dir, err))
	}
	if term < r.Term || voted < r.VotedTerm || voted == r.VotedTerm && len(r.VotedFor) > 0 && string(whom) != string(r.VotedFor) {
		return damaged("the votes in %s, of term %d, contradict the record of acknowledged entries, of term %d", c.Dir, max(term, voted), max(r.Term, r.VotedTerm))
	}
	return nil
}

func (d *disk) votes() (term, voted uint64, whom []byte, err error) {
	err = safely(func() error {
		for key, value := range map[string]*uint64{string(keyTerm): &term, string(keyVotedTerm): &voted} {
			n, err := d.store.GetUint64([]byte(key))
			if err != nil && !notFound(err) {
				return err
			}
			*value = n
		}
		return nil
	})
	if err == nil {
		whom, err = d.stored(keyVotedFor)
	}
	return term, voted, whom, err
}

func (d *disk) stored(key []byte) (value []byte, err error) {
	err = safely(func() error {
		v, err := d.store.Get(key)
		if err != nil && !notFound(err) {
			return broken(err)
		}
		value = v
		return nil
	})
	return value, err
}

// notFound reports whether an error says that a store of votes does not have the requested value. The store has no
// error of its own for this, so the text is compared, as in Raft.
func notFound(err error) bool { return err.Error() == "not found" }

func (d *disk) accept(c *Config) {
	path := filepath.Join(c.Dir, acceptFile)
	if os.Remove(path) != nil {
		return
	}
	c.Log.Warn("an operator's file says that the state on this host is complete: the replica accepts this", zap.String("file", path))
	d.promises.learn(func(r *record) bool {
		me, _ := r.known(c.ID)
		r.Version = max(r.Version, me.Version, uint64(time.Now().Unix())) + 1 // larger than any known version
		r.Standing, r.Why, r.Committed, r.Settled, r.Known = standingWhole, "", 0, 0, nil
		return true
	})
}

// keepVotes copies the votes from Raft's store to the file of promises. Each time it also writes to the store, so that
// it notices at once if the store cannot be written.
func (d *disk) keepVotes() error {
	r := d.promises.now()
	term, voted, whom, err := d.votes()
	if err != nil {
		return broken(err)
	}
	err = safely(func() error { return d.store.Set(keyPromises, []byte(r.Disk)) })
	if err != nil {
		return broken(fmt.Errorf("mailbox: cannot write the votes: %w", err))
	}
	return d.promises.change(func(r *record) { r.Term, r.VotedTerm, r.VotedFor, r.Format = term, voted, whom, logFormat })
}

// canHeal reports whether there are peers from which this replica can get what it lost.
func (d *disk) canHeal(c *Config) bool {
	if len(c.Bootstrap) != 1 {
		return true
	}
	if d.promises == nil {
		return false
	}
	return slices.ContainsFunc(d.promises.record.Known, func(one diskOf) bool { return one.ID != c.ID })
}

func asideDir(c *Config) (string, error) {
	aside := filepath.Join(c.Dir, "damaged-"+time.Now().UTC().Format("20060102-150405.000000000"))
	return aside, os.Mkdir(aside, 0o700)
}

// putAside moves the log, the snapshots or both into a new directory next to them.
func (d *disk) putAside(c *Config, names ...string) (string, error) {
	if d.store != nil {
		_ = safely(d.store.Close)
		d.store = nil
	}
	aside, err := asideDir(c)
	if err != nil {
		return "", fmt.Errorf("mailbox: cannot put damaged state aside: %w", err)
	}
	for _, name := range names {
		err := os.Rename(filepath.Join(c.Dir, name), filepath.Join(aside, name))
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return "", fmt.Errorf("mailbox: cannot put damaged state aside: %w", err)
		}
	}
	return aside, durable.Sync(c.Dir)
}

// begin starts again with an empty directory, after the state was moved aside. The disk gets a new name, so that the
// peers know that it is new. The promised votes are kept.
func (d *disk) begin(c *Config, why error) error {
	r := record{}
	if d.promises != nil {
		r = d.promises.now()
		_ = d.promises.file.Close()
		d.promises = nil
	}
	r.Disk, r.Standing, r.Why, r.Discard, r.Sealed = newDisk(), standingDoubtful, why.Error(), false, 1
	p, err := createPromises(c.Dir, r)
	if err != nil {
		return err
	}
	if err := p.close(); err != nil {
		return err
	}
	return d.beginLog(c, &r, nil)
}

// beginLog makes a log with the given entries, and stores the promised votes.
func (d *disk) beginLog(c *Config, r *record, entries []*raft.Log) error {
	if err := d.openFiles(c); err != nil {
		return err
	}
	err := errors.Join(d.store.StoreLogs(entries), d.store.SetUint64(keyTerm, r.Term), d.store.SetUint64(keyVotedTerm, r.VotedTerm))
	if len(r.VotedFor) > 0 {
		err = errors.Join(err, d.store.Set(keyVotedFor, r.VotedFor))
	}
	err = errors.Join(err, d.store.Close())
	d.store = nil
	if err != nil {
		return fmt.Errorf("mailbox: cannot create the log in %s again: %w", c.Dir, err)
	}
	return nil
}

// complete returns the latest snapshot and the entries after it. The disk has a record of the entries that this replica
// has acknowledged. If the snapshot and the returned entries do not contain all of these, complete returns an error.
func (d *disk) complete(c *Config) (snapshot uint64, entries []*raft.Log, err error) {
	if d.promises == nil || d.snapshots == nil {
		return 0, nil, errors.New("there is no record of acknowledged entries to compare with")
	}
	_, usable, _ := d.snapshots.unreadable()
	if usable == nil {
		return 0, nil, errors.New("there is no snapshot")
	}
	end := uint64(0) // index of the last log entry
	if d.store != nil {
		if err := safely(func() (err error) { end, err = d.store.LastIndex(); return err }); err != nil {
			return 0, nil, err
		}
	}
	promised := d.promises.end
	if d.canHeal(c) && (d.promises.record.Standing != standingWhole || end == 0) {
		return 0, nil, errors.New("the peers have entries that this replica may lack")
	}
	log, last := &sealedLog{LogStore: d.store, place: c.Dir, promises: d.promises}, tail{}
	for index := usable.Index + 1; index <= max(end, promised.index); index++ {
		l := new(raft.Log)
		if index > end {
			return 0, nil, damagedEntry(c.Dir, index, raft.ErrLogNotFound)
		}
		if err := log.read(index, l); err != nil {
			return 0, nil, err
		}
		if err := last.checkChain(l); err != nil {
			return 0, nil, damagedEntry(c.Dir, index, err)
		}
		if index == promised.index && l.Term != promised.term {
			return 0, nil, damagedEntry(c.Dir, index, fmt.Errorf("the entry has term %d, but the acknowledged entry has term %d", l.Term, promised.term))
		}
		last = tailOf(l)
		entries = append(entries, l)
	}
	return usable.Index, entries, nil
}

func (d *disk) salvage(c *Config, snapshot uint64, entries []*raft.Log, why error) error {
	r := d.promises.now()
	if err := d.promises.close(); err != nil {
		return err
	}
	d.promises = nil
	aside, err := d.putAside(c, walDir)
	if err != nil {
		return err
	}
	c.Log.Error("a damaged log was put aside; the latest snapshot and the entries after it are complete",
		zap.String("aside", aside), zap.Uint64("snapshot", snapshot), zap.Int("entries after it", len(entries)), zap.Error(why))
	return d.beginLog(c, &r, entries)
}
