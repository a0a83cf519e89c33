package sites

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/candor-grid/candor/auctioneer"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/agent"
	"github.com/candor-grid/candor/messages/await"
	"github.com/candor-grid/candor/messages/bus"
	"github.com/candor-grid/candor/messages/clearing"
	jobmsg "github.com/candor-grid/candor/messages/job"
	"github.com/candor-grid/candor/messages/market"
)

// estimates gives the site an estimator that expects every job to complete after the given time, and knows nothing
// else.
func (s *realmSite) estimates(after time.Duration) {
	s.Helper()
	d := messages.Duration(after)
	sub, err := s.network.Connect("$estimator").Serve(bus.Service{Name: "estimator", Version: "1.0.0", Endpoints: []bus.Endpoint{
		answers[messages.Empty](s, market.VerbClasses, market.ClassesReply{}),
		answers[market.RuntimeRequest](s, market.VerbRuntime, market.RuntimeReply{}),
		answers[market.EstimateRequest](s, market.VerbEstimate, market.EstimateReply{Runs: 3, Completion: market.Spread{Low: d / 2, Median: d, High: 2 * d}}),
	}})
	if err != nil {
		s.Fatal(err)
	}
	s.Cleanup(func() { _ = sub.Stop() })
}

func answers[Request, Reply any](s *realmSite, verb string, reply Reply) bus.Endpoint {
	return bus.Endpoint{Name: verb, Subject: messages.Subject(s.name, messages.Estimator, verb, "*"),
		Handle: bus.Handle(verb, func(context.Context, messages.Name, Request) (Reply, error) { return reply, nil })}
}

// three returns three connected sites (a realm): the site west and its two peers. The peer east sells contracts, and
// the peer north is the fastest.
func three(t testing.TB) *realm {
	r := &realm{TB: t, network: bus.NewMemory()}
	r.west = r.start("west")
	r.east = r.start("east", func(c *auctioneer.Config) {
		c.Markets = []market.Market{{Name: "deals", Mechanism: market.ContractMenu, Classes: []messages.Name{"cpu"}}}
	})
	r.north = r.start("north")
	r.introduce(r.west, r.east)
	r.introduce(r.west, r.north)
	r.west.estimates(40 * time.Second)
	r.north.estimates(20 * time.Second)
	r.east.estimates(30 * time.Second)
	return r
}

func (s *realmSite) offers(q clearing.OffersRequest) clearing.OffersReply {
	s.Helper()
	return tell[clearing.OffersReply](s, "alice", messages.Auctioneer, clearing.VerbOffers, q)
}

// sitesOf returns the sites of offers, in their order, each site once.
func sitesOf(offers []clearing.Offer) []messages.Name {
	var names []messages.Name
	for _, o := range offers {
		names = append(names, o.Site)
	}
	return slices.Compact(names)
}

// timed gives a job a valuation: 8 credits, falling to nothing over a thousand seconds.
func timed(spec *jobmsg.JobSpec) {
	spec.Length = messages.Duration(10 * time.Second)
	spec.Valuation = &jobmsg.Valuation{Class: jobmsg.LinearDecay, Max: 8, Mu: 0, Delta: 1000}
}

