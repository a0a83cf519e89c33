package mailbox

import (
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"
)

// standing decides whether a replica may vote and lead, from its promises and from what its peers know of its disk. A
// replica is doubtful if its disk is not the disk that the peers know, or if its log is shorter than the peers saw. A
// doubtful replica does not vote, does not campaign, and does not acknowledge entries. To end this state, a leader
// first removes the replica's vote, with the consent of a majority of the other replicas. Then it brings the replica up
// to date, and returns the vote. (Alagappan et al., Protocol-Aware Recovery for Consensus-Based Storage, FAST 2018: a
// lossy log takes no part in elections.)
type standing struct {
	id       string
	promises *promises
	settled  func() uint64                              // returns the index of the last entry that is known to be committed
	termAt   func(index uint64) (term uint64, has bool) // returns the term of an entry in this log
	sumAt    func(index uint64) (sum string, has bool)  // returns the checksum of an entry in this log and all entries before it
	log      *zap.Logger
	fail     func(error)

	mu       sync.Mutex
	outTerm  uint64                // the term whose leader removed this replica's vote
	sameIn   uint64                // the term whose leader has every entry that was acknowledged here
	theirs   hello                 // the report of that leader (see sameIn) about its log
	apart    error                 // why this replica stays out of its group; nil means that it takes part
	strange  atomic.Uint64         // term whose leader lacks entries acknowledged here; 1: outside its group; 0: neither
	doubtful map[string]toldReport // doubtful replicas that reported to this leader, by ID
	marks    map[string]mark       // the latest state hash that each replica reported, by ID
	acked    map[string]uint64     // the last entry of this leader's log that each replica has on its disk, by ID
	heard    map[string]toldReport // the latest report of each replica, by ID
	levels   map[string]toldReport // the latest report of each replica, also from before this replica led, by ID
	spare    atomic.Bool           // the group can lose a replica and keep its majority, according to the leader
	kick     chan struct{}         // gets a token, without waiting, when doubtful or marks changes
}

type toldReport struct {
	standingReport
	at time.Time
}

// leaderNotice is what a leader tells each replica twice a second.
type leaderNotice struct {
	Known     []diskOf
	Committed uint64
	Vote      bool // it is committed that this replica has a vote
	Out       bool // it is committed that this replica has no vote; it may catch up
	Spare     bool `json:",omitempty"` // the group can lose a replica
}

// standingReport describes a replica's own disk and log. A replica sends it to its leader, and a candidate sends it to
// its voters.
type standingReport struct {
	Disk, Standing string
	Version        uint64
	Why            string `json:",omitempty"`
	Last, LastTerm uint64
	Mark           *mark  `json:",omitempty"`
	Saved          uint64 `json:",omitempty"` // index of the last entry in its latest snapshot
	Weak           string `json:",omitempty"` // why the replica should not lead
	Level          int    `json:",omitempty"` // level of its release
	Release        string `json:",omitempty"` // its release, for people
}

func newStanding(c *Config, p *promises, fail func(error)) *standing {
	return &standing{id: c.ID, promises: p, settled: p.settled, termAt: func(uint64) (uint64, bool) { return 0, false }, sumAt: func(uint64) (string, bool) { return "", false }, log: c.Log, fail: fail,
		doubtful: map[string]toldReport{}, marks: map[string]mark{}, acked: map[string]uint64{}, heard: map[string]toldReport{}, levels: map[string]toldReport{}, kick: make(chan struct{}, 1)}
}

// This method changes the promises, which this replica has stored on its disk. If the change cannot be written, the
// replica fails, and the method returns false.
func (s *standing) keep(change func(*record)) bool {
	err := s.promises.change(change)
	if err != nil {
		s.fail(err)
	}
	return err == nil
}

// doubts returns why this replica is doubtful, or nil.
func (s *standing) doubts() error {
	r := s.promises.now()
	if r.Standing != standingDoubtful {
		return nil
	}
	return fmt.Errorf("mailbox: replica %s takes no part until its peers have brought it up to date: %s", s.id, r.Why)
}

// doubt makes this replica doubtful. It keeps its log, which may be too short but has no wrong entries.
func (s *standing) doubt(why string) {
	if s.keep(func(r *record) { r.Disk, r.Standing, r.Why = newDisk(), standingDoubtful, why }) {
		s.log.Error("this replica neither votes nor leads until its peers have brought it up to date", zap.String("why", why))
	}
}

