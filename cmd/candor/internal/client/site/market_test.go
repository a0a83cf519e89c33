package site_test

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/candor-grid/candor/cmd/candor/internal/client/cli"
	"github.com/candor-grid/candor/cmd/candor/internal/client/clienttest"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/job"
	"github.com/candor-grid/candor/messages/market"
)

func someReservations() market.ReservationsReply {
	return market.ReservationsReply{Reservations: []market.ReservedSlots{
		{Job: 12, Account: "alice", Market: "night", Class: "cpu", Slots: 8, Start: clienttest.At(3600), End: clienttest.At(7200), State: job.Waiting},
		{Job: 9, Account: "bob", Market: "night", Class: "cpu", Slots: 2, Start: clienttest.At(9000), End: clienttest.At(9900), State: job.Waiting},
	}}
}

// marketSite returns a site that answers the commands about markets. The map `asked` has the last request of each kind.
func marketSite(t *testing.T) (s *clienttest.Site, asked map[string]any) {
	s, asked = newSite(t), map[string]any{}
	clienttest.Answer(s, messages.Auctioneer, market.VerbReservations, func(r market.ReservationsRequest) (market.ReservationsReply, error) {
		asked["reservations"] = r
		return someReservations(), nil
	})
	clienttest.Answer(s, messages.Auctioneer, market.VerbApply, func(r market.ApplyRequest) (market.ApplyReply, error) {
		asked["apply"] = r
		return market.ApplyReply{Added: []messages.Name{"spot"}, Removed: []messages.Name{"old", "older"}}, nil
	})
	clienttest.Answer(s, messages.Auctioneer, market.VerbDrain, func(r market.DrainRequest) (market.DrainReply, error) {
		asked["drain"] = r
		if r.Undo {
			return market.DrainReply{Node: r.Node}, nil
		}
		reply := market.DrainReply{Node: r.Node, Draining: true, Tasks: 3}
		if r.Notice != nil {
			reply.Until = clienttest.At(r.Notice.Seconds())
		}
		return reply, nil
	})
	return s, asked
}

func TestReservationsShowTheTimetable(t *testing.T) {
	s, asked := marketSite(t)
	got := s.Run("reservations", "night")
	got.Expect(t, cli.CodeOK, "alice", "")
	if first, second := strings.Index(got.Out, "alice"), strings.Index(got.Out, "bob"); first > second {
		t.Errorf("not by start:\n%s", got.Out)
	}
	if asked["reservations"] != (market.ReservationsRequest{Market: "night"}) {
		t.Errorf("asked %+v", asked["reservations"])
	}
}

func TestMarketApplyReadsAConfigurationOrAList(t *testing.T) {
	s, asked := marketSite(t)
	list := "- {name: spot, mechanism: highest-bid, classes: [cpu], reserve: 0.5}\n"
	s.Write("list.yaml", list)
	s.Write("site.yaml", "site: west\nmarkets:\n  "+list)
	two := messages.Price(500_000)
	want := []market.Market{{Name: "spot", Mechanism: "highest-bid", Classes: []messages.Name{"cpu"}, Reserve: &two}}
	for _, file := range []string{"list.yaml", "site.yaml"} {
		s.Run("market", "apply", "--account", "operator", s.Path(file)).Expect(t, cli.CodeOK, "Added spot\nRemoved old, older\n", "")
		if r := asked["apply"].(market.ApplyRequest); !reflect.DeepEqual(r.Markets, want) || r.DryRun {
			t.Errorf("%s: applied %+v", file, r)
		}
	}
	s.Write("units.yaml", "unit: &unit {cpus: 1, memory: 4G}\nmarkets:\n- {name: cpu, mechanism: fifo, classes: [cpu], units: [{class: cpu, unit: *unit}]}\n")
	s.Run("market", "apply", s.Path("units.yaml")).Expect(t, cli.CodeOK, "Added spot", "")
	if got := asked["apply"].(market.ApplyRequest).Markets[0].UnitOf("cpu"); got != (job.Resources{CPUs: 1, Memory: 4 << 30}) {
		t.Errorf("a unit of %v", got)
	}
	s.Run("market", "apply", "--dry-run", s.Path("list.yaml")).Expect(t, cli.CodeOK, "Would add spot\n", "")
	for text, says := range map[string]string{
		"site: west\n":                  "has no markets",
		"- {name: x, mechanism: [":      "bad.yaml",
		"- {name: x, wurst: 1}\n":       "wurst",
		"markets: {name: not-a-list}\n": "markets",
	} {
		s.Write("bad.yaml", text)
		s.Run("market", "apply", s.Path("bad.yaml")).Expect(t, cli.CodeUsage, "", says)
	}
}

