package mailbox

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/candor-grid/candor/messages"
)

func (g *group) startNew(id string) (address string) {
	g.t.Helper()
	g.dirs[id] = g.t.TempDir()
	before := g.adjust
	g.adjust = func(c *Config) {
		if before != nil {
			before(c)
		}
		c.Bootstrap = nil
	}
	g.start(id)
	g.adjust = before
	g.t.Cleanup(func() { g.stop(id) })
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.addresses[id]
}

// led calls do with the present leader, and again with a new leader if leadership changes meanwhile.
func (g *group) led(do func(*replicated) error) error {
	g.t.Helper()
	for {
		err := do(g.leader())
		if !errors.Is(err, ErrNotLeader) && !errors.Is(err, ErrUnknown) && messages.KindOf(err) != messages.Unavailable {
			return err
		}
	}
}

func voters(t *testing.T, m *replicated) []string {
	t.Helper()
	all, err := m.Members()
	if err != nil {
		t.Fatal(err)
	}
	var ids []string
	for _, one := range all {
		if one.Votes {
			ids = append(ids, one.ID)
		}
	}
	return ids
}

func (g *group) silent(id string) {
	g.t.Helper()
	eventually(g.t, id+" is silent", func() bool {
		all, err := g.leader().Members()
		i := indexOf(all, id)
		return err == nil && i >= 0 && !all[i].Answers
	})
}

// TestReplaceADeadReplica adds a new replica with an empty disk in place of a lost replica. The new replica must get a
// snapshot for the entries that the log no longer has. The other replicas must find it although no configuration has
// its address. It must then count towards majorities.
func TestReplaceADeadReplica(t *testing.T) {
	t.Parallel()
	// Entries that are cut off the log stay readable until their segment is full. So this test has small segments and
	// large commands.
	g := newSecureGroup(t, 3, func(c *Config) { c.TrailingEntries, c.SegmentBytes = 1, 64<<10 })
	g.start(g.ids...)
	for i := range 40 {
		g.propose(fmt.Sprintf("%4000d", i))
	}
	for n := range uint64(2) { // makes two snapshots, so that the log begins at the older one, on each replica that may lead
		g.agree(40 + n)
		for _, box := range g.running() {
			if err := box.raft.Snapshot().Error(); err != nil {
				t.Fatal(err)
			}
		}
		g.propose("between")
	}
	dead := g.follower().config.ID
	g.stop(dead)
	g.silent(dead)

	eventually(t, "a new replica that does not run is said not to answer", func() bool {
		ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		defer cancel()
		err := g.leader().Add(ctx, "r4", "127.0.0.1:1")
		return messages.KindOf(err) == messages.Unavailable && strings.Contains(err.Error(), "does not answer")
	})
	if v := voters(t, g.leader()); slices.Contains(v, "r4") {
		t.Fatalf("it has a vote: %v", v)
	}
	g.propose("with a silent member")

	address := g.startNew("r4")
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := g.led(func(m *replicated) error { return m.Add(ctx, "r4", address) }); err != nil {
		t.Fatal(err)
	}
	if err := g.led(func(m *replicated) error { return m.Remove(ctx, dead, false) }); err != nil {
		t.Fatal(err)
	}
	if v := voters(t, g.leader()); len(v) != 3 || slices.Contains(v, dead) || !slices.Contains(v, "r4") {
		t.Fatalf("the voters are %v", v)
	}
	g.agree(43)
	if g.running()["r4"].raft.Stats()["last_snapshot_index"] == "0" {
		t.Error("the new replica got the log, and no snapshot")
	}

	// Check two things. First, the new replica must count as a full member: when a second replica stops, the group must
	// still work. Second, when a stopped replica starts again, it must find the new replica.
	other := g.leader().config.ID
	if other == "r4" {
		other = g.follower().config.ID
	}
	g.stop(other)
	g.propose("without " + other)
	g.start(other)
	g.propose("with " + other)
	g.agree(45)
}

// After every change, a majority of the group must answer. A change after which no majority could answer must always be
// refused. A change that only makes the group weaker must be refused unless it is forced.
func TestGroupKeepsItsMajority(t *testing.T) {
	t.Parallel()
	g := newGroup(t, 3, func(c *Config) { c.Timeout = 2 * time.Second })
	g.start(g.ids...)
	live := g.follower().config.ID
	eventually(t, "all are heard of", func() bool {
		all, err := g.leader().Members()
		return err == nil && Spare(all) == 1
	})
	if err := g.leader().Remove(t.Context(), live, false); messages.KindOf(err) != messages.Conflict || !strings.Contains(err.Error(), "--force") {
		t.Errorf("removing one of three that answer: %v", err)
	}
	if err := g.leader().Remove(t.Context(), "r9", true); messages.KindOf(err) != messages.NotFound {
		t.Errorf("removing what is no member: %v", err)
	}
	if err := g.follower().Remove(t.Context(), live, false); !errors.Is(err, ErrNotLeader) {
		t.Errorf("removing at a follower: %v", err)
	}
	leader := g.leader().config.ID
	var dead string
	for _, id := range g.ids {
		if id != leader && id != live {
			dead = id
		}
	}
	g.stop(dead)
	g.silent(dead)
	if err := g.leader().Remove(t.Context(), live, true); messages.KindOf(err) != messages.Unavailable || !strings.Contains(err.Error(), "too few") {
		t.Errorf("removing the second of two that answer: %v", err)
	}
	if v := voters(t, g.leader()); len(v) != 3 {
		t.Errorf("a refused removal left %v", v)
	}
	g.propose("still")
}

