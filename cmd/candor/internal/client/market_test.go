package client

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/candor-grid/candor/cmd/candor/internal/client/cli"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/job"
	"github.com/candor-grid/candor/messages/market"
)

func someMenu() market.QuoteReply {
	return market.QuoteReply{Quote: "q7", Market: "sold", Expires: at(300), Contracts: []market.QuotedContract{
		{ID: "q7-1", Completion: at(60), Price: 12 * credit, Budget: 13 * credit, Promised: 19.75},
		{ID: "q7-2", Completion: at(120), Price: 4 * credit, Budget: 5 * credit, Promised: 12, Declared: true},
		{ID: "q7-3", Completion: at(3600), Budget: 1, Promised: 3, Free: true},
	}}
}

func someReservations() market.ReservationsReply {
	return market.ReservationsReply{Reservations: []market.ReservedSlots{
		{Job: 12, Account: "alice", Market: "night", Class: "cpu", Slots: 8, Start: at(3600), End: at(7200), State: job.Waiting},
		{Job: 9, Account: "bob", Market: "night", Class: "cpu", Slots: 2, Start: at(9000), End: at(9900), State: job.Waiting},
	}}
}

// marketSite returns a site that answers the requests of the commands about markets. asked has the last request of
// each kind.
func marketSite(t *testing.T) (s *fakeSite, asked map[string]any) {
	s, asked = newSite(t), map[string]any{}
	answer(s, messages.Auctioneer, market.VerbQuote, func(r market.QuoteRequest) (market.QuoteReply, error) {
		asked["quote"] = r
		return someMenu(), nil
	})
	answer(s, messages.Auctioneer, market.VerbReservations, func(r market.ReservationsRequest) (market.ReservationsReply, error) {
		asked["reservations"] = r
		return someReservations(), nil
	})
	answer(s, messages.Auctioneer, market.VerbApply, func(r market.ApplyRequest) (market.ApplyReply, error) {
		asked["apply"] = r
		return market.ApplyReply{Added: []messages.Name{"spot"}, Removed: []messages.Name{"old", "older"}}, nil
	})
	answer(s, messages.Auctioneer, market.VerbDrain, func(r market.DrainRequest) (market.DrainReply, error) {
		asked["drain"] = r
		if r.Undo {
			return market.DrainReply{Node: r.Node}, nil
		}
		reply := market.DrainReply{Node: r.Node, Draining: true, Tasks: 3}
		if r.Notice != nil {
			reply.Until = at(r.Notice.Seconds())
		}
		return reply, nil
	})
	return s, asked
}

func TestQuoteShowsTheMenu(t *testing.T) {
	s, asked := marketSite(t)
	s.write("job.yaml", "market: sold\nlength: 10s\ncommand: [hostname]\nvaluation: {class: hard, max: 20, deadline: 90}\n")
	got := s.run("quote", s.path("job.yaml"))
	got.expect(t, cli.CodeOK, "Quote q7 of market sold", "")
	for _, words := range []string{"as declared", "earliest free", "q7-1", "12", "19.75"} {
		if !strings.Contains(got.out, words) {
			t.Errorf("%q is not in:\n%s", words, got.out)
		}
	}
	spec := asked["quote"].(market.QuoteRequest).Spec
	want := &job.Valuation{Class: job.Hard, Max: 20, Deadline: 90}
	if !reflect.DeepEqual(spec.Valuation, want) || spec.Length != messages.Duration(10*time.Second) || spec.Budget != 0 {
		t.Errorf("asked for %+v", spec)
	}
	s.write("bad.yaml", "market: sold\ncommand: [hostname]\nvaluation: {class: hard, max: -1}\n")
	s.run("quote", s.path("bad.yaml")).expect(t, cli.CodeUsage, "", "valuation.max: must be from 0")
	var menu market.QuoteReply
	if err := json.Unmarshal([]byte(s.run("quote", "--json", s.path("job.yaml")).out), &menu); err != nil || !reflect.DeepEqual(menu, someMenu()) {
		t.Errorf("%+v, %v", menu, err)
	}
}

func TestReservationsShowTheTimetable(t *testing.T) {
	s, asked := marketSite(t)
	got := s.run("reservations", "night")
	got.expect(t, cli.CodeOK, "alice", "")
	if first, second := strings.Index(got.out, "alice"), strings.Index(got.out, "bob"); first > second {
		t.Errorf("not by start:\n%s", got.out)
	}
	if asked["reservations"] != (market.ReservationsRequest{Market: "night"}) {
		t.Errorf("asked %+v", asked["reservations"])
	}
}

