package nodeagent_test

import (
	"testing"
	"time"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/bus"
	"github.com/candor-grid/candor/messages/job"
	"github.com/candor-grid/candor/nodeagent"
)

// TestAgentServesTheReleasesBesideItsOwn: the agent must not serve an auctioneer that is two releases ahead. It must
// serve an auctioneer that is one release ahead.
func TestAgentServesTheReleasesBesideItsOwn(t *testing.T) {
	t.Parallel()
	network := bus.NewMemory()
	l := newLeader(t, network, time.Second)
	l.set(func() { l.level = messages.Level + 2 })
	a, err := nodeagent.Start(t.Context(), nodeagent.Config{
		Site: "home", Node: "n1", Slots: []job.ClassSlots{{Class: "cpu", Slots: 2}}, Bus: network.Connect("n1"), Dir: t.TempDir(), Operators: []messages.Name{"root"}, Seed: 1,
	})
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	l.until("a second registration", func() bool { return l.registers > 1 })
	select {
	case <-a.Ready():
		t.Error("it serves an auctioneer of the release after the next")
	default:
	}
	l.set(func() { l.level = messages.Level + 1 })
	select {
	case <-a.Ready():
	case <-time.After(patience):
		t.Error("it does not serve an auctioneer of the next release")
	}
}
