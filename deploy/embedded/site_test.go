package embedded

import (
	"context"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest"

	"github.com/candor-grid/candor/messages"
	agentmsg "github.com/candor-grid/candor/messages/agent"
	"github.com/candor-grid/candor/messages/await"
	"github.com/candor-grid/candor/messages/bus"
	jobmsg "github.com/candor-grid/candor/messages/job"
	"github.com/candor-grid/candor/messages/market"
	"github.com/candor-grid/candor/messages/money"
	"github.com/candor-grid/candor/nodeagent/runner"
)

const patience = await.Patience

func within(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	return ctx
}

func small(state string) Config {
	c := Default()
	c.State = state
	c.Listen = "127.0.0.1:0"
	c.Tasks.User = runner.UserSelf // tasks write to files of the test's user
	c.Nodes = NodesAlike(2, Slots{{Class: "map", Slots: 2}, {Class: "reduce", Slots: 1}})
	c.Markets[0].Settle = market.SettleOnCompletion // with this rule, a test can predict the charges
	return c
}

func logged(t *testing.T, level zapcore.Level) *zap.Logger {
	text := &untilTheEnd{TB: t}
	t.Cleanup(text.end)
	return zaptest.NewLogger(text, zaptest.Level(level))
}

// untilTheEnd drops lines that are logged after the end of a test, because logging them would panic.
type untilTheEnd struct {
	testing.TB
	mu    sync.Mutex
	ended bool
}

func (u *untilTheEnd) Logf(format string, args ...any) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if !u.ended {
		u.TB.Logf(format, args...)
	}
}

func (u *untilTheEnd) end() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.ended = true
}

func start(t *testing.T, c Config) *Site {
	t.Helper()
	s, err := Start(within(t), c, Options{Log: logged(t, zap.WarnLevel)})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// user is a connection to a site as one of its accounts.
type user struct {
	*testing.T
	bus  bus.Bus
	site messages.Name
	name messages.Name
}

func connect(t *testing.T, s *Site, name messages.Name) user {
	t.Helper()
	b, err := s.Connect(name)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = b.Close() })
	return user{t, b, s.config.Site, name}
}

// request sends a request to an actor. A refusal fails the test.
func request[Reply any](u user, actor, verb string, what any) Reply {
	u.Helper()
	reply, err := bus.Call[Reply](within(u.T), u.bus, messages.Subject(u.site, actor, verb, u.name), what)
	if err != nil {
		u.Fatalf("%s %s as %s: %v", actor, verb, u.name, err)
	}
	return reply
}

func (u user) submit(key string, spec jobmsg.JobSpec) messages.JobID {
	u.Helper()
	return request[jobmsg.SubmitReply](u, messages.Auctioneer, messages.VerbSubmit, jobmsg.SubmitRequest{Key: key, Spec: spec}).Job
}

func (u user) account() money.AccountReply {
	u.Helper()
	return request[money.AccountReply](u, messages.Bank, messages.VerbAccount, money.AccountRequest{})
}

// final waits until a job has ended.
func (u user) final(id messages.JobID) jobmsg.JobDetail {
	u.Helper()
	every := time.NewTicker(20 * time.Millisecond)
	defer every.Stop()
	ctx := within(u.T)
	for {
		job := request[jobmsg.JobDetail](u, messages.Auctioneer, messages.VerbJob, jobmsg.JobRequest{Job: id})
		if job.State.Final() {
			return job
		}
		select {
		case <-every.C:
		case <-ctx.Done():
			u.Fatalf("job %d is %v still, with %d of %d tasks done", id, job.State, job.Done, job.Tasks)
		}
	}
}

// twoStages returns a job whose reduce stage needs the files of its map tasks.
func twoStages(dir string, budget messages.Credits) jobmsg.JobSpec {
	return jobmsg.JobSpec{
		Name: "count", Budget: budget, Dir: dir,
		Stages: []jobmsg.Stage{
			{Name: "map", Class: "map", Tasks: 4, Script: "seq 1 $((CANDOR_TASK + 1)) > part$CANDOR_TASK\n"},
			{Name: "reduce", Class: "reduce", After: []messages.Name{"map"}, Script: "test $(cat part* | wc -l) = 10\n"},
		},
	}
}

