package auctioneer

import (
	"maps"
	"slices"
	"testing"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/await"
)

// TestARefusedContractLeavesNoHold: of two submissions that take contracts of one quote
// at a time, one is refused after its hold was made. The hold is freed. A third is refused
// before anything is held.
func TestARefusedContractLeavesNoHold(t *testing.T) {
	g := newGrid(t, 1, sold(func(*messages.Market) {}))
	spec := bids(1, valued)
	menu := must[messages.QuoteReply](g.fixture, "alice", messages.VerbQuote, messages.QuoteRequest{Spec: spec})
	declared := menu.Contracts[slices.IndexFunc(menu.Contracts, func(c messages.QuotedContract) bool { return c.Declared })]
	spec.Contract, spec.Budget = declared.ID, declared.Budget
	g.books.arrived = make(chan chan struct{}, 2)
	answers := make(chan error, 2)
	for _, key := range []string{"a", "b"} {
		go func() {
			_, err := call[messages.SubmitReply](g.fixture, "alice", messages.VerbSubmit, messages.SubmitRequest{Key: key, Spec: spec})
			answers <- err
		}()
	}
	one, two := <-g.books.arrived, <-g.books.arrived
	close(one)
	close(two)
	first, second := <-answers, <-answers
	if first == nil {
		first = second
	}
	wantKind(t, first, messages.Conflict)
	held := func() []string {
		g.books.mu.Lock()
		defer g.books.mu.Unlock()
		return slices.Sorted(maps.Keys(g.books.held))
	}
	await.Until(t, "the hold of the refused submission is freed", func() bool { return len(held()) == 1 })
	g.books.arrived = nil
	_, err := call[messages.SubmitReply](g.fixture, "alice", messages.VerbSubmit, messages.SubmitRequest{Key: "c", Spec: spec})
	wantKind(t, err, messages.Conflict)
	if left := held(); len(left) != 1 || left[0] != "job/west/alice/a" && left[0] != "job/west/alice/b" {
		t.Errorf("held are %q", left)
	}
}
