package auctioneer

import (
	"context"
	"testing"

	"github.com/candor-grid/candor/auctioneer/book"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/bus"
)

// TestFullBankDecidesNothing: an earlier request of the same errand may have been
// carried out though it was not answered, so credits may be set aside that only a
// later answer frees.
func TestFullBankDecidesNothing(t *testing.T) {
	b := bus.NewMemory().Connect("$auctioneer")
	refuse := func(context.Context, bus.Request) ([]byte, error) {
		return nil, messages.Errorf(messages.Exhausted, "the disk is almost full")
	}
	served, err := b.Serve(bus.Service{Name: "bank", Version: "1.0.0", Concurrency: 1, Endpoints: []bus.Endpoint{
		{Name: "authorise", Subject: messages.Subject("west", messages.Bank, messages.VerbAuthorise, "*"), Handle: refuse},
		{Name: "revoke", Subject: messages.Subject("west", messages.Bank, messages.VerbRevoke, "*"), Handle: refuse},
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer served.Stop() //nolint:errcheck // the test is over
	l := &leader{Auctioneer: &Auctioneer{Config: Config{Site: "west", Bus: b}}}
	r := &book.Roam{ID: 1, Payer: "ada", Account: "ada", Peer: "east", Spec: &messages.JobSpec{Budget: 5}}
	for name, errand := range map[string]func(context.Context, *book.Roam) (book.Step, error){"authorise": l.authorise, "release": l.release} {
		if step, err := errand(t.Context(), r); messages.KindOf(err) != messages.Exhausted || step.Refused != nil || step.Released {
			t.Errorf("%s: step %+v, error %v", name, step, err)
		}
	}
}
