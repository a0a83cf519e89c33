package connections

import (
	"testing"
	"time"

	"github.com/candor-grid/candor/deploy/identity"
)

var alice, bob = holder{identity.User, "alice"}, holder{identity.User, "bob"}

// TestCensus: connections count from when they are opened, or listed, until they are
// closed, are listed no more, or their server is gone.
func TestCensus(t *testing.T) {
	c, at := newCensus(), time.Unix(1000, 0)
	counts := func(what string, a, b int) {
		t.Helper()
		if c.open[alice] != a || c.open[bob] != b || len(c.gone) > 0 && len(c.leaving) == 0 {
			t.Errorf("%s: alice has %d and bob %d, want %d and %d", what, c.open[alice], c.open[bob], a, b)
		}
	}
	c.opened(connection{"s1", 1}, alice, at)
	c.opened(connection{"s1", 1}, alice, at)
	c.opened(connection{"s2", 1}, alice, at)
	c.opened(connection{"s2", 2}, bob, at)
	counts("opened", 2, 1)
	c.closed(connection{"s2", 9}, at)
	c.closed(connection{"s2", 2}, at)
	counts("closed", 2, 0)
	c.asking("s1")
	c.opened(connection{"s1", 5}, bob, at)
	c.closed(connection{"s1", 4}, at)
	c.list("s1", map[uint64]holder{2: bob, 4: bob}, at)
	counts("a list, without what came and with what went since it was asked for", 1, 2)
	if due := c.due(at); len(due) != 1 || due[0] != "s2" {
		t.Errorf("to be asked: %v", due)
	}
	c.leaves(connection{"s2", 1})
	c.hear("s1", at.Add(time.Minute))
	c.forget(at.Add(time.Second))
	counts("a server is gone", 0, 2)
	c.list("s2", map[uint64]holder{1: alice}, at)
	counts("its answer is late", 0, 2)
}

// TestExcess: what is about to be cut is not counted again, and the newest go first.
func TestExcess(t *testing.T) {
	c, at := newCensus(), time.Unix(1000, 0)
	most := func(holder) int { return 2 }
	for n := range uint64(4) {
		c.opened(connection{"s1", n}, alice, at)
	}
	c.opened(connection{"s1", 4}, bob, at)
	if all := c.newest("s1", most); len(all) != 2 || all[0].id != 3 || all[1].id != 2 {
		t.Errorf("to be cut: %v", all)
	}
	if !c.leaves(connection{"s1", 3}) || c.leaves(connection{"s1", 3}) || c.leaves(connection{"s1", 7}) {
		t.Error("a connection leaves once, if it is there")
	}
	if n := c.excess(alice, 2); n != 1 {
		t.Errorf("%d are too many, want 1", n)
	}
	if !c.stays(connection{"s1", 3}) || c.stays(connection{"s1", 3}) || c.excess(alice, 2) != 2 {
		t.Error("it stays, and is counted again")
	}
}
