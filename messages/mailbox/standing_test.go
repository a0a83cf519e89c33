package mailbox

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hashicorp/raft"
	"go.uber.org/zap"
)

// In TestLateDoubtTakesNoVote, a replica doubts its log, loses its vote, and gets it back. Then an old report of this
// doubt arrives late. The leader must not remove the vote a second time: the replica has no doubt any more, so no later
// report would make the leader return the vote.
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
	s.noteDisk("b", early.Disk, 2) // in a running replica, the healer does this
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

// The floor of a disk is the highest index that is known to be committed on it. The floor must never fall, whoever
// leads, and whatever other replicas remember.
func TestFloorsNeverFall(t *testing.T) {
	p, err := createPromises(t.TempDir(), record{Disk: "mine", Standing: standingWhole})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.close() })
	s := newStanding(&Config{ID: "a", Log: zap.NewNop()}, p, func(err error) { t.Error(err) })
	hear := func(l leaderNotice, term, last uint64) {
		s.meet("b", hello{Leads: term}, last)
		s.noteLeader(l, term, last)
	}
	hear(leaderNotice{Known: []diskOf{{ID: "a", Disk: "mine", Version: 1}, {ID: "b", Disk: "theirs", Version: 1, Floor: 70}}, Vote: true}, 1, 100)
	s.leads()
	s.noteAck("b", 60)
	s.noteFloors(80)
	hear(leaderNotice{Known: []diskOf{{ID: "b", Disk: "theirs", Version: 1, Floor: 50}}}, 2, 100)
	r := p.now()
	for id, want := range map[string]uint64{"a": 80, "b": 70} {
		if d, _ := r.known(id); d.Floor != want {
			t.Errorf("the disk of %s is known to have entries up to %d, not %d", id, d.Floor, want)
		}
	}
}

// This test copies a replica's disk while the replica is doubtful: it may lack entries that it acknowledged. Later the
// group has accepted the disk as complete. If the replica starts with the older copy, it lacks entries, so it must be
// doubtful again.
func TestOlderCopyOfADoubtfulReplica(t *testing.T) {
	p, err := createPromises(t.TempDir(), record{Disk: "taken in", Standing: standingDoubtful, Why: "its log is damaged"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.close() })
	s := newStanding(&Config{ID: "a", Log: zap.NewNop()}, p, func(err error) { t.Error(err) })
	s.meet("b", hello{Leads: 1}, 20)
	s.noteLeader(leaderNotice{Known: []diskOf{{ID: "a", Disk: "taken in", Version: 2, Floor: 100}}, Vote: true}, 1, 20)
	if s.doubts() == nil {
		t.Error("a replica with 20 of 100 entries may vote")
	}
}

// Each replica's disk acknowledges log entries. Soon after a command is answered, and before the next heartbeat, the
// other replicas must know which entries each disk has acknowledged. This includes the leader's disk.
func TestAcknowledgedEntriesAreRemembered(t *testing.T) {
	t.Parallel()
	g := newGroup(t, 3, func(c *Config) { c.Timeout = 10 * time.Second })
	g.start(g.ids...)
	g.propose("first")
	g.settled()
	l := g.leader()
	index := l.raft.CommitIndex()
	for i := range 5 {
		g.propose(strconv.Itoa(i))
	}
	var have int
	notice := l.gate.notice("")
	for _, d := range notice.Known {
		if d.Floor >= index+5 {
			have++
		}
	}
	if have < 2 {
		t.Errorf("five commands after entry %d are known of %d disks: %+v", index, have, notice.Known)
	}
}

