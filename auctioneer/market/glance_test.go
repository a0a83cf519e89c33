package market

import (
	"fmt"
	"reflect"
	"testing"

	"github.com/candor-grid/candor/auctioneer/book"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/job"
	"github.com/candor-grid/candor/messages/market"
)

// Several jobs are read with the same spare memory. A bid must stay correct after other jobs have been read.
func TestBidsKeepNoGlance(t *testing.T) {
	m, err := Open(market.Market{Name: "main", Mechanism: market.Proportional, Classes: []messages.Name{"cpu", "gpu"}})
	if err != nil {
		t.Fatal(err)
	}
	b := book.New()
	const jobs = 40
	for i := 1; i <= jobs; i++ {
		spec := &job.JobSpec{Name: fmt.Sprint("job", i), Market: "main", Budget: messages.Credits(i), Rate: messages.Credits(i), Length: messages.Duration(i),
			Utility: &job.Utility{Form: []job.Form{job.Linear, job.Log}[i%2], Minimum: float64(i), Weights: job.Weights{{Class: "cpu", Weight: float64(i)}, {Class: "gpu", Weight: 1}}},
			Stages:  []job.Stage{{Name: "main", Class: "cpu", Tasks: 1 + i%3, Command: []string{"true"}}}}
		if i%3 == 0 {
			spec.Valuation = &job.Valuation{Max: float64(i), Points: []job.ValuationPoint{{At: float64(i), Part: 1}}}
		}
		submit := &book.Submit{Account: fmt.Sprint("account", i), Key: fmt.Sprint("key", i), Payer: "payer", Spec: spec, Held: spec.Budget}
		if i%5 == 0 {
			submit.Contract = &job.Contract{Completion: messages.Time(i), Replica: job.Valuation{Max: float64(i)}}
		}
		if err, refused := b.Apply(&book.Command{Submit: submit}).(error); refused {
			t.Fatal(err)
		}
	}
	var spare book.Spare
	for id := messages.JobID(1); id <= jobs; id++ {
		got := m.BidOf(b.Glance(id, &spare))
		for other := messages.JobID(1); other <= jobs; other++ {
			b.Glance(other, &spare)
		}
		if want := m.BidOf(b.Job(id)); !reflect.DeepEqual(got, want) {
			t.Errorf("job %d: %+v, want %+v", id, got, want)
		}
	}
}
