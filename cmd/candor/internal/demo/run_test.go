package demo

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/fstest"

	"github.com/candor-grid/candor/cmd/candor/internal/terminal"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/bus"
	"github.com/candor-grid/candor/messages/job"
	"github.com/candor-grid/candor/messages/market"
	"github.com/candor-grid/candor/messages/money"
)

// fakeSite answers the demo's requests. When a job has been listed once, it ends with the result that the test sets.
type fakeSite struct {
	network *bus.Network
	result  string    // result of every job
	state   job.State // state in which every job ends
	refuse  *messages.Error

	mu   sync.Mutex
	jobs []job.JobDetail
	*history
}

func (f *fakeSite) Connect(account messages.Name) (bus.Bus, error) {
	return f.network.Connect(account), nil
}

// endpoint makes a bus answer one kind of request from any account.
func endpoint[Req, Rep any](actor, verb string, f func(messages.Name, Req) (Rep, error)) bus.Endpoint {
	return bus.Endpoint{Name: verb, Subject: messages.Subject("west", actor, verb, "*"),
		Handle: bus.Handle(verb, func(_ context.Context, caller messages.Name, q Req) (Rep, error) { return f(caller, q) })}
}

func (f *fakeSite) serve(t *testing.T) {
	t.Helper()
	_, err := f.network.Connect("$auctioneer").Serve(bus.Service{Name: "fake", Endpoints: []bus.Endpoint{
		endpoint(messages.Auctioneer, messages.VerbSubmit, f.submit),
		endpoint(messages.Auctioneer, messages.VerbJobs, f.list),
		endpoint(messages.Auctioneer, messages.VerbJob, f.detail),
		endpoint(messages.Auctioneer, messages.VerbMarkets, func(messages.Name, messages.Empty) (market.MarketsReply, error) {
			return market.MarketsReply{}, nil
		}),
		endpoint(messages.Auctioneer, messages.VerbNodes, func(messages.Name, messages.Empty) (market.NodesReply, error) {
			return market.NodesReply{Nodes: make([]market.NodeStatus, 4)}, nil
		}),
		endpoint(messages.Bank, messages.VerbBooks, f.books),
		endpoint(messages.Bank, messages.VerbAccounts, f.accounts),
		endpoint(messages.Bank, messages.VerbStatement, f.page),
	}})
	if err != nil {
		t.Fatal(err)
	}
}

func (f *fakeSite) submit(caller messages.Name, q job.SubmitRequest) (job.SubmitReply, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.refuse != nil {
		return job.SubmitReply{}, f.refuse
	}
	for _, v := range q.Spec.Env {
		if v.Name == "OUT" {
			if err := os.MkdirAll(v.Value, 0o755); err != nil {
				return job.SubmitReply{}, err
			}
			if err := os.WriteFile(filepath.Join(v.Value, "result-0"), []byte(f.result), 0o644); err != nil {
				return job.SubmitReply{}, err
			}
		}
	}
	id := messages.JobID(len(f.jobs) + 1)
	f.jobs = append(f.jobs, job.JobDetail{JobSummary: job.JobSummary{Job: id, Name: q.Spec.Name, Account: caller,
		Tasks: 3, Budget: q.Spec.Budget, Submitted: messages.Time(id)}})
	return job.SubmitReply{Job: id, Held: q.Spec.Budget}, nil
}

func (f *fakeSite) list(messages.Name, job.JobsRequest) (reply job.JobsReply, _ error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for i := range f.jobs {
		j := &f.jobs[i]
		reply.Jobs = append(reply.Jobs, j.JobSummary)
		if j.State.Final() {
			continue
		}
		j.State, j.Charged = f.state, j.Budget
		f.history.job(j.Account, j.Job, j.Budget, j.Budget)
	}
	return reply, nil
}

func (f *fakeSite) detail(_ messages.Name, q job.JobRequest) (job.JobDetail, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.jobs[q.Job-1], nil
}

func (f *fakeSite) books(messages.Name, messages.Empty) (money.BooksReply, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	issued := -f.closing(money.IssuerAccount)
	return money.BooksReply{Issued: issued, Balances: issued, Balanced: true}, nil
}

