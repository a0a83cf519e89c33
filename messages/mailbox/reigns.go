package mailbox

import (
	"crypto/rand"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"slices"

	"github.com/hashicorp/raft"
	"go.uber.org/zap"
)

// reign is the part of the log that one leader wrote in one term. Restored replicas may vote twice in a term, so two
// leaders can have the same term. Therefore the first entry of a reign has random bytes. The checksum of an entry
// covers all entries before it. So if two logs have an entry in the same reign, the logs are equal up to this entry. A
// replica has a list of its latest reigns. With this list it finds out whether a leader has every entry that was
// acknowledged here.
type reign struct {
	Term, First uint64
	Sum         string // checksum of entry First
}

// mostReigns is how many reigns a replica remembers. After more missed elections, a replica cannot find out whether its
// log and the leader's log are the same.
const mostReigns = 64

// origin identifies the latest restore from a backup in the history of a log. The zero value means that there was no
// restore. A restore is identified by the first log entry after it. As long as this entry does not exist, the restore
// is identified by the start time of the backup.
type origin struct {
	At    int64  `json:",omitempty"` // when the leader's directory was restored, in nanoseconds
	From  int64  `json:",omitempty"` // when the backup began, in nanoseconds
	First uint64 `json:",omitempty"` // index of the first entry after the restore; 0 means none yet
	Sum   string `json:",omitempty"` // checksum of that entry
}

// same reports whether two logs come from the same restore. If one log's checksum of the first entry after the restore
// is not known, it compares only the times of the backups.
func (o origin) same(other origin) bool {
	return o == other || o.From == other.From && (o.Sum == "" || other.Sum == "")
}

// of returns the origin as it is known from the committed entries, which are the entries up to the number `settled`. An
// origin is identified by the first entry after a restore. If this entry has a larger number, another entry may still
// replace it. Then the result has neither the entry nor its checksum.
func (o origin) of(settled uint64) origin {
	if settled < o.First {
		o.First, o.Sum = 0, ""
	}
	return o
}

// apart reports whether the replica must stay out of the leader's group, because the logs of the two come from
// different restores of a backup. It must stay out if its own log has no entry since its restore, or if the leader's
// restore is later. If the leader's restore is earlier, it need not stay out: the leader lacks entries that were
// acknowledged since the replica's restore.
func (o origin) apart(leader origin) bool {
	return !o.same(leader) && (o.From != 0 && o.Sum == "" || o.At < leader.At)
}

// noise puts random bytes into the first entry of a reign, which Raft leaves empty. So no two reigns begin with the
// same entry. A reign is the part of the log that one leader wrote in one term. If the entry is the first one after a
// restore, noise also marks it as such.
func noise(l *raft.Log, o origin) {
	if l.Type != raft.LogNoop {
		return
	}
	l.Data = make([]byte, noiseBytes, restoredBytes)
	_, _ = rand.Read(l.Data) // rand.Read never fails
	if o.From != 0 && o.Sum == "" {
		l.Data = binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(l.Data, uint64(o.At)), uint64(o.From))
	}
}

const (
	noiseBytes    = 8
	restoredBytes = noiseBytes + 8 + 8
)

// originOf returns the origin that an entry states, if the entry is marked as the first one after a restore. The origin
// says which restore the log comes from.
func originOf(l *raft.Log) (o origin, begins bool) {
	if l.Type != raft.LogNoop || len(l.Data) != restoredBytes {
		return o, false
	}
	at, from := binary.BigEndian.Uint64(l.Data[noiseBytes:]), binary.BigEndian.Uint64(l.Data[noiseBytes+8:])
	return origin{At: int64(at), From: int64(from), First: l.Index, Sum: reignOf(l).Sum}, true
}

func reignOf(l *raft.Log) reign {
	_, own := sums(l)
	r := reign{Term: l.Term, First: l.Index}
	if l.Index > 1 { // each replica writes the first entry of a group by itself
		r.Sum = hex.EncodeToString(own[:])
	}
	return r
}

// reignAt returns the reign of the entry at an index. The result `known` is false if all reigns in the list began after
// this index.
func reignAt(all []reign, index uint64) (r reign, known bool) {
	for _, one := range all {
		if one.First <= index {
			r, known = one, true
		}
	}
	return r, known
}

