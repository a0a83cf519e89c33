package auctioneer

import (
	"testing"

	"github.com/candor-grid/candor/auctioneer/book"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/agent"
)

// A node can drain and be paused by its agent at the same time. Both reasons must be shown.
func TestNodeTellsAllReasons(t *testing.T) {
	full := agent.Paused([]messages.Name{agent.AbilityFull})
	for _, c := range []struct {
		name string
		node book.Node
		want string
	}{
		{"works", book.Node{Up: true}, ""},
		{"paused", book.Node{Up: true, Abilities: []messages.Name{agent.AbilityFull}}, full},
		{"drains", book.Node{Up: true, Drain: book.ToTheirEnd, DrainReason: "new disk"}, "new disk"},
		{"drains and is paused", book.Node{Up: true, Drain: book.ToTheirEnd, DrainReason: "new disk", Abilities: []messages.Name{agent.AbilityFull}}, "new disk; " + full},
		{"drains for no reason and is paused", book.Node{Up: true, Drain: book.ToTheirEnd, Abilities: []messages.Name{agent.AbilityFull}}, full},
		{"quarantined", book.Node{Up: true, Health: book.Health{Reason: "probes fail"}}, "probes fail"},
		{"lost", book.Node{DrainReason: "new disk"}, ""},
	} {
		if got := reasonOf(&c.node); got != c.want {
			t.Errorf("%s: %q, not %q", c.name, got, c.want)
		}
	}
}