func TestOffersOfSeveralSites(t *testing.T) {
	r := three(t)
	q := clearing.OffersRequest{Spec: roamingSpec(2, timed)}
	all := r.west.offers(q)
	if got := sitesOf(all.Offers); !slices.Equal(got, []messages.Name{"west", "east", "north"}) || len(all.Silent) != 0 {
		t.Fatalf("offers of %v, silent %+v", got, all.Silent)
	}
	for _, o := range all.Offers {
		if contract := strings.HasPrefix(o.Contract, "east/q"); contract != (o.Site == "east") || o.Completion == 0 || o.Value <= 0 || o.Basis == "" {
			t.Errorf("an offer: %+v", o)
		}
	}
	if best := all.Offers[all.Best]; best.Site != "east" || best.Price != 0 { // east's slots are idle, so its price is 0; the other sites ask for the whole budget
		t.Errorf("the best is %+v: %s", best, all.Why)
	}
	some := r.west.offers(clearing.OffersRequest{Spec: q.Spec, Sites: []messages.Name{"north"}})
	if got := sitesOf(some.Offers); !slices.Equal(got, []messages.Name{"north"}) {
		t.Errorf("offers of %v", got)
	}
	r.cut("north")
	q.Within = messages.Duration(700 * time.Millisecond)
	var cut clearing.OffersReply
	await.Until(r, "all but one have answered in time", func() bool {
		cut = r.west.offers(q)
		return len(cut.Silent) == 1
	})
	if got := sitesOf(cut.Offers); !slices.Equal(got, []messages.Name{"west", "east"}) || len(cut.Silent) != 1 || cut.Silent[0].Site != "north" || !strings.Contains(cut.Silent[0].Error.Message, "within 700ms") {
		t.Errorf("offers of %v, silent %+v", got, cut.Silent)
	}
	r.meddle(nil)
	for name, bad := range map[string]struct {
		kind messages.Kind
		q    clearing.OffersRequest
	}{
		"no peer":   {messages.NotFound, clearing.OffersRequest{Spec: q.Spec, Sites: []messages.Name{"south"}}},
		"no name":   {messages.Invalid, clearing.OffersRequest{Spec: q.Spec, Sites: []messages.Name{"South"}}},
		"twice":     {messages.Invalid, clearing.OffersRequest{Spec: q.Spec, Sites: []messages.Name{"east", "east"}}},
		"too long":  {messages.Invalid, clearing.OffersRequest{Spec: q.Spec, Within: messages.Duration(time.Hour)}},
		"no stages": {messages.Invalid, clearing.OffersRequest{}},
	} {
		if _, err := asks[clearing.OffersReply](r.west, "alice", messages.Auctioneer, clearing.VerbOffers, bad.q); messages.KindOf(err) != bad.kind {
			t.Errorf("%s: got %v", name, err)
		}
	}
	if _, err := asks[clearing.PeerQuoteReply](r.north, "$south", messages.Auctioneer, clearing.VerbPeerQuote,
		clearing.PeerQuoteRequest{Account: "alice", Spec: q.Spec}); messages.KindOf(err) != messages.PermissionDenied {
		t.Errorf("a quote for a site that is no peer: %v", err)
	}
}

// TestSubmitWhereItIsBest submits a job that may run anywhere. It must go to the best offer and say why. A repeated
// request must get the same answer, even if another offer is best then.
func TestSubmitWhereItIsBest(t *testing.T) {
	r := three(t)
	free := r.west.submit("contract", clearing.AnySite, roamingSpec(1, timed))
	if free.Site != "east" || !strings.Contains(free.Chosen, "is worth") {
		t.Fatalf("answered %+v", free)
	}
	await.Until(r.east, "it runs", func() bool {
		r.east.exchange(agent.Exchange{Claims: []agent.Claim{{Market: "deals", Class: "cpu", Slots: 1}}})
		return len(r.east.running) == 1
	})
	r.east.finish()
	if job := r.west.ends(free.Job); job.State != jobmsg.Completed || job.Charged != 0 || job.Away.Chosen != free.Chosen || job.Spec.Contract == "" {
		t.Errorf("it ended as %+v, %+v", job.JobSummary, job.Away)
	}
	plain := r.west.submit("plain", clearing.AnySite, roamingSpec(1)) // a job without a valuation gets no contract
	if plain.Site != "north" || !strings.Contains(plain.Chosen, "earliest") {
		t.Errorf("answered %+v", plain)
	}
	r.cut("north")
	if again := r.west.submit("plain", clearing.AnySite, roamingSpec(1)); again.Job != plain.Job || again.Site != "north" {
		t.Errorf("again: %+v", again)
	}
	here := r.west.submit("here", clearing.AnySite, roamingSpec(1))
	// Usually the answer names no site, and the market "main". On a slow machine, the client repeats the request, and
	// gets the answer for a known job. In that answer, Site is empty and Market can be empty.
	if here.Site != "" || here.Market != "" && (here.Chosen == "" || here.Market != "main") {
		t.Errorf("answered %+v", here)
	}
	r.meddle(nil)
	if again := r.west.submit("here", clearing.AnySite, roamingSpec(1)); again.Job != here.Job || again.Site != "" {
		t.Errorf("again: %+v", again)
	}
	r.north.runs(1)
	r.west.runs(1)
	r.west.ends(plain.Job)
	r.west.ends(here.Job)
	r.settled(r.west, r.east, r.north)
	dear := roamingSpec(1, func(s *jobmsg.JobSpec) {
		s.Budget, s.Valuation = messages.Credit, &jobmsg.Valuation{Class: jobmsg.Hard, Max: 0.5, Deadline: 1000}
	})
	r.cut("east")
	_, err := asks[jobmsg.SubmitReply](r.west, "alice", messages.Auctioneer, messages.VerbSubmit, jobmsg.SubmitRequest{Key: "dear", Spec: dear, Site: clearing.AnySite})
	if messages.KindOf(err) != messages.NotFound || !strings.Contains(err.Error(), "no offer is worth its price") {
		t.Errorf("a job that is worth less than any price: %v", err)
	}
}