// TestOlderCopyOfALeader starts an older copy of a leader's directory. The replica must notice which entries it lacks,
// and get them from the other replicas. Only then may it vote.
func TestOlderCopyOfALeader(t *testing.T) {
	t.Parallel()
	g := newGroup(t, 3, func(c *Config) { c.SegmentBytes = 64 << 10 })
	g.start(g.ids...)
	g.propose("seen by all")
	g.agree(1)
	g.settled()
	victim, older := g.follower().config.ID, filepath.Join(t.TempDir(), "older")
	g.stop(victim)
	copyDir(t, g.dirs[victim], older)
	g.start(victim)
	g.agree(1)
	eventually(t, victim+" leads", func() bool {
		l := g.leader()
		return l.config.ID == victim || l.raft.LeadershipTransferToServer(raft.ServerID(victim), raft.ServerAddress(victim)).Error() == nil && g.leader().config.ID == victim
	})
	for i := range 20 {
		g.propose(strconv.Itoa(i))
	}
	g.agree(21)
	before := g.running()[victim].disk.promises.now().Disk
	end := g.running()[victim].raft.AppliedIndex()
	eventually(t, "the others know what "+victim+" has", func() bool { // the leader tells the other replicas twice a second
		for id, m := range g.running() {
			r := m.disk.promises.now()
			if d, _ := r.known(victim); id != victim && d.Floor < end {
				return false
			}
		}
		return true
	})
	g.stop(victim)
	copyDir(t, older, g.dirs[victim])
	g.start(victim)
	eventually(t, victim+" says what it lacks", func() bool { return g.running()[victim].disk.promises.now().Disk != before })
	g.whole(victim)
	g.agree(21)
}

// TestAGroupThatBeganAnewIsNotFollowed removes the disks of two of three replicas, which then begin a new group. The
// third replica must lose no data to the new group. An operator must be told.
func TestAGroupThatBeganAnewIsNotFollowed(t *testing.T) {
	t.Parallel()
	for _, trailing := range []uint64{1000, 1} {
		g, _ := stopping(t, func(c *Config) {
			c.SegmentBytes, c.TrailingEntries = 64<<10, trailing
		})
		g.start(g.ids...)
		for i := range 5 {
			g.propose(strconv.Itoa(i))
		}
		g.agree(5)
		g.settled()
		g.stop(g.ids...)
		for _, id := range g.ids[:2] {
			if err := os.RemoveAll(g.dirs[id]); err != nil {
				t.Fatal(err)
			}
		}
		g.start(g.ids[:2]...)
		for i := range 20 {
			g.propose("anew " + strconv.Itoa(i))
		}
		for g.leader().raft.CurrentTerm() < 5 { // more terms than the third replica has seen
			old := g.leader()
			g.handOver(old.raft.LeadershipTransfer)
			g.another(old)
		}
		if err := g.leader().raft.Snapshot().Error(); err != nil {
			t.Fatal(err)
		}
		g.start(g.ids[2])
		third := g.running()[g.ids[2]]
		last := third.raft.LastIndex()
		eventually(t, "somebody is told", func() bool { return third.scrubber.damages() == 1 })
		eventually(t, "the group stops", func() bool {
			for _, id := range g.ids[:2] {
				if g.running()[id].guard.broken.Load() != nil {
					return true
				}
			}
			return false
		})
		if third.raft.LastIndex() != last {
			t.Errorf("the third's log ended at entry %d, and ends at %d: %v", last, third.raft.LastIndex(), third.standing.doubts())
		}
		g.stop(g.ids...)
	}
}

// unheard is a transport for a leader. The leader gets no answers, and only one of the other replicas gets its
// messages.
type unheard struct {
	below
	listens string // ID of the replica that gets the messages
	on      *atomic.Bool
}

var errUnheard = errors.New("no answer")

func (u *unheard) AppendEntries(id raft.ServerID, to raft.ServerAddress, q *raft.AppendEntriesRequest, p *raft.AppendEntriesResponse) error {
	switch {
	case !u.on.Load():
		return u.below.AppendEntries(id, to, q, p)
	case string(id) == u.listens:
		_ = u.below.AppendEntries(id, to, q, &raft.AppendEntriesResponse{})
	}
	return errUnheard
}

func (u *unheard) AppendEntriesPipeline(id raft.ServerID, to raft.ServerAddress) (raft.AppendPipeline, error) {
	if u.on.Load() {
		return nil, errUnheard
	}
	return u.below.AppendEntriesPipeline(id, to)
}

// TestFirstLeaderWithoutAnAnswer: the first leader of a group writes an entry, and only one other replica receives it.
// Then the leader loses leadership. The group must elect again. Some replicas have voted, but have never heard from a
// leader. They must not be taken for replicas that lost their disks.
func TestFirstLeaderWithoutAnAnswer(t *testing.T) {
	t.Parallel()
	var on atomic.Bool
	on.Store(true)
	g := newGroup(t, 3, func(c *Config) {
		listens := "r1"
		if c.ID == listens {
			listens = "r2"
		}
		c.faults.transport = func(b below) below { return &unheard{b, listens, &on} }
	})
	g.start(g.ids...)
	eventually(t, "two have an entry, and nobody leads", func() bool {
		have := 0
		for _, box := range g.running() {
			if box.raft.State() == raft.Leader {
				return false
			}
			if box.raft.LastIndex() > 1 {
				have++
			}
		}
		return have >= 2
	})
	on.Store(false)
	g.propose("heard")
	g.agree(1)
}

