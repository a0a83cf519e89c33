package mailbox

import (
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"math"

	"github.com/hashicorp/raft"
	"go.uber.org/zap"
)

// reign is the part of the log that one leader wrote in one term. Its first entry holds random
// bytes, and each sum is over all entries before. So two logs that have an entry in the same
// reign are the same up to that entry, also where replicas were put back from older copies and
// gave the votes of a term twice. A replica keeps its latest reigns, from which it and a leader
// find out whether the leader has what was acknowledged here, even if the leader's log does not
// go back so far any more.
type reign struct {
	Term, First uint64
	Sum         string // of entry First
}

// mostReigns is how many elections a replica may be behind its leader and still tell that it
// has the same log.
const mostReigns = 64

// noise makes the first entry of a reign, which has no content for Raft, unlike all others.
func noise(l *raft.Log) {
	if l.Type == raft.LogNoop {
		l.Data = make([]byte, 8)
		_, _ = rand.Read(l.Data) // never fails
	}
}

func reignOf(l *raft.Log) reign {
	_, own := sums(l)
	r := reign{Term: l.Term, First: l.Index}
	if l.Index > 1 { // each replica writes the first entry of a group by itself
		r.Sum = hex.EncodeToString(own[:])
	}
	return r
}

// reignAt is the reign that an entry is of; false: it is not known.
func reignAt(all []reign, index uint64) (r reign, known bool) {
	for _, one := range all {
		if one.First <= index {
			r, known = one, true
		}
	}
	return r, known
}

// reigns notes a reign, in place of those that began at its first entry or later.
func (r *record) reigns(one reign) {
	r.cut(one.First)
	r.Reigns = append(r.Reigns, one)
	r.Reigns = r.Reigns[max(0, len(r.Reigns)-mostReigns):]
}

// cut forgets the reigns that began at an entry or later.
func (r *record) cut(first uint64) {
	for len(r.Reigns) > 0 && r.Reigns[len(r.Reigns)-1].First >= first {
		r.Reigns = r.Reigns[:len(r.Reigns)-1]
	}
}

// adopt takes over a leader's reigns up to the last entry of its snapshot.
func (r *record) adopt(theirs []reign, last uint64) {
	for _, one := range theirs {
		if mine, known := reignAt(r.Reigns, one.First); one.First <= last && (!known || mine.First < one.First) {
			r.reigns(one)
		}
	}
}

// sameLog compares a leader's log with what was acknowledged here up to entry settled, where this
// replica's log ends at entry end. A heartbeat may not say enough, and a leader after many elections
// does not know. The error is for a leader that lacks what was acknowledged.
func (s *standing) sameLog(leader string, l *leaderNotice, settled, end uint64) (same bool, err error) {
	at := min(settled, end)
	own, known := reignAt(s.promises.now().Reigns, at)
	if term, has := s.termAt(at); has && own.Term != term { // the reign was lost, with power
		known = false
	}
	switch theirs, has := reignAt(l.Reigns, at); {
	case l.Last < settled:
	case !known || has && theirs == own:
		return true, nil
	case len(l.Reigns) == 0:
		return false, nil
	case !has:
		if s.strange.Swap(math.MaxUint64) != math.MaxUint64 {
			s.log.Error("this replica was away for more elections than its leader remembers, and takes nothing from it: move its directory away, and it begins anew from the others", zap.String("leader", leader))
		}
		return false, nil
	}
	return false, fmt.Errorf("mailbox: replica %s has entries up to %d that were acknowledged; %s, which leads, has a log up to entry %d that lacks them: replicas were put back from older copies, or lost their disks. Nothing is removed, neither leads nor follows the other, and the group stops; see \"Replicas that were put back\" in the runbook",
		s.id, settled, leader, l.Last)
}

// refuted is called when a replica tells this one, which leads, that it lacks what was
// acknowledged. Neither of the two takes part any more, so that no majority goes on from one of
// two logs: an operator says which is right.
func (s *standing) refuted(why string) {
	if r := s.promises.now(); r.Standing == standingDoubtful {
		return
	}
	if s.keep(func(r *record) { r.Disk, r.Standing, r.Why = newDisk(), standingDoubtful, why }) {
		s.fail(fmt.Errorf("mailbox: replica %s must not lead: %s", s.id, why))
	}
}
