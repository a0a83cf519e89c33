package auctioneer

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/agent"
	"github.com/candor-grid/candor/messages/await"
	"github.com/candor-grid/candor/messages/bus"
	"github.com/candor-grid/candor/messages/clearing"
	jobmsg "github.com/candor-grid/candor/messages/job"
	"github.com/candor-grid/candor/messages/mailbox"
	"github.com/candor-grid/candor/messages/market"
	"github.com/candor-grid/candor/messages/money"
	"github.com/candor-grid/candor/messages/wire"
)

// fakeBank grants every hold up to a limit, and records the requests.
type fakeBank struct {
	mu       sync.Mutex
	holds    map[string]messages.Credits
	resolved map[string]messages.Credits // by hold: the charged amount, or 0 if the bank voided the hold
	limit    messages.Credits
	poison   string // a request with this transfer is refused as a whole
	// Each request for a hold sends a channel to `arrived`, and waits until the test closes this channel. If `arrived`
	// is nil, no request waits.
	arrived chan chan struct{}
}

func (f *fakeBank) meet(arrived chan chan struct{}) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.arrived = arrived
}

func (f *fakeBank) wait(r *money.TransferRequest) {
	f.mu.Lock()
	arrived := f.arrived
	f.mu.Unlock()
	if arrived != nil && r.Transfers[0].Kind == money.Hold {
		goOn := make(chan struct{})
		arrived <- goOn
		<-goOn
	}
}

func (f *fakeBank) transfer(_ context.Context, caller messages.Name, r money.TransferRequest) (reply money.TransferReply, err error) {
	f.wait(&r)
	f.mu.Lock()
	defer f.mu.Unlock()
	if caller != "$auctioneer" {
		return reply, messages.Errorf(messages.PermissionDenied, "not a service")
	}
	if slices.ContainsFunc(r.Transfers, func(t money.Transfer) bool { return t.ID == f.poison }) {
		return reply, messages.Errorf(messages.TooLarge, "more than a command may have")
	}
	for _, t := range r.Transfers {
		result := money.TransferResult{Amount: t.Amount}
		switch {
		case t.Kind == money.Hold && t.Amount > f.limit:
			result = money.TransferResult{Error: messages.Errorf(messages.Insufficient, "too little")}
		case t.Kind == money.Hold:
			f.holds[t.ID] = t.Amount
		case t.Kind == money.Extend:
			if _, over := f.resolved[t.Pending]; over {
				result = money.TransferResult{Error: messages.Errorf(messages.Expired, "the hold is resolved")}
			}
		case t.Kind == money.Post || t.Kind == money.Void:
			f.resolved[t.Pending] = t.Amount
		}
		reply.Results = append(reply.Results, result)
	}
	return reply, nil
}

// charged waits until the hold of a job is resolved, and returns the charged amount.
func (f *fakeBank) charged(hold string) (messages.Credits, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	c, ok := f.resolved[hold]
	return c, ok
}

// fixture is one auctioneer on an in-memory bus, with a fake bank.
type fixture struct {
	t    *testing.T
	net  *bus.Network
	bank *fakeBank
	log  *mailbox.Memory
	*Auctioneer
}

func start(t *testing.T) *fixture {
	t.Helper()
	return startOn(t, func(b bus.Bus) bus.Bus { return b })
}

// startOn starts the auctioneer on the bus wrap(b). The bus b is in memory.
func startOn(t *testing.T, wrap func(bus.Bus) bus.Bus) *fixture {
	t.Helper()
	return startWith(t, func(c *Config) { c.Bus = wrap(c.Bus) })
}

// behind returns a change of the configuration: the auctioneer commits through the mailbox stand(ordinary) instead of
// its ordinary mailbox.
func behind(stand func(ordinary mailbox.Mailbox) mailbox.Mailbox) func(*Config) {
	return func(c *Config) {
		open := c.Open
		c.Open = func(m mailbox.Machine) (mailbox.Mailbox, error) {
			ordinary, err := open(m)
			return stand(ordinary), err
		}
	}
}

