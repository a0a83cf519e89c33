package client

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/candor-grid/candor/cmd/candor/internal/client/cli"
	"github.com/candor-grid/candor/messages"
	jobmsg "github.com/candor-grid/candor/messages/job"
	"github.com/candor-grid/candor/messages/market"
	"github.com/candor-grid/candor/messages/money"
)

// fullSite returns a site that answers every query with the replies of the view tests.
func fullSite(t *testing.T) *fakeSite {
	s := newSite(t)
	a, b := messages.Auctioneer, messages.Bank
	answer(s, a, messages.VerbJobs, func(jobmsg.JobsRequest) (jobmsg.JobsReply, error) { r := someJobs(); r.More = false; return r, nil })
	reply(s, a, messages.VerbJob, someJob())
	reply(s, a, messages.VerbWhy, someWhy())
	answer(s, a, messages.VerbCancel, func(jobmsg.CancelRequest) (jobmsg.CancelReply, error) {
		return jobmsg.CancelReply{Job: 103, State: jobmsg.Running}, nil
	})
	answer(s, a, messages.VerbNodes, func(messages.Empty) (market.NodesReply, error) { return someNodes(), nil })
	answer(s, a, messages.VerbMarkets, func(messages.Empty) (market.MarketsReply, error) { return someMarkets(), nil })
	answer(s, b, messages.VerbAccount, func(money.AccountRequest) (money.AccountReply, error) { return someAccount(), nil })
	answer(s, b, messages.VerbAccounts, func(money.AccountsRequest) (money.AccountsReply, error) {
		return money.AccountsReply{Accounts: []money.AccountReply{someAccount(), {Account: "$site"}}}, nil
	})
	answer(s, b, messages.VerbStatement, func(money.StatementRequest) (money.StatementReply, error) {
		r := someStatement()
		r.More = false
		return r, nil
	})
	answer(s, b, money.VerbProject, func(money.ProjectRequest) (money.AccountReply, error) { return someAccount(), nil })
	answer(s, b, money.VerbPay, func(money.PayRequest) (money.AccountReply, error) { return someAccount(), nil })
	answer(s, b, money.VerbFreeze, func(money.FreezeRequest) (money.AccountReply, error) { return someAccount(), nil })
	answer(s, b, money.VerbCredit, func(money.CreditRequest) (money.AccountReply, error) { return someAccount(), nil })
	answer(s, b, money.VerbWithdraw, func(money.WithdrawRequest) (money.AccountReply, error) { return someAccount(), nil })
	answer(s, b, money.VerbCorrect, func(money.CorrectRequest) (money.CorrectReply, error) {
		return money.CorrectReply{Debit: "$site", Credit: "climate", Amount: credit}, nil
	})
	answer(s, b, messages.VerbGrant, func(money.GrantRequest) (money.AccountReply, error) { return someAccount(), nil })
	answer(s, b, messages.VerbMember, func(money.MemberRequest) (money.AccountReply, error) { return someAccount(), nil })
	answer(s, b, messages.VerbBooks, func(money.BooksRequest) (money.BooksReply, error) {
		return money.BooksReply{Balanced: true}, nil
	})
	return s
}

// overview is what "candor top" prints as JSON.
type overview struct {
	Site    messages.Name         `json:"site"`
	Account money.AccountReply    `json:"account"`
	Nodes   []market.NodeStatus   `json:"nodes"`
	Markets []market.MarketStatus `json:"markets"`
}

// queries are command lines of all commands that show a reply, with the type of the reply.
var queries = []struct {
	line  string
	reply any
	words string
}{
	{"jobs", &jobmsg.JobsReply{}, "WaitingForShare"},
	{"job 103", &jobmsg.JobDetail{}, "8 credits (4.5 came back)"},
	{"why 104", &market.WhyReply{}, "a larger budget raises its share"},
	{"cancel 103", &jobmsg.CancelReply{}, "Cancelled job 103, which was Running"},
	{"nodes", &market.NodesReply{}, "map 3/4, reduce 0/1"},
	{"markets", &market.MarketsReply{}, "proportional"},
	{"top", &overview{}, "1 of 2 nodes up"},
	{"account", &money.AccountReply{}, "79.5 credits"},
	{"account climate", &money.AccountReply{}, "79.5 credits"},
	{"account --all", &money.AccountsReply{}, "climate"},
	{"account member add climate alice", &money.AccountReply{}, "climate"},
	{"account member remove climate alice", &money.AccountReply{}, "climate"},
	{"statement", &money.StatementReply{}, "spring allocation"},
	{"grant climate 10", &money.AccountReply{}, "Granted 10 credits to climate; climate now has 79.5 credits available"},
	{"grant climate 10 --expires 90d", &money.AccountReply{}, "for 90d00h"},
	{"account freeze climate --reason audit", &money.AccountReply{}, "climate"},
	{"account unfreeze climate", &money.AccountReply{}, "climate"},
	{"account credit climate 5", &money.AccountReply{}, "climate"},
	{"project create climate --owner alice", &money.AccountReply{}, "climate"},
	{"project show climate", &money.AccountReply{}, "79.5 credits"},
	{"project list", &money.AccountsReply{}, "climate"},
	{"project member add climate bob --role auditor", &money.AccountReply{}, "climate"},
	{"project member remove climate bob", &money.AccountReply{}, "climate"},
	{"project limit climate bob 50", &money.AccountReply{}, "climate"},
	{"project role climate bob owner", &money.AccountReply{}, "climate"},
	{"transfer bob 5 --from climate", &money.AccountReply{}, "Transferred 5 credits to bob; climate now has 79.5 credits available"},
	{"withdraw climate 5 --reason end", &money.AccountReply{}, "Withdrew 5 credits from climate"},
	{"correct job/charge --reason fault", &money.CorrectReply{}, "Corrected job/charge: moved 1 credit from $site back to climate"},
	{"books", &money.BooksReply{}, "The books balance"},
	{"books --full", &money.BooksReply{}, "The books balance"},
	{"version", &buildVersion{}, "candor "},
	{"--version", &buildVersion{}, "candor "},
}