// mayFollow returns an error if this replica may not accept a message from the leader of the given term. Before the
// replica accepts an entry or a snapshot, the leader must have shown that its log has every entry that this replica
// acknowledged. A replica is doubtful if its disk may have lost data. A doubtful replica accepts nothing until the
// leader has removed its vote.
func (s *standing) mayFollow(term uint64, heartbeat bool) error {
	if err := s.stays(); err != nil {
		return err
	}
	s.mu.Lock()
	same, out := s.sameIn == term, s.outTerm == term
	s.mu.Unlock()
	switch {
	case !same && !heartbeat:
		return fmt.Errorf("mailbox: replica %s does not know yet whether the leader of term %d has all entries that the replica acknowledged", s.id, term)
	case out:
		return nil
	}
	return s.doubts()
}

// mayMeet returns an error if a candidate reports a disk that it had earlier, but has replaced since. Each new disk of a
// replica has a higher version, so this replica compares the reported version with the version that it knows.
func (s *standing) mayMeet(id string, q standingReport) error {
	r := s.promises.now()
	if known, has := r.known(id); has && q.Version < known.Version && q.Disk != known.Disk {
		return fmt.Errorf("mailbox: replica %s has another disk than before", id)
	}
	return nil
}

// mayVote returns an error if this replica may not vote for a candidate. The argument `last` is the index of the last
// entry in the candidate's log.
func (s *standing) mayVote(id string, last uint64) error {
	r := s.promises.now()
	stays := s.stays()
	switch {
	case stays != nil:
		return stays
	case r.Standing == standingDoubtful:
		return s.doubts()
	case r.Standing == standingNew && last > 1:
		return fmt.Errorf("mailbox: replica %s is new, but the candidate belongs to a group with earlier entries: the replica waits for a leader", s.id)
	case last < max(r.Committed, s.settled()):
		return fmt.Errorf("mailbox: replica %s has a log up to entry %d, and entries up to %d were acknowledged", id, last, max(r.Committed, s.settled()))
	}
	return nil
}

// mayCampaign returns an error if this replica may not ask for votes. The argument `last` is the index of the last
// entry in the replica's log.
func (s *standing) mayCampaign(last uint64) error {
	if err := s.stays(); err != nil {
		return err
	}
	r := s.promises.now()
	if r.Standing != standingDoubtful && last < r.Committed {
		return fmt.Errorf("mailbox: replica %s has a log up to entry %d, and entries up to %d were acknowledged: it does not campaign", s.id, last, r.Committed)
	}
	return s.doubts()
}

// noteLeader reads a notice of a leader, which says what the leader knows about this replica. The leader must first
// have shown that its log has every entry that this replica acknowledged. If it has not shown this in the given term,
// noteLeader returns false. The argument `last` is the index of the last entry in this replica's log.
func (s *standing) noteLeader(l leaderNotice, term, last uint64) bool {
	s.mu.Lock()
	same := s.sameIn == term
	s.mu.Unlock()
	if !same {
		return false
	}
	s.spare.Store(l.Spare)
	if l.Out {
		s.mu.Lock()
		s.outTerm = term
		s.mu.Unlock()
	}
	s.promises.learn(func(r *record) bool {
		changed := l.Committed > r.Committed
		r.Committed = max(r.Committed, l.Committed)
		for _, d := range l.Known {
			if d.ID != s.id {
				changed = r.learn(d) || changed
			}
		}
		return changed
	})
	r := s.promises.now()
	me, known := (&record{Known: l.Known}).known(s.id)
	switch {
	case !known && r.Standing == standingNew:
		s.become(0)
	case !known || r.Standing == standingDoubtful && me.Disk != r.Disk:
	case me.Disk == r.Disk && me.Version >= r.Version && me.Floor > last:
		s.doubt(fmt.Sprintf("its log ends at entry %d, but the log had entries up to %d", last, me.Floor))
	case me.Disk == r.Disk && me.Version >= r.Version && (l.Vote || r.Standing == standingWhole):
		s.become(me.Version)
	case me.Disk != r.Disk && me.Version > r.Version:
		s.doubt("its peers know another directory of this replica: the directory was emptied, or put back from an older copy")
	}
	return true
}

// become records that this replica is whole: it has its vote, and all log entries that it had promised to keep. The
// argument `version` is the version of this replica's disk that the group knows.
func (s *standing) become(version uint64) {
	r := s.promises.now()
	if r.Standing == standingWhole && r.Version == version {
		return
	}
	kept := s.keep(func(r *record) { r.Standing, r.Why, r.Version = standingWhole, "", version })
	if kept && r.Standing == standingDoubtful {
		s.log.Warn("this replica is up to date and has its vote again")
	}
}

// leads is called after a majority has elected this replica. Such a replica has all entries, so leads records that it
// is whole, and no longer doubtful.
func (s *standing) leads() {
	s.mu.Lock()
	clear(s.acked)
	s.mu.Unlock()
	r := s.promises.now()
	known, has := r.known(s.id)
	if r.Standing == standingWhole && has && known.Disk == r.Disk {
		return
	}
	s.keep(func(r *record) {
		r.Standing, r.Version = standingWhole, max(r.Version, 1)
		r.learn(diskOf{ID: s.id, Disk: r.Disk, Version: r.Version})
	})
}

