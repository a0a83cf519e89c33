package embedded

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/candor-grid/candor/messages"
	agentmsg "github.com/candor-grid/candor/messages/agent"
	"github.com/candor-grid/candor/messages/await"
	jobmsg "github.com/candor-grid/candor/messages/job"
	"github.com/candor-grid/candor/messages/market"
)

// ending is one way in which a job or an attempt can end, with the texts about it that users read. In the texts, NODE
// stands for a node's name.
type ending struct {
	name   string
	submit string // further arguments for candor submit
	do     string // argument of the job's script
	// The function `then` makes the started task end. It is nil if the task ends by itself.
	then   func(s *endsSite, job string)
	reason string // reason of the job's end, in JSON
	task   string // reason of the first attempt's end, in JSON
	said   string // sentence about the job's end
	tells  string // sentence of the task; "": as of the job
}

var endings = []ending{
	{name: "exit code", submit: "-p main --attempts 1", do: "exit 7", reason: "TaskFailed", task: "ExitCode", said: "ended with exit code 7 on NODE"},
	{name: "signal", submit: "-p main --attempts 1", do: "kill -SEGV $$", reason: "TaskFailed", task: "Signal", said: "ended by SIGSEGV on NODE"},
	{name: "time limit", submit: "-p main -t 1s", do: "exec sleep 600", reason: "TimeLimit", task: "TimeLimit", said: `ended after [1-9][.0-9]*s by its time limit of 1s on NODE`},
	{name: "memory limit", submit: "-p main --memory 32M", do: "tail -c 300M /dev/zero | tail", reason: "MemoryLimit", task: "MemoryLimit", said: "ended by its memory limit of 32 MiB on NODE"},
	{name: "disk limit", submit: "-p main -D -", do: "dd if=/dev/zero of=big bs=1M count=64; sleep 60", reason: "DiskLimit", task: "DiskLimit", said: "ended by its disk limit of 16 MiB on NODE"},
	{name: "cannot start", submit: "-p main --attempts 1 -D /nonexistent", do: "exit 0", reason: "CannotStart", task: "CannotStart",
		said: "could not be started on NODE: directory /nonexistent does not exist"},
	{name: "cancelled", submit: "-p main", do: "exec sleep 600", then: func(s *endsSite, job string) { s.candor("cancel", job) },
		reason: "CancelledByUser", task: "JobCancelled", said: "cancelled by alice, its owner", tells: "was ended on NODE because its job was cancelled"},
	{name: "requeued", submit: "-p main", do: onceMore, then: func(s *endsSite, job string) { s.candor("requeue", job) },
		reason: "Completed", task: "Requeued", said: "attempt 1 of task main.0 was ended on NODE because its user requeued it"},
	{name: "spent budget", submit: "-p spot --rate 2 -b 2", do: "exec sleep 600", reason: "BudgetSpent", task: "JobEnded",
		said: "its slots have cost 2[.0-9]* credits, and its budget is 2 credits"},
	{name: "preempted, to begin anew", submit: "-p yields --rate 1", do: onceMore, then: func(s *endsSite, _ string) { s.outbid("yields") },
		reason: "Completed", task: "Preempted", said: "attempt 1 of task main.0 was ended on NODE because its market gave the slot to others"},
	{name: "preempted, for good", submit: "-p ends --rate 1", do: "exec sleep 600", then: func(s *endsSite, _ string) { s.outbid("ends") },
		reason: "Preempted", task: "JobEnded", said: "its slots went to others, and its market ends jobs that lose their slots"},
	{name: "restarted agent", submit: "-p far", do: onceMore, then: func(s *endsSite, _ string) { s.killAgent(); s.startAgent() },
		reason: "Completed", task: "AgentLost", said: "attempt 1 of task main.0 was lost when the agent of NODE restarted"},
	{name: "evicted", submit: "-p far", do: onceMore, then: func(s *endsSite, job string) {
		s.candor("--account", "operator", "node", "drain", "remote", "--notice", "1s", "--reason", "repair")
		s.awaitTask(job, "Evicted")
		s.candor("--account", "operator", "node", "resume", "remote")
	}, reason: "Completed", task: "Evicted", said: "attempt 1 of task main.0 was ended because NODE drains and the notice has passed"},
	{name: "lost node", submit: "-p far", do: onceMore, then: func(s *endsSite, job string) {
		s.killAgent()
		s.awaitTask(job, "NodeLost")
		s.startAgent()
	}, reason: "Completed", task: "NodeLost", said: "attempt 1 of task main.0 was lost with NODE, which stopped answering"},
}

// The first attempt of this script does not end, and the second attempt succeeds.
const onceMore = "[ $CANDOR_ATTEMPT -gt 1 ] || exec sleep 600"