// After a restart, the site must still have its jobs and charges, and must not grant credits again.
func TestSiteRunsAndRestarts(t *testing.T) {
	t.Parallel()
	state := t.TempDir()
	s := start(t, small(state))
	alice := connect(t, s, "alice")
	spec := twoStages(t.TempDir(), 10*messages.Credit)
	first := alice.submit("first", spec)
	if job := alice.final(first); job.State != jobmsg.Completed || job.Done != 5 {
		t.Fatalf("job %d ended %v with %d of 5 tasks done, exit code %d", first, job.State, job.Done, job.ExitCode)
	}
	before := alice.account()
	if before.Granted != 1000*messages.Credit || before.Spent == 0 {
		t.Fatalf("account before the restart: %+v, want 1000 granted and something spent", before)
	}
	for range 2 { // a second Close does nothing
		closeSite(t, s)
	}

	s = start(t, small(state))
	defer closeSite(t, s)
	alice = connect(t, s, "alice")
	if after := alice.account(); after.Balance != before.Balance || after.Granted != before.Granted {
		t.Errorf("account after the restart: %+v, before it: %+v", after, before)
	}
	if again := alice.submit("first", spec); again != first {
		t.Errorf("the first submission, repeated, is job %d, not %d", again, first)
	}
}

func closeSite(t *testing.T, s *Site) {
	t.Helper()
	if err := s.Close(); err != nil {
		t.Errorf("Close: %v", err)
	}
}

// TestSiteOutlivesItsLeaders stops the leaders of both groups. The other replicas must continue, and a replica that is
// started again must take part.
func TestSiteOutlivesItsLeaders(t *testing.T) {
	t.Parallel()
	s := start(t, small(t.TempDir()))
	defer closeSite(t, s)
	alice := connect(t, s, "alice")
	for _, actor := range []string{messages.Auctioneer, messages.Bank} {
		leader := s.Leader(actor)
		if err := s.StopReplica(actor, leader); err != nil {
			t.Fatalf("stopping %s %s: %v", actor, leader, err)
		}
		id := alice.submit("without "+actor, twoStages(t.TempDir(), messages.Credit))
		if job := alice.final(id); job.State != jobmsg.Completed {
			t.Fatalf("without the leader of the %s, the job ended %v", actor, job.State)
		}
		if err := s.StartReplica(actor, leader); err != nil {
			t.Fatalf("starting %s %s again: %v", actor, leader, err)
		}
		caughtUp(t, s, actor)
	}
	books := request[money.BooksReply](connect(t, s, "operator"), messages.Bank, messages.VerbBooks, messages.Empty{})
	if !books.Balanced {
		t.Errorf("the books do not balance: %s", books.Message)
	}
}

// caughtUp waits until all replicas of an actor have applied the same entries.
func caughtUp(t *testing.T, s *Site, actor string) {
	t.Helper()
	every := time.NewTicker(20 * time.Millisecond)
	defer every.Stop()
	ctx := within(t)
	for {
		all := s.Status(actor)
		same := len(all) == s.config.Replicas
		for _, status := range all {
			same = same && status.Leader != "" && status.Applied == all[0].Applied
		}
		if same {
			return
		}
		select {
		case <-every.C:
		case <-ctx.Done():
			t.Fatalf("the replicas of the %s stay apart: %+v", actor, all)
		}
	}
}

