package auctioneer

import (
	"context"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/agent"
	"github.com/candor-grid/candor/messages/await"
	"github.com/candor-grid/candor/messages/bus"
	"github.com/candor-grid/candor/messages/job"
	"github.com/candor-grid/candor/messages/mailbox"
	"github.com/candor-grid/candor/messages/market"
	"github.com/candor-grid/candor/messages/money"
)

const (
	second = messages.Duration(time.Second)
	minute = 60 * second
)

// grid is an auctioneer with markets, a clock that the test moves, a bank with balances, and one node.
type grid struct {
	*fixture
	now   atomic.Int64
	books *books
	node  *node
	slots int
}

// node is an agent that does nothing by itself. When the test calls its method look, it claims tasks and obeys
// directives.
type node struct {
	name    messages.Name
	slots   int
	seq     uint64
	running []messages.Attempt // attempts that run, in the order of their grants
	held    []messages.Attempt
	version uint64
	most    int // limit of suspended tasks, if the node registered again with a limit
}

func (n *node) session() uint64 { return 7 + uint64(n.most) }

const epoch = messages.Time(1_700_000_000_000_000 - 1_700_000_000_000_000%3_600_000_000)

func newGrid(t *testing.T, slots int, markets ...market.Market) *grid {
	t.Helper()
	g := &grid{books: newBooks(), node: &node{name: "n1", slots: slots}}
	g.now.Store(int64(epoch))
	f := &fixture{t: t, net: bus.NewMemory()}
	g.fixture = f
	sub, err := f.net.Connect("$bank").Serve(bus.Service{Name: "bank", Version: "1.0.0", Endpoints: []bus.Endpoint{
		{Name: "transfer", Subject: messages.Subject("west", messages.Bank, messages.VerbTransfer, "*"), Handle: bus.Handle("transfer", g.books.transfer)}}})
	if err != nil {
		t.Fatal(err)
	}
	a, err := Start(t.Context(), Config{
		Site: "west", Replica: "a1", Bus: f.net.Connect("$auctioneer"), Operators: []messages.Name{"operator"}, Markets: markets,
		HoldFor: messages.Duration(1000 * time.Hour), Lease: messages.Duration(time.Hour),
		Clock: func() messages.Time { return messages.Time(g.now.Load()) },
		Mono:  func() messages.Duration { return messages.Time(g.now.Load()).Sub(epoch) },
		Open: func(m mailbox.Machine) (mailbox.Mailbox, error) {
			f.log = mailbox.NewMemory(m)
			return f.log, nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	f.Auctioneer = a
	t.Cleanup(func() { _ = a.Close(); _ = sub.Stop() })
	g.enroll(g.node)
	return g
}

func (g *grid) enroll(n *node) {
	must[agent.RegisterReply](g.fixture, n.name, messages.VerbRegister,
		agent.RegisterRequest{Session: n.session(), Slots: []job.ClassSlots{{Class: "cpu", Slots: n.slots}}})
	g.slots += n.slots
	await.Until(g.t, "the markets know the node", func() bool {
		m := must[market.MarketsReply](g.fixture, n.name, messages.VerbMarkets, messages.Empty{}).Markets[0]
		return m.Prices[0].Slots == g.slots
	})
}

// pass moves the clock ahead, and waits until the leader has noticed the new time.
func (g *grid) pass(d messages.Duration) {
	g.now.Add(int64(d / 1000))
	g.replica.wake()
}

// look lets a node exchange messages with the leader. The node claims all its free slots, and then does what the answer
// says.
func (g *grid) look(n *node) {
	g.t.Helper()
	free := n.slots - (len(n.running) - len(n.held))
	x := agent.Exchange{Session: n.session(), Seq: n.seq + 1}
	if free > 0 { // the claims name no jobs: the leader decides which jobs get the slots
		for _, m := range g.Markets {
			x.Claims = append(x.Claims, agent.Claim{Market: m.Name, Class: "cpu", Slots: free})
		}
	}
	g.exchange(n, x)
}

func (g *grid) exchange(n *node, x agent.Exchange) {
	g.t.Helper()
	n.seq = x.Seq
	r := must[agent.ExchangeReply](g.fixture, n.name, messages.VerbExchange, x)
	for _, grant := range r.Grants {
		n.running = append(n.running, grant.Attempt)
	}
	var stopped []agent.Finished
	for _, a := range r.Stop {
		if slices.Contains(n.running, a) {
			stopped = append(stopped, agent.Finished{Attempt: a, Outcome: agent.Stopped, ExitCode: 143})
		}
	}
	if r.Version >= n.version {
		n.held, n.version = r.Suspended, r.Version
	}
	if len(stopped) > 0 {
		g.report(n, stopped...)
	}
}

func (g *grid) report(n *node, finished ...agent.Finished) {
	g.t.Helper()
	for _, f := range finished {
		n.running = slices.DeleteFunc(n.running, func(a messages.Attempt) bool { return a == f.Attempt })
	}
	g.exchange(n, agent.Exchange{Session: n.session(), Seq: n.seq + 1, Finished: finished})
}

func (n *node) going() (out []messages.JobID) {
	for _, a := range n.running {
		if !slices.Contains(n.held, a) {
			out = append(out, a.Task.Job)
		}
	}
	return out
}

// The method `until` lets the node claim tasks and obey directives. It returns when the tasks that run on the node are
// exactly the tasks of the given jobs.
func (g *grid) until(jobs ...messages.JobID) {
	g.t.Helper()
	slices.Sort(jobs)
	await.Until(g.t, "the right jobs run", func() bool {
		g.look(g.node)
		going := g.node.going()
		slices.Sort(going)
		return slices.Equal(going, jobs)
	})
}

func (g *grid) complete(id messages.JobID) {
	g.t.Helper()
	var done []agent.Finished
	for _, a := range g.node.running {
		if a.Task.Job == id {
			done = append(done, agent.Finished{Attempt: a})
		}
	}
	g.report(g.node, done...)
}

func (g *grid) job(id messages.JobID) job.JobDetail {
	g.t.Helper()
	return must[job.JobDetail](g.fixture, "operator", messages.VerbJob, job.JobRequest{Job: id})
}

// final waits until a job is settled.
func (g *grid) final(id messages.JobID) (j job.JobDetail) {
	g.t.Helper()
	await.Until(g.t, "the job is settled", func() bool { j = g.job(id); return j.State.Final() })
	return j
}

func (g *grid) why(id messages.JobID) market.WhyReply {
	g.t.Helper()
	return must[market.WhyReply](g.fixture, "operator", messages.VerbWhy, job.JobRequest{Job: id})
}

// The method reason waits until the explanation of a job has the reason `want`.
func (g *grid) reason(id messages.JobID, want string) (w market.WhyReply) {
	g.t.Helper()
	await.Until(g.t, "the reason is "+want, func() bool { w = g.why(id); return w.Reason == want })
	if w.Message == "" {
		g.t.Errorf("no message: %+v", w)
	}
	return w
}

// bids returns a job with one stage of tasks.
func bids(tasks int, change func(*job.JobSpec)) job.JobSpec {
	spec := job.JobSpec{Name: "job", Budget: 100 * messages.Credit,
		Stages: []job.Stage{{Name: "main", Class: "cpu", Tasks: tasks, Command: []string{"true"}}}}
	change(&spec)
	return spec
}

func (g *grid) enter(who messages.Name, key string, tasks int, change func(*job.JobSpec)) messages.JobID {
	g.t.Helper()
	return g.submit(who, key, bids(tasks, change)).Job
}

// books is a fake bank with balances and holds. Each account has 1,000 credits at first.
type books struct {
	fakeBank
	balances map[messages.Name]messages.Credits
	held     map[string]money.Transfer
	done     map[string]money.TransferResult
}

func newBooks() *books {
	return &books{balances: map[messages.Name]messages.Credits{money.SiteAccount: 0}, held: map[string]money.Transfer{}, done: map[string]money.TransferResult{}}
}

func (b *books) transfer(_ context.Context, _ messages.Name, r money.TransferRequest) (reply money.TransferReply, err error) {
	b.wait(&r)
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, t := range r.Transfers {
		result, known := b.done[t.ID]
		if !known {
			result = b.do(&t)
			b.done[t.ID] = result
		}
		reply.Results = append(reply.Results, result)
	}
	return reply, nil
}

func (b *books) do(t *money.Transfer) (r money.TransferResult) {
	r.Amount = t.Amount
	switch t.Kind {
	case money.Hold:
		b.open(t.Debit)
		b.held[t.ID] = *t
	case money.Post, money.Void:
		h, ok := b.held[t.Pending]
		if !ok || t.Amount > h.Amount {
			return money.TransferResult{Error: messages.Errorf(messages.NotFound, "no hold %q of %v", t.Pending, t.Amount)}
		}
		delete(b.held, t.Pending)
		if t.Kind == money.Post {
			b.balances[h.Debit] -= t.Amount
			b.balances[t.Credit] += t.Amount
		}
	case money.Posted:
		b.open(t.Credit)
		b.balances[t.Debit] -= t.Amount
		b.balances[t.Credit] += t.Amount
	}
	return r
}

func (b *books) open(name messages.Name) {
	if _, known := b.balances[name]; !known {
		b.balances[name] = 1000 * messages.Credit
	}
}

func (b *books) balance(name messages.Name) messages.Credits {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.open(name)
	return b.balances[name]
}

func (b *books) holds() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.held)
}
