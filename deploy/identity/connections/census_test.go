package connections

import (
	"slices"
	"testing"
	"time"

	"github.com/candor-grid/candor/deploy/identity"
)

var alice, bob = holder{identity.User, "alice"}, holder{identity.User, "bob"}

func open(server string, id uint64, by holder) connection {
	return connection{place: place{server, id}, by: by}
}

// The census counts the open connections of each user. It must count a connection from the time when it is opened or
// first listed. It must stop when the connection is closed or no longer listed, or when its server is gone.
func TestCensus(t *testing.T) {
	c, at := newCensus(), time.Unix(1000, 0)
	counts := func(what string, a, b int) {
		t.Helper()
		if c.open[alice] != a || c.open[bob] != b || len(c.open) != min(a, 1)+min(b, 1) {
			t.Errorf("%s: alice has %d and bob %d, want %d and %d", what, c.open[alice], c.open[bob], a, b)
		}
	}
	c.opened(open("s1", 1, alice), at)
	c.opened(open("s1", 1, alice), at)
	c.opened(open("s2", 1, alice), at)
	c.opened(open("s2", 2, bob), at)
	counts("opened", 2, 1)
	c.closed(place{"s2", 9}, at)
	c.closed(place{"s2", 2}, at)
	counts("closed", 2, 0)
	c.asking(at)
	c.opened(open("s1", 5, bob), at)
	c.closed(place{"s1", 4}, at)
	c.list("s1", map[uint64]connection{2: open("s1", 2, bob), 4: open("s1", 4, bob)}, at)
	counts("a list, without what came and with what went since it was asked for", 1, 2)
	if due := c.asking(at.Add(1)); len(due) != 1 || due[0] != "s1" {
		t.Errorf("to be asked, while s2 is: %v", due)
	}
	c.hear("s1", at.Add(time.Minute))
	c.forget(at.Add(time.Second))
	counts("a server is gone", 0, 2)
	c.list("s2", map[uint64]connection{1: open("s2", 1, alice)}, at)
	counts("its answer is late", 0, 2)
}

// If an account has too many connections, the newest connections must be closed, whatever server they are on.
func TestExcess(t *testing.T) {
	c, at := newCensus(), time.Unix(1000, 0)
	for n := range uint64(4) {
		one := open("s1", n, alice)
		one.start = at.Add(-time.Duration(n))
		c.opened(one, at)
	}
	c.opened(open("s2", 9, alice), at)
	c.opened(open("s1", 4, bob), at)
	var ids []uint64
	for _, n := range c.excess(func(holder) int { return 2 }) {
		ids = append(ids, n.id)
	}
	if !slices.Equal(ids, []uint64{0, 1, 2}) {
		t.Errorf("too many are %v", ids)
	}
}