// startWith starts the auctioneer after the function `adjust` has changed its configuration.
func startWith(t *testing.T, adjust func(*Config)) *fixture {
	t.Helper()
	f := &fixture{t: t, net: bus.NewMemory(), bank: &fakeBank{
		holds: map[string]messages.Credits{}, resolved: map[string]messages.Credits{}, limit: 1000 * messages.Credit}}
	sub, err := f.net.Connect("$bank").Serve(bus.Service{Name: "bank", Version: "1.0.0", Endpoints: []bus.Endpoint{
		{Name: "transfer", Subject: messages.Subject("west", messages.Bank, messages.VerbTransfer, "*"), Handle: bus.Handle("transfer", f.bank.transfer)}}})
	if err != nil {
		t.Fatal(err)
	}
	c := Config{
		Site: "west", Replica: "a1", Bus: f.net.Connect("$auctioneer"), Operators: []messages.Name{"operator"},
		Open: func(m mailbox.Machine) (mailbox.Mailbox, error) {
			f.log = mailbox.NewMemory(m)
			return f.log, nil
		},
		Markets: []market.Market{{Name: "main", Mechanism: "proportional", Classes: []messages.Name{"map", "reduce"}, Settle: market.SettleOnCompletion}},
	}
	adjust(&c)
	a, err := Start(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	f.Auctioneer = a
	t.Cleanup(func() { _ = a.Close(); _ = sub.Stop() })
	return f
}

func call[Reply any](f *fixture, caller messages.Name, verb string, request any) (Reply, error) {
	ctx, cancel := context.WithTimeout(f.t.Context(), await.Patience)
	defer cancel()
	return bus.Call[Reply](ctx, f.net.Connect(caller), messages.Subject("west", messages.Auctioneer, verb, caller), request)
}

func must[Reply any](f *fixture, caller messages.Name, verb string, request any) Reply {
	f.t.Helper()
	r, err := call[Reply](f, caller, verb, request)
	if err != nil {
		f.t.Fatal(err)
	}
	return r
}

func oneStage(tasks int) jobmsg.JobSpec {
	return jobmsg.JobSpec{Name: "count", Budget: 10 * messages.Credit,
		Stages: []jobmsg.Stage{{Name: "map", Tasks: tasks, Command: []string{"true"}}}}
}

func (f *fixture) submit(caller messages.Name, key string, spec jobmsg.JobSpec) jobmsg.SubmitReply {
	f.t.Helper()
	return must[jobmsg.SubmitReply](f, caller, messages.VerbSubmit, jobmsg.SubmitRequest{Key: key, Spec: spec})
}

// register registers a node that has slots of the class named "map".
func (f *fixture) register(node string, slots int) {
	f.t.Helper()
	must[agent.RegisterReply](f, node, messages.VerbRegister,
		agent.RegisterRequest{Session: 7, Slots: []jobmsg.ClassSlots{{Class: "map", Slots: slots}}})
}

func (f *fixture) claim(node string, seq uint64, job messages.JobID, slots int) agent.ExchangeReply {
	f.t.Helper()
	return must[agent.ExchangeReply](f, node, messages.VerbExchange, agent.Exchange{Session: 7, Seq: seq,
		Claims: []agent.Claim{{Market: "main", Class: "map", Job: job, Slots: slots}}})
}

func (f *fixture) finish(node string, seq uint64, exit int, grants ...agent.Grant) {
	f.t.Helper()
	x := agent.Exchange{Session: 7, Seq: seq}
	for _, g := range grants {
		x.Finished = append(x.Finished, agent.Finished{Attempt: g.Attempt, ExitCode: exit})
	}
	must[agent.ExchangeReply](f, node, messages.VerbExchange, x)
}

func wantKind(t *testing.T, err error, kind messages.Kind) {
	t.Helper()
	if !errors.Is(err, &messages.Error{Kind: kind}) {
		t.Fatalf("error is %v, want kind %v", err, kind)
	}
}

func TestJobIsHeldRunAndCharged(t *testing.T) {
	f := start(t)
	reply := f.submit("alice", "k1", oneStage(2))
	if reply.Job == 0 || reply.Held != 10*messages.Credit || reply.Market != "main" || reply.Payer != "alice" {
		t.Fatalf("reply %+v", reply)
	}
	f.register("n1", 2)
	granted := f.claim("n1", 1, reply.Job, 2)
	if len(granted.Grants) != 2 || len(granted.Programs) != 1 || granted.Programs[0].Account != "alice" {
		t.Fatalf("granted %+v", granted)
	}
	f.finish("n1", 2, 0, granted.Grants...)
	await.Until(t, "the job completes", func() bool {
		return must[jobmsg.JobDetail](f, "alice", messages.VerbJob, jobmsg.JobRequest{Job: reply.Job}).State == jobmsg.Completed
	})
	if c, ok := f.bank.charged("job/west/alice/k1"); !ok || c != 10*messages.Credit {
		t.Fatalf("charged %v, %v", c, ok)
	}
	why := must[market.WhyReply](f, "alice", messages.VerbWhy, jobmsg.JobRequest{Job: reply.Job})
	if why.Reason != "Completed" {
		t.Fatalf("why: %+v", why)
	}
}

func TestSameKeySameAnswer(t *testing.T) {
	f := start(t)
	first := f.submit("alice", "k1", oneStage(2))
	if again := f.submit("alice", "k1", oneStage(2)); !reflect.DeepEqual(again, first) {
		t.Fatalf("first %+v, again %+v", first, again)
	}
	_, err := call[jobmsg.SubmitReply](f, "alice", messages.VerbSubmit, jobmsg.SubmitRequest{Key: "k1", Spec: oneStage(3)})
	wantKind(t, err, messages.Conflict)
}

// A submission is sent twice. The first request waits at the bank. Meanwhile the job of the second request ends, and
// its hold is resolved.
func TestLateTryOfAnEndedJob(t *testing.T) {
	f := start(t)
	f.bank.meet(make(chan chan struct{}))
	answers := make(chan jobmsg.SubmitReply, 2)
	for range 2 {
		go func() {
			r, err := call[jobmsg.SubmitReply](f, "alice", messages.VerbSubmit, jobmsg.SubmitRequest{Key: "k1", Spec: oneStage(2)})
			if err != nil {
				t.Error(err)
			}
			answers <- r
		}()
	}
	first, second := <-f.bank.arrived, <-f.bank.arrived
	close(first)
	reply := <-answers
	must[jobmsg.CancelReply](f, "alice", messages.VerbCancel, jobmsg.CancelRequest{Job: reply.Job})
	await.Until(t, "the hold is resolved", func() bool { _, ok := f.bank.charged("job/west/alice/k1"); return ok })
	close(second)
	if late := <-answers; !reflect.DeepEqual(late, reply) {
		t.Errorf("the late try got %+v, want %+v", late, reply)
	}
}

func TestBadSubmissionsChangeNothing(t *testing.T) {
	f := start(t)
	for name, c := range map[string]struct {
		change func(*jobmsg.JobSpec)
		kind   messages.Kind
	}{
		"unknown class":       {func(s *jobmsg.JobSpec) { s.Stages[0].Class = "gpu" }, messages.NotFound},
		"unknown market":      {func(s *jobmsg.JobSpec) { s.Market = "night" }, messages.NotFound},
		"a debt for a budget": {func(s *jobmsg.JobSpec) { s.Budget = -1 }, messages.Invalid},
		"beyond the balance":  {func(s *jobmsg.JobSpec) { s.Budget = 1001 * messages.Credit }, messages.Insufficient},
		"no weight for class": {func(s *jobmsg.JobSpec) {
			s.Utility = &jobmsg.Utility{Weights: jobmsg.Weights{{Class: "reduce", Weight: 1}}}
		}, messages.Invalid},
		"weight for no class": {func(s *jobmsg.JobSpec) {
			s.Utility = &jobmsg.Utility{Weights: jobmsg.Weights{{Class: "gpu", Weight: 1}, {Class: "map", Weight: 1}}}
		}, messages.NotFound},
		"ten million tasks": {func(s *jobmsg.JobSpec) { s.Stages[0].Tasks = 10_000_000 }, messages.TooLarge},
		"cycle":             {func(s *jobmsg.JobSpec) { s.Stages[0].After = []string{"map"} }, messages.Invalid},
	} {
		t.Run(name, func(t *testing.T) {
			spec := oneStage(1)
			c.change(&spec)
			_, err := call[jobmsg.SubmitReply](f, "alice", messages.VerbSubmit, jobmsg.SubmitRequest{Key: name, Spec: spec})
			wantKind(t, err, c.kind)
		})
	}
	if jobs := must[jobmsg.JobsReply](f, "alice", messages.VerbJobs, jobmsg.JobsRequest{}); len(jobs.Jobs) != 0 {
		t.Fatalf("jobs: %+v", jobs.Jobs)
	}
	if len(f.bank.holds) != 0 {
		t.Fatalf("holds: %v", f.bank.holds)
	}
}

// A user's jobs are found by label, and several are cancelled in one request. Each must have its own answer.
func TestJobsAreFoundAndCancelledByWhatTheyAre(t *testing.T) {
	f := start(t)
	var ids []messages.JobID
	for i, run := range []string{"7", "8", "7"} {
		spec := oneStage(1)
		spec.Labels = jobmsg.Labels{{Name: "run", Value: run}}
		ids = append(ids, f.submit("alice", fmt.Sprint("k", i), spec).Job)
	}
	bobs := f.submit("bob", "k", oneStage(1)).Job
	found := must[jobmsg.JobsReply](f, "alice", messages.VerbJobs, jobmsg.JobsRequest{Labels: []string{"run=7"}, States: []string{"Waiting"}, Limit: 1})
	if len(found.Jobs) != 1 || found.Jobs[0].Job != ids[2] || found.Jobs[0].Labels.String() != "run=7" || !found.More {
		t.Fatalf("%+v", found)
	}
	found = must[jobmsg.JobsReply](f, "alice", messages.VerbJobs, jobmsg.JobsRequest{Labels: []string{"run=7"}, Limit: 1, After: found.Next})
	if len(found.Jobs) != 1 || found.Jobs[0].Job != ids[0] || found.More {
		t.Fatalf("%+v", found)
	}
	reply := must[jobmsg.CancelReply](f, "alice", messages.VerbCancel, jobmsg.CancelRequest{Jobs: []messages.JobID{ids[0], bobs, 999, ids[0], ids[1]}})
	var kinds []messages.Kind
	for _, j := range reply.Jobs {
		kinds = append(kinds, kindOf(j.Error))
	}
	if want := []messages.Kind{0, messages.NotFound, messages.NotFound, messages.Ended, 0}; !slices.Equal(kinds, want) {
		t.Errorf("%v, want %v", kinds, want)
	}
	if left := must[jobmsg.JobsReply](f, "operator", messages.VerbJobs, jobmsg.JobsRequest{All: true, States: []string{"Waiting"}}); len(left.Jobs) != 2 {
		t.Errorf("%+v", left.Jobs)
	}
	_, err := call[jobmsg.CancelReply](f, "alice", messages.VerbCancel, jobmsg.CancelRequest{Jobs: make([]messages.JobID, jobmsg.MaxCancelled+1)})
	wantKind(t, err, messages.TooLarge)
}

func TestOthersJobsAreNotYours(t *testing.T) {
	f := start(t)
	id := f.submit("alice", "k1", oneStage(1)).Job
	for verb, about := range map[string]func(messages.JobID) any{
		messages.VerbJob:    func(id messages.JobID) any { return jobmsg.JobRequest{Job: id} },
		messages.VerbWhy:    func(id messages.JobID) any { return jobmsg.JobRequest{Job: id} },
		messages.VerbCancel: func(id messages.JobID) any { return jobmsg.CancelRequest{Job: id} },
		messages.VerbTasks:  func(id messages.JobID) any { return jobmsg.TasksRequest{Job: id} },
		jobmsg.VerbChange:   func(id messages.JobID) any { return jobmsg.ChangeRequest{Key: "k", Job: id, Name: "mine"} },
		jobmsg.VerbHold:     func(id messages.JobID) any { return jobmsg.JobRequest{Job: id} },
		jobmsg.VerbRelease:  func(id messages.JobID) any { return jobmsg.JobRequest{Job: id} },
		jobmsg.VerbRequeue:  func(id messages.JobID) any { return jobmsg.RequeueRequest{Job: id} },
		clearing.VerbOutput: func(id messages.JobID) any {
			return clearing.OutputRequest{Node: "n1", Logs: agent.LogsRequest{Attempt: messages.Attempt{Task: messages.TaskRef{Job: id}, Number: 1}}}
		},
		messages.VerbSubmit: func(id messages.JobID) any {
			spec := oneStage(1)
			spec.AfterJobs = []messages.JobID{id}
			return jobmsg.SubmitRequest{Key: "after", Spec: spec}
		},
	} {
		answer := func(id messages.JobID) string {
			_, err := call[messages.Empty](f, "bob", verb, about(id))
			wantKind(t, err, messages.NotFound)
			return strings.ReplaceAll(fmt.Sprint(err), fmt.Sprint(id), "N")
		}
		if others, none := answer(id), answer(987654); others != none {
			t.Errorf("%s: of another's job %q, of none %q", verb, others, none)
		}
	}
	_, err := call[jobmsg.JobsReply](f, "bob", messages.VerbJobs, jobmsg.JobsRequest{Account: "alice"})
	wantKind(t, err, messages.PermissionDenied)
	if jobs := must[jobmsg.JobsReply](f, "operator", messages.VerbJobs, jobmsg.JobsRequest{All: true}); len(jobs.Jobs) != 1 {
		t.Fatalf("the operator sees %d jobs", len(jobs.Jobs))
	}
}

// A job with two tasks is cancelled. The task that had a slot must be charged as if it was complete.
func TestCancelledJobStopsAndOwesForWhatRan(t *testing.T) {
	f := start(t)
	id := f.submit("alice", "k1", oneStage(2)).Job
	f.register("n1", 1)
	g := f.claim("n1", 1, id, 1).Grants
	stops := make(chan agent.Directive, 8)
	sub, err := f.net.Connect("n1").Subscribe(messages.DirectiveSubject("west", "n1"), func(_ string, data []byte) {
		var d agent.Directive
		if wire.Unmarshal(data, wire.Msgpack, &d) == nil {
			stops <- d
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	defer sub.Stop()
	must[jobmsg.CancelReply](f, "alice", messages.VerbCancel, jobmsg.CancelRequest{Job: id})
	if d := <-stops; !slices.Contains(d.Stop, g[0].Attempt) {
		t.Fatalf("told to stop %v, runs %v", d.Stop, g)
	}
	await.Until(t, "half of the budget is charged", func() bool {
		c, ok := f.bank.charged("job/west/alice/k1")
		return ok && c == 5*messages.Credit
	})
	_, err = call[jobmsg.CancelReply](f, "alice", messages.VerbCancel, jobmsg.CancelRequest{Job: id})
	wantKind(t, err, messages.Ended)
}

// An agent must get a vector when a job comes. After the job's last task is claimed, the agent must get a vector
// without the job.
func TestVectorsFollowTheJobs(t *testing.T) {
	f := start(t)
	vectors := make(chan agent.Vector, 64)
	sub, err := f.net.Connect("n1").Subscribe(messages.VectorSubject("west", "main"), func(_ string, data []byte) {
		var v agent.Vector
		if wire.Unmarshal(data, wire.Msgpack, &v) == nil {
			vectors <- v
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	defer sub.Stop()
	f.register("n1", 1)
	id := f.submit("alice", "k1", oneStage(1)).Job
	until := func(what string, ok func(agent.ClassVector) bool) {
		t.Helper()
		deadline := time.After(await.Patience)
		for {
			select {
			case v := <-vectors:
				if ok(v.Classes[0]) {
					return
				}
			case <-deadline:
				t.Fatalf("never published: %s", what)
			}
		}
	}
	until("the job with its task and the idle slot", func(c agent.ClassVector) bool {
		return c.Pending == 1 && c.Idle == 1 && len(c.Jobs) == 1 && c.Jobs[0].Job == id && c.Jobs[0].Weight == 1
	})
	f.claim("n1", 1, id, 1)
	until("that the job has nothing pending", func(c agent.ClassVector) bool {
		return c.Pending == 0 && len(c.Jobs) == 1 && c.Jobs[0].Weight == 0 || c.Pending == 0 && len(c.Jobs) == 0
	})
}

func TestClaimOfAnExhaustedJobGetsAnother(t *testing.T) {
	f := start(t)
	first := f.submit("alice", "k1", oneStage(1)).Job
	second := f.submit("bob", "k2", oneStage(5)).Job
	f.register("n1", 4)
	await.Until(t, "the market knows both jobs", func() bool {
		m := must[market.MarketsReply](f, "alice", messages.VerbMarkets, messages.Empty{}).Markets[0]
		return m.Waiting == 2
	})
	got := map[messages.JobID]int{}
	for _, g := range f.claim("n1", 1, first, 4).Grants {
		got[g.Attempt.Task.Job]++
	}
	if got[first] != 1 || got[second] != 3 {
		t.Fatalf("granted %v", got)
	}
}

func TestAgentsAreChecked(t *testing.T) {
	f := start(t)
	for name, r := range map[string]agent.RegisterRequest{
		"no session":  {Slots: []jobmsg.ClassSlots{{Class: "map", Slots: 1}}},
		"no slots":    {Session: 1},
		"negative":    {Session: 1, Slots: []jobmsg.ClassSlots{{Class: "map", Slots: -1}}},
		"class twice": {Session: 1, Slots: []jobmsg.ClassSlots{{Class: "map", Slots: 1}, {Class: "map", Slots: 1}}},
	} {
		_, err := call[agent.RegisterReply](f, "n1", messages.VerbRegister, r)
		if messages.KindOf(err) != messages.Invalid {
			t.Errorf("%s: %v", name, err)
		}
	}
	f.register("n1", 1)
	for name, c := range map[string]struct {
		x    agent.Exchange
		kind messages.Kind
	}{
		"other session": {agent.Exchange{Session: 9, Seq: 1}, messages.Fenced},
	} {
		_, err := call[agent.ExchangeReply](f, "n1", messages.VerbExchange, c.x)
		if messages.KindOf(err) != c.kind {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// When a task has used up its attempts, the job must fail. The job must pay for the work that was done.
func TestFailingTaskEndsTheJob(t *testing.T) {
	f := start(t)
	spec := oneStage(2)
	spec.Stages[0].Attempts = 3
	id := f.submit("alice", "k1", spec).Job
	f.register("n1", 1)
	seq := uint64(0)
	next := func() uint64 { seq++; return seq }
	done := f.claim("n1", next(), id, 1).Grants
	f.finish("n1", next(), 0, done...)
	for range 3 {
		g := f.claim("n1", next(), id, 1).Grants
		if len(g) != 1 {
			t.Fatalf("granted %v", g)
		}
		f.finish("n1", next(), 3, g...)
	}
	var job jobmsg.JobDetail
	await.Until(t, "the job fails", func() bool {
		job = must[jobmsg.JobDetail](f, "alice", messages.VerbJob, jobmsg.JobRequest{Job: id})
		return job.State == jobmsg.Failed
	})
	if job.ExitCode != 3 || job.Reason != "TaskFailed" || job.Charged != 10*messages.Credit {
		t.Fatalf("job %+v", job.JobSummary)
	}
}

// The log runs out of space. Submissions must be refused with the right error, and queries must work. When there is
// space again, the same request must be accepted.
func TestFullDiskRefusesAndLosesNothing(t *testing.T) {
	f := start(t)
	first := f.submit("alice", "k1", oneStage(1)).Job
	f.log.Fill(true)
	request := jobmsg.SubmitRequest{Key: "k2", Spec: oneStage(1)}
	_, err := call[jobmsg.SubmitReply](f, "alice", messages.VerbSubmit, request)
	wantKind(t, err, messages.Exhausted)
	if j := must[jobmsg.JobDetail](f, "alice", messages.VerbJob, jobmsg.JobRequest{Job: first}); j.Job != first {
		t.Fatalf("read job %d", j.Job)
	}
	f.log.Fill(false)
	if second := f.submit("alice", "k2", oneStage(1)).Job; second != first+1 {
		t.Fatalf("job %d after job %d", second, first)
	}
}

// The new leader must have everything that was committed. The vectors that it publishes must have a higher term than
// those of the old leader. If a submission is repeated to the new leader, the answer must name the same job.
func TestNewLeaderGoesOn(t *testing.T) {
	f := start(t)
	f.register("n1", 1)
	f.log.LoseNext(mailbox.LoseAnswer)
	id := f.submit("alice", "k1", oneStage(1)).Job
	if id != 1 {
		t.Fatalf("a lost answer made job %d", id)
	}
	term := func() uint64 {
		return must[market.MarketsReply](f, "alice", messages.VerbMarkets, messages.Empty{}).Markets[0].Term
	}
	before := term()
	f.log.Depose()
	f.log.Elect()
	await.Until(t, "vectors have a higher term", func() bool { return term() > before })
	g := f.claim("n1", 1, id, 1)
	if len(g.Grants) != 1 || len(g.Programs) != 1 {
		t.Fatalf("the new leader granted %+v", g)
	}
	f.finish("n1", 2, 0, g.Grants...)
	await.Until(t, "the job is charged", func() bool { _, ok := f.bank.charged("job/west/alice/k1"); return ok })
}

// cut is a bus on which services cannot be started for some time.
type cut struct {
	bus.Bus
	refusals atomic.Int32
}

func (c *cut) Serve(s bus.Service) (bus.Subscription, error) {
	if c.refusals.Add(-1) >= 0 {
		return nil, messages.Errorf(messages.Unavailable, "the bus is cut")
	}
	return c.Bus.Serve(s)
}

func TestLeaderServesOnceTheBusIsBack(t *testing.T) {
	f := startOn(t, func(b bus.Bus) bus.Bus {
		c := &cut{Bus: b}
		c.refusals.Store(2)
		return c
	})
	f.submit("alice", "k1", oneStage(1))
}

// kindOf returns the kind of an error, or 0 if there is no error.
func kindOf(err *messages.Error) messages.Kind {
	if err == nil {
		return 0
	}
	return err.Kind
}
