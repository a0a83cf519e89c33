package submit_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"reflect"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/candor-grid/candor/cmd/candor/internal/client/submit"

	"github.com/candor-grid/candor/cmd/candor/internal/client/cli"
	"github.com/candor-grid/candor/cmd/candor/internal/client/clienttest"
	"github.com/candor-grid/candor/messages"
	jobmsg "github.com/candor-grid/candor/messages/job"
	"github.com/candor-grid/candor/messages/wire"
)

func newSite(t *testing.T) *clienttest.Site { return clienttest.New(t, submit.Commands) }

func TestSubmitAScript(t *testing.T) {
	s := newSite(t)
	taken := clienttest.Submissions(s)
	script := "#!/bin/sh\n#CANDOR --budget 12.5 --class map --name ignored\nsort input\n"
	s.Write("sort.sh", script)
	s.Run("submit", "--name", "sorting", "-t", "90s", s.Path("sort.sh")).Expect(t, 0, "Submitted job 17 (12.5 credits held from alice)\n", "")
	got := (*taken)[0]
	want := jobmsg.JobSpec{Name: "sorting", Budget: 12_500_000, Dir: s.Dir,
		Stages: []jobmsg.Stage{{Name: "main", Class: "map", Script: script, TimeLimit: 90e9}}}
	if got.Key == "" || got.DryRun || !equalJSON(t, got.Spec, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
	if s.Callers[0] != "alice" {
		t.Errorf("submitted as %q, want the site's default account", s.Callers[0])
	}
}

// With a strict umask, the files of tasks are private.
func TestSubmissionsCarryTheUmask(t *testing.T) {
	s := newSite(t)
	taken := clienttest.Submissions(s)
	for mask, want := range map[int]string{0o077: "077", 0o022: "", 0: "000"} {
		before := syscall.Umask(mask)
		s.Run("submit", "-b", "1", "--wrap", "true").Expect(t, 0, "Submitted job 17 (1 credit held from alice)\n", "")
		after := syscall.Umask(before)
		if got := (*taken)[len(*taken)-1].Spec.Umask; got != want || after != mask {
			t.Errorf("umask %03o: submitted %q, want %q; it is %03o afterwards", mask, got, want, after)
		}
	}
}

func equalJSON(t *testing.T, a, b any) bool {
	t.Helper()
	x, err := wire.Marshal(a, wire.JSON)
	if err != nil {
		t.Fatal(err)
	}
	y, err := wire.Marshal(b, wire.JSON)
	if err != nil {
		t.Fatal(err)
	}
	return string(x) == string(y)
}

// If a job needs nothing from the user's own site, it must go to the site that the operator or the user has chosen.
func TestJobsThatCanRunAnywhereGoToTheSiteOfTheEnvironment(t *testing.T) {
	s := newSite(t)
	taken := clienttest.Submissions(s)
	s.Write("job.sh", "#!/bin/sh\ntrue\n")
	sent := func(arguments ...string) messages.Name {
		t.Helper()
		*taken = nil
		if s.Run(append(append([]string{"submit"}, arguments...), s.Path("job.sh"))...); len(*taken) != 1 {
			t.Fatalf("%d jobs were submitted", len(*taken))
		}
		return (*taken)[0].Site
	}
	if to := sent("-b", "2", "-D", "-"); to != "" {
		t.Errorf("without a word of anybody the job went to %q", to)
	}
	s.Env["CANDOR_JOB_SITE"] = "auto"
	for _, c := range []struct {
		arguments string
		want      messages.Name
	}{
		{"-b 2 -D -", "auto"},
		{"-b 2 --output out.txt", "auto"},
		{"-b 2 -D - --site east", "east"},
		{"-b 2", ""},                     // the job needs the user's directory, so it stays at the user's site
		{"-D -", ""},                     // only the market of the user's site gives the job a default budget
		{"-b 2 -D - --after 7", ""},      // the job must wait for job 7, which is at the user's site
		{"-b 2 -D - --hold", ""},         // only the user's site keeps jobs on hold
		{"-b 2 -D - --contract q-1", ""}, // the contract is with the user's site
	} {
		if to := sent(strings.Fields(c.arguments)...); to != c.want {
			t.Errorf("%s: the job went to %q, want %q", c.arguments, to, c.want)
		}
	}
}

func TestSubmitADocument(t *testing.T) {
	s := newSite(t)
	taken := clienttest.Submissions(s)
	s.Write("flights.yaml", "budget: 1\ndir: data\ncommand: [hostname]\n")
	s.Run("submit", s.Path("flights.yaml"), "--array", "0-4%2", "--env", "LANG", "--export=ALL", "--chdir", "other", "-A", "climate").
		Expect(t, 0, "Submitted job 17 (1 credit held from alice)\n", "")
	want := jobmsg.JobSpec{Name: "flights", Project: "climate", Budget: messages.Credit, Dir: s.Path("other"),
		Env:    jobmsg.Env{{Name: "LANG", Value: "C"}},
		Stages: []jobmsg.Stage{{Name: "main", Command: []string{"hostname"}, MaxRunning: 2, Array: jobmsg.Array{{First: 0, Last: 4, Step: 1}}}}}
	if got := (*taken)[0].Spec; !equalJSON(t, got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
}

func TestSubmitStandardInput(t *testing.T) {
	for name, c := range map[string]struct {
		in     string
		args   []string
		script string
	}{
		"a script":                        {"#!/bin/sh\ndate\n", []string{"submit", "-b", "1", "-"}, "#!/bin/sh\ndate\n"},
		"a script without its first line": {"date\n", []string{"submit", "-b", "1"}, "date\n"},
		"a document":                      {"script: date\nbudget: 1\n", []string{"submit"}, "date"},
		"what looks like a document":      {"script: date\n", []string{"submit", "--script", "-b", "1"}, "script: date\n"},
		"a script with arguments":         {"echo $1", []string{"submit", "-b", "1", "-", "a", "--", "-x"}, "set -- 'a' '-x' # the script goes on in line 2\necho $1"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t)
			taken := clienttest.Submissions(s)
			s.In = c.in
			s.Run(c.args...).Expect(t, 0, "Submitted job 17", "")
			if len(*taken) != 1 || (*taken)[0].Spec.Name != "stdin" || (*taken)[0].Spec.Stages[0].Script != c.script {
				t.Errorf("got %+v, want the script %q", *taken, c.script)
			}
		})
	}
}

