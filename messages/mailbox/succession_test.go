package mailbox

import (
	"slices"
	"testing"
	"time"

	"github.com/hashicorp/raft"
)

// TestAllowedSilence: the silence that a leader is allowed follows from the longest that
// it left lately, within bounds.
func TestAllowedSilence(t *testing.T) {
	const ms = time.Millisecond
	for _, c := range []struct{ longest, timeout, want time.Duration }{
		{0, time.Second, 400 * ms},
		{200 * ms, time.Second, 400 * ms},
		{220 * ms, time.Second, 440 * ms}, // 20 ms there and back
		{300 * ms, time.Second, 600 * ms},
		{800 * ms, time.Second, time.Second},
		{time.Minute, time.Second, time.Second},
		{100 * ms, 5 * time.Second, 2 * time.Second},
	} {
		if got := allowedSilence(c.longest, c.timeout); got != c.want {
			t.Errorf("after silences of %v, with a timeout of %v: %v, want %v", c.longest, c.timeout, got, c.want)
		}
	}
	longest := longestSilence(200*ms, 900*ms)
	if longest != 900*ms {
		t.Errorf("a longer silence counts as %v", longest)
	}
	for range 200 { // 30 s of heartbeats
		longest = longestSilence(longest, 150*ms)
	}
	if longest < 500*ms || longest > 600*ms {
		t.Errorf("half a minute later a silence of 900 ms counts as %v", longest)
	}
	if longestSilence(longest, time.Hour) != time.Hour || longestSilence(900*ms, 0) != 900*ms {
		t.Error("a silence is not kept")
	}
	if starved(40*ms, time.Second) || !starved(60*ms, time.Second) {
		t.Error("a replica that was woken 60 ms late was starved, and one 40 ms late was not")
	}
}

// heard is a detector that heard a leader every 150 ms for some seconds, and when last.
func heard() (*detector, time.Time) {
	d, now := newDetector(&Config{ID: "r2", Timeout: time.Second}), time.Now()
	for range 40 {
		now = now.Add(150 * time.Millisecond)
		d.hear("r1", 7, now)
	}
	return d, now
}

// TestDetector: silence and the end of a process are failures; a word ends the doubt; a
// late word of the leader before makes the replica more patient.
func TestDetector(t *testing.T) {
	const ms = time.Millisecond
	d, now := heard()
	if r := d.remains(now.Add(350 * ms)); r != 50*ms {
		t.Errorf("after 350 ms there remain %v", r)
	}
	if r := d.remains(now.Add(400 * ms)); r != 0 {
		t.Errorf("after 400 ms there remain %v", r)
	}
	d.end(word{"r1", 6, now})
	if d.remains(now) == 0 {
		t.Error("the end of an earlier leader counts")
	}
	d.end(d.follows())
	if d.remains(now) != 0 {
		t.Error("the end of the leader's process does not count")
	}
	d.hear("r1", 7, now.Add(100*ms))
	if d.remains(now.Add(100*ms)) == 0 {
		t.Error("the leader is doubted after a word")
	}
	d.hear("r3", 8, now.Add(600*ms))
	d.hear("r1", 7, now.Add(700*ms))
	if r := d.remains(now.Add(700 * ms)); r != 900*ms {
		t.Errorf("after a needless election the leader may be silent for %v", r)
	}
	d.forgive(now.Add(1800 * ms))
	if r := d.remains(now.Add(1800 * ms)); r != 500*ms {
		t.Errorf("a starved replica waits for %v", r)
	}
	d.hear("r2", 9, now.Add(1800*ms))
	if d.remains(now.Add(time.Hour)) == 0 {
		t.Error("the leader doubts itself")
	}
	if newDetector(&Config{ID: "r2", Timeout: time.Second}).remains(now) == 0 {
		t.Error("a replica that has heard no leader doubts it")
	}
}

// TestOneCampaigns: two replicas that doubt their leader at the same moment do not both
// campaign: the one with the longer log, or the lower name, does.
func TestOneCampaigns(t *testing.T) {
	d, now := heard()
	if !d.let("r2", false, now) || d.let("r3", false, now) || !d.let("r1", true, now) {
		t.Error("a replica that would campaign goes before the wrong ones")
	}
	if d.let("r2", false, now) || d.let("r3", true, now) {
		t.Error("two were let campaign")
	}
	if !d.let("r3", false, now.Add(time.Second)) {
		t.Error("after a while another is not let campaign")
	}
}

