package siteclock

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/candor-grid/candor/messages"
)

const (
	second = messages.Duration(1e9)
	minute = 60 * second
	hour   = 60 * minute
	epoch  = messages.Time(1_700_000_000_000_000)
)

// bench has several hosts in virtual time. A test can set the clock of each host.
type bench struct {
	mono  messages.Duration
	set   []messages.Duration // by host: how far its clock is ahead of the true time
	hosts []*Host
}

func newBench(n int) *bench {
	b := &bench{mono: second, set: make([]messages.Duration, n)}
	for i := range n {
		b.hosts = append(b.hosts, NewHost(n, func() messages.Time { return b.now().Add(b.set[i]) }, func() messages.Duration { return b.mono }))
	}
	return b
}

func (b *bench) now() messages.Time { return epoch.Add(b.mono) }

// pass lets time pass. The hosts exchange readings, except the hosts that are cut off.
func (b *bench) pass(d messages.Duration, cut ...int) {
	for end := b.mono + d; b.mono < end; {
		b.mono = min(end, b.mono+ReadEvery)
		for i, h := range b.hosts {
			for k, other := range b.hosts {
				if i != k && !contains(cut, i) && !contains(cut, k) {
					h.Hear(string(rune('a'+k)), other.Wall())
				}
			}
			h.Now()
		}
	}
}

func contains(list []int, i int) bool {
	for _, k := range list {
		if k == i {
			return true
		}
	}
	return false
}

// off returns the time of a host minus the true time.
func (b *bench) off(host int) messages.Duration { return b.hosts[host].Now().Sub(b.now()) }

// The clock of one of three hosts is set forward or back by up to an hour. The time of each host must stay right, even
// if this host is cut off from the others meanwhile.
func TestOneWrongClockChangesNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := newBench(3)
		b.pass(5 * second)
		b.set[0] = messages.Duration(rapid.Int64Range(-int64(hour), int64(hour)).Draw(t, "set"))
		var cut []int
		if rapid.Bool().Draw(t, "cut off") {
			cut = []int{0}
		}
		for range rapid.IntRange(1, 50).Draw(t, "seconds") {
			b.pass(second, cut...)
			for i := range b.hosts {
				if off := b.off(i); off > 2*Bound || off < -2*Bound {
					t.Fatalf("host %d is off by %v", i, off)
				}
			}
		}
	})
}

// When the clocks of two of three hosts are set, the third must follow at once.
func TestMajorityIsBelieved(t *testing.T) {
	b := newBench(3)
	b.pass(5 * second)
	b.set[0], b.set[1] = hour, hour
	b.pass(10 * second)
	for i := range b.hosts {
		if off := b.off(i); off != hour {
			t.Errorf("host %d is off by %v", i, off)
		}
	}
}

// A site with one host has only the clock of this host, and somebody sets this clock. If the clock is set back to the
// right time soon, the site's time must not change. If the clock stays as it was set, the site must take over the new
// time. It must take over small changes at once.
func TestOneHostHasPatience(t *testing.T) {
	b := newBench(1)
	b.hosts[0].Now()
	b.set[0] = 10 * minute
	b.pass(6 * second)
	if off := b.off(0); off != 0 {
		t.Errorf("after six seconds: off by %v", off)
	}
	b.set[0] = 0
	b.pass(2 * minute)
	if off := b.off(0); off != 0 {
		t.Errorf("set right again: off by %v", off)
	}
	b.set[0] = -hour
	b.pass(Patience + 2*second)
	if off := b.off(0); off != -hour {
		t.Errorf("after a minute: off by %v", off)
	}
	b.set[0] += Bound / 2
	if off := b.off(0); off != b.set[0] {
		t.Errorf("a small change: off by %v", off)
	}
}

// A host that starts with a wrong clock must have the right time as soon as it has the readings of the other hosts.
func TestWrongClockAtTheStart(t *testing.T) {
	b := newBench(3)
	b.set[2] = hour
	if off := b.off(2); off != hour {
		t.Errorf("alone: off by %v", off)
	}
	b.pass(second)
	if off := b.off(2); off != 0 {
		t.Errorf("off by %v", off)
	}
	if ahead := b.hosts[2].Ahead(); ahead != hour {
		t.Errorf("its own clock is ahead by %v", ahead)
	}
}