func TestMarketApplyReadsAConfigurationOrAList(t *testing.T) {
	s, asked := marketSite(t)
	list := "- {name: spot, mechanism: highest-bid, classes: [cpu], reserve: 0.5}\n"
	s.write("list.yaml", list)
	s.write("site.yaml", "site: west\nmarkets:\n  "+list)
	two := messages.Price(500_000)
	want := []market.Market{{Name: "spot", Mechanism: "highest-bid", Classes: []messages.Name{"cpu"}, Reserve: &two}}
	for _, file := range []string{"list.yaml", "site.yaml"} {
		s.run("market", "apply", "--account", "operator", s.path(file)).expect(t, cli.CodeOK, "Added spot\nRemoved old, older\n", "")
		if r := asked["apply"].(market.ApplyRequest); !reflect.DeepEqual(r.Markets, want) || r.DryRun {
			t.Errorf("%s: applied %+v", file, r)
		}
	}
	s.write("units.yaml", "unit: &unit {cpus: 1, memory: 4G}\nmarkets:\n- {name: cpu, mechanism: fifo, classes: [cpu], units: [{class: cpu, unit: *unit}]}\n")
	s.run("market", "apply", s.path("units.yaml")).expect(t, cli.CodeOK, "Added spot", "")
	if got := asked["apply"].(market.ApplyRequest).Markets[0].UnitOf("cpu"); got != (job.Resources{CPUs: 1, Memory: 4 << 30}) {
		t.Errorf("a unit of %v", got)
	}
	s.run("market", "apply", "--dry-run", s.path("list.yaml")).expect(t, cli.CodeOK, "Would add spot\n", "")
	for text, says := range map[string]string{
		"site: west\n":                  "has no markets",
		"- {name: x, mechanism: [":      "bad.yaml",
		"- {name: x, wurst: 1}\n":       "wurst",
		"markets: {name: not-a-list}\n": "markets",
	} {
		s.write("bad.yaml", text)
		s.run("market", "apply", s.path("bad.yaml")).expect(t, cli.CodeUsage, "", says)
	}
}

func TestNodeDrain(t *testing.T) {
	s, asked := marketSite(t)
	s.run("node", "drain", "n3", "--notice", "5m").expect(t, cli.CodeOK, "Node n3 takes no more work; 3 tasks may run there until", "")
	if r := asked["drain"].(market.DrainRequest); r.Notice == nil || *r.Notice != messages.Duration(5*time.Minute) {
		t.Errorf("asked %+v", r)
	}
	s.run("node", "drain", "n3", "--reason", "new disk").expect(t, cli.CodeOK, "Node n3 takes no more work; 3 tasks may run there to the end\n", "")
	if r := asked["drain"].(market.DrainRequest); r.Reason != "new disk" || r.Notice != nil {
		t.Errorf("asked %+v", r)
	}
	s.run("node", "remove", "n3").expect(t, cli.CodeOK, "Node n3 is removed\n", "")
	if r := asked["drain"].(market.DrainRequest); !r.Remove {
		t.Errorf("asked %+v", r)
	}
	s.run("node", "drain", "n3", "--undo").expect(t, cli.CodeOK, "Node n3 takes work again\n", "")
	s.run("node", "drain", "n3", "--notice", "soon").expect(t, cli.CodeUsage, "", "--notice")
}

// TestWindows checks the commands about maintenance windows. They must refuse bad arguments before they ask the site.
func TestWindows(t *testing.T) {
	s, asked := marketSite(t)
	answer(s, messages.Auctioneer, market.VerbWindow, func(r market.WindowRequest) (market.Window, error) {
		asked["window"] = r
		if r.Add == nil {
			return market.Window{ID: r.Remove}, nil
		}
		r.Add.ID = 4
		return *r.Add, nil
	})
	s.run("window", "add", "--nodes", "n[2-3],n1", "--from", "2h", "--to", "6h", "--notice", "5m", "--reason", "new disks").expect(t, cli.CodeOK, "Window 4 keeps n[1-3] free from ", "")
	want := market.Window{ID: 4, Nodes: []messages.Name{"n1", "n2", "n3"}, From: at(3600 + 7200), To: at(3600 + 6*3600), Notice: new(messages.Duration(5 * time.Minute)), Reason: "new disks"}
	if r := asked["window"].(market.WindowRequest); !reflect.DeepEqual(*r.Add, want) {
		t.Errorf("asked for %+v", r.Add)
	}
	s.run("window", "remove", "4").expect(t, cli.CodeOK, "Window 4 is removed\n", "")
	if r := asked["window"].(market.WindowRequest); r.Remove != 4 || r.Add != nil {
		t.Errorf("asked for %+v", r)
	}
	for _, c := range []struct{ arguments, says string }{
		{"--nodes n1 --from 6h --to 2h", "--to: "}, {"--nodes n1 --from 1999-12-31 --to 2h", "is in the past"}, {"--nodes n[1 --to 2h", "--nodes: "},
		{"--nodes n1 --to 2h --notice soon", "--notice"}, {"--nodes n1", "missing: --to"},
	} {
		s.run(append([]string{"window", "add"}, strings.Fields(c.arguments)...)...).expect(t, cli.CodeUsage, "", c.says)
	}
	s.run("window", "remove", "x").expect(t, cli.CodeUsage, "", "not the number of a window")
	var nodes market.NodesReply
	answer(s, messages.Auctioneer, messages.VerbNodes, func(messages.Empty) (market.NodesReply, error) { return nodes, nil })
	s.run("window", "list").expect(t, cli.CodeOK, "No windows", "")
	nodes = someNodes()
	nodes.Windows = []market.Window{{ID: 4, Nodes: want.Nodes, From: want.From, To: want.To, Reason: want.Reason}}
	nodes.Nodes[0].State, nodes.Nodes[0].Window = "Draining", 4
	for _, command := range []string{"window list", "nodes"} {
		got := s.run(strings.Fields(command)...)
		got.expect(t, cli.CodeOK, "n[1-3]  new disks", "")
		if says := nodes.Nodes[0].Node + ": in maintenance, window 4: its tasks run to their end"; command == "nodes" && !strings.Contains(got.out, says) {
			t.Errorf("the remark is missing:\n%s", got.out)
		}
	}
}