func TestSubmitDryRun(t *testing.T) {
	s := newSite(t)
	taken := clienttest.Submissions(s)
	s.In = "date"
	s.Run("submit", "-b", "2", "--dry-run", "--wait", "--chdir", "-").Expect(t, 0, "The site would take this job: 3 tasks in market main, 2 credits held from alice\n", "")
	if got := (*taken)[0]; !got.DryRun || got.Spec.Dir != "" {
		t.Errorf("got %+v", got)
	}
}

func TestSubmitRefusesWhatIsIncomplete(t *testing.T) {
	s := newSite(t)
	taken := clienttest.Submissions(s)
	s.Write("plain", "hello\n")
	s.Write("two.yaml", "budget: 1\nstages: [{name: a, script: x}, {name: b, script: y}]\n")
	for _, c := range []struct {
		in   string
		args []string
		err  string
	}{
		{"", nil, "candor submit: standard input: the file is empty"},
		{"#!/bin/sh\n", []string{"-b", "1"}, "the script has no command"},
		{"budget: 1\ntasks: 10000000\nscript: date\n", nil, "candor submit: stages[0].tasks: 10000000 is above the limit of 1000000 for a job; submit several jobs (TooLarge)\n   1 | budget: 1\n>  2 | tasks: 10000000\n"},
		{"date", []string{"-b", "-1"}, "candor submit: budget: -1 must be above 0"},
		{"date", []string{"-b", "0"}, "candor submit: budget: 0 must be above 0"},
		{"", []string{"missing.sh"}, "there is no file missing.sh: put -- before a command, as in"},
		{"", []string{s.Dir}, s.Dir + " is a directory: name a file in it"},
		{"", []string{s.Path("plain")}, "is it a script or a job file?"},
		{"", []string{s.Path("two.yaml"), "--time", "5"}, "candor submit: --time: the job has 2 stages: set the value in the file, for each stage (Invalid)"},
		{"", []string{s.Path("two.yaml"), "argument"}, `"argument": a job file takes no arguments`},
		{"budget: 1\ntasks: x\n", nil, "candor submit: standard input: line 2, column 8: \"x\" is not a whole number from 0 on (Invalid)\n   1 | budget: 1\n>  2 | tasks: x\n"},
		{"#!/bin/sh\n#CANDOR --time soon\ndate\n", nil, "standard input: line 2: #CANDOR --time soon: --time: time \"soon\": write it like"},
		{"date", []string{"-b", "1", "--account", "$bank"}, `--account "$bank": is not a name`},
		{"date", []string{"-b", "1", "-x"}, "unknown shorthand flag: 'x' in -x: if the option is for the script, put -- before it"},
		{strings.Repeat("#\n", 3<<20), []string{"-b", "1"}, "standard input: is above 4 MiB"},
	} {
		s.In = c.in
		s.Run(append([]string{"submit"}, c.args...)...).Expect(t, cli.CodeUsage, "", c.err)
	}
	if len(*taken) != 0 {
		t.Errorf("%d jobs were sent", len(*taken))
	}
}