func TestNodeDrain(t *testing.T) {
	s, asked := marketSite(t)
	s.Run("node", "drain", "n3", "--notice", "5m").Expect(t, cli.CodeOK, "Node n3 takes no more work; 3 tasks may run there until", "")
	if r := asked["drain"].(market.DrainRequest); r.Notice == nil || *r.Notice != messages.Duration(5*time.Minute) {
		t.Errorf("asked %+v", r)
	}
	s.Run("node", "drain", "n3", "--reason", "new disk").Expect(t, cli.CodeOK, "Node n3 takes no more work; 3 tasks may run there to the end\n", "")
	if r := asked["drain"].(market.DrainRequest); r.Reason != "new disk" || r.Notice != nil {
		t.Errorf("asked %+v", r)
	}
	s.Run("node", "remove", "n3").Expect(t, cli.CodeOK, "Node n3 is removed\n", "")
	if r := asked["drain"].(market.DrainRequest); !r.Remove {
		t.Errorf("asked %+v", r)
	}
	s.Run("node", "drain", "n3", "--undo").Expect(t, cli.CodeOK, "Node n3 takes work again\n", "")
	s.Run("node", "drain", "n3", "--notice", "soon").Expect(t, cli.CodeUsage, "", "--notice")
}

// Bad arguments must be refused before the site is asked.
func TestWindows(t *testing.T) {
	s, asked := marketSite(t)
	clienttest.Answer(s, messages.Auctioneer, market.VerbWindow, func(r market.WindowRequest) (market.Window, error) {
		asked["window"] = r
		if r.Add == nil {
			return market.Window{ID: r.Remove}, nil
		}
		r.Add.ID = 4
		return *r.Add, nil
	})
	s.Run("window", "add", "--nodes", "n[2-3],n1", "--from", "2h", "--to", "6h", "--notice", "5m", "--reason", "new disks").Expect(t, cli.CodeOK, "Window 4 keeps n[1-3] free from ", "")
	want := market.Window{ID: 4, Nodes: []messages.Name{"n1", "n2", "n3"}, From: clienttest.At(3600 + 7200), To: clienttest.At(3600 + 6*3600), Notice: new(messages.Duration(5 * time.Minute)), Reason: "new disks"}
	if r := asked["window"].(market.WindowRequest); !reflect.DeepEqual(*r.Add, want) {
		t.Errorf("asked for %+v", r.Add)
	}
	s.Run("window", "remove", "4").Expect(t, cli.CodeOK, "Window 4 is removed\n", "")
	if r := asked["window"].(market.WindowRequest); r.Remove != 4 || r.Add != nil {
		t.Errorf("asked for %+v", r)
	}
	for _, c := range []struct{ arguments, says string }{
		{"--nodes n1 --from 6h --to 2h", "--to: "}, {"--nodes n1 --from 1999-12-31 --to 2h", "is in the past"}, {"--nodes n[1 --to 2h", "--nodes: "},
		{"--nodes n1 --to 2h --notice soon", "--notice"}, {"--nodes n1", "missing: --to"},
	} {
		s.Run(append([]string{"window", "add"}, strings.Fields(c.arguments)...)...).Expect(t, cli.CodeUsage, "", c.says)
	}
	s.Run("window", "remove", "x").Expect(t, cli.CodeUsage, "", "not the number of a window")
	var nodes market.NodesReply
	clienttest.Answer(s, messages.Auctioneer, messages.VerbNodes, func(messages.Empty) (market.NodesReply, error) { return nodes, nil })
	s.Run("window", "list").Expect(t, cli.CodeOK, "No windows", "")
	nodes = clienttest.Nodes()
	nodes.Windows = []market.Window{{ID: 4, Nodes: want.Nodes, From: want.From, To: want.To, Reason: want.Reason}}
	nodes.Windows = append(nodes.Windows, market.Window{ID: 5, Nodes: want.Nodes, From: want.From, To: want.To, Notice: want.Notice, Reason: "a\n\x1b[31mred"})
	s.Run("window", "list").Expect(t, cli.CodeOK, "n[1-3]   5m00s  a··[31mred\n", "")
	nodes.Windows = nodes.Windows[:1]
	nodes.Nodes[0].State, nodes.Nodes[0].Window = "Draining", 4
	for _, command := range []string{"window list", "nodes"} {
		got := s.Run(strings.Fields(command)...)
		got.Expect(t, cli.CodeOK, "n[1-3]  new disks", "")
		if says := nodes.Nodes[0].Node + ": in maintenance, window 4: the node's tasks run to their end"; command == "nodes" && !strings.Contains(got.Out, says) {
			t.Errorf("the remark is missing:\n%s", got.Out)
		}
	}
}