// A removal whose answer was lost must succeed again, also at the next leader. A removal of a name that no replica had
// must fail.
func TestRepeatedRemovalAtTheNextLeader(t *testing.T) {
	t.Parallel()
	g := newGroup(t, 4, nil)
	g.start(g.ids...)
	gone := g.follower().config.ID
	remove := func(id string) error {
		return g.led(func(m *replicated) error { return m.Remove(t.Context(), id, true) })
	}
	if err := remove(gone); err != nil {
		t.Fatal(err)
	}
	g.stop(gone)
	g.propose("three are left")
	g.agree(1)
	g.stop(g.leader().config.ID)
	if err := remove(gone); err != nil {
		t.Errorf("the next leader says: %v", err)
	}
	if err := remove("r9"); messages.KindOf(err) != messages.NotFound || !strings.Contains(err.Error(), "the name is wrong") {
		t.Errorf("a name that no replica had: %v", err)
	}
}

// A leader that is removed from the group may end before the removal is complete. The next leader must complete it.
func TestLeaderThatGoesHandsOver(t *testing.T) {
	t.Parallel()
	g := newGroup(t, 3, nil)
	g.start(g.ids...)
	old := g.leader().config.ID
	if err := g.led(func(m *replicated) error {
		if err := m.Remove(t.Context(), old, true); err != nil {
			return err
		}
		return m.Remove(t.Context(), old, true) // repeats the removal, as if its answer had been lost
	}); err != nil {
		t.Fatal(err)
	}
	g.stop(old)
	if v := voters(t, g.leader()); slices.Contains(v, old) || len(v) != 2 {
		t.Errorf("the voters are %v", v)
	}
	g.propose("on")
}

func TestSpare(t *testing.T) {
	v := func(answers ...bool) (all []Member) {
		for _, a := range answers {
			all = append(all, Member{Votes: true, Answers: a})
		}
		return all
	}
	for want, groups := range map[int][][]Member{
		-1: {nil, v(true, false), v(true, false, false), {{Answers: true}}},
		0:  {v(true), v(true, true), v(true, true, false), append(v(true, true), Member{Answers: true})},
		1:  {v(true, true, true), v(true, true, true, true), v(true, true, true, true, false)},
		2:  {v(true, true, true, true, true)},
	} {
		for _, g := range groups {
			if got := Spare(g); got != want {
				t.Errorf("%+v can lose %d, want %d", g, got, want)
			}
		}
	}
}

func TestRegroup(t *testing.T) {
	t.Parallel()
	g := newGroup(t, 1, nil)
	g.start(g.ids...)
	reply, err := Regroup(t.Context(), "bank", g.leader(), nil)
	if err != nil || reply.Spare != 0 {
		t.Errorf("%+v, %v", reply, err)
	}
	if len(reply.Replicas) != 1 || !reply.Replicas[0].Leads {
		t.Errorf("replicas %+v", reply.Replicas)
	}
	if _, err := Regroup(t.Context(), "bank", g.leader(), &messages.ReplicaRequest{}); messages.KindOf(err) != messages.Invalid {
		t.Errorf("a request for nothing: %v", err)
	}
	if _, err := Regroup(t.Context(), "bank", g.leader(), &messages.ReplicaRequest{Remove: "r1", Force: true}); messages.KindOf(err) != messages.Unavailable {
		t.Errorf("removing the only replica: %v", err)
	}
	if _, err := Regroup(t.Context(), "bank", NewMemory(newTally()), nil); messages.KindOf(err) != messages.Invalid {
		t.Errorf("a group in memory: %v", err)
	}
}

// TestReplicaIsAddedOverTLS adds a replica that is in no configuration. Once the new replica is a member, the other
// replicas must accept its certificate. The new replica must be able to lead.
func TestReplicaIsAddedOverTLS(t *testing.T) {
	t.Parallel()
	g := newSecureGroup(t, 1, nil)
	g.start(g.ids...)
	g.propose("alone")
	address := g.startNew("r2")
	first := g.leader()
	if first.stream.isMember("r2") {
		t.Fatal("a replica that was not added counts as a member")
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := first.Add(ctx, "r2", address); err != nil {
		t.Fatal(err)
	}
	if !first.stream.isMember("r2") || first.stream.isMember("r3") {
		t.Error("the new replica is no member, or a stranger is")
	}
	g.handOver(first.raft.LeadershipTransfer)
	if now := g.another(first).config.ID; now != "r2" {
		t.Errorf("%s leads", now)
	}
	g.propose("led by the new one")
	g.agree(2)
}

// A group without a replica that may lead serves nobody. So replicas that should not lead, for example because their
// disks are full, must not count among those that the group can lose.
func TestDescribeCountsOnlyReplicasThatMayLead(t *testing.T) {
	t.Parallel()
	for weak, want := range []int{1, 1, 0, -1} {
		all := make([]Member, 3)
		for i := range all {
			all[i] = Member{ID: fmt.Sprint(i), Votes: true, Answers: true, Leads: i == 2}
			if i < weak {
				all[i].Weak = "the disk is full"
			}
		}
		if got := describe(messages.Bank, all).Spare; got != want {
			t.Errorf("%d of 3 replicas have full disks: the group can lose %d, want %d", weak, got, want)
		}
	}
}
