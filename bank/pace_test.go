package bank

import (
	"fmt"
	"testing"
	"time"

	"github.com/candor-grid/candor/messages"
)

// TestUsersCannotFillTheJournal: a user sends many requests that are refused. Few may become commands, and other users
// must not be slowed.
func TestUsersCannotFillTheJournal(t *testing.T) {
	var p pace
	now := messages.Time(1_000_000)
	taken := 0
	for range 10 * paceBurst {
		if p.count("alice", now) == nil {
			taken++
		}
	}
	if taken != paceBurst {
		t.Errorf("%d of alice's requests were taken at once, want %d", taken, paceBurst)
	}
	if err := p.count("alice", now); messages.KindOf(err) != messages.Exhausted {
		t.Errorf("the next one is answered %v", err)
	}
	if err := p.count("bob", now); err != nil {
		t.Errorf("bob: %v", err)
	}
	now = now.Add(messages.Duration(time.Minute))
	for taken = 0; p.count("alice", now) == nil; taken++ {
	}
	if taken != paceBurst {
		t.Errorf("a minute later %d were taken, want %d", taken, paceBurst)
	}
}

func TestPaceForgets(t *testing.T) {
	var p pace
	now := messages.Time(1)
	for i := range 3 * maxPaced {
		now = now.Add(paceEvery)
		if err := p.count(fmt.Sprint("user", i), now); err != nil {
			t.Fatal(err)
		}
	}
	if len(p.full) > maxPaced {
		t.Errorf("%d users are remembered", len(p.full))
	}
}
