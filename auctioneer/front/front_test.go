package front

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/bus"
)

// fixture is a site of two auctioneers, day and night, that answer by hand.
type fixture struct {
	*testing.T
	net   *bus.Network
	front *Front
}

const site = "west"

func newFixture(t *testing.T) *fixture {
	t.Helper()
	f := &fixture{T: t, net: bus.NewMemory()}
	var err error
	f.front, err = Start(Config{Site: site, Bus: f.net.Connect("$auctioneer"), Auctioneers: []messages.AuctioneerMarkets{{Name: "night", Number: 1}, {Name: "day"}}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := f.front.Close(); err != nil {
			t.Error(err)
		}
	})
	return f
}

// serve has an auctioneer answer a verb until it is stopped.
func serve[Req, Rep any](f *fixture, name, verb string, answer func(caller messages.Name, r Req) (Rep, error)) bus.Subscription {
	f.Helper()
	h := bus.Handle(verb, func(_ context.Context, caller messages.Name, r Req) (Rep, error) { return answer(caller, r) })
	sub, err := f.net.Connect("$auctioneer").Serve(bus.Service{Name: "a", Version: "1.0.0", Endpoints: []bus.Endpoint{{
		Name: verb, Subject: messages.Subject(site, messages.AuctioneerNamed(name), verb, "*"), Handle: h}}})
	if err != nil {
		f.Fatal(err)
	}
	return sub
}

// withMarkets has each auctioneer say its markets: main of class map, and night of class rack.
func (f *fixture) withMarkets() {
	for name, m := range map[string]messages.Market{"day": {Name: "main", Classes: []messages.Name{"map"}}, "night": {Name: "spot", Classes: []messages.Name{"rack"}}} {
		serve(f, name, messages.VerbMarkets, func(messages.Name, messages.Empty) (messages.MarketsReply, error) {
			return messages.MarketsReply{Markets: []messages.MarketStatus{{Market: m}}, Version: 2}, nil
		})
	}
}

// ask asks the front once.
func ask1[Reply any](f *fixture, verb string, request any, format messages.Format) (reply Reply, err error) {
	f.Helper()
	payload, err := messages.Marshal(request, format)
	if err != nil {
		f.Fatal(err)
	}
	data, err := f.net.Connect("alice").Request(f.Context(), messages.Subject(site, messages.Auctioneer, verb, "alice"), payload)
	if err != nil {
		return reply, err
	}
	if got := messages.Detect(data, ""); got != format {
		f.Errorf("%s in %v was answered in %v", verb, format, got)
	}
	return reply, messages.Unmarshal(data, format, &reply)
}

// both calls f in both encodings.
func both(t *testing.T, f func(*testing.T, messages.Format)) {
	t.Helper()
	for name, format := range map[string]messages.Format{"msgpack": messages.Msgpack, "json": messages.JSON} {
		t.Run(name, func(t *testing.T) { f(t, format) })
	}
}

func jobOf(market, class messages.Name) messages.JobSpec {
	return messages.JobSpec{Market: market, Budget: 1, Stages: []messages.Stage{{Name: "a", Class: class, Command: []string{"true"}}}}
}

// who answers with what was asked, so that a test sees who was asked.
func submits(f *fixture, name string, number messages.JobID) {
	serve(f, name, messages.VerbSubmit, func(caller messages.Name, r messages.SubmitRequest) (reply messages.SubmitReply, err error) {
		reply = messages.SubmitReply{Job: number, Payer: caller, Market: r.Spec.Market}
		for _, j := range r.Jobs {
			reply.Jobs = append(reply.Jobs, messages.SubmitOutcome{Job: number, Payer: caller, Market: j.Spec.Market})
		}
		return reply, nil
	})
}