// A reign is the part of the log that one leader wrote. A replica compares a leader's reigns with its own, to find a
// leader that lacks entries. The replica may have lost the record of a reign, or a message may arrive late. In these
// cases it must not suspect an honest leader.
func TestAnHonestLeaderIsNoStranger(t *testing.T) {
	t.Parallel()
	all := []reign{{1, 1, ""}, {2, 2, "a"}, {3, 40, "b"}}
	for what, start := range map[string]func(s *standing){
		"a reign lost with power, of entries in a snapshot": func(s *standing) {
			s.settled = func() uint64 { return 50 }
			s.termAt = func(uint64) (uint64, bool) { return 3, true }
		},
		"a message overtaken by a later one": func(s *standing) {
			s.settled = func() uint64 {
				s.mu.Lock()
				defer s.mu.Unlock()
				s.sameIn = 3
				return 61
			}
		},
		"a message of a leader before, where the next one was heard": func(s *standing) {
			s.sameIn = 4
			s.settled = func() uint64 { return 61 }
		},
	} {
		p, err := createPromises(t.TempDir(), record{Disk: newDisk(), Standing: standingWhole, Reigns: all[:2]})
		if err != nil {
			t.Fatal(err)
		}
		s := newStanding(&Config{ID: "a", Log: zap.NewNop()}, p, func(err error) { t.Error(err) })
		start(s)
		if a := s.meet("b", hello{Leads: 3, Last: 60, Reigns: all}, 60); a.Refutes != "" {
			t.Errorf("%s: %s", what, a.Refutes)
		}
		_ = p.close()
	}
}

// TestALeadersEntryDecidesWhereReignsDiffer removes a reign (a period of one leader) from the list of a leader, as a
// loss of power can. Another replica must then ask this leader for the checksum of the last entry that the replica has
// acknowledged.
func TestALeadersEntryDecidesWhereReignsDiffer(t *testing.T) {
	all := []reign{{Term: 1, First: 1}, {Term: 2, First: 10, Sum: "b"}, {Term: 3, First: 30, Sum: "c"}}
	gap := []reign{all[0], all[2]}
	for what, c := range map[string]struct {
		last    uint64 // index of the last entry of the leader's log
		sum     string // that the leader shows; "" means that it has the entry no more
		refutes bool
	}{
		"the leader has the entry":                 {last: 40, sum: "s20"},
		"the leader has another entry":             {last: 40, sum: "x20", refutes: true},
		"the leader's log does not go so far":      {last: 40, refutes: true},
		"the leader's log ends before":             {last: 19, refutes: true},
		"the leader has it, and lacks a later one": {last: 19, sum: "s20", refutes: true},
	} {
		p, err := createPromises(t.TempDir(), record{Disk: newDisk(), Standing: standingWhole, Reigns: all})
		if err != nil {
			t.Fatal(err)
		}
		s := newStanding(&Config{ID: "a", Log: zap.NewNop()}, p, func(err error) { t.Error(err) })
		s.settled = func() uint64 { return 20 }
		s.termAt = func(uint64) (uint64, bool) { return 2, true }
		s.sumAt = func(index uint64) (string, bool) { return "s" + strconv.FormatUint(index, 10), true }
		q := hello{Leads: 4, Last: c.last, Reigns: gap}
		a := s.meet("b", q, 35)
		asks := c.last >= 20
		if asks != (a.Asks == 20) {
			t.Errorf("%s: %+v", what, a)
		}
		if asks && (a.Refutes != "" || s.doubts() != nil) {
			t.Errorf("%s: %+v, doubts %v", what, a, s.doubts())
		}
		if a.Asks != 0 {
			q.Asked, q.Sum = a.Asks, c.sum
			a = s.meet("b", q, 35)
		}
		if refutes := a.Refutes != ""; refutes != c.refutes || a.Same == c.refutes {
			t.Errorf("%s: %+v", what, a)
		}
		_ = p.close()
	}
}
