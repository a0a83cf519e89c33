package stream

import (
	"fmt"
	"testing"
	"time"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/agent"
	"github.com/candor-grid/candor/messages/await"
	jobmsg "github.com/candor-grid/candor/messages/job"
)

// TestEndedStreamsAreKept checks that an ended stream stays only while its client asks, and that a task always gets its
// own stream.
func TestEndedStreamsAreKept(t *testing.T) {
	p := NewStreams(func(messages.Attempt) bool { return false })
	p.keepEnded = 50 * time.Millisecond
	attempt := func(n uint32) messages.Attempt { return messages.Attempt{Number: n} }
	key := Key{attempt(1), ""}
	began, before, silent := time.Now(), time.Now(), false
	s := New(jobmsg.Interactive{})
	if err := p.Add("alice", key, s); err != nil {
		t.Fatal(err)
	}
	s.output.data, s.output.over, s.errors.over = []byte("the end"), true, true
	p.Finish(key, s, 0)
	ask := func() string {
		s := p.Get(key)
		if s == nil {
			return "no stream"
		}
		r, err := s.Exchange(t.Context(), &agent.StreamRequest{Attempt: key.Attempt, Client: "one", Poll: true})
		if err != nil {
			return err.Error()
		}
		return string(r.Output)
	}
	await.Until(t, "the client has asked for long", func() bool {
		last, got := time.Now(), ask()
		silent = silent || time.Since(before) >= p.keepEnded // on a busy machine, the client may be silent for too long
		if before = last; got != "the end" && !silent {
			t.Fatalf("the client that asks has %q", got)
		}
		return time.Since(began) > 4*p.keepEnded
	})
	await.Until(t, "the stream that nobody asks for is forgotten", func() bool {
		p.mu.Lock()
		defer p.mu.Unlock()
		return len(p.all) == 0
	})

	p.keepEnded = time.Hour
	var ended *Stream
	for n := range uint32(maxStreams) {
		s := New(jobmsg.Interactive{})
		if n == 7 {
			ended = s
		}
		if err := p.Add(fmt.Sprint("account", n), Key{attempt(n / maxTaskStreams), string(rune('a' + n))}, s); err != nil {
			t.Fatal(err)
		}
	}
	beside := Key{attempt(maxStreams), "x"}
	if err := p.Add("alice", beside, New(jobmsg.Interactive{})); messages.KindOf(err) != messages.Exhausted {
		t.Errorf("a stream beside a task, where there are %d: %v", maxStreams, err)
	}
	if err := p.Add("alice", Key{attempt(maxStreams), ""}, New(jobmsg.Interactive{})); err != nil {
		t.Errorf("a task has no stream of its own because others have many: %v", err)
	}
	ended.Finish(0)
	if err := p.Add("alice", beside, New(jobmsg.Interactive{})); err != nil {
		t.Errorf("a stream that has ended makes no room: %v", err)
	}
}

// One account fills the node with further streams to its tasks. Other accounts must still get streams. The node must
// not drop an ended stream of another account to make room for this account.
func TestOneAccountLeavesStreamsToOthers(t *testing.T) {
	p := NewStreams(func(messages.Attempt) bool { return true })
	add := func(account messages.Name, task uint32, name string) (*Stream, error) {
		s := New(jobmsg.Interactive{})
		return s, p.Add(account, Key{messages.Attempt{Number: task}, name}, s)
	}
	read, err := add("bob", 1000, "ended")
	if err != nil {
		t.Fatal(err)
	}
	read.Finish(0)
	fill := func(account messages.Name, end bool) (had int) {
		for n := range uint32(2 * maxStreams) {
			s, err := add(account, n/maxTaskStreams, fmt.Sprint(account, n))
			if end && err == nil {
				s.Finish(0)
			}
			if err == nil {
				had++
			}
		}
		return had
	}
	if had := fill("mallory", false); had != maxStreams/2 {
		t.Errorf("one account has %d streams of %d", had, maxStreams)
	}
	fill("eve@west", true)
	if had := fill("trudy@west", false); had > maxStreams/3 {
		t.Errorf("users of another site have %d streams of %d", had, maxStreams)
	}
	if _, err := add("bob", 1000, "more"); err != nil {
		t.Errorf("another account has none: %v", err)
	}
	if p.Get(Key{messages.Attempt{Number: 1000}, "ended"}) == nil {
		t.Error("what bob's command printed at its end is gone")
	}
}