func TestSubmitReportsWhatItIgnores(t *testing.T) {
	s := newSite(t)
	clienttest.Submissions(s)
	s.In = "#!/bin/sh\n#SBATCH --mail-type=END\ndate\n"
	s.Run("submit", "-b", "1").Expect(t, 0, "Submitted job 17", "candor submit: ignored options that the job does not need (see candor help slurm): #SBATCH --mail-type (without --mail-user)\n")
}

func TestSubmitShowsTheLineThatTheSiteRefuses(t *testing.T) {
	s := newSite(t)
	clienttest.Refuse[jobmsg.SubmitRequest](s, messages.Auctioneer, messages.VerbSubmit, messages.Errorf(messages.Invalid, "stages[0].class: market main has no class gpu; its classes are map and reduce"))
	s.In = "budget: 1\nstages:\n- name: a\n  class: gpu\n  script: date\n"
	got := s.Run("submit")
	got.Expect(t, cli.CodeUsage, "", "candor submit: stages[0].class: market main has no class gpu; its classes are map and reduce (Invalid)\n")
	got.Expect(t, cli.CodeUsage, "", ">  4 |   class: gpu\n")
}

// After an unknown outcome, the command must repeat the submission with the same key.
func TestSubmitRepeatsUnderTheSameKey(t *testing.T) {
	s := newSite(t)
	var sent []jobmsg.SubmitRequest
	clienttest.Answer(s, messages.Auctioneer, messages.VerbSubmit, func(r jobmsg.SubmitRequest) (jobmsg.SubmitReply, error) {
		sent = append(sent, r)
		switch len(sent) {
		case 1:
			return jobmsg.SubmitReply{}, messages.Errorf(messages.NotLeader, "an election is on")
		case 2:
			return jobmsg.SubmitReply{}, messages.Errorf(messages.Unknown, "leadership was lost")
		}
		return jobmsg.SubmitReply{Job: 17, Payer: "alice"}, nil
	})
	s.In = "date"
	s.Run("submit", "-b", "1").Expect(t, 0, "Submitted job 17", "")
	if len(sent) != 3 || sent[0].Key == "" || !reflect.DeepEqual(sent[0], sent[1]) || !reflect.DeepEqual(sent[1], sent[2]) {
		t.Errorf("sent %+v", sent)
	}
	s.Run("submit", "-b", "1", "--key", "mine").Expect(t, 0, "", "")
	if sent[3].Key != "mine" {
		t.Errorf("key %q, want mine", sent[3].Key)
	}
}

func TestSubmitSaysHowToAskAgain(t *testing.T) {
	s := newSite(t)
	s.In = "date"
	s.Run("submit", "-b", "1", "--key", "k1", "--timeout", "1ms").Expect(t, cli.CodeUnavailable, "", "repeat the command with --key k1, which cannot submit it twice (Unavailable)")
}