func TestCommandsShowReplies(t *testing.T) {
	s := fullSite(t)
	for _, q := range queries {
		s.run(strings.Fields(q.line)...).expect(t, cli.CodeOK, q.words, "")
	}
}

// TestCommandsPrintTheReplyAsJSON runs each query with --json. The output must be one JSON document that decodes to
// the site's reply.
func TestCommandsPrintTheReplyAsJSON(t *testing.T) {
	s := fullSite(t)
	for _, q := range queries {
		got := s.run(append([]string{"--json=true"}, strings.Fields(q.line)...)...)
		into := reflect.New(reflect.TypeOf(q.reply).Elem()).Interface()
		d := json.NewDecoder(strings.NewReader(got.out))
		d.DisallowUnknownFields()
		if err := d.Decode(into); err != nil || got.code != cli.CodeOK || strings.Count(got.out, "\n") != 1 {
			t.Errorf("%s: %v, %+v", q.line, err, got)
		}
		if reflect.DeepEqual(into, q.reply) {
			t.Errorf("%s: printed an empty reply: %s", q.line, got.out)
		}
	}
}

func TestRequestsSayWhatWasAsked(t *testing.T) {
	s := newSite(t)
	answer(s, messages.Bank, messages.VerbAccount, func(money.AccountRequest) (money.AccountReply, error) { return someAccount(), nil })
	var jobs []jobmsg.JobsRequest
	answer(s, messages.Auctioneer, messages.VerbJobs, func(r jobmsg.JobsRequest) (jobmsg.JobsReply, error) {
		jobs = append(jobs, r)
		return jobmsg.JobsReply{More: len(jobs) == 1, Next: "mark", Jobs: make([]jobmsg.JobSummary, min(r.Limit, 600))}, nil
	})
	var grant money.GrantRequest
	answer(s, messages.Bank, messages.VerbGrant, func(r money.GrantRequest) (money.AccountReply, error) {
		grant = r
		return money.AccountReply{}, nil
	})
	var history []money.StatementRequest
	answer(s, messages.Bank, messages.VerbStatement, func(r money.StatementRequest) (money.StatementReply, error) {
		history = append(history, r)
		return money.StatementReply{Account: "bob", Opening: credit, More: len(history) == 1, Entries: []money.Entry{{Number: uint64(len(history))}}}, nil
	})
	s.run("jobs", "--owner", "bob", "--active", "-n", "1500").expect(t, 0, "", "")
	if want := (jobmsg.JobsRequest{Account: "bob", Active: true, Limit: 1000, Sort: "-job"}); !reflect.DeepEqual(jobs[0], want) || len(jobs) != 2 || jobs[1].Limit != 900 || jobs[1].After != "mark" {
		t.Errorf("jobs: %+v", jobs)
	}
	s.run("grant", "bob", "12.5", "--reason", "spring", "--key", "k").expect(t, 0, "", "")
	if want := (money.GrantRequest{Key: "k", Account: "bob", Amount: 12_500_000, Reason: "spring"}); grant != want {
		t.Errorf("grant: %+v", grant)
	}
	s.run("statement", "bob", "--from", "24h", "--to", "2026-03-01T11:00:00Z").expect(t, 0, "opening balance 1 credit", "")
	want := money.StatementRequest{Account: "bob", From: at(3600 - 86400), To: at(-3600), Limit: 1000}
	if len(history) != 2 || history[0] != want || history[1].After != 1 {
		t.Errorf("statement: %+v", history)
	}
}

func TestErrorsHaveExitCodes(t *testing.T) {
	for kind, code := range map[messages.Kind]int{
		messages.Internal: 1, messages.Invalid: 2, messages.TooLarge: 2, messages.NotFound: 3, messages.PermissionDenied: 4,
		messages.Insufficient: 5, messages.Conflict: 1, messages.NotLeader: 6, messages.Unavailable: 6, messages.Unknown: 6,
		messages.Fenced: 1, messages.Exhausted: 1, messages.Expired: 1, messages.Ended: 1,
	} {
		if got := cli.ExitCode(messages.Errorf(kind, "x")); got != code {
			t.Errorf("%v: exit code %d, want %d", kind, got, code)
		}
		if got := cli.ExitCode(fmt.Errorf("further: %w", messages.Errorf(kind, "x"))); got != code {
			t.Errorf("%v, wrapped: exit code %d, want %d", kind, got, code)
		}
	}
	s := newSite(t)
	refuse[jobmsg.JobRequest](s, messages.Auctioneer, messages.VerbJob, messages.Errorf(messages.NotFound, "job 9: does not exist; candor jobs lists yours"))
	s.run("job", "9").expect(t, cli.CodeNotFound, "", "candor job: job 9: does not exist; candor jobs lists yours (NotFound)\n")
}

