package client

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/candor-grid/candor/deploy/depot"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/bus"
	"github.com/candor-grid/candor/messages/job"
)

// withDepot gives the site a depot, which stores files.
func withDepot(s *fakeSite) {
	s.t.Helper()
	d, err := depot.Start(depot.Config{Site: "west", Bus: s.net.Connect("$depot"), Operator: "operator"})
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { d.Close() })
}

// stored returns the content of a file of alice in the depot.
func stored(s *fakeSite, f job.File) string {
	s.t.Helper()
	var content strings.Builder
	err := bus.ReceiveFile(s.t.Context(), s.net.Connect("alice"), messages.Subject("west", messages.Depot, job.VerbGet, "alice"), messages.Attempt{}, f, &content)
	if err != nil {
		s.t.Error(err)
	}
	return content.String()
}

func TestSubmitSendsInputs(t *testing.T) {
	s := newSite(t)
	taken := submissions(s)
	withDepot(s)
	s.write("data.csv", "1,2\n")
	s.write("tool", "#!/bin/sh\n")
	if err := os.Chmod(s.path("tool"), 0o755); err != nil {
		t.Fatal(err)
	}
	s.write("run.sh", "#!/bin/sh\n#CANDOR -b 1 --input data.csv=in/data --output 'out/*'\ntrue\n")
	for range 2 {
		s.run("submit", "--input", s.path("tool"), "--output", "log", s.path("run.sh")).expect(t, 0, "Submitted job 17", "")
	}
	spec := (*taken)[1].Spec
	if stage := spec.Stages[0]; spec.Dir != "" || len(stage.Inputs) != 2 || fmt.Sprint(stage.Outputs) != "[out/* log]" {
		t.Fatalf("submitted %+v", spec)
	}
	in := spec.Stages[0].Inputs
	if in[0].Name != "in/data" || in[0].Executable || stored(s, in[0]) != "1,2\n" || in[1].Name != "tool" || !in[1].Executable || stored(s, in[1]) != "#!/bin/sh\n" {
		t.Errorf("inputs are %+v", in)
	}
}

func TestSubmitAJobFileWithFiles(t *testing.T) {
	s := newSite(t)
	taken := submissions(s)
	withDepot(s)
	s.write("a", "a")
	s.write("b", "b")
	s.write("job.yaml", `
budget: 1
inputs: a
stages:
  - {name: one, command: ["true"], inputs: [b=x/b], outputs: "*.csv"}
  - {name: two, command: ["true"]}
`)
	s.run("submit", s.path("job.yaml")).expect(t, 0, "Submitted job 17", "")
	var got []string
	for _, stage := range (*taken)[0].Spec.Stages {
		for _, f := range stage.Inputs {
			got = append(got, stage.Name+" "+f.Name+" "+stored(s, f))
		}
	}
	if fmt.Sprint(got) != "[one a a one x/b b two a a]" {
		t.Errorf("submitted %q", got)
	}
}