func TestSubmissionsGoByMarket(t *testing.T) {
	both(t, func(t *testing.T, format messages.Format) {
		f := newFixture(t)
		f.withMarkets()
		submits(f, "day", 1)
		submits(f, "night", 2)
		for _, c := range []struct {
			r    messages.SubmitRequest
			want messages.JobID
		}{
			{messages.SubmitRequest{Spec: jobOf("main", "map")}, 1},
			{messages.SubmitRequest{Spec: jobOf("spot", "rack")}, 2},
			{messages.SubmitRequest{Spec: jobOf("", "rack")}, 1},                   // the first
			{messages.SubmitRequest{Spec: jobOf("spot", "rack"), Site: "east"}, 1}, // of another site's markets
			{messages.SubmitRequest{Spec: jobOf("spot", "rack"), Site: site}, 2},
		} {
			reply, err := ask1[messages.SubmitReply](f, messages.VerbSubmit, c.r, format)
			if err != nil || reply.Job != c.want || reply.Payer != "alice" {
				t.Errorf("%+v: %+v, %v", c.r, reply, err)
			}
		}
		if _, err := ask1[messages.SubmitReply](f, messages.VerbSubmit, messages.SubmitRequest{Spec: jobOf("noon", "map")}, format); messages.KindOf(err) != messages.NotFound || !strings.Contains(err.Error(), "the site has main, spot") {
			t.Errorf("no such market: %v", err)
		}
		reply, err := ask1[messages.SubmitReply](f, messages.VerbSubmit, messages.SubmitRequest{Jobs: []messages.NewJob{
			{Key: "a", Spec: jobOf("spot", "rack")}, {Key: "b", Spec: jobOf("noon", "map")}, {Key: "c", Spec: jobOf("", "map")}, {Key: "d", Spec: jobOf("spot", "rack")}}}, format)
		if err != nil || len(reply.Jobs) != 4 || reply.Jobs[0].Job != 2 || messages.KindOf(reply.Jobs[1].Error) != messages.NotFound || reply.Jobs[2].Job != 1 || reply.Jobs[3].Job != 2 {
			t.Errorf("several: %+v, %v", reply, err)
		}
	})
}

// TestAMarketIsFoundWhereItIs, also after it went from one auctioneer to another.
func TestAMarketIsFoundWhereItIs(t *testing.T) {
	f := newFixture(t)
	has, version := map[string]string{"day": "main", "night": "spot"}, uint64(1)
	for name := range has {
		serve(f, name, messages.VerbMarkets, func(messages.Name, messages.Empty) (messages.MarketsReply, error) {
			return messages.MarketsReply{Markets: []messages.MarketStatus{{Market: messages.Market{Name: has[name]}}}, Version: version}, nil
		})
		serve(f, name, messages.VerbQuote, func(_ messages.Name, r messages.QuoteRequest) (reply messages.QuoteReply, err error) {
			if has[name] != r.Spec.Market {
				return reply, messages.Errorf(messages.NotFound, "market: there is no market %s at %s", r.Spec.Market, name)
			}
			return messages.QuoteReply{Market: name + " " + r.Spec.Market}, nil
		})
	}
	for swapped := range 3 {
		if swapped > 0 {
			has["day"], has["night"], version = has["night"], has["day"], version+1
		}
		for name, market := range has {
			reply, err := ask1[messages.QuoteReply](f, messages.VerbQuote, messages.QuoteRequest{Spec: jobOf(market, "map")}, messages.Msgpack)
			if err != nil || reply.Market != name+" "+market {
				t.Errorf("%s is at %+v, %v", market, reply.Market, err)
			}
		}
	}
	for name := range has {
		serve(f, name, messages.VerbVector, func(_ messages.Name, r messages.VectorRequest) (reply messages.Vector, err error) {
			return reply, messages.Errorf(messages.NotFound, "market: there is no market %s", r.Market)
		})
	}
	for _, since := range []string{"came back", "went on"} {
		if _, err := ask1[messages.Vector](f, messages.VerbVector, messages.VectorRequest{Market: "main"}, messages.Msgpack); messages.KindOf(err) != messages.Unavailable {
			t.Errorf("a market that %s since: %v", since, err)
		}
		has["day"], has["night"], version = has["night"], has["day"], version+1
	}
}

