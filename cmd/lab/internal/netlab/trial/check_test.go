package trial

import (
	"context"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/candor-grid/candor/cmd/lab/internal/netlab"
	"github.com/candor-grid/candor/cmd/lab/internal/netlab/load"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/bus"
	"github.com/candor-grid/candor/messages/clearing"
	"github.com/candor-grid/candor/messages/job"
	"github.com/candor-grid/candor/messages/money"
)

// Each of the tests below covers one check. It inserts a fault that the check must find.

// The type played imitates a site: it gives the answers that the test has set.
type played struct {
	numbers map[string]messages.JobID
	jobs    []job.JobSummary
	account money.AccountReply
	entries []money.Entry
}

func play(t *testing.T, p *played) *member {
	network := bus.NewMemory()
	serve(t, network, messages.Auctioneer, messages.VerbSubmit, func(r job.SubmitRequest) (reply job.SubmitReply, err error) {
		reply.Job = p.numbers[r.Key]
		return reply, nil
	})
	serve(t, network, messages.Auctioneer, messages.VerbJobs, func(r job.JobsRequest) (reply job.JobsReply, err error) {
		if !r.Active {
			reply.Jobs = p.jobs
		}
		return reply, nil
	})
	serve(t, network, messages.Bank, messages.VerbAccount, func(money.AccountRequest) (money.AccountReply, error) { return p.account, nil })
	serve(t, network, messages.Bank, messages.VerbStatement, func(money.StatementRequest) (reply money.StatementReply, err error) {
		reply.Entries = p.entries
		return reply, nil
	})
	site := &netlab.Site{Name: "west"}
	l, err := load.Start(t.Context(), load.Config{Site: "west", Users: []messages.Name{"alice"}, Job: quick, Every: time.Millisecond, Jobs: 2,
		Patience: time.Minute, Prefix: "k", Connect: func(user messages.Name) (bus.Bus, error) { return network.Connect(user), nil }})
	if err != nil {
		t.Fatal(err)
	}
	trial := &trial{Options: Options{Log: io.Discard}, Lab: &netlab.Lab{Sites: []*netlab.Site{site}}}
	return &member{Site: site, trial: trial, operator: network.Connect(netlab.Operator), load: l, result: l.Wait()}
}

func serve[Request, Reply any](t *testing.T, network *bus.Network, actor, verb string, answer func(Request) (Reply, error)) {
	t.Helper()
	_, err := network.Connect(messages.ServiceIdentity(actor)).Serve(bus.Service{Name: verb, Version: "1.0.0", Endpoints: []bus.Endpoint{{
		Name: verb, Subject: messages.Subject("west", actor, verb, "*"),
		Handle: bus.Handle(verb, func(_ context.Context, _ messages.Name, r Request) (Reply, error) { return answer(r) }),
	}}})
	if err != nil {
		t.Fatal(err)
	}
}

func done(id messages.JobID) job.JobSummary {
	return job.JobSummary{Job: id, Account: "alice", Payer: "alice", State: job.Completed, Tasks: 1, Done: 1, Charged: messages.Credit}
}

// sound returns a site with two ended jobs. Its list, account and entries agree, so the check must find no fault.
func sound() *played {
	return &played{
		numbers: map[string]messages.JobID{"k-alice-0": 1, "k-alice-1": 2},
		jobs:    []job.JobSummary{done(2), done(1)},
		account: money.AccountReply{Account: "alice", Balance: 8 * messages.Credit, Granted: 10 * messages.Credit, Spent: 2 * messages.Credit},
		entries: []money.Entry{{Number: 1, Change: 10 * messages.Credit}, {Number: 2, Job: 1, Change: -messages.Credit}, {Number: 3, Job: 2, Change: -messages.Credit}},
	}
}

func TestCheckWork(t *testing.T) {
	for name, plant := range map[string]struct {
		with func(*played)
		want string // the broken promise in the report; "" means none
	}{
		"nothing":                       {func(*played) {}, ""},
		"a job that is not there":       {func(p *played) { p.jobs = p.jobs[1:] }, "1 do not exist"},
		"a job that was not run":        {func(p *played) { p.jobs[0].State, p.jobs[0].Done = job.Failed, 0 }, "1 have not completed"},
		"a job with two keys":           {func(p *played) { p.numbers["k-alice-1"] = 1 }, "acknowledged for"},
		"a key that means another then": {nil, "is now job 7"},
	} {
		p := sound()
		if plant.with != nil {
			plant.with(p)
		}
		m := play(t, p)
		if plant.with == nil { // the site gives another answer only after it has acknowledged the job
			p.numbers["k-alice-0"] = 7
		}
		if err := m.checkWork(t.Context()); err != nil {
			t.Fatal(err)
		}
		if broken := strings.Join(m.trial.Broken, "; "); broken != "" != (plant.want != "") || !strings.Contains(broken, plant.want) {
			t.Errorf("with %s planted, the check says %q, want %q", name, broken, plant.want)
		}
	}
}