// TestSubmitRefusesFiles checks that files that cannot go with a job are refused by name before any request. The site
// of this test has no auctioneer and no depot.
func TestSubmitRefusesFiles(t *testing.T) {
	s := newSite(t)
	s.write("a", "a")
	s.write("run.sh", "#!/bin/sh\ntrue\n")
	if err := os.WriteFile(s.path("big"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(s.path("big"), job.MaxFile+1); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		say  string
		args []string
	}{
		{"input none: there is no file or directory ", []string{"--input", "none"}},
		{"input state: is not a regular file", []string{"--input", "state"}},
		{"input: big: is above the limit of 64 MiB", []string{"--input", "big"}},
		{"--input \"a=\": give the name of the file in the tasks after =", []string{"--input", "a="}},
		{`stages[0].inputs[0].name: "../a" must be a relative path`, []string{"--input", "a=../a"}},
		{`stages[0].inputs[1].name: "a" is the name of stages[0].inputs[0] too`, []string{"--input", "a", "--input", "run.sh=a"}},
		{`stages[0].outputs[0]: "../*" must be a relative path`, []string{"--output", "../*"}},
		{`stages[0].outputs[0]: "[" is no pattern`, []string{"--output", "["}},
		{"tasks with inputs or outputs run in a fresh directory", []string{"--input", "a", "-D", "/data"}},
	} {
		args := append([]string{"submit", "-b", "1"}, append(c.args, s.path("run.sh"))...)
		if r := s.run(args...); r.code != 2 || !strings.Contains(r.err, c.say) {
			t.Errorf("%q: exit code %d, %s\nwant %s", c.args, r.code, r.err, c.say)
		}
	}
	s.write("two.yaml", "budget: 1\nstages: [{name: a, script: x}, {name: b, script: y}]\n")
	s.run("submit", "--input", "a", s.path("two.yaml")).expect(t, 2, "", "--input: the job has 2 stages")
	s.write("bad.yaml", "budget: 1\ncommand: [x]\ninputs: {a: b}\n")
	s.run("submit", s.path("bad.yaml")).expect(t, 2, "", "")
	s.write("dir.yaml", "budget: 1\ncommand: [x]\ninputs: [[a]]\n")
	s.run("submit", s.path("dir.yaml")).expect(t, 2, "", "line 3, column 10: must be a file")
}

// withOutputs returns a site with a job whose tasks left one file each. The content of task i's file is i.
func withOutputs(t *testing.T, tasks int, name string) *fakeSite {
	s := newSite(t)
	reply(s, messages.Auctioneer, messages.VerbJob, job.JobDetail{
		JobSummary: job.JobSummary{Job: 5, Account: "alice"},
		Spec:       job.JobSpec{Stages: []job.Stage{{Name: "main", Outputs: []string{"*"}}}},
		Stages:     []job.StageStatus{{Name: "main", Tasks: tasks}}})
	var all []job.TaskOutputs
	content := map[string]string{}
	for i := range tasks {
		f, err := bus.Digest(name, strings.NewReader(fmt.Sprint(i)))
		if err != nil {
			t.Fatal(err)
		}
		content[f.Digest] = fmt.Sprint(i)
		all = append(all, job.TaskOutputs{Attempt: attempt(0, uint32(i), 1), Files: []job.File{f}})
	}
	answer(s, messages.Depot, job.VerbOutputs, func(r job.OutputsRequest) (job.OutputsReply, error) {
		if r.Account != "alice" {
			return job.OutputsReply{}, messages.Errorf(messages.PermissionDenied, "account: %q has no job 5", r.Account)
		}
		end := min(r.From+1, uint32(tasks)) // one task in each answer
		return job.OutputsReply{Tasks: all[r.From:end], Next: end}, nil
	})
	answer(s, messages.Depot, job.VerbGet, func(r job.GetRequest) (job.GetReply, error) {
		if r.Account != "alice" {
			return job.GetReply{}, messages.Errorf(messages.PermissionDenied, "account: %q has no such file", r.Account)
		}
		return job.GetReply{Size: int64(len(content[r.Digest])), Data: []byte(content[r.Digest])}, nil
	})
	return s
}

func (s *fakeSite) has(name, content string) {
	s.t.Helper()
	if got, err := os.ReadFile(s.path(name)); err != nil || string(got) != content {
		s.t.Errorf("%s holds %q, %v; want %q", name, got, err, content)
	}
}

func TestFetch(t *testing.T) {
	s := withOutputs(t, 2, "out/n")
	s.run("fetch", "5", "--list").expect(t, 0, "main.1/out/n      1  main.1", "")
	if _, err := os.Stat(s.path("main.0")); !os.IsNotExist(err) {
		t.Errorf("--list made files: %v", err)
	}
	for range 2 {
		s.run("fetch", "5", "-o", "all").expect(t, 0, "main.0/out/n", "")
	}
	s.has("all/main.0/out/n", "0")
	s.has("all/main.1/out/n", "1")
	s.run("fetch", "5", "--task", "1").expect(t, 0, "out/n", "")
	s.has("out/n", "1")
	s.run("fetch", "5", "--task", "0").expect(t, 1, "", "out/n: another file of this name exists")
	s.has("out/n", "1")
	s.run("fetch", "5", "--task", "0", "--force", "--json").expect(t, 0, `"name":"out/n"`, "")
	s.has("out/n", "0")
	s.run("fetch", "5", "--task", "2").expect(t, 3, "", "no stage of job 5 has so many tasks")
	s.run("fetch", "5", "--stage", "none").expect(t, 3, "", "has no such stage")
	s.run("fetch", "x").expect(t, 2, "", "")
	s.run("--account", "operator", "fetch", "5", "-o", "theirs").expect(t, 0, "main.0/out/n", "") // the depot allows it
	s.has("theirs/main.1/out/n", "1")
}

// TestFetchOfLongNames fetches a file with the longest name that file systems allow.
func TestFetchOfLongNames(t *testing.T) {
	long := strings.Repeat("x", 255)
	s := withOutputs(t, 1, long)
	s.run("fetch", "5").expect(t, 0, long, "")
	s.has(long, "0")
}

// TestFetchWaitsForNoPipe puts a pipe where a fetched file would go, as a task in the same directory could. The
// command must not wait for it.
func TestFetchWaitsForNoPipe(t *testing.T) {
	s := withOutputs(t, 1, "out")
	if err := errors.Join(syscall.Mkfifo(s.path("out"), 0o600), syscall.Mkfifo(s.path("out.part"), 0o600)); err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		s.run("fetch", "5").expect(t, 1, "", "another file of this name exists")
		s.run("fetch", "5", "--force").expect(t, 2, "", "out.part")
	}()
	select {
	case <-done:
	case <-time.After(time.Minute):
		t.Fatal("fetch waits for the other end of a pipe")
	}
}

