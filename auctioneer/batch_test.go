package auctioneer

import (
	"fmt"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/candor-grid/candor/auctioneer/book"
	"github.com/candor-grid/candor/auctioneer/quota"
	"github.com/candor-grid/candor/messages"
)

// bookkeeper is a leader without a term: a book, and what picks its effects.
func bookkeeper(t *testing.T) *leader {
	t.Helper()
	return &leader{Auctioneer: &Auctioneer{Config: Config{Site: "west", Clock: func() messages.Time { return epoch }}, replica: newReplica()}}
}

// visits enters a job, of another site's user if there is a home.
func (l *leader) visits(t *testing.T, home, account messages.Name) *book.Submit {
	t.Helper()
	spec := oneStage(1)
	spec.Market, spec.Stages[0].Class = "m", "cpu"
	s := &book.Submit{Account: account, Key: account, Payer: account, Spec: &spec, Hold: "job/" + account, Held: spec.Budget}
	if home != "" {
		s.Account, s.Hold = messages.VisitorName(account, home), ""
		l.term++ // numbers the jobs there
		s.Visit = &book.Visit{Visit: messages.Visit{Home: home, Job: messages.JobID(l.term)}, Authorisation: account + "/k", Until: epoch + 1}
	}
	if err, refused := l.replica.book.Apply(&book.Command{Submit: s}).(error); refused {
		t.Fatal(err)
	}
	return s
}

// ended enters a job that was cancelled, and is to be charged.
func (l *leader) ended(t *testing.T, home, account messages.Name) messages.JobID {
	t.Helper()
	s := l.visits(t, home, account)
	j := l.replica.book.ByKey(s.Account, s.Key)
	for _, c := range []*book.Command{
		{Cancel: &book.Cancel{Job: j.ID, By: s.Account}},
		{Settle: &book.Settle{Job: j.ID, Charge: 1}},
	} {
		if err, bad := l.replica.book.Apply(c).(error); bad {
			t.Fatal(err)
		}
	}
	return j.ID
}

// What waits for a silent site fills no batch: the site's own charges are in the
// first one, then those of each other site in turn.
func TestABatchIsSharedFairly(t *testing.T) {
	l := bookkeeper(t)
	for i := range 3 * transfersAtOnce {
		l.ended(t, "silent", fmt.Sprint("v", i))
	}
	l.ended(t, "north", "n")
	own := l.ended(t, "", "alice")
	w := l.nextBatch(l.replica.book, nil)
	if len(w.transfers) != 1 || w.transfers[0].Pending != "job/alice" {
		t.Fatalf("job %d is not charged: %+v", own, w.transfers)
	}
	if len(w.fees) != feesInBatch || w.fees[0].ask.Issuer != "north" || w.fees[1].ask.Issuer != "silent" {
		t.Errorf("%d charges to other sites, the first %+v", len(w.fees), w.fees[0])
	}
	// All but those of the silent site are done: they wait, and nothing is asked again
	// at once for their sake.
	done := &book.Confirm{Effects: []book.Confirmation{{Effect: w.ids[0]}, {Effect: w.fees[0].effect}}}
	l.replica.book.Apply(&book.Command{Confirm: done})
	if w.last {
		t.Error("more charges to other sites than a batch has are forgotten")
	}
	wait := map[messages.Name]bool{"silent": true}
	if w := l.nextBatch(l.replica.book, wait); !w.last || len(w.fees)+len(w.ids) > 0 {
		t.Errorf("what cannot be charged is tried again at once: %+v", w.fees)
	}
	l.ended(t, "", "bob")
	if w := l.nextBatch(l.replica.book, wait); len(w.ids) != 1 {
		t.Error("a charge of the site waits for those of another")
	}
}

// A site is held to the limits of one account, under however many names its users
// come, and no other site or account for its sake.
func TestASitesJobsAreBoundedAsOnes(t *testing.T) {
	l := bookkeeper(t)
	l.metrics = newMetrics(prometheus.NewRegistry())
	l.Limits = quota.Rules{PendingJobs: 3, PerSecond: 1, Burst: 5}
	l.gate = &gate{rules: l.Limits, metrics: l.metrics}
	from := func(home, account messages.Name) messages.Kind {
		_, err := l.within(&submission{account: messages.VisitorName(account, home), visit: &visit{Visit: book.Visit{Visit: messages.Visit{Home: home}}}})
		return messages.KindOf(err)
	}
	for i := range 3 {
		l.visits(t, "north", fmt.Sprint("ada", i))
	}
	if kind := from("north", "another"); kind != messages.Exhausted {
		t.Errorf("a fourth job of a site comes to %v", kind)
	}
	if _, err := l.within(&submission{account: "alice"}); err != nil {
		t.Errorf("an account of this site: %v", err)
	}
	for i := range 5 {
		from("east", fmt.Sprint("eve", i))
	}
	if kind := from("east", "new"); kind != messages.Unavailable {
		t.Errorf("a site that is too fast is told %v, and should ask again", kind)
	}
}
