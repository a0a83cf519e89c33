package mailbox

import (
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/raft"
)

// slowBelow is a transport on which each connection takes as long as Raft waits for one.
type slowBelow struct {
	below
	takes       time.Duration
	mu          sync.Mutex
	under, most int
}

func (s *slowBelow) RequestPreVote(raft.ServerID, raft.ServerAddress, *raft.RequestPreVoteRequest, *raft.RequestPreVoteResponse) error {
	s.count(1)
	time.Sleep(s.takes)
	s.count(-1)
	return nil
}

func (s *slowBelow) count(by int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.under += by
	s.most = max(s.most, s.under)
}

// TestElectionsDoNotPileUp: where connections take longer than an election, the elections of a
// minute open no more than four at a time to a replica, and where they are quick each one asks.
func TestElectionsDoNotPileUp(t *testing.T) {
	for takes, want := range map[time.Duration]struct {
		most    int
		refused int64
	}{5 * time.Second: {4, 28}, time.Millisecond: {1, 0}} {
		synctest.Test(t, func(t *testing.T) {
			slow := &slowBelow{takes: takes}
			g := &gate{below: slow, asking: asking{first: time.Second}}
			var refused atomic.Int64
			for range 60 {
				go func() {
					if g.ask("b", "b", &raft.RequestPreVoteRequest{}, &raft.RequestPreVoteResponse{}) != nil {
						refused.Add(1)
					}
				}()
				time.Sleep(time.Second)
			}
			time.Sleep(time.Minute)
			synctest.Wait()
			if n := refused.Load(); slow.most > want.most || n < want.refused || want.refused == 0 && n > 0 {
				t.Errorf("connections that take %v: %d at a time, %d of 60 questions refused", takes, slow.most, n)
			}
		})
	}
}

// TestAskingAgain: a replica that fell silent is asked again beside the question that waits, after
// 1 s, then every 2 s; an answer in time makes the next question wait for 1 s only.
func TestAskingAgain(t *testing.T) {
	a := asking{first: time.Second}
	start := time.Unix(1, 0)
	var last time.Time
	begins := func(at time.Duration, want bool) {
		t.Helper()
		if got := a.begin("b", start.Add(at)); got != want {
			t.Errorf("after %v: asked %t", at, got)
		} else if got {
			last = start.Add(at)
		}
	}
	begins(0, true)
	begins(900*time.Millisecond, false)
	begins(time.Second, true)
	a.end("b", start, false) // the first question fails; the second waits still
	begins(2900*time.Millisecond, false)
	begins(3*time.Second, true)
	begins(4900*time.Millisecond, false)
	begins(5*time.Second, true)
	begins(7*time.Second, true)
	a.end("b", last, true)
	begins(7*time.Second, true)
	begins(7900*time.Millisecond, false)
	begins(8*time.Second, true)
	if !a.begin("c", start) {
		t.Error("another replica is not asked")
	}
}
