package mailbox

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/hashicorp/raft"
	"go.uber.org/zap"
	"golang.org/x/sys/unix"
)

// scrubber slowly reads and checks all files of this replica, again and again. So damage on the disk is found while the
// memory and the peers still have the right data. (Models: TigerBeetle's grid scrubber, and etcd's corruption check.)
type scrubber struct {
	*engine
	standing *standing
	disk     *disk
	applied  func() uint64
	damaged  func(error)   // stops this replica; its next start repairs it
	passes   atomic.Uint64 // number of completed passes
	found    atomic.Uint64 // number of damages that were not repaired
	aside    atomic.Uint64 // number of directories with damaged state that were moved aside and still exist
}

const (
	scrubEvery = time.Hour             // pause between two passes
	scrubAgain = 5 * time.Minute       // pause after a pass that found damage and could not repair it
	scrubPause = 50 * time.Millisecond // pause after each part, so that at most 5 MiB are read in a second
	scrubPart  = 256 << 10             // bytes of a part
	scrubLog   = 1 << 10               // number of entries checked between two pauses
	asideEvery = time.Minute           // time between two counts of the directories that were moved aside
)

// scrub reads through the replica's files again and again until the replica stops. The first pass begins at a random
// time. So the replicas of a group do not read at the same time, and do not stop at the same time if they find damage.
func (s *scrubber) scrub() {
	rest := rand.N(s.config.limits.scrubEvery)
	for s.waitForPass(rest) {
		rest = s.config.limits.scrubEvery
		if err := s.pass(); err != nil && !errors.Is(err, errGone) {
			rest = min(rest, scrubAgain)
		}
	}
}

// waitForPass waits for the duration d until the next pass. Meanwhile it counts the damaged directories that were moved
// aside, at intervals of asideEvery, for a metric. It returns false when the replica stops.
func (s *scrubber) waitForPass(d time.Duration) bool {
	for ; ; d -= asideEvery {
		all, _ := filepath.Glob(filepath.Join(s.config.Dir, "damaged-*")) // the pattern is valid
		s.aside.Store(uint64(len(all)))
		if d <= asideEvery {
			return s.pause(d)
		}
		if !s.pause(asideEvery) {
			return false
		}
	}
}

// pause waits for d. It returns false when the replica stops.
func (s *scrubber) pause(d time.Duration) bool {
	select {
	case <-s.gone:
		return false
	case <-s.stopping:
		return false
	case <-time.After(d):
		return true
	}
}

// pass checks the promises, the snapshots and the log once. It returns the damage that it could not repair.
func (s *scrubber) pass() error {
	found := 0
	var all []error
	for _, check := range []func() error{s.checkPromises, s.checkSnapshots, s.checkLog} {
		err := check()
		if errors.Is(err, errGone) {
			return err
		}
		if err != nil {
			found++
		}
		all = append(all, err)
	}
	s.found.Store(uint64(found))
	s.passes.Add(1)
	return errors.Join(all...)
}

// checkPromises repairs the file of promises.
func (s *scrubber) checkPromises() error {
	mended, err := s.disk.promises.mend()
	if mended {
		s.config.Log.Error("a damaged file was written again", zap.String("file", s.disk.promises.path))
	}
	if err != nil {
		s.guard.fail(err)
	}
	return err
}