// TestErrorsFitTheTerminal checks that no line of an error is wider than the terminal.
func TestErrorsFitTheTerminal(t *testing.T) {
	s := newSite(t)
	s.width = 80
	refuse[jobmsg.JobRequest](s, messages.Auctioneer, messages.VerbJob, messages.Errorf(messages.NotFound, "job 9: keeps no files: name them with --output when you submit; candor logs 9 prints what it wrote"))
	got := s.run("job", "9")
	for line := range strings.Lines(got.err) {
		if n := len(strings.TrimSuffix(line, "\n")); n > 80 {
			t.Errorf("%d columns: %s", n, line)
		}
	}
	got.expect(t, cli.CodeNotFound, "", "candor job: job 9: keeps no files")
}

// TestGroupsSayWhatThereIs runs each command that only groups others. It must exit with the code for wrong usage and
// list its commands. So a script that forgot a word stops there.
func TestGroupsSayWhatThereIs(t *testing.T) {
	s := fullSite(t)
	s.further = allFurther
	groups := 0
	walk(whole(), func(c *cobra.Command) {
		if !c.HasParent() || !c.HasAvailableSubCommands() {
			return
		}
		if got := s.run(strings.Fields(c.CommandPath())[1:]...); strings.Contains(got.err, "say what to do: ") {
			groups++
			got.expect(t, cli.CodeUsage, "", c.Commands()[0].Name())
		} else if strings.Contains(got.out, "Usage:") {
			t.Errorf("%s shows its help, with exit code %d", c.CommandPath(), got.code)
		}
	})
	if groups < 12 {
		t.Errorf("%d groups", groups)
	}
}

func TestAnUnknownShellIsWrongUsage(t *testing.T) {
	s := newSite(t)
	s.run("completion").expect(t, cli.CodeUsage, "", "say what to do: bash, fish, powershell or zsh")
	s.run("completion", "nosuch").expect(t, cli.CodeUsage, "", `unknown command "nosuch"`)
	s.run("completion", "bash").expect(t, cli.CodeOK, "__complete", "")
}

func TestWrongUsageIsExplained(t *testing.T) {
	s := fullSite(t)
	s.further = allFurther
	for line, want := range map[string]string{
		"jbos":                  `candor: unknown command "jbos": did you mean job or jobs?`,
		"jobs 6":                "candor jobs: candor jobs takes no job number: candor job 6 shows this job",
		"jobs six":              `takes no arguments: leave out "six"`,
		"simulate nofile":       `candor simulate: takes no arguments: leave out "nofile"` + "\nUsage: candor simulate --trace",
		"market show":           `candor market: unknown command "show"` + "\nSee: candor market --help",
		"config nope":           `candor config: unknown command "nope"`,
		"jobs --actve":          "candor jobs: unknown flag: --actve: did you mean --active?\nSee: candor jobs --help",
		"jobs --limit 0":        "candor jobs: --limit 0: must be a whole number from 1 on",
		"jobs --limit x":        `candor jobs: --limit "x": `,
		"jobs extra":            "Usage: candor jobs",
		"job":                   "Usage: candor job NUMBER",
		"job x":                 `candor job: "x" is not the number of a job: candor jobs lists your jobs`,
		"job 0":                 "is not the number of a job",
		"cancel 1 x":            `candor cancel: "x" is not the number of a job`,
		"grant bob much":        `candor grant: amount "much": must be a decimal number`,
		"grant bob":             "Usage: candor grant NAME AMOUNT",
		"account member":        "say what to do: add or remove",
		"account climate --all": "--all lists every account",
		"statement --from then": `--from "then": write it like 2026-01-31`,
		"statement -n -1":       "--limit -1",
		"statement -n 0":        "--limit 0",
		"logs 1 --task -5":      "--task -5: must be the position of a task",
		"top --interval 0s":     "--interval 0s: must be at least 50ms",
		"jobs --timeout 0s":     "--timeout 0s: must be above 0",
		"jobs --timeout soon":   `--timeout "soon": write a time like 10s, 500ms or 1m30s`,
		"node token n --output /nodir/n --account operator": "candor node token: --output: there is no directory /nodir",
		"bank export --output /nodir/n --account operator":  "candor bank export: --output: there is no directory /nodir",
		"submit nofile.yaml":                          "there is no file nofile.yaml",
		"market apply nofile.yaml --account operator": "candor market apply: there is no file or directory nofile.yaml",
		"jobs --account Bob":                          `--account "Bob": is not a name`,
		"jobs --server nats://x:1":                    "--site: missing: name the site that nats://x:1 serves. Its candor up prints the name first",
		"jobs --server y --site w":                    "--account: missing",
		"jobs --site a.b":                             `--site "a.b": is not a name`,
	} {
		s.run(strings.Fields(line)...).expect(t, cli.CodeUsage, "", want)
	}
}

