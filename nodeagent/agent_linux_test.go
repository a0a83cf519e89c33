package nodeagent_test

import (
	"context"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/agent"
	"github.com/candor-grid/candor/messages/await"
	"github.com/candor-grid/candor/messages/bus"
	jobmsg "github.com/candor-grid/candor/messages/job"
	"github.com/candor-grid/candor/nodeagent"
	"github.com/candor-grid/candor/nodeagent/runner"
)

// begin starts an agent and waits until it is registered.
func begin(t testing.TB, network *bus.Network, change func(*nodeagent.Config)) *nodeagent.Agent {
	t.Helper()
	c := nodeagent.Config{
		Site: "home", Node: "n1", Slots: []jobmsg.ClassSlots{{Class: "cpu", Slots: 2}},
		Bus: network.Connect("n1"), Dir: t.TempDir(), Operators: []messages.Name{"root"}, Seed: 1,
	}
	if change != nil {
		change(&c)
	}
	a, err := nodeagent.Start(context.Background(), c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { a.Close() })
	select {
	case <-a.Ready():
	case <-time.After(patience):
		t.Fatal("the node is not registered")
	}
	return a
}

func logs(t testing.TB, b bus.Bus, as messages.Name, r agent.LogsRequest) (agent.LogsReply, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	return bus.Call[agent.LogsReply](ctx, b, messages.LogsSubject("home", "n1", as), r)
}

func TestRunsJobs(t *testing.T) {
	network := bus.NewMemory()
	l := newLeader(t, network, time.Hour)
	registry := prometheus.NewRegistry()
	begin(t, network, func(c *nodeagent.Config) { c.Metrics = registry })
	job := l.submit(agent.Program{Tasks: 20, Command: []string{"sh", "-c", "echo task $CANDOR_TASK of $CANDOR_JOB; exit $((CANDOR_TASK % 3))"}})
	late := l.submit(agent.Program{Tasks: 3, Command: []string{"no-such-command"}})
	l.until("every task ends", func() bool { return len(l.finished) == 23 })
	l.mu.Lock()
	defer l.mu.Unlock()
	for ref, f := range l.finished {
		switch {
		case ref.Job == job && (f.Outcome != agent.Exited || f.ExitCode != int(ref.Index%3)):
			t.Errorf("task %v finished as %+v", ref, f)
		case ref.Job == late && (f.Outcome != agent.Unstartable || f.Detail == ""):
			t.Errorf("task %v finished as %+v", ref, f)
		}
	}
	if got := total(t, registry, "candor_nodeagent_grants_total"); got != 23 {
		t.Errorf("counted %v grants", got)
	}
	if got := total(t, registry, "candor_nodeagent_finishes_total"); got != 23 {
		t.Errorf("counted %v finishes", got)
	}
}

func total(t testing.TB, registry *prometheus.Registry, name string) (sum float64) {
	t.Helper()
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			if f.GetName() == name {
				sum += m.GetCounter().GetValue()
			}
		}
	}
	return sum
}

func TestLogsAreForTheOwner(t *testing.T) {
	network := bus.NewMemory()
	l := newLeader(t, network, time.Hour)
	begin(t, network, nil)
	job := l.submit(agent.Program{Tasks: 1, Command: []string{"echo", "hello"}})
	l.until("the task ends", func() bool { return len(l.finished) == 1 })
	user := network.Connect("somebody")
	request := agent.LogsRequest{Attempt: messages.Attempt{Task: first(job), Number: 1}}
	for _, c := range []struct {
		as   messages.Name
		job  messages.JobID
		data string
		kind messages.Kind
	}{
		{as: "ann", job: job, data: "hello\n"},
		{as: "root", job: job, data: "hello\n"},
		{as: "bob", job: job, kind: messages.NotFound},
		{as: "ann", job: 99, kind: messages.NotFound},
	} {
		request.Attempt.Task.Job = c.job
		r, err := logs(t, user, c.as, request)
		if string(r.Data) != c.data {
			t.Errorf("%s reads %q of job %v, want %q", c.as, r.Data, c.job, c.data)
		}
		if kind := messages.KindOf(err); (err == nil) != (c.data != "") || err != nil && kind != c.kind {
			t.Errorf("%s reads job %v with %v, want %v", c.as, c.job, err, c.kind)
		}
	}
}