// TestJobsAreAskedOfWhoNumberedThem, whatever the verb.
func TestJobsAreAskedOfWhoNumberedThem(t *testing.T) {
	requests := map[string]func(messages.JobID) any{}
	for _, verb := range []string{messages.VerbHold, messages.VerbRelease, messages.VerbJob, messages.VerbWhy, messages.VerbKept} {
		requests[verb] = func(id messages.JobID) any { return messages.JobRequest{Job: id} }
	}
	requests[messages.VerbCancel] = func(id messages.JobID) any { return messages.CancelRequest{Job: id} }
	requests[messages.VerbRequeue] = func(id messages.JobID) any { return messages.RequeueRequest{Job: id} }
	requests[messages.VerbChange] = func(id messages.JobID) any { return messages.ChangeRequest{Job: id, Name: "x"} }
	requests[messages.VerbTasks] = func(id messages.JobID) any { return messages.TasksRequest{Job: id} }
	requests[messages.VerbWhatIf] = func(id messages.JobID) any { return messages.WhatIfRequest{Job: id} }
	requests[messages.VerbOutput] = func(id messages.JobID) any {
		return messages.OutputRequest{Logs: messages.LogsRequest{Attempt: messages.Attempt{Task: messages.TaskRef{Job: id}}}}
	}
	both(t, func(t *testing.T, format messages.Format) {
		f := newFixture(t)
		for verb := range requests {
			for _, name := range []string{"day", "night"} {
				sub, err := f.net.Connect("$auctioneer").Serve(bus.Service{Name: "a", Version: "1.0.0", Endpoints: []bus.Endpoint{{
					Name: verb, Subject: messages.Subject(site, messages.AuctioneerNamed(name), verb, "*"),
					Handle: func(_ context.Context, r bus.Request) ([]byte, error) {
						return messages.Marshal(messages.AccountRequest{Account: name + "-" + r.Caller}, r.Format)
					}}}})
				if err != nil {
					t.Fatal(err)
				}
				defer sub.Stop()
			}
			for id, want := range map[messages.JobID]string{7: "day-alice", messages.JobsOfOne + 7: "night-alice", 5*messages.JobsOfOne + 7: "day-alice"} {
				if reply, err := ask1[messages.AccountRequest](f, verb, requests[verb](id), format); err != nil || reply.Account != want {
					t.Errorf("%s of job %d: asked %q, %v", verb, id, reply.Account, err)
				}
			}
		}
	})
}

func TestSeveralJobsAreCancelledByTheirAuctioneers(t *testing.T) {
	f := newFixture(t)
	answer := func(_ messages.Name, r messages.CancelRequest) (reply messages.CancelReply, err error) {
		for _, id := range r.Jobs {
			reply.Jobs = append(reply.Jobs, messages.CancelOutcome{Job: id, State: messages.Running})
		}
		return reply, nil
	}
	serve(f, "day", messages.VerbCancel, answer)
	night := serve(f, "night", messages.VerbCancel, answer)
	ids := []messages.JobID{messages.JobsOfOne + 1, 3, messages.JobsOfOne + 2}
	reply, err := ask1[messages.CancelReply](f, messages.VerbCancel, messages.CancelRequest{Jobs: ids}, messages.Msgpack)
	for i, id := range ids {
		if err != nil || reply.Jobs[i].Job != id || reply.Jobs[i].Error != nil || reply.Jobs[i].State != messages.Running {
			t.Errorf("cancelled: %+v, %v", reply, err)
		}
	}
	if err := night.Stop(); err != nil {
		t.Fatal(err)
	}
	reply, err = ask1[messages.CancelReply](f, messages.VerbCancel, messages.CancelRequest{Jobs: ids}, messages.Msgpack)
	if err != nil || reply.Jobs[1].Error != nil || messages.KindOf(reply.Jobs[0].Error) != messages.NotLeader || reply.Jobs[2].Job != ids[2] {
		t.Errorf("cancelled, where one does not answer: %+v, %v", reply, err)
	}
}