// reigns adds a reign, which is the part of the log that one leader wrote, to the record. Before this, it removes the
// reigns that began at the first entry of the new reign, or later.
func (r *record) reigns(one reign) {
	r.cut(one.First)
	r.Reigns = append(r.Reigns, one)
	r.Reigns = r.Reigns[max(0, len(r.Reigns)-mostReigns):]
}

// found is called after the log was read. The log has the entries `first` to `last`. found replaces the list of reigns
// (periods of one leader) with the reigns that begin in the log. It also keeps two kinds of reigns from the old list:
// reigns that began before the first entry of the log, and reigns that began between the last entry of the log and the
// end of the snapshot.
func (r *record) found(begin []*raft.Log, first, last, snapshot uint64) {
	noted := r.Reigns
	r.Reigns = slices.DeleteFunc(slices.Clone(noted), func(one reign) bool { return one.First > first || first <= 1 })
	for _, l := range begin {
		r.begins(l)
	}
	for _, one := range noted {
		if last < one.First && one.First <= snapshot {
			r.reigns(one)
		}
	}
}

func (r *record) begins(l *raft.Log) {
	r.reigns(reignOf(l))
	if o, begins := originOf(l); begins {
		r.Origin = o
	}
}

// cut removes the reigns (periods of one leader) that began at an entry or after it.
func (r *record) cut(first uint64) {
	for len(r.Reigns) > 0 && r.Reigns[len(r.Reigns)-1].First >= first {
		r.Reigns = r.Reigns[:len(r.Reigns)-1]
	}
}

func (r *record) adopt(theirs []reign, last uint64) {
	for _, one := range theirs {
		if mine, known := reignAt(r.Reigns, one.First); one.First <= last && (!known || mine.First < one.First) {
			r.reigns(one)
		}
	}
}

// adoptOrigin is called after this replica has got a snapshot up to the entry `last` from the leader. If the snapshot
// includes the leader's origin, adoptOrigin copies it. An origin identifies the latest restore from a backup in the
// history of a log.
func (r *record) adoptOrigin(theirs origin, last uint64) {
	if theirs.First <= last {
		r.Origin = theirs
	}
}

// meet reads the hello of a leader or a candidate, which is a message about its log and disk. It returns this replica's
// hello as the answer. The argument `last` is the index of the last entry in this replica's log.
func (s *standing) meet(leader string, q hello, last uint64) (a hello) {
	settled := s.settled() // read first, because another message of the leader may raise this number meanwhile
	a = s.tellsLog(last)
	err := s.stays()
	if err == nil && settled > 0 && a.Origin.apart(q.Origin) {
		err = s.leave(leader)
	}
	if err != nil {
		a.Why = err.Error()
		return a
	}
	s.mu.Lock()
	same, late := s.sameIn == q.Leads, s.sameIn > q.Leads
	if same {
		s.theirs = q // the leader's log may have grown since its last hello
	}
	s.mu.Unlock()
	switch {
	case late: // Raft does not know of the later term yet
		a.Why = fmt.Sprintf("mailbox: replica %s has heard from the leader of a later term", s.id)
		return a
	case same:
		a.Same = true
		return a
	}
	if a.Same, a.Asks, err = s.sameLog(leader, q, settled, last); err != nil && a.Asks != 0 {
		a.Why = err.Error()
		return a
	}
	if err != nil {
		a.Refutes = err.Error()
		s.strange.Store(q.Leads)
		s.log.Error("this replica accepts nothing from the leader", zap.Error(err), zap.Any("reigns here", s.promises.now().Reigns), zap.Any("reigns there", q.Reigns))
		if s.doubts() == nil { // both logs have acknowledged entries, and this replica cannot tell which of them is right
			s.doubt(err.Error())
		}
		return a
	}
	if !a.Same {
		a.Why = fmt.Sprintf("mailbox: replica %s was away for more elections than the leader %s remembers, so that replica %s accepts nothing from the leader: move the replica's directory away; it then copies everything from the other replicas", s.id, leader, s.id)
		if s.strange.Swap(q.Leads) != q.Leads {
			s.log.Error("this replica accepts nothing from the leader", zap.String("why", a.Why))
		}
		return a
	}
	s.mu.Lock()
	s.sameIn, s.theirs = q.Leads, q
	s.mu.Unlock()
	s.strange.Store(0)
	return a
}

