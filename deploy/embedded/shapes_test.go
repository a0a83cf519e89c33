package embedded

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/await"
	"github.com/candor-grid/candor/messages/bus"
	jobmsg "github.com/candor-grid/candor/messages/job"
	"github.com/candor-grid/candor/messages/market"
	"github.com/candor-grid/candor/nodeagent/runner/executor"
)

// TestTasksHaveShapes uses nodes that declare more resources than the machine has. A task must run on a node that has
// enough resources for it. Its job must pay for each slot that the task takes. A task that no node can run must be
// refused.
func TestTasksHaveShapes(t *testing.T) {
	t.Parallel()
	const gib = 1 << 30
	c := small(t.TempDir())
	c.Replicas = 1
	c.Markets = []market.Market{
		{Name: "cpu", Mechanism: market.Proportional, Classes: []messages.Name{"cpu"},
			Units: []jobmsg.ClassUnit{{Class: "cpu", Unit: jobmsg.Resources{CPUs: 1, Memory: 4 * gib}}}},
		{Name: "gpu", Mechanism: market.FIFO, Classes: []messages.Name{"gpu"},
			Units: []jobmsg.ClassUnit{{Class: "gpu", Unit: jobmsg.Resources{GPUs: 1, CPUs: 4, Memory: 16 * gib}}}},
	}
	node := func(name, class messages.Name, slots int, r jobmsg.Resources) Node {
		return Node{Name: name, Slots: Slots{{Class: class, Slots: slots}}, Resources: &r, Declared: true, Labels: []messages.Name{"of-" + name}}
	}
	c.Nodes = []Node{
		node("c1", "cpu", 64, jobmsg.Resources{CPUs: 64, Memory: 256 * gib}),
		node("g1", "gpu", 4, jobmsg.Resources{CPUs: 16, Memory: 64 * gib, GPUs: 4, GPUType: "a100"}),
		node("g2", "gpu", 2, jobmsg.Resources{CPUs: 8, Memory: 32 * gib, GPUs: 2, GPUType: "v100"}),
	}
	s, err := Start(within(t), c, Options{})
	if err != nil {
		t.Fatal(err)
	}
	u, dir := connect(t, s, "alice"), t.TempDir()
	spec := func(file string, change func(*jobmsg.Stage)) jobmsg.JobSpec {
		stage := jobmsg.Stage{Name: "main", Script: "echo $CANDOR_NODE $CANDOR_CPUS $OMP_NUM_THREADS $CUDA_VISIBLE_DEVICES > '" + filepath.Join(dir, file) + "'\n"}
		change(&stage)
		return jobmsg.JobSpec{Budget: 10 * messages.Credit, Stages: []jobmsg.Stage{stage}}
	}
	for file, of := range map[string]struct {
		change func(*jobmsg.Stage)
		want   string
	}{
		"processors": {func(s *jobmsg.Stage) { s.CPUs = 4 }, "c1 4 4\n"},
		"memory":     {func(s *jobmsg.Stage) { s.CPUs, s.Memory = 1, 32*gib }, "c1 1 1\n"},
		"a node":     {func(s *jobmsg.Stage) { s.CPUs, s.Exclusive = 64, true }, "c1 64 64\n"},
		"any GPU":    {func(s *jobmsg.Stage) { s.CPUs, s.GPUs, s.Constraint = 2, 1, "of-g2" }, "g2 2 2 0\n"},
		"two V100":   {func(s *jobmsg.Stage) { s.GPUs, s.GPUType = 2, "v100" }, "g2 8 8 0,1\n"},
	} {
		id := u.submit(file, spec(file, of.change))
		if job := u.final(id); job.State != jobmsg.Completed {
			t.Errorf("%s: %v, %s", file, job.State, job.Reason)
		}
		if got, _ := os.ReadFile(filepath.Join(dir, file)); string(got) != of.want {
			t.Errorf("%s: the task has %q, want %q", file, got, of.want)
		}
	}
	for what, change := range map[string]func(*jobmsg.Stage){
		"too much memory": func(s *jobmsg.Stage) { s.Memory = 1000 << 40 },
		"too many GPUs":   func(s *jobmsg.Stage) { s.GPUs = 5 },
		"no such GPU":     func(s *jobmsg.Stage) { s.GPUs, s.GPUType = 1, "h100" },
		"no such label":   func(s *jobmsg.Stage) { s.Constraint = "of-c2" },
	} {
		_, err := bus.Call[jobmsg.SubmitReply](within(t), u.bus, messages.Subject(u.site, messages.Auctioneer, messages.VerbSubmit, u.name),
			jobmsg.SubmitRequest{Key: what, Spec: spec("none", change)})
		if kind := messages.KindOf(err); kind != messages.TooLarge && kind != messages.Invalid {
			t.Errorf("%s: %v", what, err)
		}
	}
	closeSite(t, s)
}

