package auctioneer

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/candor-grid/candor/auctioneer/book"
	"github.com/candor-grid/candor/auctioneer/federation"
	"github.com/candor-grid/candor/auctioneer/intake"
	"github.com/candor-grid/candor/auctioneer/quota"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/clearing"
	"github.com/candor-grid/candor/messages/job"
)

// bookkeeper returns a leader's term with an empty book. It has no desk, and is in no group of replicas.
func bookkeeper(t *testing.T) *term {
	t.Helper()
	return &term{site: &site{Config: Config{Site: "west", Clock: func() messages.Time { return epoch }}, replica: newReplica(nil, nil)}}
}

// visits enters a job. If the argument `home` is set, it is a visiting job from the site `home`.
func (l *term) visits(t *testing.T, home, account messages.Name) *book.Submit {
	t.Helper()
	spec := oneStage(1)
	spec.Market, spec.Stages[0].Class = "m", "cpu"
	s := &book.Submit{Account: account, Key: account, Payer: account, Spec: &spec, Hold: "job/" + account, Held: spec.Budget}
	if home != "" {
		s.Account, s.Hold = messages.VisitorName(account, home), ""
		l.number++ // the job's number at its home site
		s.Visit = &book.Visit{Visit: job.Visit{Home: home, Job: messages.JobID(l.number)}, Authorisation: account + "/k", Until: epoch + 1}
	}
	if err, refused := l.replica.book.Apply(&book.Command{Submit: s}).(error); refused {
		t.Fatal(err)
	}
	return s
}

// All users of another site together must have the limits of a single account, whatever their names. Other sites and
// accounts must not be affected.
func TestASitesJobsAreBoundedAsOnes(t *testing.T) {
	l := bookkeeper(t)
	l.metrics = newMetrics(prometheus.NewRegistry())
	l.Limits = quota.Rules{PendingJobs: 3, PerSecond: 1, Burst: 5}
	l.gate = &gate{rules: l.Limits, metrics: l.metrics}
	from := func(home, account messages.Name) messages.Kind {
		_, err := (&submissions{term: l}).within(&submission{Submission: &intake.Submission{Account: messages.VisitorName(account, home)}, visit: &federation.Arrival{Visit: book.Visit{Visit: job.Visit{Home: home}}}})
		return messages.KindOf(err)
	}
	for i := range 3 {
		l.visits(t, "north", fmt.Sprint("ada", i))
	}
	if kind := from("north", "another"); kind != messages.Exhausted {
		t.Errorf("a fourth job of a site comes to %v", kind)
	}
	if _, err := (&submissions{term: l}).within(&submission{Submission: &intake.Submission{Account: "alice"}}); err != nil {
		t.Errorf("an account of this site: %v", err)
	}
	for i := range 5 {
		from("east", fmt.Sprint("eve", i))
	}
	if kind := from("east", "new"); kind != messages.Unavailable {
		t.Errorf("a site that is too fast is told %v, and should ask again", kind)
	}
}

func TestASitesQuotesAreBounded(t *testing.T) {
	l := bookkeeper(t)
	for i := range book.MaxSiteQuotes {
		quote := &book.Quote{Account: messages.VisitorName(fmt.Sprint("eve", i/50), "east"), Market: "m", Expires: epoch + 1}
		if err, refused := l.replica.book.Apply(&book.Command{Quote: quote}).(error); refused {
			t.Fatal(err)
		}
	}
	s := &submissions{term: l}
	if err := s.quotable("new@east"); messages.KindOf(err) != messages.Exhausted {
		t.Errorf("one more quote to a site: %v", err)
	}
	for _, other := range []messages.Name{"ada@north", "alice"} {
		if err := s.quotable(other); err != nil {
			t.Errorf("%s: %v", other, err)
		}
	}
}

// Requests that wait for a silent peer must not use up the places for requests to another peer.
func TestLooksAreBoundedPerPeer(t *testing.T) {
	p := &peers{site: "west"}
	var leave func()
	for range maxLooksAt {
		var err error
		if leave, err = p.enter("east"); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := p.enter("east"); messages.KindOf(err) != messages.Exhausted {
		t.Errorf("one more for the silent peer: %v", err)
	}
	other, err := p.enter("north")
	if err != nil {
		t.Errorf("another peer: %v", err)
	}
	other()
	leave()
	if _, err := p.enter("east"); err != nil {
		t.Errorf("after one has left: %v", err)
	}
}

// Each kind of request has a limited rate for each other site, whatever names the site's users have. A site at its
// limit must not affect other sites. Only a few quotes may be computed at the same time for one site.
func TestASiteHasAPace(t *testing.T) {
	g := &gate{metrics: newMetrics(prometheus.NewRegistry())}
	for verb, rules := range map[string]*quota.Rules{clearing.VerbPeerQuote: &quotePace, clearing.VerbPeerSubmit: &submitPace, clearing.VerbPeerJob: &askPace} {
		now := epoch
		for range rules.Burst {
			if err := g.paced(now, "east", verb); err != nil {
				t.Fatalf("%s: %v", verb, err)
			}
		}
		if err := g.paced(now, "east", verb); messages.KindOf(err) != messages.Unavailable {
			t.Errorf("%s: one more than the burst: %v", verb, err)
		}
		if err := g.paced(now, "west", verb); err != nil {
			t.Errorf("%s: another site: %v", verb, err)
		}
		if err := g.paced(now.Add(messages.Duration(time.Second)), "east", verb); err != nil {
			t.Errorf("%s: a second later: %v", verb, err)
		}
	}
	var done []func()
	for range quotesAtOnce {
		end, err := g.quoting(t.Context(), "east")
		if err != nil {
			t.Fatal(err)
		}
		done = append(done, end)
	}
	over, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := g.quoting(over, "east"); messages.KindOf(err) != messages.Unavailable {
		t.Errorf("one more at once: %v", err)
	}
	if end, err := g.quoting(t.Context(), "west"); err != nil {
		t.Errorf("another site: %v", err)
	} else {
		end()
	}
	done[0]()
	if _, err := g.quoting(t.Context(), "east"); err != nil {
		t.Errorf("when one is made: %v", err)
	}
}

func TestJobsAtASilentSiteLeaveRoomForOthers(t *testing.T) {
	l := bookkeeper(t)
	r := &remote{site: l.site}
	spec := oneStage(1)
	for i := range departedPerSite {
		if err, refused := l.replica.book.Apply(&book.Command{EnterRemote: &book.EnterRemote{Account: "ada", Key: fmt.Sprint(i), Payer: "ada", Spec: &spec, Peer: "north"}}).(error); refused {
			t.Fatal(err)
		}
	}
	if err := r.room("north"); messages.KindOf(err) != messages.Exhausted {
		t.Errorf("one job more: %v", err)
	}
	if err := r.room("east"); err != nil {
		t.Errorf("another site: %v", err)
	}
}