// startPatient starts a steady group and sets how patient the detectors of its replicas are
// once they have a leader, which is returned. Raft itself waits for longer than any test.
// All have an entry then: a replica without any gives no vote, because the replica may have
// lost what it acknowledged.
func startPatient(g *group, timeout time.Duration) *replicated {
	g.start(g.ids...)
	leader := g.leader()
	g.propose("before")
	g.propose("and the word that this is committed")
	eventually(g.t, "all replicas have an entry", func() bool {
		return !slices.ContainsFunc(g.ids, func(id string) bool { return g.machines[id].count("before") == 0 })
	})
	for id, box := range g.running() {
		if box == leader {
			continue
		}
		d := box.gate.detector
		d.mu.Lock()
		d.timeout = timeout
		d.mu.Unlock()
		r := box.raft.ReloadableConfig()
		r.HeartbeatTimeout, r.ElectionTimeout = time.Hour, time.Hour
		if err := box.raft.ReloadConfig(r); err != nil {
			g.t.Fatalf("%s: %v", id, err)
		}
	}
	return leader
}

// TestDeadLeaderIsReplacedAtOnce: the end of the leader's process is noticed by its
// connections, whatever the timeout; in one process as over TCP.
func TestDeadLeaderIsReplacedAtOnce(t *testing.T) {
	t.Parallel()
	for name, make := range map[string]func(*testing.T) *group{
		"in one process": func(t *testing.T) *group { return newGroup(t, 3, steady) },
		"over TCP":       func(t *testing.T) *group { return newSecureGroup(t, 3, steady) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := make(t)
			leader := startPatient(g, time.Hour)
			term := leader.Status().Term
			_ = leader.stream.Close() // as the kernel does for a process that ends
			next := g.another(leader)
			if now := next.Status().Term; now != term+1 {
				t.Errorf("the term went from %d to %d: votes were split", term, now)
			}
		})
	}
}

// TestSilentLeaderIsReplaced: a leader whose connections stay, and that sends nothing since
// its disk hangs, is replaced before Raft's own timeout.
func TestSilentLeaderIsReplaced(t *testing.T) {
	t.Parallel()
	g := newGroup(t, 3, func(c *Config) {
		steady(c)
		c.limits.stuckAfter = time.Hour
	})
	leader := startPatient(g, 2*time.Second)
	leader.guard.mu.Lock()
	leader.guard.ops[1<<60] = operation{"a write", time.Now().Add(-time.Minute)}
	leader.guard.mu.Unlock()
	g.another(leader)
}

// TestOneDoubterChangesNothing: a replica that alone takes the leader for dead does not
// become leader, and the term stays.
func TestOneDoubterChangesNothing(t *testing.T) {
	t.Parallel()
	g := newGroup(t, 3, steady)
	g.start(g.ids...)
	leader, doubter := g.leader(), g.follower()
	g.propose("before")
	term := leader.Status().Term
	for range 20 {
		doubter.gate.detector.end(doubter.gate.detector.follows())
		doubter.succession.campaign()
		g.propose("during")
	}
	if s := leader.Status(); s.Term != term || leader.raft.State() != raft.Leader {
		t.Errorf("the term went from %d to %d; the leader is %s", term, s.Term, leader.raft.State())
	}
}

// TestAskingForVotesForgetsNobody: a replica that asks whether it would be elected still
// knows the replica without a vote, which it is to bring up to date once it leads.
func TestAskingForVotesForgetsNobody(t *testing.T) {
	t.Parallel()
	g := newGroup(t, 3, steady)
	g.start(g.ids...)
	gone := g.follower().config.ID // one that runs would get its vote back
	g.stop(gone)
	if err := g.led(func(m *replicated) error { return demote(m, gone) }); err != nil {
		t.Fatal(err)
	}
	asks := g.follower()
	eventually(t, "the replica that asks knows of the vote that was taken away", func() bool { return len(asks.voters()) == 2 })
	before := slices.Clone(asks.servers())
	asks.succession.agreed(g.leader().config.ID)
	if after := asks.servers(); !slices.Equal(after, before) {
		t.Errorf("after the question the group is %+v, and was %+v", after, before)
	}
}

// TestALongerLogIsElectedWhereTheTermIsTaken: a replica that has more than this one may
// campaign though this one has campaigned in the same term before; one in an earlier term
// learns the term. Otherwise neither of them would ever be elected.
func TestALongerLogIsElectedWhereTheTermIsTaken(t *testing.T) {
	t.Parallel()
	g := newGroup(t, 3, steady)
	g.start(g.ids...)
	g.leader()
	asked := g.follower()
	g.propose("before")
	candidate := slices.IndexFunc(g.ids, func(id string) bool { return id != asked.config.ID && id != asked.gate.detector.follows().leader })
	header := raft.RPCHeader{ID: []byte(g.ids[candidate]), Addr: []byte(g.ids[candidate])}
	index, term := asked.gate.end()
	ask := func(in uint64) (granted bool, told uint64) {
		p := asked.gate.preVote(&raft.RequestPreVoteRequest{RPCHeader: header, Term: in, LastLogIndex: index + 2, LastLogTerm: term})
		return p.Granted, p.Term
	}
	eventually(t, "a candidate in the same term may campaign, and one in an earlier term learns the term", func() bool {
		now := asked.raft.CurrentTerm()
		late, told := ask(now - 1)
		same, _ := ask(now)
		return same && !late && told == now
	})
}
