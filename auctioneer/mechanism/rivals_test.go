package mechanism_test

import (
	"testing"

	"github.com/candor-grid/candor/auctioneer/mechanism"
	"github.com/candor-grid/candor/messages"
)

// Several invented names of users of one other site must count as one rival. Otherwise that site could use invented
// names to learn more about bids.
func TestNamesOfAPeerAreOneRival(t *testing.T) {
	for _, c := range []struct {
		own    messages.Name
		others []messages.Name
		want   int
	}{
		{"alice", nil, 0},
		{"alice", []messages.Name{"alice"}, 0},
		{"alice", []messages.Name{"bob", "bob"}, 1},
		{"alice", []messages.Name{"bob", "carol", "bob"}, 2},
		{"alice", []messages.Name{"x@west", "y@west"}, 1},
		{"alice", []messages.Name{"x@west", "x@east"}, 2},
		{"alice@west", []messages.Name{"bob", "x@west", "y@west"}, 1}, // x and y could be other names of alice
		{"alice@west", []messages.Name{"x@west"}, 1},
		{"alice@west", []messages.Name{"x@west", "y@west"}, 1},
		{"alice@west", []messages.Name{"x@west", "bob", "carol"}, 2},
	} {
		job := &mechanism.Job{Bid: &mechanism.Bid{Account: c.own}}
		view, r := &mechanism.View{Jobs: []*mechanism.Job{job}}, mechanism.Rivals{Of: c.own}
		for _, name := range c.others {
			r.Note(name)
			view.Jobs = append(view.Jobs, &mechanism.Job{Bid: &mechanism.Bid{Account: name}})
		}
		if got := r.Count(); got != c.want || mechanism.OneRival(view, job) != (c.want == 1) {
			t.Errorf("%s among %v: %d rivals, want %d; one: %v", c.own, c.others, got, c.want, mechanism.OneRival(view, job))
		}
	}
}
