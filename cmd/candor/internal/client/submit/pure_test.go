package submit

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/candor-grid/candor/cmd/candor/internal/client/jobfile"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/clearing"
	jobmsg "github.com/candor-grid/candor/messages/job"
	"github.com/candor-grid/candor/messages/market"
	"github.com/candor-grid/candor/messages/money"
)

func TestJobIsNamedAfterItsFile(t *testing.T) {
	for file, want := range map[string]string{
		standardInput: "stdin", "a/count.yaml": "count", "count.yml": "count", "x.json": "x", "count.sh": "count.sh", "dir.yaml/run": "run", ".yaml": "",
	} {
		if got := jobName(file); got != want {
			t.Errorf("the job of %q is called %q, not %q", file, got, want)
		}
	}
}

// The error of a submission may advise the user to repeat the command with the same key. This advice is right only if
// the site may have accepted the job. The key then prevents a second submission.
func TestRefusalsSayHowToAskAgain(t *testing.T) {
	const hint = "repeat the command with --key k1"
	for kind, want := range map[messages.Kind]bool{messages.Unavailable: true, messages.Unknown: true, messages.Invalid: false, messages.Conflict: false} {
		err := refused(&messages.Error{Kind: kind, Op: "submit", Message: "it says so"}, new(jobfile.Job), "k1")
		wire, ok := errors.AsType[*messages.Error](err)
		if !ok || wire.Kind != kind || wire.Op != "submit" {
			t.Fatalf("%v became %#v", kind, err)
		}
		if !strings.HasPrefix(wire.Message, "it says so") || strings.Contains(wire.Message, hint) != want {
			t.Errorf("%v: %q; with a hint: %v", kind, wire.Message, want)
		}
	}
	plain := errors.New("no file")
	if err := refused(plain, new(jobfile.Job), "k1"); err != plain {
		t.Errorf("an error of this machine became %v", err)
	}
}

// One site refuses the job, and others do not answer. The error must have the refusal's kind, because another try helps
// only if no site has refused.
func TestWhyThereIsNoOffer(t *testing.T) {
	of := func(kinds ...messages.Kind) (out []clearing.Silent) {
		for _, k := range kinds {
			out = append(out, clearing.Silent{Site: "east", Error: messages.Errorf(k, "no")})
		}
		return out
	}
	for _, c := range []struct {
		silent []clearing.Silent
		want   messages.Kind
	}{
		{nil, messages.Unavailable},
		{of(messages.Unavailable), messages.Unavailable},
		{of(messages.Unavailable, messages.Invalid, messages.Unavailable), messages.Invalid},
	} {
		if wire, ok := errors.AsType[*messages.Error](noOffer(c.silent)); !ok || wire.Kind != c.want {
			t.Errorf("%+v: %v, not %v", c.silent, wire, c.want)
		}
	}
}

// A job repeats a part of an earlier job's tasks. Its budget must be the same part of the earlier budget, rounded up.
func TestPartOfABudget(t *testing.T) {
	for _, c := range []struct {
		budget     messages.Credits
		tasks, all int
		want       messages.Credits
	}{
		{100, 1, 4, 25}, {100, 4, 4, 100}, {100, 1, 3, 34}, {1, 1, 1000, 1}, {0, 1, 2, 0}, {messages.MaxCredits, 999_999, 1_000_000, messages.MaxCredits - messages.MaxCredits/1_000_000},
	} {
		got := part(c.budget, c.tasks, c.all)
		if got != c.want || float64(got)*float64(c.all) < float64(c.budget)*float64(c.tasks)*(1-1e-15) {
			t.Errorf("%d of %d tasks of %d microcredits get %d, not %d", c.tasks, c.all, int64(c.budget), int64(got), int64(c.want))
		}
	}
}

func TestWhatIsRepeatedOfAJob(t *testing.T) {
	job := func(change func(*jobmsg.JobDetail)) jobmsg.JobDetail {
		d := jobmsg.JobDetail{
			JobSummary: jobmsg.JobSummary{Job: 7, State: jobmsg.Failed, Budget: 60, Tasks: 6, Done: 3},
			Spec: jobmsg.JobSpec{AfterOK: []messages.JobID{3}, Stages: []jobmsg.Stage{
				{Name: "load", Tasks: 2}, {Name: "sum", Tasks: 4, After: []messages.Name{"load"}}}},
			Stages: []jobmsg.StageStatus{{Name: "load", Tasks: 2, Done: 2}, {Name: "sum", Tasks: 4, Done: 1}},
		}
		change(&d)
		return d
	}
	todo := func(int) ([]uint32, error) { return []uint32{0, 1, 3}, nil }
	got, err := repeated(job(func(*jobmsg.JobDetail) {}), todo)
	if err != nil || len(got.Stages) != 1 || got.Stages[0].Name != "sum" {
		t.Fatalf("%+v, %v: only the stage sum is to run again", got.Stages, err)
	}
	if got.RerunOf != 7 {
		t.Errorf("it repeats job %d, not 7", got.RerunOf)
	}
	if after := got.Stages[0].After; len(after) > 0 {
		t.Errorf("it waits for %v, which ended well", after)
	}
	if len(got.AfterOK) > 0 {
		t.Errorf("it waits for jobs %v", got.AfterOK)
	}
	if got.Budget != 30 {
		t.Errorf("3 of 6 tasks with 60 microcredits get %d, not 30", int64(got.Budget))
	}
	for says, change := range map[string]func(*jobmsg.JobDetail){
		"has not ended":                   func(d *jobmsg.JobDetail) { d.State = jobmsg.Running },
		"can still end well":              func(d *jobmsg.JobDetail) { d.Running = 1 },
		"nothing to run again":            func(d *jobmsg.JobDetail) { d.Done = 6 },
		"a contract is for one job only:": func(d *jobmsg.JobDetail) { d.Spec.Contract = "q/1" },
	} {
		if _, err := repeated(job(change), todo); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("refused with %v, not with %q", err, says)
		}
	}
	if _, err := repeated(job(func(*jobmsg.JobDetail) {}), func(int) ([]uint32, error) { return nil, errors.New("away") }); err == nil || err.Error() != "away" {
		t.Errorf("a site that does not answer: %v", err)
	}
}