// TestStreamsAreForTheOwner checks that only the owner of a job can use its streams. To other accounts, the agent must
// say that there is no such job.
func TestStreamsAreForTheOwner(t *testing.T) {
	network := bus.NewMemory()
	l := newLeader(t, network, time.Hour)
	begin(t, network, nil)
	job := l.submit(agent.Program{Tasks: 1, Script: "echo ready; exec cat", Interactive: &jobmsg.Interactive{}})
	of := messages.Attempt{Task: first(job), Number: 1}
	ask := func(as messages.Name, r agent.StreamRequest) (agent.StreamReply, error) {
		r.Attempt = of
		return bus.Call[agent.StreamReply](t.Context(), network.Connect("somebody"), agent.StreamSubject("home", "n1", as), r)
	}
	poll := agent.StreamRequest{Client: "c", Poll: true, Wait: messages.Duration(time.Second)}
	await.Until(t, "the owner reads", func() bool { r, err := ask("ann", poll); return err == nil && string(r.Output) == "ready\n" })
	for name, r := range map[string]agent.StreamRequest{
		"poll": poll, "take": {Client: "d", Take: true, Poll: true}, "signal": {Signal: "KILL"}, "input": {Client: "c", Input: []byte("x")},
		"exec": {Client: "d", Stream: "s", Begin: &agent.StreamBegin{Command: []string{"id"}}},
		"port": {Client: "d", Stream: "s", Begin: &agent.StreamBegin{Port: 22}}, "close": {Client: "c", Close: true},
	} {
		if r, err := ask("bob", r); messages.KindOf(err) != messages.NotFound || len(r.Output) > 0 {
			t.Errorf("%s by another account: %+v, %v", name, r, err)
		}
	}
	await.Until(t, "an operator signals", func() bool { // the task may write before the leader knows that it runs
		_, err := ask("root", agent.StreamRequest{Signal: "KILL"})
		return err == nil
	})
	l.until("the task ends", func() bool { return len(l.finished) == 1 })
}

// TestSignalsDoNotFillTheLog sends many signals. The log must have only a few lines per second for one account.
func TestSignalsDoNotFillTheLog(t *testing.T) {
	network := bus.NewMemory()
	l := newLeader(t, network, time.Hour)
	core, logged := observer.New(zap.InfoLevel)
	begin(t, network, func(c *nodeagent.Config) { c.Log = zap.New(core) })
	job := l.submit(agent.Program{Tasks: 1, Command: []string{"sh", "-c", "echo ready; exec sleep 600"}})
	ready(t, network, job)
	user, began := network.Connect("somebody"), time.Now()
	const signals = 200
	for i := range signals + 1 {
		as := messages.Name("ann")
		if i == signals {
			as = "root"
		}
		r := agent.StreamRequest{Attempt: messages.Attempt{Task: first(job), Number: 1}, Signal: "CONT"}
		await.Until(t, "the signal arrives", func() bool { // the task may write before the leader knows that it runs
			_, err := bus.Call[agent.StreamReply](t.Context(), user, agent.StreamSubject("home", "n1", as), r)
			return err == nil
		})
	}
	most := 10 * (2 + int(time.Since(began)/time.Second))
	if n := logged.FilterMessage("account ann reaches a task").Len(); n == 0 || n > most {
		t.Errorf("the log has %d lines of %d signals, want 1 to %d", n, signals, most)
	}
	if n := logged.FilterMessage("account root reaches a task").Len(); n == 0 {
		t.Error("the lines of one account hide those of another")
	}
}

func TestCancelledTaskIsStopped(t *testing.T) {
	network := bus.NewMemory()
	l := newLeader(t, network, time.Hour)
	begin(t, network, nil)
	job := l.submit(agent.Program{Tasks: 1, Command: []string{"sh", "-c", "echo ready; exec sleep 600"}})
	ready(t, network, job)
	of := messages.Attempt{Task: first(job), Number: 1}
	l.send(messages.DirectiveSubject("home", "n1"), agent.Directive{Term: 0, Stop: []messages.Attempt{of}})
	l.send(messages.DirectiveSubject("home", "n1"), agent.Directive{Term: 1, Stop: []messages.Attempt{of}})
	l.until("the task is stopped", func() bool { return len(l.finished) == 1 })
	if f := get(l, func() agent.Finished { return l.finished[first(job)] }); f.Outcome != agent.Stopped || f.ExitCode != 128+15 {
		t.Errorf("finished as %+v", f)
	}
}