// TestAListIsWholeOrRefused: of an auctioneer that does not answer the error has the name.
func TestAListIsWholeOrRefused(t *testing.T) {
	both(t, func(t *testing.T, format messages.Format) {
		f := newFixture(t)
		empty := messages.Empty{}
		serve(f, "day", messages.VerbNodes, func(messages.Name, messages.Empty) (messages.NodesReply, error) {
			return messages.NodesReply{Nodes: []messages.NodeStatus{{Node: "n2", State: "Up"}, {Node: "n3", State: "Lost", Since: 9}}}, nil
		})
		if _, err := ask1[messages.NodesReply](f, messages.VerbNodes, empty, format); messages.KindOf(err) != messages.Unavailable || !strings.Contains(err.Error(), "auctioneer night does not answer") {
			t.Errorf("nodes without night: %v", err)
		}
		serve(f, "night", messages.VerbNodes, func(messages.Name, messages.Empty) (messages.NodesReply, error) {
			return messages.NodesReply{Nodes: []messages.NodeStatus{{Node: "n1", State: "Up"}, {Node: "n3", State: "Draining", Since: 1}, {Node: "n2", State: "Stopped", Since: 7}}}, nil
		})
		reply, err := ask1[messages.NodesReply](f, messages.VerbNodes, empty, format)
		var states []string
		for _, n := range reply.Nodes {
			states = append(states, n.Node+" "+n.State)
		}
		if err != nil || !slices.Equal(states, []string{"n1 Up", "n2 Up", "n3 Draining"}) {
			t.Errorf("nodes: %v, %v", states, err)
		}
		f.withMarkets()
		markets, err := ask1[messages.MarketsReply](f, messages.VerbMarkets, empty, format)
		if err != nil || markets.Version != 4 || len(markets.Markets) != 2 || markets.Markets[1].Auctioneer != "night" {
			t.Errorf("markets: %+v, %v", markets, err)
		}
		for i, name := range []string{"day", "night"} {
			serve(f, name, messages.VerbStatus, func(messages.Name, messages.Empty) (messages.StatusReply, error) {
				return messages.StatusReply{Leader: name}, nil
			})
			serve(f, name, messages.VerbReplicas, func(messages.Name, messages.Empty) (messages.ReplicasReply, error) {
				return messages.ReplicasReply{Actor: messages.Auctioneer, Spare: 1 - i, Replicas: []messages.ReplicaState{{ID: "r1"}}}, nil
			})
			serve(f, name, messages.VerbReservations, func(messages.Name, messages.ReservationsRequest) (messages.ReservationsReply, error) {
				return messages.ReservationsReply{Reservations: []messages.ReservedSlots{{Market: name, Start: messages.Time(9 - i)}}}, nil
			})
			serve(f, name, messages.VerbHistory, func(_ messages.Name, r messages.HistoryRequest) (messages.HistoryReply, error) {
				return messages.HistoryReply{Since: messages.Time(i + 1)}, nil
			})
		}
		if status, err := ask1[messages.StatusReply](f, messages.VerbStatus, empty, format); err != nil || status.Leader != "day" {
			t.Errorf("status: %+v, %v", status, err)
		}
		if r, err := ask1[messages.ReplicasReply](f, messages.VerbReplicas, empty, format); err != nil || len(r.Replicas) != 2 || r.Replicas[1].Auctioneer != "night" || r.Spare != 0 {
			t.Errorf("replicas: %+v, %v", r, err)
		}
		if r, err := ask1[messages.ReservationsReply](f, messages.VerbReservations, messages.ReservationsRequest{}, format); err != nil || len(r.Reservations) != 2 || r.Reservations[0].Market != "night" {
			t.Errorf("reservations: %+v, %v", r, err)
		}
		if r, err := ask1[messages.HistoryReply](f, messages.VerbHistory, messages.HistoryRequest{Node: "n3"}, format); err != nil || r.Since != 2 {
			t.Errorf("the history of n3, which serves night: %+v, %v", r, err)
		}
		if r, err := ask1[messages.HistoryReply](f, messages.VerbHistory, messages.HistoryRequest{Market: "main"}, format); err != nil || r.Since != 1 {
			t.Errorf("the history of main: %+v, %v", r, err)
		}
	})
}

// TestPagesOfJobsJoin: all jobs once, the last submitted first.
func TestPagesOfJobsJoin(t *testing.T) {
	f := newFixture(t)
	for i, name := range []string{"day", "night"} {
		var all []messages.JobSummary
		for k := 10; k > 0; k-- {
			all = append(all, messages.JobSummary{Job: messages.JobID(i*messages.JobsOfOne + k), Submitted: messages.Time(2*k + i), Name: fmt.Sprint("job-", k%3)})
		}
		serve(f, name, messages.VerbJobs, func(_ messages.Name, r messages.JobsRequest) (messages.JobsReply, error) {
			return pageOf(all, r)
		})
	}
	for _, sort := range []string{"", "name", "-submitted", "-job"} {
		for limit := 1; limit <= 7; limit++ {
			r, seen := messages.JobsRequest{Limit: limit, Sort: sort}, []messages.JobSummary{}
			for {
				page, err := ask1[messages.JobsReply](f, messages.VerbJobs, r, messages.Msgpack)
				if err != nil || len(page.Jobs) > limit || len(page.Jobs) == 0 {
					t.Fatalf("%q by %d: %+v, %v", sort, limit, page, err)
				}
				seen = append(seen, page.Jobs...)
				if r.After = page.Next; !page.More {
					break
				}
			}
			inOrder := slices.IsSortedFunc(seen, func(a, b messages.JobSummary) int {
				switch sort {
				case "name":
					return strings.Compare(a.Name, b.Name)
				case "-job":
					return int(b.Job - a.Job)
				}
				return int(b.Submitted - a.Submitted)
			})
			if len(seen) != 20 || !inOrder {
				t.Errorf("%q by %d: %d jobs, in order: %v", sort, limit, len(seen), inOrder)
			}
		}
	}
	if _, err := ask1[messages.JobsReply](f, messages.VerbJobs, messages.JobsRequest{After: "x"}, messages.Msgpack); messages.KindOf(err) != messages.Invalid {
		t.Errorf("a cursor of nobody's: %v", err)
	}
}