// TestFilesOfAnotherMachine checks that an error of the site about a file does not refer to a file on the user's
// machine.
func TestFilesOfAnotherMachine(t *testing.T) {
	s := newSite(t)
	answer(s, messages.Auctioneer, messages.VerbJob, func(jobmsg.JobRequest) (r jobmsg.JobDetail, err error) {
		return r, messages.Errorf(messages.Internal, "open /var/lib/elsewhere/jobs/1: no such file or directory")
	})
	s.run("job", "1").expect(t, cli.CodeFailed, "", "candor job: there is no file or directory /var/lib/elsewhere/jobs/1 (Internal)\n")
}

func TestCancelGoesOnAfterARefusal(t *testing.T) {
	s := newSite(t)
	answer(s, messages.Auctioneer, messages.VerbCancel, func(r jobmsg.CancelRequest) (reply jobmsg.CancelReply, err error) {
		for _, id := range r.Jobs {
			c := jobmsg.CancelOutcome{Job: id}
			if id == 2 {
				c.Error = messages.Errorf(messages.NotFound, "does not exist")
			}
			reply.Jobs = append(reply.Jobs, c)
		}
		return reply, nil
	})
	s.run("cancel", "1", "2", "3").expect(t, cli.CodeNotFound, "Cancelled job 1, which was Waiting\nCancelled job 3, which was Waiting\n", "candor cancel: job 2: does not exist (NotFound)\n")
}

// TestSteering checks the requests that hold, release and requeue send, and what they print.
func TestSteering(t *testing.T) {
	s := fullSite(t)
	answer(s, messages.Auctioneer, jobmsg.VerbHold, func(r jobmsg.JobRequest) (jobmsg.HoldReply, error) {
		return jobmsg.HoldReply{Job: r.Job, Hold: true, Changed: r.Job != 3, Running: int(r.Job - 1)}, nil
	})
	answer(s, messages.Auctioneer, jobmsg.VerbRelease, func(r jobmsg.JobRequest) (jobmsg.HoldReply, error) {
		return jobmsg.HoldReply{Job: r.Job, Changed: r.Job != 3}, nil
	})
	s.run("hold", "1", "2", "3", "4").expect(t, cli.CodeOK, "Job 1 is on hold\nJob 2 is on hold; 1 task goes on\nJob 3 is on hold already\nJob 4 is on hold; 3 tasks go on\n", "")
	s.run("release", "1", "3").expect(t, cli.CodeOK, "Released job 1\nJob 3 is not on hold\n", "")
	s.run("hold", "x").expect(t, cli.CodeUsage, "", `"x" is not the number of a job`)
	var asked jobmsg.RequeueRequest
	answer(s, messages.Auctioneer, jobmsg.VerbRequeue, func(r jobmsg.RequeueRequest) (jobmsg.RequeueReply, error) {
		asked = r
		return jobmsg.RequeueReply{Job: r.Job, Tasks: 2}, nil
	})
	s.run("requeue", "103").expect(t, cli.CodeOK, "Job 103: 2 tasks are ended and will run again\n", "")
	if asked.Stage != nil || asked.Task != nil {
		t.Errorf("asked for %+v", asked)
	}
	stage := someJob().Stages[1].Name
	s.run("requeue", "103", "--task", "5", "--stage", stage).expect(t, cli.CodeOK, "2 tasks", "")
	if asked.Stage == nil || *asked.Stage != 1 || asked.Task == nil || *asked.Task != 5 {
		t.Errorf("asked for %+v", asked)
	}
	s.run("requeue", "103", "--stage", "nosuch").expect(t, cli.CodeNotFound, "", "--stage nosuch: job 103 has no such stage")
	s.run("requeue", "103", "--task", "5").expect(t, cli.CodeUsage, "", "name one with --stage")
}

// TestRerunForTheConsole writes a file with an ended job, and with the job that candor rerun submits for it. A test of
// the console reads the file, and checks that the console submits the same. One stage is an array, one repeats tasks of
// an earlier job, and one is a gang, so all its tasks run again.
func TestRerunForTheConsole(t *testing.T) {
	s := newSite(t)
	stages := []jobmsg.Stage{
		{Name: "first", Class: "map", Tasks: 2, Script: "x"},
		{Name: "array", Class: "map", Array: jobmsg.Array{{First: 10, Last: 16, Step: 2}, {First: 20, Last: 20, Step: 1}}, After: []messages.Name{"first"}, Script: "x"},
		{Name: "again", Class: "map", Array: jobmsg.Array{{First: 3, Last: 5, Step: 1}}, Repeats: &jobmsg.Repeats{Tasks: 9, Positions: jobmsg.Array{{First: 2, Last: 8, Step: 3}}}, After: []messages.Name{"array"}, Script: "x"},
		{Name: "gang", Class: "map", Tasks: 2, Gang: true, Script: "x"},
	}
	job := jobmsg.JobDetail{
		JobSummary: jobmsg.JobSummary{Job: 7, State: jobmsg.Failed, Tasks: 12, Done: 6, Budget: 10*credit + 1},
		Spec:       jobmsg.JobSpec{Name: "j", Budget: 10*credit + 1, Hold: true, AfterOK: []messages.JobID{3}, RerunOf: 5, Stages: stages},
		Stages:     []jobmsg.StageStatus{{Name: "first", Tasks: 2, Done: 2}, {Name: "array", Tasks: 5, Done: 2}, {Name: "again", Tasks: 3, Done: 1}, {Name: "gang", Tasks: 2, Done: 1}},
	}
	done := [][]uint32{{0, 1}, {0, 3}, {1}, {0}}
	gives[jobmsg.JobRequest](messages.Auctioneer, messages.VerbJob, job)(s)
	answer(s, messages.Auctioneer, messages.VerbTasks, func(r jobmsg.TasksRequest) (reply jobmsg.TasksReply, err error) {
		for _, k := range done[*r.Stage] {
			reply.Tasks = append(reply.Tasks, jobmsg.TaskStatus{Task: messages.TaskRef{Job: 7, Stage: uint32(*r.Stage), Index: k}, State: "Done"})
		}
		return reply, nil
	})
	var asked jobmsg.SubmitRequest
	answer(s, messages.Auctioneer, messages.VerbSubmit, func(r jobmsg.SubmitRequest) (jobmsg.SubmitReply, error) {
		asked = r
		return jobmsg.SubmitReply{Job: 9, Market: "main", Payer: "alice", Held: r.Spec.Budget, Tasks: r.Spec.TaskCount()}, nil
	})
	s.run("rerun", "7").expect(t, cli.CodeOK, "Submitted job 9", "")
	text, err := json.MarshalIndent(map[string]any{"job": job, "done": done, "spec": asked.Spec}, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "rerun.json", string(text)+"\n")
}