func TestSubmitSaysWhatIsBid(t *testing.T) {
	s := newSite(t)
	taken := submissions(s)
	s.write("job.yaml", "budget: 9\ncommand: [hostname]\ntasks: 4\ngang: true\nvalue: 7\ndelay: 0.25\nlength: 1h\ndeadline: +6h\nafter_jobs: 3\nafter_ok: [4, 5]\n")
	s.run("submit", s.path("job.yaml"), "--rate", "1.5", "--contract", "q7-3", "--after", "6,7").expect(t, cli.CodeOK, "Submitted job 17", "")
	got := (*taken)[0].Spec
	hour := messages.Duration(time.Hour)
	if got.Rate != 1_500_000 || got.Value != 7*credit || got.Delay != 250_000 || got.Length != hour || got.Deadline != at(7*3600) || got.Contract != "q7-3" ||
		!got.Stages[0].Gang || !reflect.DeepEqual(got.AfterJobs, []messages.JobID{6, 7}) || !reflect.DeepEqual(got.AfterOK, []messages.JobID{4, 5}) {
		t.Errorf("submitted %+v", got)
	}
	s.run("submit", "-b", "1", "--deadline", "2027-01-31T12:00:00Z", "--gang", "-n", "2", "--after-ok", "8", "--value", "3", "--delay", "1", "--length", "90s", s.path("job.yaml")).
		expect(t, cli.CodeOK, "Submitted job 17", "")
	got = (*taken)[1].Spec
	if got.Deadline != messages.TimeOf(time.Date(2027, 1, 31, 12, 0, 0, 0, time.UTC)) || got.Stages[0].Tasks != 2 || got.Length != messages.Duration(90*time.Second) {
		t.Errorf("submitted %+v", got)
	}
	for flag, says := range map[string]string{"--deadline=tomorrow": "no instant", "--deadline=+x": "not a span", "--after=0": "not the number of a job", "--rate=NaN": "decimal number"} {
		s.run("submit", flag, s.path("job.yaml")).expect(t, cli.CodeUsage, "", says)
	}
	for line, says := range map[string]string{"deadline: soon": "no instant", "after_ok: [x]": "not the number", "rate: NaN": "NaN", "valuation: {class: hard, max: .nan}": "not a number"} {
		s.write("bad.yaml", "budget: 1\ncommand: [x]\n"+line+"\n")
		s.run("submit", s.path("bad.yaml")).expect(t, cli.CodeUsage, "", says)
	}
}

func TestMarketsShowPriceAndNext(t *testing.T) {
	m := market.MarketStatus{Market: market.Market{Name: "spot", Mechanism: "highest-bid", Classes: []messages.Name{"cpu"}}, Gains: "rings of users",
		Prices:  []market.ClassPrice{{Class: "fpga", Slots: 2, Idle: 2, Bidders: 1, Sealed: true}},
		Tariffs: []market.SlotTariff{{Class: "cpu", Price: 2 * credit}, {Class: "gpu", OwnBid: true}, {Class: "fpga", Sealed: true}, {Class: "map", Price: credit, Length: messages.Duration(time.Minute)}},
		Next:    []market.NextJob{{Class: "cpu", Job: 12, Account: "alice", Rate: 1_500_000}}}
	s := newSite(t)
	gives[messages.Empty](messages.Auctioneer, messages.VerbMarkets, market.MarketsReply{Markets: []market.MarketStatus{m}})(s)
	got := s.run("markets")
	for _, words := range []string{"of cpu costs 2 credits", "of gpu costs the job's own bid", "the price of fpga is sealed", "sealed  ", "1 credit (3600 an hour) for a job of 1m0s", "next for cpu: job 12 of alice, which bids 1.5", "known to gain more than the truth: rings of users"} {
		if !strings.Contains(got.out, words) {
			t.Errorf("no %q in:\n%s", words, got.out)
		}
	}
}