// A host has a wrong clock. It begins to lead before it has the readings of the other hosts' clocks. Then it must not
// move the time of the state ahead. If no other host answers for a while, its clock must be believed.
func TestUncomparedClockLeadsNoState(t *testing.T) {
	b := newBench(3)
	b.set[0] = hour
	h := b.hosts[0]
	s := NewSteady(h.Now, h.Known, func() messages.Duration { return b.mono })
	s.Reached(b.now(), false, false)
	b.pass(4*second, 0)
	if off := s.Now().Sub(b.now()); off > 0 || off < -second {
		t.Errorf("cut off after its start: off by %v", off)
	}
	b.pass(2 * second)
	if off := s.Now().Sub(b.now()); off != 0 {
		t.Errorf("compared: off by %v", off)
	}
	alone := NewHost(3, b.now, func() messages.Duration { return b.mono })
	alone.Now()
	if alone.Known() {
		t.Error("known at once")
	}
	b.mono += Patience
	if !alone.Known() {
		t.Error("never known")
	}
}

// A new group has a state without a time. Its leader must wait until its host has compared its clock with the clocks of
// the other hosts. If the state already has a time, a leader must not wait.
func TestANewStateWaitsForTheTime(t *testing.T) {
	b := newBench(3)
	b.set[0] = hour
	h := b.hosts[0]
	s := NewSteady(h.Now, h.Known, func() messages.Duration { return b.mono })
	b.pass(4*second, 0)
	if s.Ready() {
		t.Error("ready before the clock was compared")
	}
	b.pass(2 * second)
	if off := s.Now().Sub(b.now()); !s.Ready() || off != 0 {
		t.Errorf("compared: ready %v, off by %v", s.Ready(), off)
	}
	later := NewSteady(h.Now, func() bool { return false }, func() messages.Duration { return b.mono })
	if later.Reached(b.now(), false, false); !later.Ready() {
		t.Error("a state with a time is not ready")
	}
}

// A clock is set while a host is down, between two starts. The host must treat this as if the clock had been set while
// the host ran. The stamp of the replicated state's time must show by how much the clock was set.
func TestAClockIsSetBetweenTwoStarts(t *testing.T) {
	for hosts, wait := range map[int]messages.Duration{1: Patience, 3: 2 * second} {
		b := newBench(hosts)
		b.pass(5 * second)
		for i, h := range b.hosts {
			offset, known := h.Offset()
			if !known {
				t.Fatal("a host of several does not know the time")
			}
			b.set[i] = hour
			b.hosts[i] = NewHost(hosts, func() messages.Time { return b.now().Add(b.set[i]) }, func() messages.Duration { return b.mono })
			b.hosts[i].Resume(offset)
		}
		b.mono += minute // the time of the outage
		h := b.hosts[0]
		s := NewSteady(h.Now, h.Known, func() messages.Duration { return b.mono })
		s.Reached(epoch, false, false) // the time of the last entry of the log
		if off := s.Now().Sub(b.now()); off != 0 {
			t.Errorf("%d hosts: off by %v after the start", hosts, off)
		}
		s.Reached(s.Now(), false, false)
		b.pass(wait + 2*second)
		if off := b.off(0); off != hour {
			t.Errorf("%d hosts: off by %v once the clocks are believed", hosts, off)
		}
		if _, leap, _ := s.Stamp(); leap != hour {
			t.Errorf("%d hosts: the leap is %v", hosts, leap)
		}
	}
}

// The clock may show any time. The time of a state must never be earlier than a time that was already committed. It
// must run at 15/16 of the speed of real time or faster.
func TestTimeOfAStateIsSteady(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		mono, set := second, messages.Duration(0)
		s := NewSteady(func() messages.Time { return epoch.Add(mono + set) }, nil, func() messages.Duration { return mono })
		s.Reached(s.Now(), false, false)
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			before := s.Now()
			s.Reached(before, false, false)
			passed := messages.Duration(rapid.Int64Range(0, int64(minute)).Draw(t, "passed")).Std().Truncate(1000)
			mono += messages.Duration(passed)
			if rapid.IntRange(0, 3).Draw(t, "sets") == 0 {
				set = messages.Duration(rapid.Int64Range(-int64(hour), int64(hour)).Draw(t, "set"))
			}
			if least := messages.Duration(passed)*15/16 - 2000; s.Now().Sub(before) < least { // less 2 µs, because the time counts in whole microseconds
				t.Fatalf("in %v only %v passed", passed, s.Now().Sub(before))
			}
		}
	})
}

// The site's time is ten minutes ahead of the clock. It must not stand still. It must agree with the clock after 160
// minutes, which is sixteen times ten minutes.
func TestTimeAheadIsCaughtUpWith(t *testing.T) {
	mono := second
	s := NewSteady(func() messages.Time { return epoch.Add(mono) }, nil, func() messages.Duration { return mono })
	s.Reached(epoch.Add(mono+10*minute), false, false)
	for range 161 {
		if s.Ahead() == 0 {
			t.Fatalf("after %v it is not ahead any more", mono)
		}
		mono += minute - second // 161 steps of 59 s are less than 160 minutes
		s.Reached(s.Now(), false, false)
	}
	mono += 5 * minute
	if ahead := s.Ahead(); ahead != 0 {
		t.Errorf("still ahead by %v after %v", ahead, mono)
	}
}

