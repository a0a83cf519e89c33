package embedded

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/await"
	"github.com/candor-grid/candor/messages/bus"
	jobmsg "github.com/candor-grid/candor/messages/job"
	"github.com/candor-grid/candor/messages/market"
	"github.com/candor-grid/candor/messages/money"
)

// fate is one trial with a job of alice. It records what happens to the job. Bob's jobs can take the job's slot.
type fate struct {
	*ensemble
	users
	dir    string
	key    string
	tasks  int
	rivals int // number of bob's jobs

	job       messages.JobID // 0: not yet known
	submitted chan messages.JobID
	rival     messages.JobID
	find      func() target
}

type users struct{ alice, bob, operator user }

// moments are the steps in the life of a task, from submission to end. A fate is one test case with its own task. Each
// function of moments brings this task to one of these steps, and keeps it there for some time.
var moments = []struct {
	name  string
	reach func(*fate)
}{
	{"submitted", (*fate).reachSubmitted},
	{"held", (*fate).reachHeld},
	{"claimed", (*fate).reachClaimed},
	{"started", (*fate).reachStarted},
	{"running", (*fate).reachRunning},
	{"suspended", (*fate).reachSuspended},
	{"resumed", (*fate).reachResumed},
	{"ended", (*fate).reachEnded},
	{"finished", (*fate).reachFinished},
	{"settling", (*fate).reachSettling},
	{"charged", (*fate).reachCharged},
}

// A run without CANDOR_KILLS=all tries only some cases. For each step of a task's life, few lists the processes that
// such a run kills in this step.
var few = map[string][]string{
	"submitted": {"bank"}, "held": {"auctioneer"}, "claimed": {"executor"}, "started": {"agent"}, "running": {"executor"},
	"suspended": {"agent", "executor"}, "resumed": {"auctioneer"}, "ended": {"agent"}, "finished": {"bank"},
	"settling": {"auctioneer"}, "charged": {"bank"},
}

// waste counts what a victim's deaths cost. cells is the number of tested steps in which the victim was killed. runs is
// the number of starts of tasks, including repeated starts. useful is the number of tasks whose result was used.
type waste struct{ cells, runs, useful int }

// TestKilledAtEveryStep kills each victim with kill -9 in each step of a task's life. No task may be lost or paid
// twice, no process may remain, and the books must balance. By default it tries some pairs of victim and step; with
// CANDOR_KILLS=all it tries all.
func TestKilledAtEveryStep(t *testing.T) {
	t.Parallel()
	e := newEnsemble(t)
	u := users{e.as("alice"), e.as("bob"), e.as("operator")}
	for _, name := range []messages.Name{"alice", "bob"} {
		request[money.AccountReply](u.operator, messages.Bank, messages.VerbGrant, money.GrantRequest{Key: name, Account: name, Amount: 1000 * messages.Credit})
	}
	wasted := map[string]*waste{}
	for _, victim := range victims {
		wasted[victim] = &waste{}
	}
	for _, moment := range moments {
		for _, victim := range e.chosen(moment.name) {
			if !t.Run(moment.name+" "+victim, func(t *testing.T) {
				f := e.newFate(t, u, moment.name, victim)
				moment.reach(f)
				e.strike(f.find())
				f.outcome(wasted[victim])
			}) {
				return // what this trial left behind would look like a fault of later trials
			}
		}
	}
	for _, victim := range victims {
		w := wasted[victim]
		t.Logf("killed %-10s in %2d steps: %2d runs for %2d tasks, wasted %.2f of each", victim, w.cells, w.runs, w.useful, float64(w.runs-w.useful)/float64(max(1, w.useful)))
	}
}

func (e *ensemble) chosen(moment string) []string {
	if os.Getenv("CANDOR_KILLS") == "all" {
		return victims
	}
	return few[moment]
}