func TestNodesThatSuitAStage(t *testing.T) {
	n := market.NodeStatus{Node: "n1", Labels: []messages.Name{"ssd"}, Resources: &jobmsg.Resources{GPUType: "a100"}}
	for _, c := range []struct {
		name  string
		stage jobmsg.Stage
		want  bool
	}{
		{"no wish", jobmsg.Stage{}, true},
		{"listed", jobmsg.Stage{Nodes: []messages.Name{"n2", "n1"}}, true},
		{"not listed", jobmsg.Stage{Nodes: []messages.Name{"n2"}}, false},
		{"excluded", jobmsg.Stage{Exclude: []messages.Name{"n1"}}, false},
		{"has the label", jobmsg.Stage{Constraint: "ssd"}, true},
		{"lacks the label", jobmsg.Stage{Constraint: "ssd&infiniband"}, false},
		{"a constraint that nobody can read", jobmsg.Stage{Constraint: "ssd&"}, false},
		{"the type of GPU", jobmsg.Stage{GPUType: "a100"}, true},
		{"another type of GPU", jobmsg.Stage{GPUType: "h100"}, false},
	} {
		if got := suits(&n, &c.stage); got != c.want {
			t.Errorf("%s: %v", c.name, got)
		}
	}
}

func TestRoomNow(t *testing.T) {
	markets := &market.MarketsReply{Markets: []market.MarketStatus{{Market: market.Market{Name: "main", Classes: []messages.Name{"map", "reduce"}}}}}
	node := func(state string, used int) []market.NodeStatus {
		return []market.NodeStatus{{Node: "n1", State: state, Slots: []jobmsg.ClassSlots{{Class: "map", Slots: 2}}, Used: []jobmsg.ClassSlots{{Class: "map", Slots: used}}}}
	}
	for _, c := range []struct {
		name, market string
		classes      []messages.Name
		nodes        []market.NodeStatus
		want         bool
	}{
		{"a free slot", "main", []messages.Name{"map"}, node("Up", 1), true},
		{"any class", "main", []messages.Name{""}, node("Up", 1), true},
		{"all slots used", "main", []messages.Name{"map"}, node("Up", 2), false},
		{"a node that drains", "main", []messages.Name{"map"}, node("Draining", 0), false},
		{"one stage without room", "main", []messages.Name{"map", "reduce"}, node("Up", 0), false},
		{"another market", "gpu", []messages.Name{"map"}, node("Up", 0), false},
	} {
		spec := jobmsg.JobSpec{}
		for _, class := range c.classes {
			spec.Stages = append(spec.Stages, jobmsg.Stage{Class: class})
		}
		if got := roomy(&spec, c.market, markets, c.nodes); got != c.want {
			t.Errorf("%s: %v", c.name, got)
		}
	}
}

func TestAccountBesideAJob(t *testing.T) {
	account := money.AccountReply{Account: "lab", Balance: 100, Available: 80,
		Roles:    []money.Membership{{Member: "alice", Limit: 50, Spent: 10, Held: 5}},
		Expiring: []money.Expiring{{Grant: "g1", Free: 10, Expires: 5}, {Grant: "g2", Free: 100, Expires: 9}}}
	p := predictFor(account, jobmsg.SubmitReply{Held: 30}, "alice")
	if p.Available != 50 {
		t.Errorf("%d are available, not 50", int64(p.Available))
	}
	if p.Least != 70 || p.Most != 100 {
		t.Errorf("the balance afterwards is %d to %d, not 70 to 100", int64(p.Least), int64(p.Most))
	}
	if !p.Limited || p.Left != 5 {
		t.Errorf("%d of alice's part are left, not 5", int64(p.Left))
	}
	if want := []draw{{"g1", 5, 10}, {"g2", 9, 20}}; !slices.Equal(p.Draws, want) {
		t.Errorf("the job uses %+v, not %+v", p.Draws, want)
	}
}
