package mailbox

import (
	"testing"
	"time"

	"go.uber.org/zap"
)

// TestLateDoubtTakesNoVote: a report that a replica made before it was taken in again
// arrives after it was. The leader does not take its vote away again: the replica, which
// is whole, would say nothing more for which it got the vote back.
func TestLateDoubtTakesNoVote(t *testing.T) {
	p, err := createPromises(t.TempDir(), record{Disk: newDisk(), Standing: standingWhole})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.close() })
	s := newStanding(&Config{ID: "a", Log: zap.NewNop()}, p, func(err error) { t.Error(err) })
	early := standingReport{Disk: newDisk(), Standing: standingDoubtful, Why: "its log is damaged"}
	s.noteReport("b", early, 1, 10)
	if len(s.doubtfulPeers(time.Minute)) != 1 {
		t.Fatal("a doubtful replica is not noted")
	}
	s.noteDisk("b", early.Disk, 2) // as the healer does
	s.trust("b")
	s.noteReport("b", early, 1, 10)
	if again := s.doubtfulPeers(time.Minute); len(again) != 0 {
		t.Errorf("a late report makes the replica doubtful again: %v", again)
	}
	later := early
	later.Disk = newDisk()
	s.noteReport("b", later, 1, 10)
	if len(s.doubtfulPeers(time.Minute)) != 1 {
		t.Error("a replica that is doubtful once more, on another disk, is not noted")
	}
}