// TestRerun reruns a job that did not end well. The new job must have the tasks that failed or never began, with their
// old indices and positions, and the part of the budget that belongs to these tasks.
func TestRerun(t *testing.T) {
	s := newSite(t)
	file := jobmsg.File{Name: "data", Size: 3, Digest: strings.Repeat("a", 64)}
	stage := func(name messages.Name, tasks int, after ...messages.Name) jobmsg.Stage {
		return jobmsg.Stage{Name: name, Class: "map", Tasks: tasks, After: after, Script: "x", Inputs: []jobmsg.File{file}}
	}
	old := jobmsg.JobDetail{
		JobSummary: jobmsg.JobSummary{Job: 7, State: jobmsg.Failed, Tasks: 9, Done: 4, Budget: 10, Failed: 2},
		Spec:       jobmsg.JobSpec{Name: "j", Budget: 10, Stages: []jobmsg.Stage{stage("first", 2), stage("map", 5, "first"), stage("last", 2, "map")}},
		Stages:     []jobmsg.StageStatus{{Name: "first", Tasks: 2, Done: 2}, {Name: "map", Tasks: 5, Done: 2}, {Name: "last", Tasks: 2}},
	}
	answer(s, messages.Auctioneer, messages.VerbJob, func(r jobmsg.JobRequest) (jobmsg.JobDetail, error) {
		j := old
		if r.Job == 8 {
			j.Job, j.State = 8, jobmsg.Running
		}
		if r.Job == 9 {
			j.Job, j.State = 9, jobmsg.Completed
		}
		if r.Job == 6 { // cancelled, but one task has not ended yet
			j.Job, j.State, j.Running = 6, jobmsg.Cancelled, 1
		}
		if r.Job == 5 { // a job with a single task
			j.Job, j.Tasks, j.Done, j.Failed = 5, 1, 0, 1
			j.Spec.Stages, j.Stages = []jobmsg.Stage{stage("first", 1)}, []jobmsg.StageStatus{{Name: "first", Tasks: 1}}
		}
		return j, nil
	})
	answer(s, messages.Auctioneer, messages.VerbTasks, func(r jobmsg.TasksRequest) (reply jobmsg.TasksReply, err error) {
		for k, state := range map[int][]string{1: {"Done", "Failed", "Done", "Failed"}}[*r.Stage] {
			reply.Tasks = append(reply.Tasks, jobmsg.TaskStatus{Task: messages.TaskRef{Job: 7, Stage: 1, Index: uint32(k)}, State: state})
		}
		return reply, nil
	})
	kept := true
	answer(s, messages.Depot, jobmsg.VerbPut, func(r jobmsg.PutRequest) (jobmsg.PutReply, error) { return jobmsg.PutReply{Done: kept}, nil })
	var asked jobmsg.SubmitRequest
	answer(s, messages.Auctioneer, messages.VerbSubmit, func(r jobmsg.SubmitRequest) (jobmsg.SubmitReply, error) {
		asked = r
		return jobmsg.SubmitReply{Job: 9, Market: "main", Payer: "alice", Held: r.Spec.Budget, Tasks: r.Spec.TaskCount()}, r.Validate()
	})
	s.run("rerun", "7").expect(t, cli.CodeOK, "5 of the 9 tasks of job 7 did not end well; the new budget is 0.000006 credits, the old one was 0.00001 credits\nSubmitted job 9 (0.000006 credits held from alice)\n", "")
	left := jobmsg.Array{{First: 1, Last: 3, Step: 2}, {First: 4, Last: 4, Step: 1}}
	if got := asked.Spec; got.RerunOf != 7 || len(got.Stages) != 2 || !slices.Equal(got.Stages[0].Array, left) ||
		got.Stages[0].Repeats == nil || got.Stages[0].Repeats.Tasks != 5 || !slices.Equal(got.Stages[0].Repeats.Positions, left) || len(got.Stages[0].After) != 0 || got.Stages[1].Repeats != nil || len(got.Stages[1].After) != 1 {
		t.Errorf("submitted %+v", got)
	}
	s.run("rerun", "7", "--budget", "3", "--dry-run").expect(t, cli.CodeOK, "the new budget is 3 credits", "")
	s.run("rerun", "7", "--wait").expect(t, cli.CodeOK, "Submitted job 9 (0.000006 credits held from alice)\nJob 9 Completed", "")
	s.run("rerun", "5").expect(t, cli.CodeOK, "the only task of job 5 did not end well", "")
	s.run("rerun", "7", "--wait", "--json").expect(t, cli.CodeOK, `{"job":9,`, "")
	s.run("rerun", "6").expect(t, cli.CodeFailed, "", "job 6 is over, but 1 running task can still end well")
	s.run("rerun", "8").expect(t, cli.CodeFailed, "", "job 8 has not ended; candor requeue 8 runs")
	kept = false
	s.run("rerun", "7").expect(t, cli.CodeNotFound, "", "input data: the site no longer has the file")
	kept = true
	s.write("state/site.json", `{"site":"west","server":"nats://127.0.0.1:4222","default_account":"alice","hidden":["/secret"]}`)
	old.Spec.Dir = "/secret/keys"
	s.run("rerun", "7").expect(t, cli.CodeFailed, "", "job 7 ran in /secret/keys: no task sees /secret")
	s.run("rerun", "zero").expect(t, cli.CodeUsage, "", "is not the number of a job")
}