// adopt copies the leader's list of reigns, up to the last entry of a snapshot. It must be called before the snapshot
// is written: this replica's log does not have the snapshot's entries, so it cannot show their reigns. A reign is the
// part of the log that one leader wrote in one term.
func (s *standing) adopt(last uint64) error {
	s.mu.Lock()
	theirs := s.theirs
	s.mu.Unlock()
	return s.promises.change(func(r *record) {
		r.adopt(theirs.Reigns, last)
		r.adoptOrigin(theirs.Origin, last)
	})
}

// tellsLog returns the message in which this replica tells others about its log. `last` is the index of the last entry
// in this log.
func (s *standing) tellsLog(last uint64) hello {
	r, settled := s.promises.now(), s.settled()
	return hello{Last: last, Settled: settled, Origin: r.Origin.of(settled), Reigns: r.Reigns}
}

// leave keeps this replica out of the group, until the process ends. It is called when the leader's log is the log of
// another group: one of the two was restored from a backup without the other.
func (s *standing) leave(leader string) error {
	err := fmt.Errorf("mailbox: replica %s has the log of another group than the leader %s: one of the two replicas was restored from a backup, the other was not. Nothing here is removed, and this replica takes no part in the group. If the other replicas are right, move the directory of %s away; the replica then copies everything from them; see \"Replicas that were put back\" in the runbook", s.id, leader, s.id)
	s.mu.Lock()
	s.apart = err
	s.mu.Unlock()
	s.strange.Store(1)
	s.log.Error("this replica stays out of the group", zap.Error(err))
	return err
}

// stays returns an error that says why this replica stays out of its group, or nil if it takes part.
func (s *standing) stays() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.apart
}

// sameLog checks that a leader's log has all entries that were acknowledged here. It returns an error if the leader
// lacks such an entry. `settled` is the index of the last acknowledged entry here, and `end` is the index of the last
// entry. sameLog compares the reigns of the two logs; a reign is the part of a log that one leader wrote. If the
// leader's list of reigns does not reach back far enough, the result `same` is false, without an error. If the two
// replicas have different reigns for an entry, the result `asks` is the index of an entry, and the leader must send the
// checksum of the entry at this index.
func (s *standing) sameLog(leader string, q hello, settled, end uint64) (same bool, asks uint64, err error) {
	at := min(settled, end)
	own, known := reignAt(s.promises.now().Reigns, at)
	if term, has := s.termAt(at); has && own.Term != term { // the list may have lost this reign when the power failed
		known = false
	}
	theirs, has := reignAt(q.Reigns, at)
	switch {
	case q.Last < settled:
	case !known || has && theirs == own:
		return true, 0, nil
	case !has:
		return false, 0, nil
	default:
		sum, shown := s.sumAt(at)
		if shown && q.Asked == at && q.Sum == sum {
			return true, 0, nil
		}
		if shown && q.Asked != at {
			asks = at
		}
	}
	return false, asks, fmt.Errorf("mailbox: replica %s has entries up to %d that were acknowledged; the log of the leader %s ends at entry %d and lacks some of them: replicas were put back from older copies, or lost their disks. Nothing is removed, neither replica follows the other, and the group stops; see \"Replicas that were put back\" in the runbook",
		s.id, settled, leader, q.Last)
}

// refuted is called when another replica has acknowledged entries that this leader lacks. From then on, neither this
// leader nor the other replica takes part in the group. So no majority can continue from either log. An operator must
// say which log is right.
func (s *standing) refuted(why string) {
	if r := s.promises.now(); r.Standing == standingDoubtful {
		return
	}
	if s.keep(func(r *record) { r.Disk, r.Standing, r.Why = newDisk(), standingDoubtful, why }) {
		s.fail(fmt.Errorf("mailbox: replica %s must not lead: %s", s.id, why))
	}
}