func TestNodesRegisterByTheirClasses(t *testing.T) {
	f := newFixture(t)
	slots := func(classes ...messages.Name) (r messages.RegisterRequest) {
		for _, c := range classes {
			r.Slots = append(r.Slots, messages.ClassSlots{Class: c, Slots: 1})
		}
		return r
	}
	if _, err := ask1[messages.RegisterReply](f, messages.VerbRegister, slots("map"), messages.Msgpack); !messages.KindOf(err).Retriable() {
		t.Errorf("where nobody answers: %v", err)
	}
	f.withMarkets()
	for _, name := range []string{"day", "night"} {
		serve(f, name, messages.VerbRegister, func(messages.Name, messages.RegisterRequest) (messages.RegisterReply, error) {
			return messages.RegisterReply{Auctioneer: name}, nil
		})
	}
	for want, r := range map[string]messages.RegisterRequest{"day": slots("map", "other"), "night": slots("rack")} {
		if reply, err := ask1[messages.RegisterReply](f, messages.VerbRegister, r, messages.Msgpack); err != nil || reply.Auctioneer != want {
			t.Errorf("%v: registered with %q, %v", r.Slots, reply.Auctioneer, err)
		}
	}
	if _, err := ask1[messages.RegisterReply](f, messages.VerbRegister, slots("map", "rack"), messages.Msgpack); messages.KindOf(err) != messages.Invalid || !strings.Contains(err.Error(), "class map is of auctioneer day") {
		t.Errorf("classes of two auctioneers: %v", err)
	}
}

// TestErrorsKeepTheirKinds: what one auctioneer refuses is refused, and while it has no leader
// the answer says to ask again.
func TestErrorsKeepTheirKinds(t *testing.T) {
	both(t, func(t *testing.T, format messages.Format) {
		f := newFixture(t)
		if _, err := ask1[messages.JobDetail](f, messages.VerbJob, messages.JobRequest{Job: messages.JobsOfOne + 1}, format); messages.KindOf(err) != messages.NotLeader || !strings.Contains(err.Error(), "auctioneer night") {
			t.Errorf("without a leader: %v", err)
		}
		for _, kind := range messages.Kinds() {
			sub := serve(f, "night", messages.VerbJob, func(messages.Name, messages.JobRequest) (messages.JobDetail, error) {
				return messages.JobDetail{}, messages.Errorf(kind, "because")
			})
			_, err := ask1[messages.JobDetail](f, messages.VerbJob, messages.JobRequest{Job: messages.JobsOfOne + 1}, format)
			if e := messages.AsError("", err); e.Kind != kind || e.Message != "because" || e.Op != messages.VerbJob {
				t.Errorf("%v: %v", kind, err)
			}
			if err := sub.Stop(); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := ask1[messages.SubmitReply](f, messages.VerbSubmit, messages.ApplyRequest{Key: "k"}, format); messages.KindOf(err) != messages.Invalid {
			t.Errorf("what is no submission: %v", err)
		}
	})
}

// TestWhatIsOfTheFirst: join tokens, and all between sites.
func TestWhatIsOfTheFirst(t *testing.T) {
	f := newFixture(t)
	verbs := []string{messages.VerbAdmit, messages.VerbOffers}
	for _, v := range messages.PeerVerbs() {
		if v.Actor == messages.Auctioneer {
			verbs = append(verbs, v.Verb)
		}
	}
	for _, verb := range verbs {
		serve(f, "day", verb, func(caller messages.Name, r messages.Empty) (messages.AccountRequest, error) {
			return messages.AccountRequest{Account: caller}, nil
		})
		if reply, err := ask1[messages.AccountRequest](f, verb, messages.Empty{}, messages.Msgpack); err != nil || reply.Account != "alice" {
			t.Errorf("%s: %+v, %v", verb, reply, err)
		}
	}
}