// TestEveryEndIsExplained makes every end happen on a site with real processes. The reason must appear wherever users
// look: --wait, job, why and tasks, as text and JSON, and the statement.
func TestEveryEndIsExplained(t *testing.T) {
	t.Parallel()
	s := newEndsSite(t)
	var group sync.WaitGroup
	var far sync.Mutex // only one ending at a time may kill the agent
	jobs := make([]string, len(endings))
	waits := make([]string, len(endings))
	for i, e := range endings {
		if !s.limits && strings.HasSuffix(e.name, "y limit") {
			continue
		}
		group.Go(func() {
			if strings.Contains(e.submit, "far") {
				far.Lock()
				defer far.Unlock()
			}
			jobs[i], waits[i] = s.run(&e)
		})
	}
	group.Wait()
	statement := map[bool]string{false: s.candor("statement"), true: s.candor("statement", "--json")}
	for i, e := range endings {
		if jobs[i] == "" {
			continue
		}
		t.Run(e.name, func(t *testing.T) {
			tells := e.tells
			if tells == "" {
				tells = strings.TrimPrefix(e.said, "attempt 1 of task main.0 ")
			}
			job := jobs[i]
			for where, look := range map[string]struct{ text, wants string }{
				"submit --wait":  {waits[i], e.said},
				"job":            {s.candor("job", job), e.said},
				"why":            {s.candor("why", job), e.said},
				"tasks":          {s.candor("tasks", "--attempts", job), tells},
				"job --json":     {s.candor("job", "--json", job), `"reason":"` + e.reason + `".*` + e.said},
				"why --json":     {s.candor("why", "--json", job), e.said},
				"tasks --json":   {s.candor("tasks", "--attempts", "--json", job), `"reason":"` + e.task + `","message":"[^"]*` + tells},
				"statement":      {statementOf(statement[false], `(?m)^.* (void|post) +`+job+` .*$`), e.said},
				"statement JSON": {statementOf(statement[true], `"kind":"(void|post)"[^{}]*"job":`+job+`,[^{}]*`), e.said},
			} {
				wants := strings.ReplaceAll(look.wants, "NODE", `(node1|remote|its node)`)
				if !regexp.MustCompile(wants).MatchString(look.text) {
					t.Errorf("%s: no %q in\n%s", where, wants, look.text)
				}
			}
		})
	}
}

func statementOf(text, pattern string) string { return regexp.MustCompile(pattern).FindString(text) }

// endsSite is a site, with a further process: the agent of the node "remote".
type endsSite struct {
	*testing.T
	binary, dir, state string
	alice              user
	limits             bool // nodes can limit memory and disk space
	agent              *await.Process
}

func newEndsSite(t *testing.T) *endsSite {
	path, err := binary()
	if err != nil {
		t.Fatal(err)
	}
	s := &endsSite{T: t, binary: path, dir: t.TempDir()}
	s.state = filepath.Join(s.dir, "state")
	reserve := messages.Price(messages.Credit / 2)
	c := Default()
	c.State, c.Listen, c.Replicas, c.Lease = s.state, "127.0.0.1:0", 1, messages.Duration(10*time.Second)
	c.Tasks.DiskMiB = 16
	c.Nodes = []Node{{Name: "node1", Slots: Slots{{Class: "map", Slots: 16}, {Class: "red", Slots: 1}, {Class: "yield", Slots: 1}, {Class: "end", Slots: 1}}}}
	c.Markets = []market.Market{
		{Name: "main", Mechanism: market.Proportional, Classes: []messages.Name{"map"}},
		{Name: "spot", Mechanism: market.HighestBid, Classes: []messages.Name{"red"}, Reserve: &reserve},
		{Name: "yields", Mechanism: market.HighestBid, Classes: []messages.Name{"yield"}, Reserve: &reserve, Preemption: "requeue"},
		{Name: "ends", Mechanism: market.HighestBid, Classes: []messages.Name{"end"}, Reserve: &reserve, Preemption: "cancel"},
	}
	site, err := Start(t.Context(), c, Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := site.Close(); err != nil {
			t.Error(err)
		}
	})
	s.alice = connect(t, site, "alice")
	var nodes market.NodesReply
	if err := json.Unmarshal([]byte(s.candor("nodes", "--json")), &nodes); err != nil {
		t.Fatal(err)
	}
	for _, ability := range nodes.Nodes[0].Abilities {
		s.limits = s.limits || ability == agentmsg.AbilityMemory
	}
	s.join(c)
	return s
}

// join starts the agent of the node "remote" with a token, and adds a market for the node.
func (s *endsSite) join(c Config) {
	markets := append(c.Markets, market.Market{Name: "far", Mechanism: market.FIFO, Classes: []messages.Name{"far"}})
	s.write("markets.yaml", map[string]any{"markets": markets})
	s.write("agent.yaml", map[string]any{"site": c.Site, "markets": markets[len(markets)-1:], "lease": c.Lease,
		"nodes": []Node{{Name: "remote", Slots: Slots{{Class: "far", Slots: 1}}}}})
	s.candor("--account", "operator", "node", "token", "remote", "-o", s.path("token"))
	s.startAgent("--join-file", s.path("token"))
	s.Cleanup(s.killAgent)
	s.candor("--account", "operator", "market", "apply", s.path("markets.yaml"))
	if shown := s.candor("config", "show", "--running"); !strings.Contains(shown, "name: far") {
		s.Errorf("the market that was applied is not shown:\n%s", shown)
	}
}