// TestATaskIsToldThatItsBudgetEnds makes the leader ask for a signal to a running task. The task must get it, and end
// by itself.
func TestATaskIsToldThatItsBudgetEnds(t *testing.T) {
	network := bus.NewMemory()
	l := newLeader(t, network, time.Hour)
	begin(t, network, nil)
	job := l.submit(agent.Program{Tasks: 1, Script: "trap 'echo saved; exit 9' USR1\necho ready\nwhile :; do sleep 0.05; done\n"})
	ready(t, network, job)
	of := messages.Attempt{Task: first(job), Number: 1}
	warn := []agent.Warning{{Attempt: messages.Attempt{Task: first(99), Number: 1}, Signal: jobmsg.EarlySignal{Name: "KILL"}}, {Attempt: of, Signal: jobmsg.EarlySignal{Name: "USR1", First: true}}}
	l.send(messages.DirectiveSubject("home", "n1"), agent.Directive{Term: 1, Warn: warn})
	l.until("the task ends by itself", func() bool { return len(l.finished) == 1 })
	if f := get(l, func() agent.Finished { return l.finished[first(job)] }); f.Outcome != agent.Exited || f.ExitCode != 9 {
		t.Errorf("finished as %+v", f)
	}
}

// ready waits until a task has written something.
func ready(t testing.TB, network *bus.Network, job messages.JobID) {
	t.Helper()
	r := agent.LogsRequest{Attempt: messages.Attempt{Task: first(job), Number: 1}, Wait: messages.Duration(patience)}
	user := network.Connect("ann")
	deadline := time.Now().Add(patience)
	for time.Now().Before(deadline) {
		got, err := logs(t, user, "ann", r)
		if len(got.Data) > 0 {
			return
		}
		if err != nil {
			if messages.KindOf(err) != messages.NotFound { // no node has claimed the task yet
				t.Fatal(err)
			}
			runtime.Gosched()
		}
	}
	t.Fatal("the task writes nothing")
}

func TestLostLeaseKillsTasks(t *testing.T) {
	network := bus.NewMemory()
	l, clock := newLeader(t, network, time.Hour), new(clock)
	begin(t, network, func(c *nodeagent.Config) { c.Clock = clock.now })
	job := l.submit(agent.Program{Tasks: 1, Command: []string{"sh", "-c", "trap '' TERM; echo ready; while :; do sleep 0.05; done"}})
	ready(t, network, job)
	session := l.session()
	l.set(func() { l.silent = true })
	l.pass(clock, time.Hour)
	ended(t, network, job)
	l.set(func() { l.silent = false })
	l.until("the node joins under a new session", func() bool { return l.sessions["n1"].number != session })
	next := l.submit(agent.Program{Tasks: 1, Command: []string{"true"}})
	l.until("it works on", func() bool { _, ok := l.finished[first(next)]; return ok })
}

// The function ended asks the agent for a task's output until the reply says that the task has ended.
func ended(t testing.TB, network *bus.Network, job messages.JobID) {
	t.Helper()
	r := agent.LogsRequest{Attempt: messages.Attempt{Task: first(job), Number: 1}, Wait: messages.Duration(patience)}
	deadline := time.Now().Add(patience)
	for time.Now().Before(deadline) {
		got, err := logs(t, network.Connect("ann"), "ann", r)
		if err != nil {
			t.Fatal(err)
		}
		if got.End {
			return
		}
		r.Offset = got.Next
	}
	t.Fatal("the task goes on")
}

func TestFencedAgentKillsAndJoinsAnew(t *testing.T) {
	network := bus.NewMemory()
	l, clock := newLeader(t, network, time.Hour), new(clock)
	begin(t, network, func(c *nodeagent.Config) { c.Clock = clock.now })
	job := l.submit(agent.Program{Tasks: 1, Command: []string{"sh", "-c", "echo ready; exec sleep 600"}})
	ready(t, network, job)
	session := l.session()
	l.set(func() { l.fence = true })
	l.pass(clock, time.Hour/2) // make the agent renew its lease
	ended(t, network, job)
	l.until("the node joins under a new session", func() bool { return l.sessions["n1"].number != session })
}