// TestFetchStaysInItsDirectory checks that names from a site cannot make fetch write outside its directory.
func TestFetchStaysInItsDirectory(t *testing.T) {
	s := withOutputs(t, 1, "../out")
	s.run("fetch", "5", "-o", "below").expect(t, 2, "", "must be a relative path")
	s = withOutputs(t, 1, "link/out")
	if err := os.Symlink(t.TempDir(), s.path("link")); err != nil {
		t.Fatal(err)
	}
	s.run("fetch", "5").expect(t, 2, "", "")
	if _, err := os.Stat(s.path("link/out")); !os.IsNotExist(err) {
		t.Errorf("a link was followed: %v", err)
	}
}

func TestFetchNothing(t *testing.T) {
	s := newSite(t)
	detail := job.JobDetail{JobSummary: job.JobSummary{Job: 5, Account: "alice"}, Spec: job.JobSpec{Stages: make([]job.Stage, 1)},
		Stages: []job.StageStatus{{Name: "main", Tasks: 1}}}
	answer(s, messages.Auctioneer, messages.VerbJob, func(job.JobRequest) (job.JobDetail, error) { return detail, nil })
	withDepot(s)
	s.run("fetch", "5").expect(t, 3, "", "job 5 keeps no files: name files with --output")
	detail.Spec.Stages[0].Outputs = []string{"*"}
	s.run("fetch", "5").expect(t, 3, "", "job 5 is Waiting, and task main.0 has not left files")
	detail.State = job.Completed
	s.run("fetch", "5").expect(t, 3, "", "the depot has no list of the files of 1 of 1 task:")
}

// TestFetchSaysThatNothingMatched fetches a pattern that no file matches. The command must say so, because files that
// were there before could be taken for the result.
func TestFetchSaysThatNothingMatched(t *testing.T) {
	s := newSite(t)
	reply(s, messages.Auctioneer, messages.VerbJob, job.JobDetail{JobSummary: job.JobSummary{Job: 5, Account: "alice"},
		Spec: job.JobSpec{Stages: []job.Stage{{Outputs: []string{"*.csv", "out/*"}}}}, Stages: []job.StageStatus{{Name: "main", Tasks: 1}}})
	answer(s, messages.Depot, job.VerbOutputs, func(job.OutputsRequest) (job.OutputsReply, error) {
		return job.OutputsReply{Tasks: []job.TaskOutputs{{Attempt: attempt(0, 0, 1)}}, Next: 1}, nil
	})
	for _, list := range []string{"--list=false", "--list"} {
		s.run("fetch", "5", list).expect(t, 0, "No file of 1 ended task fits the --output patterns of job 5: *.csv, out/*\n", "")
	}
}
