package embedded

import (
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/candor-grid/candor/deploy/identity"
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
	again := messages.SubmitRequest{Key: "day", Spec: nightly("true")} // the bank knows the key
	if _, err := bus.Call[messages.SubmitReply](within(t), alice.bus, messages.Subject("west", messages.Auctioneer, messages.VerbSubmit, "alice"), again); messages.KindOf(err) != messages.Conflict {
		t.Errorf("the key of a job of another auctioneer: %v", err)
	}
	if all := request[messages.JobsReply](alice, messages.Auctioneer, messages.VerbJobs, messages.JobsRequest{}); len(all.Jobs) != 4 || all.More {
		t.Errorf("the list has %d jobs: %+v", len(all.Jobs), all)
	}
	markets := request[messages.MarketsReply](operator, messages.Auctioneer, messages.VerbMarkets, messages.Empty{})
	nodes := request[messages.NodesReply](operator, messages.Auctioneer, messages.VerbNodes, messages.Empty{})
	if len(markets.Markets) != 2 || markets.Markets[1].Auctioneer != "dark" || len(nodes.Nodes) != 2 {
		t.Errorf("markets %+v, nodes %+v", markets, nodes)
	}
	for _, u := range []user{alice, operator} { // past the front
		subject := messages.Subject("west", messages.AuctioneerNamed("dark"), messages.VerbJobs, u.name)
		if _, err := bus.Call[messages.JobsReply](within(t), u.bus, subject, messages.JobsRequest{}); messages.KindOf(err) != messages.PermissionDenied {
			t.Errorf("%s asks an auctioneer past the front: %v", u.name, err)
		}
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

// One change makes one problem, at the path of the field that is wrong.
func TestAuctioneersAreValid(t *testing.T) {
	whole := twofold("/tmp/state")
	if err := whole.Validate(); err != nil {
		t.Fatal(err)
	}
	alone := small("/tmp/state")
	alone.Auctioneers = []messages.AuctioneerMarkets{{Name: "day", Markets: []messages.Name{"main"}}}
	if all := alone.auctioneers(); alone.Validate() != nil || len(all) != 1 || all[0].Name != "" {
		t.Errorf("one auctioneer alone, of a name: %+v, %v", all, alone.Validate())
	}
	for path, change := range map[string]func(*Config){
		"auctioneers":               func(c *Config) { c.Auctioneers[1].Number = 2; c.Markets = append(c.Markets[1:], c.Markets[0]) },
		"auctioneers[0].name":       func(c *Config) { c.Auctioneers[0].Name = "" },
		"auctioneers[1].name":       func(c *Config) { c.Auctioneers[1].Name = "a.b" },
		"auctioneers[1].number":     func(c *Config) { c.Auctioneers[0].Number = 0 },
		"auctioneers[0].number":     func(c *Config) { c.Auctioneers[0].Number = messages.MaxAuctioneers },
		"auctioneers[0].markets[1]": func(c *Config) { c.Auctioneers[0].Markets = []messages.Name{"night", "noon"} },
		"auctioneers[1].markets[1]": func(c *Config) { c.Auctioneers[1].Markets = []messages.Name{"main", "night"} },
		"markets[1]": func(c *Config) {
			c.Auctioneers[0].Markets, c.Markets[0].Name, c.Auctioneers[1].Markets = []messages.Name{"other"}, "other", []messages.Name{"other"}
		},
		"markets[2].classes[0]": func(c *Config) {
			c.Markets = append(c.Markets, messages.Market{Name: "eve", Mechanism: "proportional", Classes: []messages.Name{"map"}})
			c.Auctioneers[0].Markets = []messages.Name{"night", "eve"}
		},
		"nodes[1].slots": func(c *Config) {
			c.Nodes[1].Slots = append(c.Nodes[1].Slots, messages.ClassSlots{Class: "map", Slots: 1})
		},
		"hosts[1].auctioneers.dark": func(c *Config) { c.withHosts(); delete(c.Hosts[1].Auctioneers, "dark") },
		"hosts[2].auctioneers.day":  func(c *Config) { c.withHosts(); c.Hosts[2].Auctioneers["day"] = "10.0.0.1:9" },
		"hosts[2].auctioneers.dark": func(c *Config) { c.withHosts(); c.Hosts[2].Auctioneers["dark"] = c.Hosts[1].Auctioneers["dark"] },
	} {
		c := twofold("/tmp/state")
		change(&c)
		var problems Problems
		err := c.Validate()
		if path == "markets[1]" || path == "auctioneers" || path == "markets[2].classes[0]" { // of which one change makes others
			if err == nil || !strings.Contains(err.Error(), path) {
				t.Errorf("%s: %v", path, err)
			}
			continue
		}
		if !errors.As(err, &problems) || len(problems) != 1 || problems[0].Path != path {
			t.Errorf("%s: %v", path, err)
		}
	}
}

// withHosts spreads the site over three hosts.
func (c *Config) withHosts() {
	c.Replicas, c.Hosts = 0, three()
	for i := range c.Hosts {
		c.Hosts[i].Nodes = nil
		c.Hosts[i].Auctioneers = map[messages.Name]string{"dark": fmt.Sprintf("127.0.0.1:%d", 17000+i)}
	}
	for i := range c.Nodes {
		c.Hosts[0].Nodes = append(c.Hosts[0].Nodes, c.Nodes[i].Name)
	}
}

// TestAMarketGoesToAnotherAuctioneer once it has no active jobs. Its node follows, and what was
// known of its jobs before is known still.
func TestAMarketGoesToAnotherAuctioneer(t *testing.T) {
	c := twofold(t.TempDir())
	c.Lease = messages.Duration(4 * time.Second) // nodes say something each second
	c.Markets = append(c.Markets, messages.Market{Name: "eve", Mechanism: "proportional", Classes: []messages.Name{"lab"}, Settle: messages.SettleOnCompletion})
	c.Auctioneers[1].Markets = append(c.Auctioneers[1].Markets, "eve")
	c.Nodes = append(c.Nodes, Node{Name: "node3", Slots: Slots{{Class: "lab", Slots: 1}}})
	s := start(t, c)
	defer s.Close()
	alice, operator := connect(t, s, "alice"), connect(t, s, "operator")
	job := func(command string) messages.JobSpec {
		spec := nightly(command)
		spec.Market, spec.Stages[0].Class = "eve", "lab"
		return spec
	}
	moved := messages.ApplyRequest{Key: "move", Markets: c.Markets, Auctioneers: []messages.AuctioneerMarkets{{Name: "dark", Markets: []messages.Name{"eve", "night"}}}}
	first := alice.submit("first", job("sleep 60"))
	alice.running(first)
	if _, err := bus.Call[messages.ApplyReply](within(t), operator.bus, messages.Subject("west", messages.Auctioneer, messages.VerbApply, "operator"), moved); messages.KindOf(err) != messages.Conflict {
		t.Errorf("a market with an active job went: %v", err)
	}

	// A closed market takes no more jobs, and so comes to have none.
	shut := slices.Clone(c.Markets)
	shut[2].Closed = true
	request[messages.ApplyReply](operator, messages.Auctioneer, messages.VerbApply, messages.ApplyRequest{Markets: shut})
	late := messages.SubmitRequest{Key: "late", Spec: job("true")}
	if _, err := bus.Call[messages.SubmitReply](within(t), alice.bus, messages.Subject("west", messages.Auctioneer, messages.VerbSubmit, "alice"), late); messages.KindOf(err) != messages.Exhausted || !strings.Contains(err.Error(), "an operator closed it") {
		t.Errorf("a job for a closed market: %v", err)
	}
	if id := alice.submit("first", job("sleep 60")); id != first {
		t.Errorf("a submission repeated after the market was closed: job %d", id)
	}
	request[messages.CancelReply](alice, messages.Auctioneer, messages.VerbCancel, messages.CancelRequest{Job: first})
	alice.final(first)
	for range 2 {
		if done := request[messages.ApplyReply](operator, messages.Auctioneer, messages.VerbApply, moved); !slices.Equal(done.Changed, []messages.Name{"eve"}) || len(done.Added)+len(done.Removed) > 0 {
			t.Errorf("applied: %+v", done)
		}
	}
	again := messages.SubmitRequest{Key: "first", Spec: job("sleep 60")} // which was not heard of
	if _, err := bus.Call[messages.SubmitReply](within(t), alice.bus, messages.Subject("west", messages.Auctioneer, messages.VerbSubmit, "alice"), again); messages.KindOf(err) != messages.Expired {
		t.Errorf("a submission repeated after the move: %v", err)
	}
	second := alice.submit("second", job("true"))
	completed(alice, second)
	if second.Auctioneer() != 1 || alice.final(first).State != messages.Cancelled {
		t.Errorf("the job after the move has the number %d", second)
	}
	completed(alice, alice.submit("day", daily("true")))
	completed(alice, alice.submit("night", nightly("true")))
}

// TestABackupHasAllAuctioneers, and a site that is restored goes on in each.
func TestABackupHasAllAuctioneers(t *testing.T) {
	c := twofold(t.TempDir())
	s := start(t, c)
	alice := connect(t, s, "alice")
	jobs := []messages.JobID{alice.submit("day", daily("true")), alice.submit("night", nightly("true"))}
	for _, id := range jobs {
		completed(alice, id)
	}
	dir := filepath.Join(t.TempDir(), "backup")
	if _, err := ReceiveBackup(within(t), c.State, dir); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	c.State = filepath.Join(t.TempDir(), "restored")
	if _, err := Restore(dir, c.State, "", ""); err != nil {
		t.Fatal(err)
	}
	s = start(t, c)
	defer s.Close()
	alice = connect(t, s, "alice")
	for _, id := range jobs {
		completed(alice, id)
	}
	if id := alice.submit("after", nightly("true")); id <= jobs[1] || id.Auctioneer() != 1 {
		t.Errorf("a job after the restoration has the number %d", id)
	}
}

// TestAnAuctioneerOnHostsLosesItsLeader: its other replicas go on, and the other auctioneer
// does not notice.
func TestAnAuctioneerOnHostsLosesItsLeader(t *testing.T) {
	dir := t.TempDir()
	c := twofold(dir)
	c.Keys, c.Replicas, c.Hosts = filepath.Join(dir, "keys"), 0, ownAddresses(t)
	var held []net.Listener // no two addresses are the same
	for i := range c.Hosts {
		l, err := net.Listen("tcp", fmt.Sprintf("127.0.77.%d:0", i+1))
		if err != nil {
			t.Fatal(err)
		}
		held = append(held, l)
		c.Hosts[i].Nodes, c.Hosts[i].Auctioneers = nil, map[messages.Name]string{"dark": l.Addr().String()}
	}
	for _, l := range held {
		_ = l.Close()
	}
	c.Hosts[0].Nodes, c.Hosts[1].Nodes = []messages.Name{"node1"}, []messages.Name{"node2"}
	if _, err := identity.Create(c.Keys, c.Site); err != nil {
		t.Fatal(err)
	}
	sites := startHosts(t, c, dir)
	dark := messages.AuctioneerNamed("dark")
	alice, operator := connect(t, sites[0], "alice"), connect(t, sites[0], "operator")
	completed(alice, alice.submit("before", nightly("true")))
	leader := sites[0].Leader(dark)
	i := slices.IndexFunc(c.Hosts, func(h Host) bool { return h.Name == leader })
	if i < 0 {
		t.Fatalf("%q leads", leader)
	}
	if err := sites[i].StopReplica(dark, leader); err != nil {
		t.Fatal(err)
	}
	completed(alice, alice.submit("day", daily("true")))
	completed(alice, alice.submit("night", nightly("true")))
	spare := func(want int) func() bool {
		return func() bool {
			r := request[messages.ReplicasReply](operator, messages.Auctioneer, messages.VerbReplicas, messages.Empty{})
			return len(r.Replicas) == 6 && r.Spare == want
		}
	}
	operator.await("the replica is missed", spare(0))
	if err := sites[i].StartReplica(dark, leader); err != nil {
		t.Fatal(err)
	}
	operator.await("the replica is back", spare(1))
}
