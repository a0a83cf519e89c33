package auctioneer

import (
	"context"
	"maps"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/await"
	"github.com/candor-grid/candor/messages/job"
	"github.com/candor-grid/candor/messages/mailbox"
	"github.com/candor-grid/candor/messages/market"
	"github.com/candor-grid/candor/messages/wire"
)

// Two submissions accept contracts of one quote at the same time. One is refused, and its hold must be freed. A third
// submission must be refused before the bank holds any credits.
func TestARefusedContractLeavesNoHold(t *testing.T) {
	g := newGrid(t, 1, sold(func(*market.Market) {}))
	spec := bids(1, valued)
	menu := must[market.QuoteReply](g.fixture, "alice", market.VerbQuote, market.QuoteRequest{Spec: spec})
	declared := menu.Contracts[slices.IndexFunc(menu.Contracts, func(c market.QuotedContract) bool { return c.Declared })]
	spec.Contract, spec.Budget = declared.ID, declared.Budget
	g.books.meet(make(chan chan struct{}, 2))
	answers := make(chan error, 2)
	for _, key := range []string{"a", "b"} {
		go func() {
			_, err := call[job.SubmitReply](g.fixture, "alice", messages.VerbSubmit, job.SubmitRequest{Key: key, Spec: spec})
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
	g.books.meet(nil)
	_, err := call[job.SubmitReply](g.fixture, "alice", messages.VerbSubmit, job.SubmitRequest{Key: "c", Spec: spec})
	wantKind(t, err, messages.Conflict)
	if left := held(); len(left) != 1 || left[0] != "job/west/alice/a" && left[0] != "job/west/alice/b" {
		t.Errorf("held are %q", left)
	}
}

// deposed is the mailbox of a leader that has been replaced by another leader, and does not know it yet.
type deposed struct {
	mailbox.Mailbox
	is atomic.Bool
}

func (m *deposed) Verify(ctx context.Context) error {
	if m.is.Load() {
		return mailbox.ErrNotLeader
	}
	return m.Mailbox.Verify(ctx)
}

// A replaced leader does not have the jobs that were submitted to the new leader. If it is asked for such a job, it
// must not say that the job does not exist.
func TestOnlyWhoLeadsRefuses(t *testing.T) {
	box := new(deposed)
	f := startWith(t, behind(func(ordinary mailbox.Mailbox) mailbox.Mailbox {
		box.Mailbox = ordinary
		return box
	}))
	f.submit("alice", "k", oneStage(1))
	after := oneStage(1)
	after.AfterJobs = []messages.JobID{7}
	for verb, request := range map[string]any{
		messages.VerbCancel: job.CancelRequest{Job: 7},
		job.VerbHold:        job.JobRequest{Job: 7},
		messages.VerbSubmit: job.SubmitRequest{Key: "after", Spec: after},
	} {
		data, err := wire.Marshal(request, wire.Msgpack)
		if err != nil {
			t.Fatal(err)
		}
		ask := func(followed bool) error {
			box.is.Store(followed)
			_, err := f.net.Connect("alice").Request(t.Context(), messages.Subject("west", messages.Auctioneer, verb, "alice"), data)
			return err
		}
		wantKind(t, ask(false), messages.NotFound)
		if err := ask(true); !messages.KindOf(err).Retriable() {
			t.Errorf("%s: a leader that was followed answers %v", verb, err)
		}
	}
}
