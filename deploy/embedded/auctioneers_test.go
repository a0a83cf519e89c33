package embedded

import (
	"errors"
	"fmt"
	"os"
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
	t.Parallel()
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

// evening is a site of two auctioneers, of which the first has another market, eve, on a node
// of its own with one slot. Applied, there gives eve to the second, and back to the first.
func evening(t *testing.T) (c Config, there, back messages.ApplyRequest) {
	c = twofold(t.TempDir())
	c.Lease = messages.Duration(10 * time.Second) // nodes say something every few seconds
	c.Markets = append(c.Markets, messages.Market{Name: "eve", Mechanism: "proportional", Classes: []messages.Name{"lab"}, Settle: messages.SettleOnCompletion})
	c.Auctioneers[1].Markets = append(c.Auctioneers[1].Markets, "eve")
	c.Nodes = append(c.Nodes, Node{Name: "node3", Slots: Slots{{Class: "lab", Slots: 1}}})
	to := func(of messages.Name) messages.ApplyRequest {
		return messages.ApplyRequest{Markets: c.Markets, Auctioneers: []messages.AuctioneerMarkets{{Name: of, Markets: []messages.Name{"eve"}}}, Within: messages.Duration(time.Hour)}
	}
	return c, to("dark"), to("day")
}

// late is a job of eve.
func late(command string) messages.JobSpec {
	spec := nightly(command)
	spec.Market, spec.Stages[0].Class = "eve", "lab"
	return spec
}

// eve is how the market stands.
func (u user) eve() messages.MarketStatus {
	u.Helper()
	all := request[messages.MarketsReply](u, messages.Auctioneer, messages.VerbMarkets, messages.Empty{}).Markets
	i := slices.IndexFunc(all, func(m messages.MarketStatus) bool { return m.Market.Name == "eve" })
	if i < 0 {
		u.Fatalf("there is no market eve: %+v", all)
	}
	return all[i]
}

// arrived waits until the market is with an auctioneer, and stays there.
func (u user) arrived(at messages.Name) {
	u.Helper()
	u.await("eve is with "+at, func() bool { m := u.eve(); return m.Auctioneer == at && m.Moving == nil })
}

// TestAMarketGoesWithItsJobs to another auctioneer and back: those that run, wait, wait for one
// another and are on hold, whoever is started again meanwhile. None is lost or run twice, each
// keeps its number and its key, and everything is paid for once.
func TestAMarketGoesWithItsJobs(t *testing.T) {
	t.Parallel()
	c, there, back := evening(t)
	dir := t.TempDir()
	s := start(t, c)
	defer func() { closeSite(t, s) }()
	alice, operator := connect(t, s, "alice"), connect(t, s, "operator")
	before := alice.account().Balance
	ran := func(name string) string { return "echo >> " + filepath.Join(dir, name) }
	gate := filepath.Join(dir, "gate")
	keyed := map[string]messages.JobSpec{
		"ended":   late(ran("ended")),
		"running": late(ran("running") + "; " + untilFile(gate)),
		"waiting": late(ran("waiting")),
		"array":   late(ran("array")),
		"held":    late(ran("held")),
		"gone":    late(ran("gone")),
	}
	array, held := keyed["array"], keyed["held"]
	array.Stages[0].Tasks, held.Hold = 5, true
	keyed["array"], keyed["held"] = array, held
	jobs := map[string]messages.JobID{}
	submit := func(key string) { jobs[key] = alice.submit(key, keyed[key]) }
	submit("ended")
	completed(alice, jobs["ended"])
	submit("running")
	alice.running(jobs["running"])
	for _, key := range []string{"waiting", "array", "held", "gone"} {
		submit(key)
	}
	after := late(ran("after"))
	after.AfterOK = []messages.JobID{jobs["array"], jobs["running"]}
	keyed["after"] = after
	submit("after")
	other := daily("true")
	other.AfterJobs = []messages.JobID{jobs["array"]}

	dry := there
	dry.DryRun = true
	for _, r := range []messages.ApplyRequest{dry, there, there} {
		if reply := request[messages.ApplyReply](operator, messages.Auctioneer, messages.VerbApply, r); !slices.Equal(reply.Moving, []messages.Name{"eve"}) {
			t.Errorf("applied: %+v", reply)
		}
	}
	operator.await("the move waits for the task that runs", func() bool {
		m := operator.eve()
		return m.Auctioneer == "day" && m.Moving != nil && m.Moving.To == "dark" && m.Moving.Tasks == 1 && !m.Moving.HandedOver
	})
	if why := alice.why(jobs["waiting"]); !strings.Contains(why.Message, "goes to auctioneer dark") {
		t.Errorf("why: %+v", why)
	}
	cross := messages.SubmitRequest{Key: "cross", Spec: other}
	if _, err := bus.Call[messages.SubmitReply](within(t), alice.bus, messages.Subject("west", messages.Auctioneer, messages.VerbSubmit, "alice"), cross); messages.KindOf(err) != messages.Conflict {
		t.Errorf("a job that would wait for one of another auctioneer: %v", err)
	}
	keyed["during"] = late(ran("during"))
	submit("during")
	request[messages.CancelReply](alice, messages.Auctioneer, messages.VerbCancel, messages.CancelRequest{Job: jobs["gone"]})
	restart := func(of messages.Name) {
		t.Helper()
		actor := messages.AuctioneerNamed(of)
		if err := s.StopReplica(actor, "1"); err != nil {
			t.Fatal(err)
		}
		operator.await(of+" is started again", func() bool { return s.StartReplica(actor, "1") == nil }) // its files may be in use for a moment
	}
	restart("day")
	touch(t, gate)
	restart("dark")
	operator.arrived("dark")

	keyed["there"] = late(ran("there"))
	submit("there")
	if jobs["there"].Auctioneer() != 1 || jobs["during"].Auctioneer() != 0 {
		t.Errorf("the jobs have the numbers %v", jobs)
	}
	check := func() {
		t.Helper()
		for key, id := range jobs {
			if again := alice.submit(key, keyed[key]); again != id {
				t.Errorf("%s submitted again: job %d, not %d", key, again, id)
			}
			if got := request[messages.JobsReply](alice, messages.Auctioneer, messages.VerbJobs, messages.JobsRequest{Jobs: []messages.JobID{id}}).Jobs; len(got) != 1 {
				t.Errorf("%s is listed as %+v", key, got)
			}
		}
	}
	check()
	for _, key := range []string{"waiting", "array", "after", "during", "there"} {
		completed(alice, jobs[key])
	}
	// Back, with a task that is not waited for: it runs again.
	keyed["again"] = late(ran("again") + "; " + untilFile(filepath.Join(dir, "again-gate")))
	submit("again")
	alice.await("the task has begun", func() bool { _, err := os.Stat(filepath.Join(dir, "again")); return err == nil })
	back.Within = 0
	request[messages.ApplyReply](operator, messages.Auctioneer, messages.VerbApply, back)
	restart("dark")
	operator.arrived("day")
	check()
	touch(t, filepath.Join(dir, "again-gate"))
	done := request[messages.CancelReply](alice, messages.Auctioneer, messages.VerbCancel, messages.CancelRequest{Jobs: []messages.JobID{jobs["held"], jobs["there"]}})
	if len(done.Jobs) != 2 || done.Jobs[0].Error != nil || messages.KindOf(done.Jobs[1].Error) != messages.Ended {
		t.Errorf("cancelled: %+v", done)
	}
	completed(alice, jobs["again"])

	// Started again, all is as it was.
	closeSite(t, s)
	s = start(t, c)
	alice, operator = connect(t, s, "alice"), connect(t, s, "operator")
	check()
	spent := messages.Credits(0)
	for _, id := range jobs {
		spent += alice.final(id).Charged
	}
	for name, times := range map[string]int{"ended": 1, "running": 1, "waiting": 1, "array": 5, "after": 1, "during": 1, "there": 1, "again": 2, "held": 0, "gone": 0} {
		text, _ := os.ReadFile(filepath.Join(dir, name))
		if len(text) != times {
			t.Errorf("%s ran %d times, not %d", name, len(text), times)
		}
	}
	if now := alice.account(); spent == 0 || before-now.Balance != spent || now.Reserved != 0 {
		t.Errorf("the account went from %v to %+v, and the jobs cost %v", before, now, spent)
	}
	if books := request[messages.BooksReply](operator, messages.Bank, messages.VerbBooks, messages.BooksRequest{Full: true}); !books.Balanced {
		t.Errorf("the books: %+v", books)
	}
}

// TestAMoveIsGivenUp: a move that still waits for tasks ends with the markets of before, and a
// market of another description goes only without jobs.
func TestAMoveIsGivenUp(t *testing.T) {
	t.Parallel()
	c, there, back := evening(t)
	s := start(t, c)
	defer closeSite(t, s)
	alice, operator := connect(t, s, "alice"), connect(t, s, "operator")
	gate := filepath.Join(t.TempDir(), "gate")
	first := alice.submit("first", late(untilFile(gate)))
	alice.running(first)
	otherwise := there
	otherwise.Markets = slices.Clone(c.Markets)
	otherwise.Markets[2].MaxJobs = 7
	refused := func(r messages.ApplyRequest) {
		t.Helper()
		if _, err := bus.Call[messages.ApplyReply](within(t), operator.bus, messages.Subject("west", messages.Auctioneer, messages.VerbApply, "operator"), r); messages.KindOf(err) != messages.Conflict {
			t.Errorf("applied: %v", err)
		}
	}
	refused(otherwise)
	request[messages.ApplyReply](operator, messages.Auctioneer, messages.VerbApply, there)
	second := alice.submit("second", late("true"))
	refused(messages.ApplyRequest{Markets: otherwise.Markets})
	if m := operator.eve(); m.Moving == nil {
		t.Errorf("not on its way: %+v", m)
	}
	backup := filepath.Join(t.TempDir(), "backup")
	if _, err := ReceiveBackup(within(t), c.State, backup); messages.KindOf(err) != messages.Unavailable || !strings.Contains(err.Error(), "market eve goes to auctioneer") {
		t.Errorf("a backup during a move: %v", err)
	}
	request[messages.ApplyReply](operator, messages.Auctioneer, messages.VerbApply, back)
	if m := operator.eve(); m.Moving != nil || m.Auctioneer != "day" {
		t.Errorf("after the move was given up: %+v", m)
	}
	if _, err := ReceiveBackup(within(t), c.State, backup); err != nil {
		t.Errorf("a backup after the move was given up: %v", err)
	}
	touch(t, gate)
	completed(alice, first)
	completed(alice, second)
}

// TestABackupHasAllAuctioneers, and a site that is restored goes on in each.
func TestABackupHasAllAuctioneers(t *testing.T) {
	t.Parallel()
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
	t.Parallel()
	dir := t.TempDir()
	c := twofold(dir)
	c.Keys, c.Replicas, c.Hosts = filepath.Join(dir, "keys"), 0, ownAddresses(t)
	for i := range c.Hosts {
		at, release := freePort(t, loopback())
		release()
		c.Hosts[i].Nodes, c.Hosts[i].Auctioneers = nil, map[messages.Name]string{"dark": at}
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
