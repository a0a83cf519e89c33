package jobs_test

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/candor-grid/candor/cmd/candor/internal/client/clienttest"
	"github.com/candor-grid/candor/deploy/depot"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/bus"
	"github.com/candor-grid/candor/messages/job"
)

// withOutputs returns a site with a job whose tasks left one file each. The content of task i's file is i.
func withOutputs(t *testing.T, tasks int, name string) *clienttest.Site {
	s := newSite(t)
	clienttest.Reply(s, messages.Auctioneer, messages.VerbJob, job.JobDetail{
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
	clienttest.Answer(s, messages.Depot, job.VerbOutputs, func(r job.OutputsRequest) (job.OutputsReply, error) {
		if r.Account != "alice" {
			return job.OutputsReply{}, messages.Errorf(messages.PermissionDenied, "account: %q has no job 5", r.Account)
		}
		end := min(r.From+1, uint32(tasks)) // one task in each answer
		return job.OutputsReply{Tasks: all[r.From:end], Next: end}, nil
	})
	clienttest.Answer(s, messages.Depot, job.VerbGet, func(r job.GetRequest) (job.GetReply, error) {
		if r.Account != "alice" {
			return job.GetReply{}, messages.Errorf(messages.PermissionDenied, "account: %q has no such file", r.Account)
		}
		return job.GetReply{Size: int64(len(content[r.Digest])), Data: []byte(content[r.Digest])}, nil
	})
	return s
}

func has(s *clienttest.Site, name, content string) {
	s.T.Helper()
	if got, err := os.ReadFile(s.Path(name)); err != nil || string(got) != content {
		s.T.Errorf("%s holds %q, %v; want %q", name, got, err, content)
	}
}

func TestFetch(t *testing.T) {
	s := withOutputs(t, 2, "out/n")
	s.Run("fetch", "5", "--list").Expect(t, 0, "main.1/out/n      1  main.1", "")
	if _, err := os.Stat(s.Path("main.0")); !os.IsNotExist(err) {
		t.Errorf("--list made files: %v", err)
	}
	for range 2 {
		s.Run("fetch", "5", "-o", "all").Expect(t, 0, "main.0/out/n", "")
	}
	has(s, "all/main.0/out/n", "0")
	has(s, "all/main.1/out/n", "1")
	s.Run("fetch", "5", "--task", "1").Expect(t, 0, "out/n", "")
	has(s, "out/n", "1")
	s.Run("fetch", "5", "--task", "0").Expect(t, 1, "", "out/n: another file of this name exists")
	has(s, "out/n", "1")
	s.Run("fetch", "5", "--task", "0", "--force", "--json").Expect(t, 0, `"name":"out/n"`, "")
	has(s, "out/n", "0")
	s.Run("fetch", "5", "--task", "2").Expect(t, 3, "", "no stage of job 5 has so many tasks")
	s.Run("fetch", "5", "--stage", "none").Expect(t, 3, "", "has no such stage")
	s.Run("fetch", "x").Expect(t, 2, "", "")
	// an operator may fetch the files of another account
	s.Run("--account", "operator", "fetch", "5", "-o", "theirs").Expect(t, 0, "main.0/out/n", "")
	has(s, "theirs/main.1/out/n", "1")
}

func TestFetchOfLongNames(t *testing.T) {
	long := strings.Repeat("x", 255)
	s := withOutputs(t, 1, long)
	s.Run("fetch", "5").Expect(t, 0, long, "")
	has(s, long, "0")
}

// A task in the same directory could make a pipe with the name of a file to fetch. The command must not wait for this
// pipe.
func TestFetchWaitsForNoPipe(t *testing.T) {
	s := withOutputs(t, 1, "out")
	if err := errors.Join(syscall.Mkfifo(s.Path("out"), 0o600), syscall.Mkfifo(s.Path("out.part"), 0o600)); err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		s.Run("fetch", "5").Expect(t, 1, "", "another file of this name exists")
		s.Run("fetch", "5", "--force").Expect(t, 2, "", "out.part")
	}()
	select {
	case <-done:
	case <-time.After(time.Minute):
		t.Fatal("fetch waits for the other end of a pipe")
	}
}

// Names from a site cannot make fetch write outside its directory.
func TestFetchStaysInItsDirectory(t *testing.T) {
	s := withOutputs(t, 1, "../out")
	s.Run("fetch", "5", "-o", "below").Expect(t, 2, "", "must be a relative path")
	s = withOutputs(t, 1, "link/out")
	if err := os.Symlink(t.TempDir(), s.Path("link")); err != nil {
		t.Fatal(err)
	}
	s.Run("fetch", "5").Expect(t, 2, "", "")
	if _, err := os.Stat(s.Path("link/out")); !os.IsNotExist(err) {
		t.Errorf("a link was followed: %v", err)
	}
}

func TestFetchNothing(t *testing.T) {
	s := newSite(t)
	detail := job.JobDetail{JobSummary: job.JobSummary{Job: 5, Account: "alice"}, Spec: job.JobSpec{Stages: make([]job.Stage, 1)},
		Stages: []job.StageStatus{{Name: "main", Tasks: 1}}}
	clienttest.Answer(s, messages.Auctioneer, messages.VerbJob, func(job.JobRequest) (job.JobDetail, error) { return detail, nil })
	d, err := depot.Start(depot.Config{Site: "west", Bus: s.Net.Connect("$depot"), Operator: "operator"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close() })
	s.Run("fetch", "5").Expect(t, 3, "", "job 5 keeps no files: name files with --output")
	detail.Spec.Stages[0].Outputs = []string{"*"}
	s.Run("fetch", "5").Expect(t, 3, "", "job 5 is Waiting, and task main.0 has not left files")
	detail.State = job.Completed
	s.Run("fetch", "5").Expect(t, 3, "", "the site has no list of the files of 1 of 1 task:")
}

// No file of the job matches the pattern. candor fetch must say so. Otherwise the user could take older files in the
// directory for the result.
func TestFetchSaysThatNothingMatched(t *testing.T) {
	s := newSite(t)
	clienttest.Reply(s, messages.Auctioneer, messages.VerbJob, job.JobDetail{JobSummary: job.JobSummary{Job: 5, Account: "alice"},
		Spec: job.JobSpec{Stages: []job.Stage{{Outputs: []string{"*.csv", "out/*"}}}}, Stages: []job.StageStatus{{Name: "main", Tasks: 1}}})
	clienttest.Answer(s, messages.Depot, job.VerbOutputs, func(job.OutputsRequest) (job.OutputsReply, error) {
		return job.OutputsReply{Tasks: []job.TaskOutputs{{Attempt: attempt(0, 0, 1)}}, Next: 1}, nil
	})
	for _, list := range []string{"--list=false", "--list"} {
		s.Run("fetch", "5", list).Expect(t, 0, "No file of 1 ended task fits the --output patterns of job 5: *.csv, out/*\n", "")
	}
}