// checkSnapshots moves damaged snapshots aside, and writes a new one from memory.
func (s *scrubber) checkSnapshots() error {
	states, err := filepath.Glob(filepath.Join(s.disk.snapshots.dir, "*", "state.bin"))
	if err != nil {
		return err
	}
	for _, path := range states {
		if err := s.load(path); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	if moved, err := s.moveDamaged(); !moved || err != nil {
		return err
	}
	return await(s.raft.Snapshot(), s.gone)
}

// moveDamaged moves damaged snapshots aside. Meanwhile no snapshot is written or removed.
func (s *scrubber) moveDamaged() (moved bool, err error) {
	s.disk.snapshots.ending.Lock()
	defer s.disk.snapshots.ending.Unlock()
	bad, _, cause := s.disk.snapshots.unreadable()
	if len(bad) == 0 {
		return false, cause
	}
	return true, s.disk.snapshots.moveAside(s.config, bad, cause, "put damaged snapshots aside, and write a new one")
}

// checkLog checks the votes, and the log up to the last applied entry. The state in memory already has the effects of
// these entries, so it is still correct if the log is damaged. If the log is damaged, there are two cases. If the
// replica is alone, or if all replicas run in this process, the replica writes a snapshot of its state for its next
// start. Otherwise it stops as soon as the other replicas are a majority without it, and copies everything from them at
// its next start.
func (s *scrubber) checkLog() error {
	err := s.readLog()
	if err == nil || errors.Is(err, errGone) {
		return err
	}
	switch {
	case !s.disk.canHeal(s.config) || s.config.Local != nil:
		err = s.writeAside(err)
	case !s.majorityWithoutUs():
		err = fmt.Errorf("%w; this replica stops as soon as the other replicas are a majority without it, and copies everything from them at its next start", err)
	default:
		s.config.Log.Error("the log is damaged; this replica stops, and copies everything from the other replicas at its next start", zap.Error(err))
		s.transferOut()
		s.damaged(err)
		return err
	}
	s.config.Log.Error("the log is damaged", zap.Error(err))
	return err
}

// The log on the disk is damaged, but the state in memory is right. writeAside writes this state to a snapshot, so that
// the next start does not need the damaged part of the log. It returns the error that the operator gets.
func (s *scrubber) writeAside(damage error) error {
	err := await(s.raft.Snapshot(), s.gone)
	if err != nil && !errors.Is(err, raft.ErrNothingNewToSnapshot) {
		return fmt.Errorf("%w; the state in memory is right, but could not be written to a snapshot (%w): make a backup now (candor backup), and restore the backup", damage, err)
	}
	return fmt.Errorf("%w; the state in memory is right and was written to a snapshot, which the next start reads: check the disk, and restart the site", damage)
}

func (s *scrubber) majorityWithoutUs() bool {
	_, leader := s.raft.LeaderWithID()
	return leader != "" && s.standing.spare.Load()
}

func (s *scrubber) readLog() error {
	segments, err := filepath.Glob(filepath.Join(s.config.Dir, walDir, "*.wal"))
	if err != nil {
		return err
	}
	for _, path := range segments {
		if err := s.load(path); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	if _, _, _, err := s.disk.votes(); err != nil {
		return fmt.Errorf("mailbox: cannot read the votes in %s: %w", filepath.Join(s.config.Dir, walDir), err)
	}
	first, err := s.disk.sealed.FirstIndex()
	if err != nil || first == 0 {
		return err
	}
	last := tail{}
	for index := first; index <= s.applied(); index++ {
		if index%scrubLog == 0 && !s.pause(s.config.limits.scrubPause) {
			return errGone
		}
		var l raft.Log
		err := s.disk.sealed.read(index, &l)
		if err == nil {
			if err = last.checkChain(&l); err == nil {
				last = tailOf(&l)
				continue
			}
			err = damagedEntry(s.config.Dir, index, err)
		}
		cut, lost := s.disk.sealed.FirstIndex()
		switch end, _ := s.disk.sealed.end(); {
		case lost != nil || cut <= index && index <= end && cut > 0:
			return err
		case cut <= index: // a snapshot has replaced the log meanwhile
			return nil
		}
		last, index = tail{}, cut-1
	}
	return nil
}

// load reads a file slowly from the disk. It first drops the file's pages from memory: the pages may be right although
// the file on the disk is damaged.
func (s *scrubber) load(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	_ = unix.Fadvise(int(f.Fd()), 0, 0, unix.FADV_DONTNEED) // if this fails, the check is weaker
	part := make([]byte, scrubPart)
	for {
		if _, err := f.Read(part); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		if !s.pause(s.config.limits.scrubPause) {
			return errGone
		}
	}
}

// damages counts the damages that were found. If the group of this replica has a wrong leader (see standing.strange),
// this counts as one more damage.
func (s *scrubber) damages() uint64 {
	return s.found.Load() + s.aside.Load() + min(1, s.standing.strange.Load())
}