func TestSubmitWaitExitsAsTheJobDid(t *testing.T) {
	for name, c := range map[string]struct {
		end  jobmsg.JobSummary
		code int
		out  string
	}{
		"completed":          {jobmsg.JobSummary{State: jobmsg.Completed, Done: 3, Charged: 2_500_000, Ended: clienttest.At(65)}, 0, "Job 17 Completed in 1m05s: 3 of 3 tasks done, 2.5 of 12.5 credits charged to alice\n"},
		"failed":             {jobmsg.JobSummary{State: jobmsg.Failed, ExitCode: 42, Ended: clienttest.At(1)}, 42, "See `candor logs 17`"},
		"failed to start":    {jobmsg.JobSummary{State: jobmsg.Failed, Ended: clienttest.At(1)}, 1, "Failed"},
		"failed by a signal": {jobmsg.JobSummary{State: jobmsg.Failed, ExitCode: 137, Ended: clienttest.At(1)}, 137, "Failed"},
		"failed beyond":      {jobmsg.JobSummary{State: jobmsg.Failed, ExitCode: 256, Ended: clienttest.At(1)}, 1, "Failed"},
		"cancelled":          {jobmsg.JobSummary{State: jobmsg.Cancelled, Ended: clienttest.At(1)}, 130, "Cancelled"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t)
			clienttest.Submissions(s)
			clienttest.Progressing(s, jobmsg.JobSummary{Reason: "WaitingForShare"}, jobmsg.JobSummary{State: jobmsg.Running, Running: 1},
				jobmsg.JobSummary{State: jobmsg.Running, Running: 1}, jobmsg.JobSummary{State: jobmsg.Settling}, c.end)
			s.In = "date"
			got := s.Run("submit", "-b", "12.5", "--wait")
			got.Expect(t, c.code, c.out, "Job 17: Waiting, 0 of 3 tasks done, 0 running (WaitingForShare)\nJob 17: Running, 0 of 3 tasks done, 1 running\nJob 17: Settling")
		})
	}
}

func TestSubmitWaitAsJSONIsOneDocument(t *testing.T) {
	s := newSite(t)
	clienttest.Submissions(s)
	clienttest.Progressing(s, jobmsg.JobSummary{}, jobmsg.JobSummary{State: jobmsg.Failed, ExitCode: 3})
	s.In = "date"
	got := s.Run("submit", "-b", "1", "-W", "--json")
	var job jobmsg.JobDetail
	if err := json.Unmarshal([]byte(got.Out), &job); err != nil || got.Code != 3 || job.Job != 17 || job.State != jobmsg.Failed {
		t.Errorf("%v, %+v", err, got)
	}
}

// The wait must continue while the site does not answer for some time.
func TestSubmitWaitOutlastsAnElection(t *testing.T) {
	s := newSite(t)
	clienttest.Submissions(s)
	asked := 0
	clienttest.Answer(s, messages.Auctioneer, messages.VerbJob, func(r jobmsg.JobRequest) (jobmsg.JobDetail, error) {
		if asked++; asked < 3 {
			return jobmsg.JobDetail{}, messages.Errorf(messages.Unknown, "an election is on")
		}
		return jobmsg.JobDetail{JobSummary: jobmsg.JobSummary{Job: r.Job, State: jobmsg.Completed}}, nil
	})
	s.In = "date"
	s.Run("submit", "-b", "1", "--wait").Expect(t, 0, "Job 17 Completed", "")
	if asked < 3 {
		t.Fatalf("asked %d times", asked)
	}
}