// A clock that was set ahead must count as a leap until a commit reports the leap. This must be so for every leader.
// Time that has really passed must not count as a leap.
func TestALeapIsSaid(t *testing.T) {
	mono, set := second, messages.Duration(0)
	clock := func() messages.Time { return epoch.Add(mono + set) }
	leader, other := NewSteady(clock, nil, func() messages.Duration { return mono }), NewSteady(clock, nil, func() messages.Duration { return mono })
	leap := func(s *Steady) messages.Duration {
		_, leap, _ := s.Stamp()
		return leap
	}
	commit := func(at messages.Time, leapt bool, late messages.Duration) {
		mono += late
		for _, s := range []*Steady{leader, other} {
			s.Reached(at, leapt, false)
		}
	}
	set = hour
	if leap(leader) != 0 {
		t.Error("there is a leap before the first commit: the site was down")
	}
	commit(leader.Now(), false, second)
	mono += minute
	set += Bound
	if leap(leader) != 0 {
		t.Error("an hour that passes, or a clock that is set right, is a leap")
	}
	commit(leader.Now(), false, 0)
	before := leader.Now()
	for _, by := range []messages.Duration{leastLeap + 1000, minute, 24 * hour} {
		set += by
		commit(before, false, second) // the leader at that time did not know of the leap
		if leap(leader) != by || leap(other) != by {
			t.Errorf("set ahead by %v, the leaps are %v and %v", by, leap(leader), leap(other))
		}
		commit(leader.Now(), true, 5*second)
		if leap(leader) != 0 || leap(other) != 0 {
			t.Errorf("set ahead by %v, and once that was said the leaps are %v and %v", by, leap(leader), leap(other))
		}
		mono += hour
		before = leader.Now()
	}
	commit(before, false, 0)
	set -= hour
	commit(leader.Now(), false, second)
	set += hour
	if leap(leader) != 0 {
		t.Error("a clock that was set back and right is a leap")
	}
}

// A site starts after an outage, and its leader does not know the time yet. When a leader learns the time, the site's
// time leaps forward. Clients must be told of this leap, because they must not pay for the outage. Three other delays
// must not count as a leap: a log is read again, a disk is slow, or a host was cut off.
func TestALeapAfterAStartIsSaid(t *testing.T) {
	const outage = 10 * minute
	mono, known := minute, false
	clock, passed := func() messages.Time { return epoch.Add(outage + mono) }, func() messages.Duration { return mono }
	leader, other, idle := NewSteady(clock, func() bool { return known }, passed), NewSteady(clock, nil, passed), NewSteady(clock, nil, passed)
	commit := func(at messages.Time, leapt, blind bool) {
		leader.Reached(at, leapt, blind)
		other.Reached(at, leapt, blind)
	}
	for i := range 100 { // the replica reads the log again; a leader that did not know the time wrote the first half of it
		mono += second / 50
		commit(epoch.Add(messages.Duration(i)*second), false, i < 50)
		idle.Reached(epoch.Add(messages.Duration(i)*second), false, i < 50)
	}
	behind := clock().Sub(epoch.Add(99 * second))
	if _, leap, _ := idle.Stamp(); leap != 0 {
		t.Errorf("the outage is a leap of %v", leap)
	}
	for range 20 {
		at, leap, carried := leader.Stamp()
		if leap != 0 || !carried {
			t.Errorf("a leap of %v, carried %v, though the time is not known", leap, carried)
		}
		mono += second
		commit(at, false, true)
	}
	known = true
	for name, s := range map[string]*Steady{"who led": leader, "another": other} {
		now, leap, _ := s.Stamp()
		if off := now.Sub(epoch) - mono - outage; off != 0 || leap < behind || leap > behind+3*second {
			t.Errorf("%s is off by %v, and its leap is %v", name, off, leap)
		}
	}
	at, _, _ := leader.Stamp()
	if commit(at, true, false); leader.Now() != clock() {
		t.Error("the leap is not over")
	}
	for range 20 {
		mono += second
		commit(clock().Add(-leastLeap), false, false) // a slow disk delays a commit
	}
	mono += minute
	commit(clock().Add(-minute/2), false, false) // a host was cut off, and then gets all commits at once
	commit(clock().Add(-second), false, false)
	for name, s := range map[string]*Steady{"who leads": leader, "another": other} {
		if _, leap, _ := s.Stamp(); leap != 0 {
			t.Errorf("%s has a leap of %v though no clock was set", name, leap)
		}
	}
}