func (f *fakeSite) closing(account messages.Name) messages.Credits {
	entries := f.history.state[account].entries
	return entries[len(entries)-1].Balance
}

func (f *fakeSite) accounts(messages.Name, messages.Empty) (reply money.AccountsReply, _ error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, name := range f.order {
		reply.Accounts = append(reply.Accounts, money.AccountReply{Account: name})
	}
	return reply, nil
}

// page returns only one entry of a statement. So the demo must read several pages.
func (f *fakeSite) page(_ messages.Name, q money.StatementRequest) (reply money.StatementReply, _ error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, e := range f.history.state[q.Account].entries {
		switch {
		case e.Number <= q.After:
		case len(reply.Entries) == 1:
			reply.More = true
		default:
			reply.Entries = append(reply.Entries, e)
		}
	}
	return reply, nil
}

// tiny returns a workload of two jobs. One file has the expected answer of both.
func tiny() fstest.MapFS {
	return fstest.MapFS{
		"workload.yaml": {Data: []byte("accounts: [{name: alice, grant: 9}, {name: bob, grant: 9}]\n" +
			"submissions: [{account: alice, job: a}, {at: 0.1, account: bob, job: a, budget: 5}]")},
		"jobs/a.yaml":         {Data: []byte(oneJob)},
		"answers/a-1-128.txt": {Data: []byte("k\n1\n")},
	}
}

func (f *fakeSite) perform(t *testing.T) (*Report, string, error) {
	t.Helper()
	f.network, f.history = bus.NewMemory(), newHistory()
	f.grant("alice", 9*credit)
	f.grant("bob", 9*credit)
	f.serve(t)
	example := tiny()
	w, err := LoadWorkload(example)
	if err != nil {
		t.Fatal(err)
	}
	g, err := connect(f, "west", "operator", w)
	if err != nil {
		t.Fatal(err)
	}
	defer g.close()
	var out bytes.Buffer
	r := &run{grid: g, workload: w, example: example, dir: t.TempDir(), progress: newProgress(&out, terminal.Style{})}
	report, err := r.do(t.Context())
	return report, out.String(), err
}

func TestRun(t *testing.T) {
	f := &fakeSite{result: "k\n1\n", state: job.Completed}
	report, shown, err := f.perform(t)
	if err != nil {
		t.Fatal(err)
	}
	if !report.OK || len(report.Jobs) != 2 || report.Answers.Right != 2 || report.Tasks != 6 || report.Nodes != 4 {
		t.Errorf("the report is %+v", report)
	}
	if report.Jobs[1].Account != "bob" || report.Jobs[1].Charge != 5*credit || report.Books.Sum != 18*credit {
		t.Errorf("jobs %+v, books %+v", report.Jobs, report.Books)
	}
	if !strings.Contains(shown, "2 of 2 submitted, 0 running, 2 ended") {
		t.Errorf("it showed\n%s", shown)
	}
}

func TestRunTellsWhatIsWrong(t *testing.T) {
	for _, c := range []struct {
		name string
		site *fakeSite
		says string
	}{
		{"a wrong result", &fakeSite{result: "k\n2\n", state: job.Completed}, `line 2 is "2", the known answer has "1"`},
		{"a failed job", &fakeSite{result: "k\n1\n", state: job.Failed}, "is Failed"},
	} {
		t.Run(c.name, func(t *testing.T) {
			report, _, err := c.site.perform(t)
			if err != nil {
				t.Fatal(err)
			}
			if report.OK || !strings.Contains(report.Reason, c.says) {
				t.Errorf("OK %v because %q, want %q", report.OK, report.Reason, c.says)
			}
		})
	}
	refusing := &fakeSite{refuse: messages.Errorf(messages.Insufficient, "alice has 1 credit")}
	if _, _, err := refusing.perform(t); err == nil || !strings.Contains(err.Error(), "submitting a as alice") {
		t.Errorf("a refused submission is the error %v", err)
	}
}