// TestWhichJobsAreCancelled cancels jobs that flags select. Nothing may be cancelled before the user agrees. After
// that, exactly the listed jobs must be cancelled.
func TestWhichJobsAreCancelled(t *testing.T) {
	s := newSite(t)
	var asked []jobmsg.JobsRequest
	var cancelled [][]messages.JobID
	answer(s, messages.Auctioneer, messages.VerbJobs, func(r jobmsg.JobsRequest) (jobmsg.JobsReply, error) {
		asked = append(asked, r)
		return jobmsg.JobsReply{Jobs: []jobmsg.JobSummary{{Job: 9, Name: "train-b", State: jobmsg.Running}, {Job: 8, State: jobmsg.Settling}, {Job: 7, Name: "train-a"}}}, nil
	})
	answer(s, messages.Auctioneer, messages.VerbCancel, func(r jobmsg.CancelRequest) (reply jobmsg.CancelReply, err error) {
		cancelled = append(cancelled, r.Jobs)
		for _, id := range r.Jobs {
			reply.Jobs = append(reply.Jobs, jobmsg.CancelOutcome{Job: id})
		}
		return reply, nil
	})
	for line, want := range map[string]string{
		"cancel":                "name the jobs",
		"cancel 7 --all":        "7: give job numbers, or flags",
		"cancel --all --name x": "--all goes with no other flag",
		"cancel 7 --dry-run":    "--dry-run goes with flags",
		"job 103 104":           "takes 1 argument, not 2",
		"hold":                  "takes at least 1 argument, not 0",
		"account a b":           "takes at most 1 argument, not 2",
		"cancel --state gone":   `--state "gone": the states are Waiting, Running,`,
		"cancel --name train*":  "nothing was cancelled: give --yes to cancel 2 jobs without being asked",
	} {
		s.run(strings.Fields(line)...).expect(t, cli.CodeUsage, "", want)
	}
	s.run("cancel", "--label", "run=7", "--state", "waiting", "--dry-run").expect(t, 0, "2 jobs would be cancelled:", "")
	if last := asked[len(asked)-1]; len(cancelled) != 0 || !last.Active || !slices.Equal(last.Labels, []string{"run=7"}) || !slices.Equal(last.States, []string{"Waiting"}) {
		t.Errorf("%v after %+v", cancelled, last)
	}
	s.run("cancel", "--all", "--yes").expect(t, 0, "Cancelled job 9, which was Waiting\nCancelled job 7, which was Waiting\n", "")
	if len(cancelled) != 1 || !slices.Equal(cancelled[0], []messages.JobID{9, 7}) {
		t.Errorf("cancelled: %v", cancelled)
	}
}

// TestTasksOfAJobAreCancelled cancels tasks of a job by position, and by index of the array.
func TestTasksOfAJobAreCancelled(t *testing.T) {
	s := newSite(t)
	var asked jobmsg.CancelRequest
	answer(s, messages.Auctioneer, messages.VerbCancel, func(r jobmsg.CancelRequest) (jobmsg.CancelReply, error) {
		asked = r
		return jobmsg.CancelReply{Job: r.Job, Tasks: int(r.Tasks.Count())}, nil
	})
	answer(s, messages.Auctioneer, messages.VerbJob, func(jobmsg.JobRequest) (j jobmsg.JobDetail, err error) {
		j.Spec.Stages = []jobmsg.Stage{{Name: "map"}, {Name: "reduce", Array: jobmsg.Array{{First: 10, Last: 50, Step: 10}}}}
		j.Stages = []jobmsg.StageStatus{{Name: "map"}, {Name: "reduce"}}
		return j, nil
	})
	for line, want := range map[string]string{
		"cancel 7 8 --task 1":             "go with the number of one job",
		"cancel 7 --task 1 --array 2":     "name the tasks",
		"cancel 7 --stage map":            "name the tasks",
		"cancel 7 --task 5-3":             "--task 5-3: must be numbers and ranges",
		"cancel 7 --task 1%2":             "must be numbers and ranges",
		"cancel 7 --array 20":             "job 7 has 2 stages: name one with --stage",
		"cancel 7 --array 20 --stage map": "stage map of job 7 is no array",
		"cancel 7 --task 1 --dry-run":     "--dry-run goes with flags that choose jobs",
		"cancel --all --task 1":           "go with the number of one job",
	} {
		s.run(strings.Fields(line)...).expect(t, cli.CodeUsage, "", want)
	}
	s.run("cancel", "7", "--array", "25", "--stage", "reduce").expect(t, cli.CodeNotFound, "", "the job has no task with the index 25")
	s.run("cancel", "7", "--array", "20,40-50:10", "--stage", "reduce").expect(t, 0, "Cancelled 3 tasks of job 7\n", "")
	if asked.Job != 7 || *asked.Stage != 1 || asked.Tasks.Count() != 3 || asked.Tasks.At(0) != 1 || asked.Tasks.At(2) != 4 {
		t.Errorf("asked for %+v", asked)
	}
	s.run("cancel", "7", "--task", "3").expect(t, 0, "Cancelled 1 task of job 7\n", "")
}

