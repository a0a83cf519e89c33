package embedded

import (
	"slices"
	"strings"
	"testing"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/bus"
)

// twofold is a site with two auctioneers: main on node1, night on node2.
func twofold(state string) Config {
	c := small(state)
	c.Replicas = 1
	c.Markets = append(c.Markets, messages.Market{Name: "night", Mechanism: "proportional", Classes: []messages.Name{"rack"}, Settle: messages.SettleOnCompletion})
	c.Nodes[1].Slots = Slots{{Class: "rack", Slots: 2}}
	c.Auctioneers = []messages.AuctioneerMarkets{{Name: "dark", Markets: []messages.Name{"night"}, Number: 1}, {Name: "day", Markets: []messages.Name{"main"}}}
	return c
}

// nightly is a job for the second auctioneer.
func nightly(command string) messages.JobSpec {
	return messages.JobSpec{Market: "night", Budget: messages.Credit, Stages: []messages.Stage{{Name: "a", Class: "rack", Command: []string{"sh", "-c", command}}}}
}

func daily(command string) messages.JobSpec {
	spec := nightly(command)
	spec.Market, spec.Stages[0].Class = "", "map"
	return spec
}

func completed(u user, id messages.JobID) {
	u.Helper()
	if j := u.final(id); j.State != messages.Completed {
		u.Errorf("job %v: %v, %s", id, j.State, j.Message)
	}
}

func TestSeveralAuctioneersAnswerAsOne(t *testing.T) {
	c := twofold(t.TempDir())
	s := start(t, c)
	alice, operator := connect(t, s, "alice"), connect(t, s, "operator")
	day, night := alice.submit("day", daily("true")), alice.submit("night", nightly("true"))
	if day != 1 || night != messages.JobsOfOne+1 {
		t.Errorf("the jobs have the numbers %d and %d", day, night)
	}
	completed(alice, day)
	completed(alice, night)
	both := request[messages.SubmitReply](alice, messages.Auctioneer, messages.VerbSubmit, messages.SubmitRequest{Jobs: []messages.NewJob{
		{Key: "a", Spec: nightly("sleep 60")}, {Key: "b", Spec: daily("sleep 60")}, {Key: "c", Spec: messages.JobSpec{Market: "noon", Budget: 1, Stages: daily("true").Stages}},
	}})
	if len(both.Jobs) != 3 || both.Jobs[0].Job != night+1 || both.Jobs[1].Job != day+1 || messages.KindOf(both.Jobs[2].Error) != messages.NotFound {
		t.Errorf("several jobs: %+v", both)
	}
	if all := request[messages.JobsReply](alice, messages.Auctioneer, messages.VerbJobs, messages.JobsRequest{}); len(all.Jobs) != 4 || all.More {
		t.Errorf("the list has %d jobs: %+v", len(all.Jobs), all)
	}
	markets := request[messages.MarketsReply](operator, messages.Auctioneer, messages.VerbMarkets, messages.Empty{})
	nodes := request[messages.NodesReply](operator, messages.Auctioneer, messages.VerbNodes, messages.Empty{})
	if len(markets.Markets) != 2 || markets.Markets[1].Auctioneer != "dark" || len(nodes.Nodes) != 2 {
		t.Errorf("markets %+v, nodes %+v", markets, nodes)
	}
	if why := request[messages.WhyReply](alice, messages.Auctioneer, messages.VerbWhy, messages.JobRequest{Job: night}); why.Job != night || why.State != messages.Completed {
		t.Errorf("why: %+v", why)
	}

	// One auctioneer without a leader: the other goes on, and a list is refused.
	if err := s.StopReplica(messages.AuctioneerNamed("dark"), "1"); err != nil {
		t.Fatal(err)
	}
	completed(alice, alice.submit("alone", daily("true")))
	payload, _ := messages.Marshal(messages.JobsRequest{}, messages.Msgpack)
	if _, err := alice.bus.Request(within(t), messages.Subject("west", messages.Auctioneer, messages.VerbJobs, "alice"), payload); messages.KindOf(err) != messages.Unavailable || !strings.Contains(err.Error(), "auctioneer dark does not answer") {
		t.Errorf("a list without an auctioneer: %v", err)
	}
	if err := s.StartReplica(messages.AuctioneerNamed("dark"), "1"); err != nil {
		t.Fatal(err)
	}
	request[messages.StatusReply](alice, messages.Auctioneer, messages.VerbStatus, messages.Empty{}) // both lead
	done := request[messages.CancelReply](alice, messages.Auctioneer, messages.VerbCancel, messages.CancelRequest{Jobs: []messages.JobID{night + 1, day + 1}})
	if len(done.Jobs) != 2 || done.Jobs[0].Job != night+1 || done.Jobs[0].Error != nil || done.Jobs[1].Error != nil {
		t.Errorf("cancelled: %+v", done)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}

	// A configuration without the second auctioneer would lose its jobs.
	alone := c
	alone.Auctioneers = nil
	if _, err := Start(within(t), alone, Options{}); messages.KindOf(err) != messages.Conflict {
		t.Errorf("started without an auctioneer: %v", err)
	}
	slices.Reverse(c.Auctioneers)
	s = start(t, c)
	defer s.Close()
	alice = connect(t, s, "alice")
	if n := alice.submit("later", nightly("true")); n != night+2 {
		t.Errorf("after the restart a job has the number %d", n)
	}
	if n := alice.submit("night", nightly("true")); n != night {
		t.Errorf("a repeated submission has the number %d", n)
	}
}

// Nobody but the front asks one of several auctioneers in the names of users.
func TestNobodyAsksOneOfSeveralAuctioneersPastTheFront(t *testing.T) {
	s := start(t, twofold(t.TempDir()))
	defer s.Close()
	for _, who := range []messages.Name{"alice", "operator"} {
		u := connect(t, s, who)
		_, err := bus.Call[messages.JobsReply](within(t), u.bus, messages.Subject("west", messages.AuctioneerNamed("dark"), messages.VerbJobs, who), messages.JobsRequest{})
		if messages.KindOf(err) != messages.PermissionDenied {
			t.Errorf("%s asks an auctioneer past the front: %v", who, err)
		}
	}
}