// TestAJobGoesWhereItsLicencesAre submits jobs that need licences. Each site must report only whether it has the
// licences itself. If no site has them, the error must say so for each site.
func TestAJobGoesWhereItsLicencesAre(t *testing.T) {
	r := &realm{TB: t, network: bus.NewMemory()}
	has := func(n int) func(*auctioneer.Config) {
		return func(c *auctioneer.Config) { c.Licenses = jobmsg.Licenses{{Name: "matlab", Count: n}} }
	}
	r.west, r.east, r.north = r.start("west"), r.start("east", has(4)), r.start("north", has(2))
	r.introduce(r.west, r.east)
	r.introduce(r.west, r.north)
	r.west.estimates(20 * time.Second)
	r.east.estimates(40 * time.Second)
	r.north.estimates(30 * time.Second)
	seats := func(n int) jobmsg.JobSpec {
		return roamingSpec(1, func(s *jobmsg.JobSpec) { s.Stages[0].Licenses = jobmsg.Licenses{{Name: "matlab", Count: n}} })
	}
	for n, site := range map[int]messages.Name{2: "north", 3: "east"} {
		if job := r.west.submit(fmt.Sprint(n), clearing.AnySite, seats(n)); job.Site != site {
			t.Errorf("a job of %d licences went to %q, want %s: %s", n, job.Site, site, job.Chosen)
		}
	}
	_, err := asks[jobmsg.SubmitReply](r.west, "alice", messages.Auctioneer, messages.VerbSubmit, jobmsg.SubmitRequest{Key: "many", Spec: seats(5), Site: clearing.AnySite})
	for _, says := range []string{"no site offers to run the job", "west: stages[0].licenses: the site has no licences", "east: stages[0].licenses: a task takes 5 of licence matlab, and the site has 4", "north: "} {
		if messages.KindOf(err) != messages.NotFound || !strings.Contains(err.Error(), says) {
			t.Errorf("five licences: %v, want %q", err, says)
		}
	}
}

// BenchmarkOffers asks three sites for offers; for two of them, a round trip takes 60 ms. The metric over-ms is how
// much longer than 60 ms an answer takes, in milliseconds.
func BenchmarkOffers(b *testing.B) {
	const away = 60 * time.Millisecond
	r := three(b)
	r.meddle(func(from messages.Name, subject string, send func() ([]byte, error)) ([]byte, error) {
		if strings.Split(subject, ".")[1] != from {
			<-time.After(away)
		}
		return send()
	})
	q := clearing.OffersRequest{Spec: roamingSpec(2)}
	r.west.offers(q)
	for b.Loop() {
		if all := r.west.offers(q); len(all.Offers) < 2 {
			b.Fatalf("silent: %+v", all.Silent)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N)/1000-float64(away.Milliseconds()), "over-ms")
}

// While many users wait for a site that hangs, users who need nothing from it must be served.
func TestOwnUsersDoNotWaitForOtherSites(t *testing.T) {
	const crowd = 150
	r := newRealm(t)
	away := r.west.submit("away", "east", roamingSpec(1)).Job
	release := make(chan struct{})
	r.meddle(func(from messages.Name, subject string, send func() ([]byte, error)) ([]byte, error) {
		switch to := strings.Split(subject, "."); {
		case to[1] != from && to[3] == clearing.VerbPeerJob: // on a live site, the bus gives up by itself
			return nil, messages.Errorf(messages.Unavailable, "no answer came in time")
		case to[1] != from:
			<-release
		}
		return send()
	})
	answers := make(chan error, crowd)
	for i := range crowd {
		go func() {
			if i%2 == 0 {
				answers <- r.west.once("alice", clearing.VerbOffers, clearing.OffersRequest{Spec: roamingSpec(1)})
				return
			}
			answers <- r.west.once("alice", messages.VerbSubmit, jobmsg.SubmitRequest{Key: fmt.Sprint("auto", i), Spec: roamingSpec(1, func(s *jobmsg.JobSpec) { s.Budget = 1 }), Site: clearing.AnySite})
		}()
	}
	for range crowd - 64 { // too many requests wait already, so these are refused at once
		if err := <-answers; messages.KindOf(err) != messages.Exhausted {
			t.Fatalf("answered %v while the other site hangs", err)
		}
	}
	id := r.west.submit("own", "", roamingSpec(2)).Job
	r.west.runs(2)
	if job := r.west.ends(id); job.State != jobmsg.Completed {
		t.Errorf("it ended as %+v", job.JobSummary)
	}
	if on := r.west.submit("on its way", "east", roamingSpec(1)); on.Job == 0 || on.Site != "east" {
		t.Errorf("answered %+v", on)
	}
	if job := r.west.job(away); job.Away == nil || job.Away.Trouble == "" {
		t.Errorf("a job at the site that hangs: %+v", job.Away)
	}
	close(release)
	r.meddle(nil)
	for range 64 {
		<-answers
	}
}