func TestBooksThatDoNotBalanceExitWith1(t *testing.T) {
	s := newSite(t)
	answer(s, messages.Bank, messages.VerbBooks, func(money.BooksRequest) (money.BooksReply, error) {
		return money.BooksReply{Message: "hm"}, nil
	})
	s.run("books").expect(t, cli.CodeFailed, "The books do NOT balance", "")
}

// TestConnection checks how flags, variables and files decide where to connect, and as which account.
func TestConnection(t *testing.T) {
	for name, c := range map[string]struct {
		env   map[string]string
		args  []string
		as    messages.Name
		creds string
	}{
		"as the site's default account":     {nil, []string{"books"}, "alice", "state/creds/alice.creds"},
		"as another of the site":            {nil, []string{"books", "--account", "bob"}, "bob", ""},
		"by the environment":                {map[string]string{"CANDOR_ACCOUNT": "carol"}, []string{"books"}, "carol", ""},
		"a flag wins":                       {map[string]string{"CANDOR_ACCOUNT": "carol"}, []string{"books", "--account", "bob"}, "bob", ""},
		"by the name of the credentials":    {nil, []string{"books", "--creds", "x/dave.creds"}, "dave", "x/dave.creds"},
		"an operator's command":             {nil, []string{"grant", "bob", "1", "--yes"}, "operator", "state/creds/operator.creds"},
		"an operator's view":                {nil, []string{"account", "--all"}, "operator", "state/creds/operator.creds"},
		"an operator's command as another":  {nil, []string{"grant", "bob", "1", "--yes", "--account", "alice"}, "alice", "state/creds/alice.creds"},
		"another site":                      {nil, []string{"books", "--server", "nats://else:1", "--site", "west", "--account", "erin"}, "erin", ""},
		"another site, by the environment":  {map[string]string{"CANDOR_SERVER": "nats://else:1", "CANDOR_SITE": "west", "CANDOR_CREDS": "erin.creds"}, []string{"books"}, "erin", "erin.creds"},
		"the site of this machine, by name": {nil, []string{"books", "--server", "nats://127.0.0.1:4222"}, "alice", "state/creds/alice.creds"},
		"the default state directory":       {map[string]string{"CANDOR_STATE": "", "XDG_STATE_HOME": "xdg"}, []string{"books"}, "zoe", ""},
		"the default of the default":        {map[string]string{"CANDOR_STATE": "", "HOME": "home"}, []string{"books"}, "yann", ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := fullSite(t)
			s.write("state/creds/alice.creds", "")
			s.write("state/creds/operator.creds", "")
			s.write("xdg/candor/site.json", `{"site":"west","server":"nats://h:1","default_account":"zoe"}`)
			s.write("home/.local/state/candor/site.json", `{"site":"west","server":"nats://h:1","default_account":"yann"}`)
			for k, v := range c.env {
				if k == "HOME" || k == "XDG_STATE_HOME" {
					v = s.path(v)
				}
				s.env[k] = v
			}
			s.run(c.args...).expect(t, cli.CodeOK, "", "")
			if len(s.callers) != 1 || s.callers[0] != c.as {
				t.Errorf("asked as %v, want %s", s.callers, c.as)
			}
			if got := strings.TrimPrefix(s.last.Creds, s.dir+"/"); got != c.creds {
				t.Errorf("credentials %q, want %q", got, c.creds)
			}
		})
	}
}

// TestWrongFlags checks that an error about a wrong flag names the flag as the user typed it, and says what to type
// instead.
func TestWrongFlags(t *testing.T) {
	s := newSite(t)
	for line, want := range map[string]string{
		"change 7":                 "say what to change: --budget, --rate, --name, --comment, --time, --max-running, --after or --after-nothing",
		"change 7 --time-limit 1h": "unknown flag: --time-limit: did you mean --time?",
		"withdraw alice 5":         "candor withdraw: missing: --reason\nSee: candor withdraw --help\n",
		"grant alice -5":           "unknown shorthand flag: '5' in -5: a number begins with no dash",
	} {
		s.run(strings.Fields(line)...).expect(t, cli.CodeUsage, "", want)
	}
}