// The command waits for a job's end by repeated requests. If a request was answered late, because the site waited for
// the end, the command repeats it at once. If it was answered at once, the command pauses first. An older site does not
// know requests that wait, so it gets requests without this field.
func TestWaitForAJob(t *testing.T) {
	const waits, doesNot, earlier = "waits", "does not", "earlier"
	for site, paused := range map[string]time.Duration{waits: 0, doesNot: 125 * time.Millisecond, earlier: 75*time.Millisecond + 112500*time.Microsecond} {
		s := newSite(t)
		clienttest.Submissions(s)
		asked := 0
		clienttest.Answer(s, messages.Auctioneer, messages.VerbJob, func(r jobmsg.JobRequest) (jobmsg.JobDetail, error) {
			job := jobmsg.JobSummary{Job: r.Job, State: jobmsg.Running}
			if site == earlier && r.Wait != 0 {
				return jobmsg.JobDetail{}, messages.Errorf(messages.Invalid, "JobRequest: has 2 fields where 1 are known")
			}
			if asked++; asked == 3 {
				job.State = jobmsg.Completed
			} else if site == waits {
				s.Now = s.Now.Add(r.Wait.Std())
			}
			return jobmsg.JobDetail{JobSummary: job}, nil
		})
		s.In = "date"
		s.Run("submit", "-b", "1", "--wait").Expect(t, 0, "Job 17 Completed", "")
		if s.Paused != paused {
			t.Errorf("a site that %s: paused for %v, want %v", site, s.Paused, paused)
		}
	}
}

func TestAnInterruptEndsTheWaitAndNotTheJob(t *testing.T) {
	s := newSite(t)
	clienttest.Submissions(s)
	ctx, interrupt := context.WithCancel(t.Context())
	clienttest.Answer(s, messages.Auctioneer, messages.VerbJob, func(r jobmsg.JobRequest) (jobmsg.JobDetail, error) {
		interrupt()
		return jobmsg.JobDetail{JobSummary: jobmsg.JobSummary{Job: r.Job, State: jobmsg.Running}}, nil
	})
	s.In = "date"
	s.RunIn(ctx, "submit", "-b", "1", "--wait").Expect(t, cli.CodeInterrupted, "Submitted job 17", "Job 17 goes on; \"candor cancel 17\" ends the job.\n")
}

// Standard output must have only the job's number, for scripts. The market decides the budget of a job that has none.
func TestSubmitOfCommands(t *testing.T) {
	s := newSite(t)
	s.Env["CANDOR_BUDGET"] = ""
	taken := clienttest.Submissions(s)
	last := func() jobmsg.JobSpec { return (*taken)[len(*taken)-1].Spec }
	s.Run("submit", "-b", "1", "--", "ls", "-l", "a b").Expect(t, 0, "Submitted job 17 (1 credit held from alice)\n", "")
	if got := last(); !slices.Equal(got.Stages[0].Command, []string{"ls", "-l", "a b"}) || got.Name != "ls" {
		t.Errorf("a bare command is %+v", got)
	}
	s.Run("submit", "--id-only", "-b", "1", "-o", "%j.txt", "--", "ls", "it's").Expect(t, 0, "17\n", "")
	if got := last().Stages[0].Script; !strings.Contains(got, ".txt") || !strings.Contains(got, `exec 'ls' 'it'\''s'`) {
		t.Errorf("a bare command with -o is %q", got)
	}
	s.Run("submit", "--id-only", "--wrap", "sort x | uniq").Expect(t, 0, "17\n", "")
	if got := last(); got.Budget != 0 || got.Stages[0].Script != "#!/bin/sh\nsort x | uniq\n" {
		t.Errorf("--wrap sent %+v", got)
	}
	s.Env["CANDOR_BUDGET"] = "3"
	s.Run("submit", "--id-only", "--", "true").Expect(t, 0, "17\n", "")
	if got := last().Budget; got != 3*messages.Credit {
		t.Errorf("CANDOR_BUDGET=3 is a budget of %v", got)
	}
	for _, bad := range [][]string{{"submit", "-b", "0", "--", "true"}, {"submit", "--wrap", "true", "x.sh"}, {"submit", "-b", "1", "--", ""}} {
		if r := s.Run(bad...); r.Code != cli.CodeUsage {
			t.Errorf("%q ended with %d: %s", bad, r.Code, r.Err)
		}
	}
}