func TestCloseReportsWhatItStopped(t *testing.T) {
	network := bus.NewMemory()
	l := newLeader(t, network, time.Hour)
	a := begin(t, network, nil)
	job := l.submit(agent.Program{Tasks: 2, Command: []string{"sh", "-c", "echo ready; exec sleep 600"}})
	ready(t, network, job)
	l.until("both are granted", func() bool { return l.given[0] == 2 })
	if err := a.Close(); err != nil {
		t.Fatal(err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for i := range uint32(2) {
		if f := l.finished[messages.TaskRef{Job: job, Index: i}]; f.Outcome != agent.Stopped {
			t.Errorf("task %d finished as %+v", i, f)
		}
	}
}

func TestCloseIsBounded(t *testing.T) {
	network := bus.NewMemory()
	l := newLeader(t, network, time.Hour)
	a := begin(t, network, func(c *nodeagent.Config) { c.Grace, c.CloseTimeout = time.Hour, 50*time.Millisecond })
	job := l.submit(agent.Program{Tasks: 1, Command: []string{"sh", "-c", "trap '' TERM; echo ready; while :; do sleep 0.05; done"}})
	ready(t, network, job)
	l.set(func() { l.silent = true })
	if err := a.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestContextEndsTheAgent(t *testing.T) {
	network := bus.NewMemory()
	l := newLeader(t, network, time.Hour)
	ctx, cancel := context.WithCancel(context.Background())
	a, err := nodeagent.Start(ctx, nodeagent.Config{
		Site: "home", Node: "n1", Slots: []jobmsg.ClassSlots{{Class: "cpu", Slots: 1}},
		Bus: network.Connect("n1"), Runner: runner.Instant{},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	l.submit(agent.Program{Tasks: 10})
	l.until("the work is done", func() bool { return len(l.finished) == 10 })
	cancel()
	if err := a.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestGarbageIsIgnored(t *testing.T) {
	network := bus.NewMemory()
	l := newLeader(t, network, time.Hour)
	registry := prometheus.NewRegistry()
	begin(t, network, func(c *nodeagent.Config) { c.Runner, c.Metrics = runner.Instant{}, registry })
	for _, subject := range []string{messages.VectorSubject("home", "main"), messages.DirectiveSubject("home", "n1")} {
		for _, garbage := range []string{"", "x", "{", "\x94\xff", strings.Repeat("\x91", 1<<16)} {
			if err := l.bus.Publish(subject, []byte(garbage)); err != nil {
				t.Fatal(err)
			}
		}
	}
	l.submit(agent.Program{Tasks: 10})
	l.until("the work is done", func() bool { return len(l.finished) == 10 })
}

func TestConfigIsChecked(t *testing.T) {
	good := nodeagent.Config{
		Site: "home", Node: "n1", Slots: []jobmsg.ClassSlots{{Class: "cpu", Slots: 1}},
		Bus: bus.NewMemory().Connect("n1"), Runner: runner.Instant{},
	}
	if err := good.Validate(); err != nil {
		t.Fatal(err)
	}
	for what, spoil := range map[string]func(*nodeagent.Config){
		"Site":                 func(c *nodeagent.Config) { c.Site = "A B" },
		"Node":                 func(c *nodeagent.Config) { c.Node = "" },
		"Bus":                  func(c *nodeagent.Config) { c.Bus = nil },
		"Dir":                  func(c *nodeagent.Config) { c.Runner = nil },
		"Slots":                func(c *nodeagent.Config) { c.Slots = nil },
		"has 0 slots":          func(c *nodeagent.Config) { c.Slots = []jobmsg.ClassSlots{{Class: "cpu"}} },
		"has 100000000":        func(c *nodeagent.Config) { c.Slots = []jobmsg.ClassSlots{{Class: "cpu", Slots: 1e8}} },
		"twice":                func(c *nodeagent.Config) { c.Slots = append(c.Slots, c.Slots...) },
		`class "*"`:            func(c *nodeagent.Config) { c.Slots = []jobmsg.ClassSlots{{Class: "*", Slots: 1}} },
		"must not be negative": func(c *nodeagent.Config) { c.Grace = -1 },
	} {
		bad := good
		spoil(&bad)
		_, err := nodeagent.Start(context.Background(), bad)
		if messages.KindOf(err) != messages.Invalid || !strings.Contains(err.Error(), what) {
			t.Errorf("%s: got %v", what, err)
		}
	}
}