func TestWithoutASite(t *testing.T) {
	s := newSite(t)
	s.env["CANDOR_STATE"] = s.path("nothing")
	s.run("jobs").expect(t, cli.CodeUnavailable, "", "start one with candor up, or name one with --server (Unavailable)\n")
	s.write("nothing/site.json", "{")
	s.run("jobs").expect(t, cli.CodeUsage, "", "restart the site with candor up")
}

// TestEveryCommandHasHelp checks that every command has a short help and an example, and that --help works for every
// command.
func TestEveryCommandHasHelp(t *testing.T) {
	s := newSite(t)
	a := cli.New()
	walk(root(a, nil), func(c *cobra.Command) {
		if !c.Runnable() || c.Name() == "help" {
			return
		}
		if c.Short == "" || c.Example == "" {
			t.Errorf("%s has no short help or no example", c.CommandPath())
		}
		for line := range strings.Lines(strings.ReplaceAll(c.Example, "\n      ", " ")) { // join continued lines
			if !strings.HasPrefix(line, "  ") || !strings.Contains(line, "candor ") {
				t.Errorf("%s: example %q", c.CommandPath(), line)
			}
		}
		line := append(strings.Fields(c.CommandPath())[1:], "--help")
		s.run(line...).expect(t, cli.CodeOK, "Usage:", "")
	})
	for _, topic := range []string{"exit-codes", "environment", "job-file"} {
		s.run("help", topic).expect(t, cli.CodeOK, "candor", "")
	}
}

func walk(c *cobra.Command, f func(*cobra.Command)) {
	f(c)
	for _, child := range c.Commands() {
		walk(child, f)
	}
}

func TestCompletion(t *testing.T) {
	s := fullSite(t)
	for line, want := range map[string]string{
		"job":              "104\tWaiting waits",
		"why":              "104\tWaiting waits",
		"logs":             "104\tWaiting waits",
		"cancel":           "104\tWaiting waits",
		"hold":             "104\tWaiting waits",
		"release":          "104\tWaiting waits",
		"change":           "104\tWaiting waits",
		"rerun":            "104\tWaiting waits",
		"requeue":          "104\tWaiting waits",
		"account":          "climate\t79.5 credits available",
		"statement":        "climate\t79.5 credits available",
		"grant":            "climate\t79.5 credits available",
		"jobs --owner":     "climate\t79.5 credits available",
		"submit --project": "climate\t79.5 credits available",
		"submit --market":  "night\tfifo",
		"submit --class":   "gpu\tof market night",
	} {
		args := append([]string{"__complete"}, strings.Fields(line)...)
		got := s.run(append(args, "")...)
		got.expect(t, cli.CodeOK, want, "")
		if strings.Contains(got.out, "$site") {
			t.Errorf("%s: completes an account that is the bank's own: %s", line, got.out)
		}
	}
}

// TestFurtherCommands checks the exit codes of commands that other packages add. The exit code comes from the kind of
// the command's error, or from the error's method ExitCode.
func TestFurtherCommands(t *testing.T) {
	for _, c := range []struct {
		err  error
		code int
		text string
	}{
		{nil, 0, ""},
		{fmt.Errorf("plain"), 1, "candor extra: plain\n"},
		{messages.Errorf(messages.Insufficient, "no money"), 5, "candor extra: no money (Insufficient)\n"},
		{cli.ExitStatus(7), 7, ""},
	} {
		s := newSite(t)
		s.further = func() []Group {
			return []Group{{"More:", []*cobra.Command{{Use: "extra", RunE: func(*cobra.Command, []string) error { return c.err }}}}}
		}
		if got := s.run("extra"); got.code != c.code || got.err != c.text {
			t.Errorf("%v: got %+v", c.err, got)
		}
		s.run("--help").expect(t, 0, "More:\n  extra", "")
	}
}

// disorder is an error of another package's command with its own exit code.
type disorder struct{ error }

func (disorder) ExitCode() int { return cli.CodeFailed }

// TestFurtherCommandsInterrupted interrupts a command, which then returns an error. The error must not be printed,
// because it only reports the interrupt. Only an error with its own exit code must be printed.
func TestFurtherCommandsInterrupted(t *testing.T) {
	for _, c := range []struct {
		err  error
		code int
		text string
	}{
		{nil, cli.CodeOK, ""},
		{fmt.Errorf("gave up"), cli.CodeInterrupted, ""},
		{disorder{fmt.Errorf("the lock is gone")}, cli.CodeFailed, "candor extra: the lock is gone\n"},
	} {
		s := newSite(t)
		ctx, interrupt := context.WithCancel(t.Context())
		s.further = func() []Group {
			return []Group{{"More:", []*cobra.Command{{Use: "extra", RunE: func(*cobra.Command, []string) error { interrupt(); return c.err }}}}}
		}
		if got := s.runIn(ctx, "extra"); got.code != c.code || got.err != c.text {
			t.Errorf("%v: got %+v", c.err, got)
		}
	}
}

func TestSchema(t *testing.T) {
	s := newSite(t)
	s.run("schema").expect(t, cli.CodeOK, "candor.SITE.auctioneer.submit.ACCOUNT", "")
	s.run("schema", "--json").expect(t, cli.CodeOK, `"subject":"candor.`, "")
	s.run("schema", "JobSpec").expect(t, cli.CodeOK, `"$schema": "https://json-schema.org/draft/2020-12/schema"`, "")
	s.run("schema", "JobSpecs").expect(t, cli.CodeNotFound, "", "did you mean JobSpec?")
}