// newFate prepares one case of the test: one victim, and one moment in the life of a task. It waits until the site is
// complete. It finds the victim before any process is frozen, because frozen processes cannot say which process leads.
func (e *ensemble) newFate(t *testing.T, u users, moment, victim string) *fate {
	whole := *e.cluster
	whole.T = t
	u.alice.T, u.bob.T, u.operator.T = t, t, t
	f := &fate{ensemble: &ensemble{cluster: &whole, url: e.url, creds: e.creds}, users: u, dir: t.TempDir(), key: moment + "-" + victim, tasks: 1,
		submitted: make(chan messages.JobID, 1)}
	t.Cleanup(f.thaw)
	await.Until(f, "the node is up, with its executor", func() bool {
		nodes := request[market.NodesReply](u.operator, messages.Auctioneer, messages.VerbNodes, messages.Empty{}).Nodes
		return len(nodes) == 1 && nodes[0].State == "Up" && f.executor() != 0
	})
	found := f.ensemble.find(u.operator, victim)
	f.find = func() target { return found }
	return f
}

// spec returns a job. Its tasks write a line when they begin, and then write at intervals. When the test lets them end,
// they write another line.
func (f *fate) spec(who string, rate messages.Credits, tasks int) jobmsg.JobSpec {
	dir := filepath.Join(f.dir, who)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		f.Fatal(err)
	}
	script := fmt.Sprintf(`echo $CANDOR_TASK $$ >>%[1]s/begun
while ! [ -e %[1]s/go.$CANDOR_TASK ]; do echo >>%[1]s/beats; sleep 0.05; done
echo $CANDOR_TASK $$ >>%[1]s/ended`, dir)
	return jobmsg.JobSpec{Name: f.key, Market: "spot", Budget: 8 * messages.Credit, Rate: rate,
		Stages: []jobmsg.Stage{{Name: "main", Tasks: tasks, Script: script}}}
}

// submit sends alice's job. It repeats the request until there is an answer.
func (f *fate) submit() {
	r := jobmsg.SubmitRequest{Key: f.key, Spec: f.spec("alice", messages.Credit/50, f.tasks)}
	ctx, cancel := context.WithTimeout(f.Context(), patience)
	f.Cleanup(cancel)
	go func() {
		reply, err := bus.Call[jobmsg.SubmitReply](ctx, f.alice.bus, messages.Subject(f.Site, messages.Auctioneer, messages.VerbSubmit, "alice"), r)
		if err != nil {
			f.Errorf("submission: %v", err)
		}
		f.submitted <- reply.Job
	}()
}

func (f *fate) known() messages.JobID {
	f.Helper()
	if f.job == 0 {
		f.job = <-f.submitted
	}
	if f.job == 0 {
		f.FailNow()
	}
	return f.job
}

func (f *fate) detail() jobmsg.JobDetail {
	return request[jobmsg.JobDetail](f.alice, messages.Auctioneer, messages.VerbJob, jobmsg.JobRequest{Job: f.known()})
}

func (f *fate) count(who, file string) int {
	b, _ := os.ReadFile(filepath.Join(f.dir, who, file))
	return bytes.Count(b, []byte("\n"))
}

func (f *fate) letGo(who string, task int) {
	f.Helper()
	if err := os.WriteFile(filepath.Join(f.dir, who, fmt.Sprintf("go.%d", task)), nil, 0o600); err != nil {
		f.Fatal(err)
	}
}

// reachSubmitted brings the job to this point: the auctioneer has received the submission, and the bank does not
// answer.
func (f *fate) reachSubmitted() {
	f.freeze(f.pids(messages.Bank, "")...)
	f.submit()
	// the auctioneer handles this request after the submission
	request[messages.StatusReply](f.operator, messages.Auctioneer, messages.VerbStatus, messages.Empty{})
}

// reachHeld brings the job to this point: the bank holds the budget, and the job is not in the book.
func (f *fate) reachHeld() {
	leader := f.operator.leader(messages.Auctioneer)
	f.freeze(f.pids(messages.Auctioneer, leader)...)
	f.submit()
	await.Until(f, "the budget is held", func() bool { return f.alice.account().Reserved > 0 })
}

// reachClaimed submits a task and waits until the book has its claim. The executor is frozen, so the task has no
// process yet.
func (f *fate) reachClaimed() {
	f.freeze(f.executor())
	f.submit()
	await.Until(f, "the task is claimed", func() bool { return f.detail().Running == 1 })
}

func (f *fate) reachStarted() {
	f.submit()
	await.Until(f, "the process has begun", func() bool { return f.count("alice", "begun") == 1 })
}

func (f *fate) reachRunning() {
	f.reachStarted()
	f.known()
	await.Until(f, "the process runs", func() bool { return f.count("alice", "beats") >= 3 })
}