// A job needs licences that are in use. It must wait, give the missing licences as the reason, and run when they are
// free.
func TestTasksWaitForLicences(t *testing.T) {
	t.Parallel()
	c := small(t.TempDir())
	c.Replicas, c.Licenses = 1, jobmsg.Licenses{{Name: "matlab", Count: 2}}
	s, err := Start(within(t), c, Options{})
	if err != nil {
		t.Fatal(err)
	}
	u, end := connect(t, s, "alice"), filepath.Join(t.TempDir(), "end")
	submit := func(key string, licences int, script string) messages.JobID {
		return u.submit(key, jobmsg.JobSpec{Budget: 10 * messages.Credit, Stages: []jobmsg.Stage{{Name: "main", Class: c.Markets[0].Classes[0], Script: script,
			Licenses: jobmsg.Licenses{{Name: "matlab", Count: licences}}}}})
	}
	has := submit("has", 1, "until [ -e '"+end+"' ]; do sleep 0.05; done\n")
	used := func() int {
		nodes := request[market.NodesReply](u, messages.Auctioneer, messages.VerbNodes, messages.Empty{})
		if len(nodes.Licenses) != 1 || nodes.Licenses[0].Total != 2 {
			t.Fatalf("the site has %v", nodes.Licenses)
		}
		return nodes.Licenses[0].Used
	}
	await.Until(t, "a task has a licence", func() bool { return used() == 1 })
	waits := submit("waits", 2, "exit 0\n")
	why := request[market.WhyReply](u, messages.Auctioneer, messages.VerbWhy, jobmsg.JobRequest{Job: waits})
	if want := "waits for 2 of licence matlab; 1 is free"; why.Reason != "WaitingForLicenses" || why.Message != want {
		t.Errorf("%s: %q, want %q", why.Reason, why.Message, want)
	}
	listed := request[jobmsg.JobsReply](u, messages.Auctioneer, messages.VerbJobs, jobmsg.JobsRequest{Jobs: []messages.JobID{waits}})
	detail := request[jobmsg.JobDetail](u, messages.Auctioneer, messages.VerbJob, jobmsg.JobRequest{Job: waits})
	if len(listed.Jobs) != 1 || listed.Jobs[0].Reason != "WaitingForLicenses" || detail.Reason != "WaitingForLicenses" {
		t.Errorf("the list says %+v, the job %s", listed.Jobs, detail.Reason)
	}
	if err := os.WriteFile(end, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	for _, id := range []messages.JobID{has, waits} {
		if job := u.final(id); job.State != jobmsg.Completed {
			t.Errorf("job %d: %v, %s", id, job.State, job.Reason)
		}
	}
	if n := used(); n != 0 {
		t.Errorf("%d licences are in use after the jobs", n)
	}
	closeSite(t, s)
}

// An account may have one slot at a time. Its second job must wait although slots are idle. The job must say why it
// waits, and run when the first job has ended.
func TestAnAccountHasNoMoreAtOnceThanItsBound(t *testing.T) {
	t.Parallel()
	c := small(t.TempDir())
	c.Replicas = 1
	c.Markets[0].AtOnce.Account.Slots = 1
	s, err := Start(within(t), c, Options{})
	if err != nil {
		t.Fatal(err)
	}
	u, end := connect(t, s, "alice"), filepath.Join(t.TempDir(), "end")
	spec := func(script string) jobmsg.JobSpec {
		return jobmsg.JobSpec{Budget: 10 * messages.Credit, Stages: []jobmsg.Stage{{Name: "main", Class: c.Markets[0].Classes[0], Script: script}}}
	}
	has := u.submit("has", spec("until [ -e '"+end+"' ]; do sleep 0.05; done\n"))
	state := func(id messages.JobID) jobmsg.State {
		return request[jobmsg.JobDetail](u, messages.Auctioneer, messages.VerbJob, jobmsg.JobRequest{Job: id}).State
	}
	await.Until(t, "the first job runs", func() bool { return state(has) == jobmsg.Running })
	waits := u.submit("waits", spec("exit 0\n"))
	why := request[market.WhyReply](u, messages.Auctioneer, messages.VerbWhy, jobmsg.JobRequest{Job: waits})
	if want := "account alice has 1 of the 1 slots that it may have at once in market main"; why.Reason != "AccountSlotsBound" || why.Message != want {
		t.Errorf("%s: %q, want %q", why.Reason, why.Message, want)
	}
	listed := request[jobmsg.JobsReply](u, messages.Auctioneer, messages.VerbJobs, jobmsg.JobsRequest{Jobs: []messages.JobID{waits}})
	if len(listed.Jobs) != 1 || listed.Jobs[0].Reason != "AccountSlotsBound" {
		t.Errorf("the list says %+v", listed.Jobs)
	}
	if err := os.WriteFile(end, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	for _, id := range []messages.JobID{has, waits} {
		if job := u.final(id); job.State != jobmsg.Completed {
			t.Errorf("job %d: %v, %s", id, job.State, job.Reason)
		}
	}
	closeSite(t, s)
}

// TestPrologsAndEpilogsRunOnceForAJobOnANode runs a job of many tasks. A node whose prolog fails must go into
// quarantine with the reason. On the other node the prolog must run once, and all tasks must run.
func TestPrologsAndEpilogsRunOnceForAJobOnANode(t *testing.T) {
	t.Parallel()
	for name, o := range map[string]Options{"own": {}, "executor": {Executor: executor.Self()}} {
		t.Run(name, func(t *testing.T) {
			c, dir := small(t.TempDir()), t.TempDir()
			c.Replicas, c.Tasks.Prolog = 1, filepath.Join(dir, "prolog")
			script := "#!/bin/sh\necho $CANDOR_NODE $SLURM_JOB_ID $CANDOR_ACCOUNT >> " + dir + "/said\nif [ $CANDOR_NODE = node1 ]; then echo no scratch >&2; exit 1; fi\n"
			if err := os.WriteFile(c.Tasks.Prolog, []byte(script), 0o755); err != nil {
				t.Fatal(err)
			}
			s, err := Start(within(t), c, o)
			if err != nil {
				t.Fatal(err)
			}
			u := connect(t, s, "alice")
			id := u.submit("one", jobmsg.JobSpec{Budget: 10 * messages.Credit, Stages: []jobmsg.Stage{{Name: "main", Class: c.Markets[0].Classes[0], Tasks: 12, Attempts: 1, Script: "sleep 0.2\n"}}})
			if job := u.final(id); job.State != jobmsg.Completed {
				t.Errorf("the job is %v: %s, %s", job.State, job.Reason, job.Message)
			}
			said, _ := os.ReadFile(filepath.Join(dir, "said"))
			if n := strings.Count(string(said), fmt.Sprintf("node2 %d alice\n", id)); n != 1 || !strings.Contains(string(said), "node1 ") {
				t.Errorf("the prolog was called with %q", said)
			}
			nodes := request[market.NodesReply](u, messages.Auctioneer, messages.VerbNodes, messages.Empty{})
			if n := nodes.Nodes[0]; !strings.Contains(n.Reason, "the prolog of node node1") || !strings.Contains(n.Reason, "no scratch") {
				t.Errorf("node1 is %s: %q", n.State, n.Reason)
			}
			closeSite(t, s)
		})
	}
}

// TestWideTasksRunInEveryMarketThatTakesThem runs two tasks of 3 slots on a node of 4 slots. They must run one after
// the other.
func TestWideTasksRunInEveryMarketThatTakesThem(t *testing.T) {
	t.Parallel()
	c := small(t.TempDir())
	c.Replicas, c.Markets, c.Nodes = 1, nil, nil
	// The test of the market with contracts comes first. This market plans with the declared length of a task only
	// until the site has seen run times, and the other tests produce run times.
	mechanisms := []messages.Name{market.ContractMenu, market.Karma, market.BatchQueue, market.Backfill, market.HighestBid, market.DeadlineBid}
	worth := jobmsg.Valuation{Class: jobmsg.Sigmoidal, Max: 10, Mu: 600, Delta: 300}
	for _, mechanism := range mechanisms {
		m := market.Market{Name: mechanism, Mechanism: mechanism, Classes: []messages.Name{mechanism},
			Units: []jobmsg.ClassUnit{{Class: mechanism, Unit: jobmsg.Resources{CPUs: 1, Memory: 1 << 30}}}}
		if mechanism == market.BatchQueue {
			m.Pricing = "pivot"
		}
		if mechanism == market.DeadlineBid {
			m.Slot = unit
		}
		if mechanism == market.ContractMenu {
			m.Prior = []jobmsg.Valuation{worth}
		}
		c.Markets = append(c.Markets, m)
		c.Nodes = append(c.Nodes, Node{Name: "n-" + mechanism, Resources: &jobmsg.Resources{CPUs: 4, Memory: 4 << 30}, Declared: true})
	}
	for i := range c.Nodes {
		c.Markets[i].Nodes = []messages.Name{c.Nodes[i].Name}
	}
	s, err := Start(within(t), c, Options{})
	if err != nil {
		t.Fatal(err)
	}
	u := connect(t, s, "alice")
	for _, mechanism := range mechanisms {
		spec := jobmsg.JobSpec{Market: mechanism, Budget: 10 * messages.Credit, Stages: []jobmsg.Stage{{Name: "main", Tasks: 2, CPUs: 3, Script: "exit 0"}}}
		if mechanism == market.HighestBid {
			spec.Rate, spec.Budget = messages.Credit, 200*messages.Credit
		}
		if mechanism == market.BatchQueue {
			spec.Value, spec.Length = spec.Budget, messages.Duration(600e9)
		}
		if mechanism == market.DeadlineBid { // one task at a time
			spec.Value, spec.Length, spec.Deadline = messages.Credit, 60*unit, messages.TimeOf(time.Now().Add(time.Hour))
		}
		if mechanism == market.ContractMenu {
			spec.Valuation, spec.Length = &worth, messages.Duration(600e9)
			menu, err := bus.Call[market.QuoteReply](within(t), u.bus, messages.Subject(u.site, messages.Auctioneer, market.VerbQuote, u.name), market.QuoteRequest{Spec: spec})
			if err != nil {
				t.Fatal(err)
			}
			at := slices.IndexFunc(menu.Contracts, func(c market.QuotedContract) bool { return c.Declared })
			spec.Contract, spec.Budget = menu.Contracts[at].ID, menu.Contracts[at].Budget
		}
		if job := u.final(u.submit(mechanism, spec)); job.State != jobmsg.Completed || job.Done != 2 {
			t.Errorf("%s: %v, %s, %d of 2 tasks", mechanism, job.State, job.Reason, job.Done)
		} else if u := job.Used; len(u) != 1 || u[0].SlotHours <= 0 || math.Abs(u[0].CPUHours-u[0].SlotHours) > 1e-9 || math.Abs(u[0].MemoryHours-u[0].SlotHours) > 1e-9 {
			t.Errorf("%s: used %+v, want as many hours of slots, processors and GiB", mechanism, u) // each slot has one processor and one GiB
		}
	}
	closeSite(t, s)
}