func TestReadStatement(t *testing.T) {
	for name, plant := range map[string]struct {
		with func(*played)
		want string
	}{
		"nothing":                   {func(*played) {}, ""},
		"a charge that was doubled": {func(p *played) { p.entries = append(p.entries, p.entries[2]); p.account.Balance -= messages.Credit }, "the statement says 2"},
		"a charge that is missing":  {func(p *played) { p.entries = p.entries[:2]; p.account.Balance += messages.Credit }, "the statement says 0"},
		"a balance that is off":     {func(p *played) { p.account.Balance++ }, "sums to 8"},
		"a hold that is left":       {func(p *played) { p.account.Reserved = messages.Credit }, "1 held"},
	} {
		p := sound()
		plant.with(p)
		m := play(t, p)
		jobs, err := m.jobs(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		var read statements
		if err := m.readStatement(t.Context(), "alice", jobs, &read); err != nil {
			t.Fatal(err)
		}
		if found := strings.Join(read.apart, "; "); found != "" != (plant.want != "") || !strings.Contains(found, plant.want) {
			t.Errorf("with %s planted, the statement is found %q, want %q", name, found, plant.want)
		}
	}
}

func TestApart(t *testing.T) {
	agreeing := func() []clearing.PeersReply {
		return []clearing.PeersReply{
			{Site: "west", Peers: []clearing.PeerReply{{Peer: "east", Owed: 5}}},
			{Site: "east", Peers: []clearing.PeerReply{{Peer: "west", Owed: -5}}},
		}
	}
	for want, plant := range map[string]func(west, east *clearing.PeersReply){
		"":                         func(_, _ *clearing.PeersReply) {},
		"site west owes site east": func(_, east *clearing.PeersReply) { east.Peers[0].Owed = -4 },
		"but 0 according to":       func(_, east *clearing.PeersReply) { east.Peers = nil },
		"waits for 2 answers":      func(west, _ *clearing.PeersReply) { west.Peers[0].Outstanding = 2 },
		"dispute: \"totals\"":      func(_, east *clearing.PeersReply) { east.Peers[0].Dispute = "totals" },
		"east has a fault":         func(_, east *clearing.PeersReply) { east.Fault = "refused" },
	} {
		r := agreeing()
		plant(&r[0], &r[1])
		if got := apart(r); !strings.Contains(got, want) || (got == "") != (want == "") {
			t.Errorf("the banks are apart in %q, want %q", got, want)
		}
	}
}

func TestThirdOfTheJobsRoams(t *testing.T) {
	to := map[messages.Name]int{}
	for n := range 300 {
		to[roaming("east")(n).Site]++
	}
	if len(to) != 3 || to[""] != 200 || to["west"] != 50 || to["north"] != 50 {
		t.Errorf("of 300 jobs of east: %v", to)
	}
}

func TestThroughputCountsOwnJobsOnly(t *testing.T) {
	from := time.Unix(1000, 0)
	jobs := map[messages.JobID]job.JobSummary{}
	add := func(after time.Duration, change func(*job.JobSummary)) {
		j := done(messages.JobID(len(jobs) + 1))
		j.Ended = messages.TimeOf(from.Add(after))
		change(&j)
		jobs[j.Job] = j
	}
	own := func(*job.JobSummary) {}
	add(0, own)
	add(9*time.Second, own)
	add(-time.Second, own)
	add(10*time.Second, own)
	add(time.Second, func(j *job.JobSummary) { j.Away = &job.Away{Site: "east"} })
	add(time.Second, func(j *job.JobSummary) { j.Visit = &job.Visit{Home: "east", Job: 1} })
	add(time.Second, func(j *job.JobSummary) { j.State = job.Failed })
	if got := perSecond(jobs, from, from.Add(10*time.Second)); got != 0.2 {
		t.Errorf("%v jobs a second, want 2 in 10 s", got)
	}
}