// While a node is stopped, another node must do the work. When the node comes back, it must be used again.
func TestNodeStopsAndStarts(t *testing.T) {
	t.Parallel()
	s := start(t, small(t.TempDir()))
	defer closeSite(t, s)
	if err := s.StopNode("node1"); err != nil {
		t.Fatal(err)
	}
	alice := connect(t, s, "alice")
	if job := alice.final(alice.submit("on node2", twoStages(t.TempDir(), messages.Credit))); job.State != jobmsg.Completed {
		t.Fatalf("the job ended %v", job.State)
	}
	if err := s.StartNode("node1"); err != nil {
		t.Fatal(err)
	}
	if err := s.nodes.ready(within(t)); err != nil {
		t.Fatal(err)
	}
	if err := s.StartNode("node1"); messages.KindOf(err) != messages.Conflict {
		t.Errorf("starting it twice: %v, want Conflict", err)
	}
	if err := s.StopNode("node9"); messages.KindOf(err) != messages.NotFound {
		t.Errorf("stopping what is not there: %v, want NotFound", err)
	}
}

// Nobody may act as another account. Only operators may send the requests that are for operators.
func TestSiteRefuses(t *testing.T) {
	t.Parallel()
	s := start(t, small(t.TempDir()))
	defer closeSite(t, s)
	alice := connect(t, s, "alice")
	for what, c := range map[string]struct {
		subject string
		request any
	}{
		"a submission as bob": {messages.Subject("west", messages.Auctioneer, messages.VerbSubmit, "bob"),
			jobmsg.SubmitRequest{Key: "k", Spec: twoStages("", messages.Credit)}},
		"a look at bob's account": {messages.Subject("west", messages.Bank, messages.VerbAccount, "alice"),
			money.AccountRequest{Account: "bob"}},
		"a grant": {messages.Subject("west", messages.Bank, messages.VerbGrant, "alice"),
			money.GrantRequest{Key: "k", Account: "alice", Amount: messages.Credit}},
		"a transfer as the auctioneer": {messages.Subject("west", messages.Bank, messages.VerbTransfer, "$auctioneer"),
			money.TransferRequest{}},
		"a registration as a node": {messages.Subject("west", messages.Auctioneer, messages.VerbRegister, "alice"),
			agentmsg.RegisterRequest{Session: 1}},
	} {
		_, err := bus.Call[messages.Empty](within(t), alice.bus, c.subject, c.request)
		if messages.KindOf(err) != messages.PermissionDenied {
			t.Errorf("%s: %v, want PermissionDenied", what, err)
		}
	}
	if got := alice.account(); got.Balance != 1000*messages.Credit {
		t.Errorf("balance %v after what was refused, want 1000", got.Balance)
	}
}

// A state directory must belong to one site, and a failed start must leave nothing behind.
func TestStartRefuses(t *testing.T) {
	t.Parallel()
	state := t.TempDir()
	s := start(t, small(state))
	if _, err := Start(within(t), small(state), Options{}); messages.KindOf(err) != messages.Conflict {
		t.Errorf("a second site on the same state: %v, want Conflict", err)
	}
	taken := small(filepath.Join(state, "other"))
	taken.Listen = strings.TrimPrefix(s.URL(), "nats://")
	for range 2 { // the second start shows that the first one has unlocked the directory
		if _, err := Start(within(t), taken, Options{}); messages.KindOf(err) != messages.Conflict || !strings.Contains(err.Error(), "address already in use") {
			t.Errorf("an address in use: %v, want Conflict", err)
		}
	}
	if _, err := s.Connect("nobody"); messages.KindOf(err) != messages.NotFound {
		t.Errorf("connecting an unknown account: %v, want NotFound", err)
	}
	closeSite(t, s)
	fresh, err := Start(within(t), small(state), Options{Fresh: true})
	if err != nil {
		t.Fatal(err)
	}
	defer closeSite(t, fresh)
	if books := request[money.BooksReply](connect(t, fresh, "operator"), messages.Bank, messages.VerbBooks, messages.Empty{}); books.Transfers != 3 {
		t.Errorf("%d transfers in fresh books, want the three opening grants", books.Transfers)
	}
}

// StopNode stops a node's agent.
func (s *Site) StopNode(node messages.Name) error { return s.nodes.stop1(node) }

// StartNode starts the agent of a configured node again.
func (s *Site) StartNode(node messages.Name) error { return s.nodes.start1(node) }