// No task can run in a directory that contains the site's state, because tasks cannot see it. If the user names such a
// directory, candor submit must refuse it. If it is only the current directory, the task must get a new directory
// instead, and candor submit must say so.
func TestSubmitSaysThatNoTaskSeesTheState(t *testing.T) {
	s := newSite(t)
	taken := clienttest.Submissions(s)
	s.Write("state/site.json", `{"site":"west","server":"nats://127.0.0.1:4222","default_account":"alice","hidden":["`+s.Dir+`"]}`)
	s.In = "date"
	s.Run("submit", "-b", "2", "--script", "--chdir", s.Dir).Expect(t, 2, "", "candor submit: --chdir "+s.Dir+": tasks cannot see "+s.Dir+", because it holds the state of the site; so no task can run in "+s.Dir+"; use another directory\n")
	s.Run("submit", "-b", "2", "--script").Expect(t, 0, "Submitted job 17", "candor submit: the tasks run in new directories of their own, not here: tasks cannot see "+s.Dir)
	s.Run("submit", "-b", "2", "--script", "--chdir", "/").Expect(t, 0, "Submitted job 17", "")
	if len(*taken) != 2 || (*taken)[0].Spec.Dir != "" || (*taken)[1].Spec.Dir != "/" {
		t.Errorf("got %+v", *taken)
	}
}

// The commands read a script or file names from a terminal. The first interrupt must end them.
func TestAnInterruptEndsTyping(t *testing.T) {
	s := newSite(t)
	for _, line := range []string{"submit --budget 1 -", "submit --budget 1 --each -", "quote -", "estimate -"} {
		var out, errs bytes.Buffer
		a := s.App(&out, &errs)
		in, typed := io.Pipe()
		defer typed.Close()
		a.In = in
		ctx, interrupt := context.WithCancel(t.Context())
		interrupt()
		if code := s.Execute(ctx, a, strings.Fields(line)...); code != cli.CodeInterrupted || errs.Len() > 0 {
			t.Errorf("%s: exit code %d, %s", line, code, &errs)
		}
	}
}

func TestSubmitSaysWhatIsBid(t *testing.T) {
	s := newSite(t)
	taken := clienttest.Submissions(s)
	s.Write("job.yaml", "budget: 9\ncommand: [hostname]\ntasks: 4\ngang: true\nvalue: 7\ndelay: 0.25\nlength: 1h\ndeadline: +6h\nafter_jobs: 3\nafter_ok: [4, 5]\n")
	s.Run("submit", s.Path("job.yaml"), "--rate", "1.5", "--contract", "q7-3", "--after", "6,7").Expect(t, cli.CodeOK, "Submitted job 17", "")
	got := (*taken)[0].Spec
	hour := messages.Duration(time.Hour)
	if got.Rate != 1_500_000 || got.Value != 7*messages.Credit || got.Delay != 250_000 || got.Length != hour || got.Deadline != clienttest.At(7*3600) || got.Contract != "q7-3" ||
		!got.Stages[0].Gang || !reflect.DeepEqual(got.AfterJobs, []messages.JobID{6, 7}) || !reflect.DeepEqual(got.AfterOK, []messages.JobID{4, 5}) {
		t.Errorf("submitted %+v", got)
	}
	s.Run("submit", "-b", "1", "--deadline", "2027-01-31T12:00:00Z", "--gang", "-n", "2", "--after-ok", "8", "--value", "3", "--delay", "1", "--length", "90s", s.Path("job.yaml")).
		Expect(t, cli.CodeOK, "Submitted job 17", "")
	got = (*taken)[1].Spec
	if got.Deadline != messages.TimeOf(time.Date(2027, 1, 31, 12, 0, 0, 0, time.UTC)) || got.Stages[0].Tasks != 2 || got.Length != messages.Duration(90*time.Second) {
		t.Errorf("submitted %+v", got)
	}
	for flag, says := range map[string]string{"--deadline=tomorrow": "is not a time", "--deadline=+x": "not a span", "--after=0": "not the number of a job", "--rate=NaN": "decimal number"} {
		s.Run("submit", flag, s.Path("job.yaml")).Expect(t, cli.CodeUsage, "", says)
	}
	for line, says := range map[string]string{"deadline: soon": "is not a time", "after_ok: [x]": "not the number", "rate: NaN": "NaN", "valuation: {class: hard, max: .nan}": "not a number"} {
		s.Write("bad.yaml", "budget: 1\ncommand: [x]\n"+line+"\n")
		s.Run("submit", s.Path("bad.yaml")).Expect(t, cli.CodeUsage, "", says)
	}
}