// tells returns what this replica, as leader, tells the other replicas about the disks of all replicas.
func (s *standing) tells() record {
	r := s.promises.now()
	me, _ := r.known(s.id)
	me.ID, me.Disk, me.Version = s.id, r.Disk, max(r.Version, 1)
	r.note(me)
	return r
}

func (s *standing) report(last, lastTerm uint64, m *mark) standingReport {
	r := s.promises.now()
	return standingReport{Disk: r.Disk, Standing: r.Standing, Version: r.Version, Why: r.Why, Last: last, LastTerm: lastTerm, Mark: m}
}

// noteReport records the report q of a replica. The caller leads in `term`, and has committed the log up to the index
// `committed`.
func (s *standing) noteReport(id string, q standingReport, term, committed uint64) {
	s.mu.Lock()
	s.heard[id] = toldReport{q, time.Now()}
	s.levels[id] = s.heard[id]
	if q.Mark != nil {
		s.marks[id] = *q.Mark
	}
	s.mu.Unlock()
	r := s.promises.now()
	known, has := r.known(id)
	switch {
	case q.Standing == standingDoubtful && has && q.Disk == known.Disk:
	// A replica takes a new name for its disk each time that it doubts its log. This report has a disk name that the
	// group already knows, so it is an old report and is ignored.
	case q.Standing == standingDoubtful:
		s.noteDoubtful(id, q)
	case !has || q.Version > known.Version:
		s.noteDisk(id, q.Disk, max(q.Version, 1))
	case q.Disk == known.Disk && q.LastTerm == term:
		// The replica's last entry equals the entry of this leader at the same place. So the replica has all earlier
		// entries too.
		s.noteAck(id, q.Last)
		s.noteFloors(committed)
	}
}

// When this leader has introduced itself to a replica, the replica answers with a report. noteLevel records this
// report, which contains the replica's level.
func (s *standing) noteLevel(id string, q standingReport) {
	s.mu.Lock()
	s.levels[id] = toldReport{q, time.Now()}
	s.mu.Unlock()
}

func (s *standing) levelOf(id string) (toldReport, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	told, has := s.levels[id]
	return told, has
}

// noteAck is called when a replica has acknowledged this leader's log. It stores that this replica has all entries up
// to `index` on its disk.
func (s *standing) noteAck(id string, index uint64) {
	s.mu.Lock()
	s.acked[id] = max(s.acked[id], index)
	s.mu.Unlock()
}

// The floor of a disk is the highest committed index that the disk is known to have. noteFloors records the floors of
// all disks. The leader's own disk has all committed entries.
func (s *standing) noteFloors(committed uint64) {
	s.mu.Lock()
	floors := maps.Clone(s.acked)
	s.mu.Unlock()
	floors[s.id] = committed
	s.promises.learn(func(r *record) (changed bool) {
		for id, acked := range floors {
			if d, has := r.known(id); has {
				d.Floor = min(acked, committed)
				changed = r.learn(d) || changed
			}
		}
		return changed
	})
}

func (s *standing) noteDisk(id, disk string, version uint64) {
	s.keep(func(r *record) { r.note(diskOf{ID: id, Disk: disk, Version: version}) })
}

func (s *standing) forget(id string) {
	s.promises.learn(func(r *record) bool {
		n := len(r.Known)
		r.Known = slices.DeleteFunc(r.Known, func(d diskOf) bool { return d.ID == id })
		return len(r.Known) != n
	})
}

// noteDoubtful records that a replica doubts its log, and wakes the healer.
func (s *standing) noteDoubtful(id string, q standingReport) {
	s.mu.Lock()
	if _, before := s.doubtful[id]; !before {
		s.log.Warn("a replica must be brought up to date before it votes", zap.String("peer", id), zap.String("why", q.Why))
	}
	if before, has := s.doubtful[id]; !has || before.Disk != q.Disk {
		delete(s.acked, id) // the acknowledged entries were on an earlier disk
	}
	s.doubtful[id] = toldReport{q, time.Now()}
	s.mu.Unlock()
	select {
	case s.kick <- struct{}{}:
	default:
	}
}

func (s *standing) doubtfulPeers(lately time.Duration) map[string]standingReport {
	return s.since(s.doubtful, lately)
}

func (s *standing) since(told map[string]toldReport, lately time.Duration) map[string]standingReport {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := map[string]standingReport{}
	for id, one := range told {
		if time.Since(one.at) < lately {
			all[id] = one.standingReport
		}
	}
	return all
}

// trust records that a replica has its vote again, and is no longer doubtful.
func (s *standing) trust(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.doubtful, id)
}