func (f *fate) reachSuspended() {
	f.reachRunning()
	f.rivals = 1
	f.rival = f.bob.submit(f.key, f.spec("bob", messages.Credit/20, 1))
	await.Until(f, "another has taken the slot", func() bool { return f.count("bob", "begun") == 1 && f.detail().Stages[0].Suspended == 1 })
}

func (f *fate) reachResumed() {
	f.reachSuspended()
	f.letGo("bob", 0)
	beats := f.count("alice", "beats")
	await.Until(f, "the task goes on", func() bool { return f.count("alice", "beats") > beats+2 })
}

// reachEnded brings the task to this point: the process has ended, and the agent, which is frozen, has not reported it.
func (f *fate) reachEnded() {
	f.reachRunning()
	f.freeze(f.pids(messages.NodeAgent, "")...)
	f.letGo("alice", 0)
	await.Until(f, "the process has ended", func() bool { return f.count("alice", "ended") == 1 && len(f.left()) == 0 })
}

// reachFinished brings a job of two tasks to the step at which the book has recorded the end of one task.
func (f *fate) reachFinished() {
	f.tasks = 2
	f.reachRunning()
	f.letGo("alice", 0)
	await.Until(f, "one task is done", func() bool { return f.detail().Done == 1 })
}

// reachSettling brings the job to this point: the book has the charge, and the bank does not answer.
func (f *fate) reachSettling() {
	f.reachRunning()
	f.freeze(f.pids(messages.Bank, "")...)
	f.letGo("alice", 0)
	await.Until(f, "the job is being settled", func() bool { return f.detail().State == jobmsg.Settling })
}

// reachCharged brings the job to this point: the bank has moved the credits. The book may know this already, or not
// yet.
func (f *fate) reachCharged() {
	f.reachRunning()
	spent := f.alice.account().Spent
	f.letGo("alice", 0)
	await.Until(f, "the job is charged", func() bool { return f.alice.account().Spent > spent })
}

func (f *fate) left() (pids []int) {
	eachProcess(func(pid int, _ []string, environ string) {
		if strings.Contains(environ, "CANDOR_JOB_NAME="+f.key+"\x00") && !zombie(pid) {
			pids = append(pids, pid)
		}
	})
	return pids
}

// outcome lets all frozen processes continue, and checks the result.
func (f *fate) outcome(w *waste) {
	f.Helper()
	f.thaw()
	for task := range f.tasks {
		f.letGo("alice", task)
	}
	if f.rivals > 0 {
		f.letGo("bob", 0)
	}
	j := f.alice.final(f.known())
	if j.State != jobmsg.Completed || j.Done != f.tasks {
		f.Errorf("alice's job ended %v with %d of %d tasks done", j.State, j.Done, f.tasks)
	}
	runs, useful := f.count("alice", "begun"), f.tasks
	if f.rivals > 0 {
		if j := f.bob.final(f.rival); j.State != jobmsg.Completed {
			f.Errorf("bob's job ended %v", j.State)
		}
		runs, useful = runs+f.count("bob", "begun"), useful+1
	}
	await.Until(f, "no process is left over", func() bool { return len(f.left()) == 0 })
	f.paid(f.alice, j)
	books := request[money.BooksReply](f.operator, messages.Bank, messages.VerbBooks, messages.Empty{})
	if !books.Balanced || books.Holds != 0 {
		f.Errorf("books: %+v", books)
	}
	if runs > useful {
		f.Logf("%d runs for %d tasks", runs, useful)
	}
	w.cells, w.runs, w.useful = w.cells+1, w.runs+runs, w.useful+useful
}

// paid checks that the user's spending is the sum of the charges, with no holds left. The charge for job j must be at
// most its budget.
func (f *fate) paid(u user, j jobmsg.JobDetail) {
	f.Helper()
	sum := messages.Credits(0)
	for _, o := range request[jobmsg.JobsReply](u, messages.Auctioneer, messages.VerbJobs, jobmsg.JobsRequest{Limit: 1000}).Jobs {
		sum += o.Charged
	}
	a := u.account()
	if a.Spent != sum || a.Reserved != 0 || a.Balance != a.Granted-sum || j.Charged <= 0 || j.Charged > j.Budget {
		f.Errorf("job charged %v of %v, all jobs %v, account %+v", j.Charged, j.Budget, sum, a)
	}
}