// TestContractsOfOtherSitesThroughCuts submits a job with another site's contract while the connection is cut. The
// contract must be kept, even if the first answer is lost. If the offer ends before the cut does, the job must be
// refused, and the held credits returned.
func TestContractsOfOtherSitesThroughCuts(t *testing.T) {
	r := three(t)
	var offer clearing.Offer
	long := func(spec *jobmsg.JobSpec) { // the job is long, so that its promised time does not pass on a busy machine
		timed(spec)
		spec.Length = messages.Duration(200 * time.Second)
	}
	quoted := func(key string) jobmsg.SubmitReply {
		t.Helper()
		for _, o := range r.west.offers(clearing.OffersRequest{Spec: roamingSpec(1, long), Sites: []messages.Name{"east"}}).Offers {
			offer = o
		}
		r.cut("east")
		return r.west.submit(key, "east", roamingSpec(1, long, func(s *jobmsg.JobSpec) { s.Contract = offer.Contract }))
	}
	id := quoted("through").Job
	if job := r.west.job(id); job.State != jobmsg.Waiting || job.Away.Trouble == "" {
		t.Errorf("in the cut: %+v, %+v", job.JobSummary, job.Away)
	}
	for i := range 4 { // jobs of east's own users, which compete for the slots
		own := r.east.offers(clearing.OffersRequest{Spec: roamingSpec(2, long), Sites: []messages.Name{"east"}}).Offers[0]
		r.east.submit(fmt.Sprint("own", i), clearing.AnySite, roamingSpec(2, long, func(s *jobmsg.JobSpec) { s.Contract = own.Contract }))
	}
	var lost atomic.Bool
	r.meddle(func(_ messages.Name, subject string, send func() ([]byte, error)) ([]byte, error) {
		if verbOf(subject) == clearing.VerbPeerSubmit && lost.CompareAndSwap(false, true) {
			_, _ = send() // the answer of the first request is lost
			return nil, messages.Errorf(messages.Unavailable, "the link is cut")
		}
		return send()
	})
	await.Until(r.west, "it is there", func() bool { j := r.west.job(id); return j.Away.Phase == "There" || j.State.Final() })
	if j := r.west.job(id); j.State.Final() {
		t.Fatalf("refused: %+v: %s", j.JobSummary, r.west.why(id).Message)
	}
	await.Until(r.east, "all have run", func() bool {
		r.east.exchange(agent.Exchange{Claims: []agent.Claim{{Market: "deals", Class: "cpu", Slots: 1}}})
		if len(r.east.running) > 0 {
			r.east.finish()
		}
		return r.west.job(id).State.Final()
	})
	if job := r.west.ends(id); job.State != jobmsg.Completed || job.Charged > offer.Price || job.Ended > offer.Completion || !lost.Load() {
		t.Errorf("of %+v: ended as %+v", offer, job.JobSummary)
	}

	late := quoted("late").Job
	r.ahead.Add(int64(10 * time.Minute / time.Microsecond))
	r.meddle(nil)
	job := r.west.ends(late)
	if job.State != jobmsg.Discarded || job.Reason != "RefusedBySite" {
		t.Errorf("of an offer that has ended: %+v", job.JobSummary)
	}
	await.Until(r.west, "nothing is set aside", func() bool { return r.west.account("alice").Reserved == 0 })
	if why := r.west.why(late); !strings.Contains(why.Message, "quote") {
		t.Errorf("why: %s", why.Message)
	}
}