func (s *endsSite) path(name string) string { return filepath.Join(s.dir, name) }

func (s *endsSite) write(name string, value any) {
	s.Helper()
	text, err := json.Marshal(value)
	if err == nil {
		err = os.WriteFile(s.path(name), text, 0o600)
	}
	if err != nil {
		s.Fatal(err)
	}
}

func (s *endsSite) command(args ...string) *exec.Cmd {
	c := exec.CommandContext(s.Context(), s.binary, args...)
	c.Env = append(os.Environ(), "CANDOR_STATE="+s.state, "GOMAXPROCS=1")
	return c
}

func (s *endsSite) candor(args ...string) string {
	s.Helper()
	out, err := s.command(args...).CombinedOutput()
	if err != nil {
		s.Errorf("candor %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

// run submits a job and makes its end happen. It returns the job's number and the output of --wait.
func (s *endsSite) run(e *ending) (job, wait string) {
	script := s.path(strings.ReplaceAll(e.name, " ", "-") + ".sh")
	if err := os.WriteFile(script, []byte("#!/bin/sh\n"+e.do+"\n"), 0o644); err != nil {
		s.Error(err)
	}
	submit := "submit --wait -D / -b 20 " + e.submit
	p := await.Start(s, s.command(append(strings.Fields(submit), script)...), "Submitted job ")
	select {
	case <-p.Found:
	case <-p.Ended:
		s.Errorf("%s: %s", e.name, p.Output)
		return "", ""
	}
	job = regexp.MustCompile(`Submitted job (\d+)`).FindStringSubmatch(p.Output.String())[1]
	if e.then != nil {
		await.Until(s, e.name+": the task runs", func() bool {
			return slices.ContainsFunc(s.attempts(job), func(a jobmsg.TaskStatus) bool { return a.State == "Running" })
		})
		e.then(s, job)
	}
	<-p.Ended
	return job, p.Output.String()
}

// outbid submits a short job with a higher bid, which takes the only slot of the given market.
func (s *endsSite) outbid(market string) {
	script := s.path("short-" + market + ".sh")
	if err := os.WriteFile(script, []byte("#!/bin/sh\nsleep 1\n"), 0o644); err != nil {
		s.Error(err)
	}
	s.candor("--account", "bob", "submit", "-p", market, "-D", "/", "-b", "100", "--rate", "5", script)
}

// awaitTask waits until an attempt of a job has ended for a reason.
func (s *endsSite) awaitTask(job, reason string) {
	await.Until(s, "an attempt of job "+job+" ended as "+reason, func() bool {
		return slices.ContainsFunc(s.attempts(job), func(a jobmsg.TaskStatus) bool { return a.Reason == reason })
	})
}

// attempts asks the auctioneer directly instead of running a command. A command would start a process for each
// question, which is slow.
func (s *endsSite) attempts(job string) []jobmsg.TaskStatus {
	s.Helper()
	id, err := strconv.ParseUint(job, 10, 64)
	if err != nil {
		s.Fatal(err)
	}
	return request[jobmsg.TasksReply](s.alice, messages.Auctioneer, messages.VerbTasks, jobmsg.TasksRequest{Job: messages.JobID(id), Attempts: true}).Tasks
}

func (s *endsSite) startAgent(how ...string) {
	s.Helper()
	if len(how) == 0 {
		var info struct{ Server string }
		text, err := os.ReadFile(filepath.Join(s.state, "site.json"))
		if err == nil {
			err = json.Unmarshal(text, &info)
		}
		if err != nil {
			s.Error(err)
		}
		how = []string{"--server", info.Server, "--creds", s.path("agent/creds/nodes/remote.creds")}
	}
	s.agent = await.Start(s, s.command(append([]string{"nodeagent", "--config", s.path("agent.yaml"), "--node", "remote", "--state", s.path("agent")}, how...)...), "")
	s.agent.Output.Match(s, "registered")
}

func (s *endsSite) killAgent() {
	var executors []int
	eachProcess(func(pid int, command []string, _ string) {
		stat, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		_, after, _ := strings.Cut(string(stat), ") ") // the fields after the name: the state and the parent
		if fields := strings.Fields(after); len(fields) > 1 && fields[1] == strconv.Itoa(s.agent.Process.Pid) && command[0] == s.binary {
			executors = append(executors, pid)
		}
	})
	_ = s.agent.Process.Kill()
	<-s.agent.Ended
	for _, pid := range executors {
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
}
