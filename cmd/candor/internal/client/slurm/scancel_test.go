package slurm_test

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/candor-grid/candor/cmd/candor/internal/client/clienttest"
	"github.com/candor-grid/candor/cmd/candor/internal/client/slurm"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/agent"
	"github.com/candor-grid/candor/messages/job"
)

// cancelOf writes a request in the form "cancel 10 [{3 3 1}]": the job, and the positions of its elements.
func cancelOf(r *job.CancelRequest) string {
	if r.Tasks == nil {
		return fmt.Sprint("cancel ", r.Job)
	}
	return fmt.Sprint("cancel ", r.Job, " ", []job.Range(r.Tasks))
}

// The options of scancel that select jobs may only reduce the set of jobs that the user names. In an array, scancel
// must cancel only the elements that the user named and that have the wanted state.
func TestFiltersOfScancelOnlyTakeAway(t *testing.T) {
	s, _ := slurmSite(t)
	for line, want := range map[string][]string{
		"--me 10_3":                 {"cancel 10 [{3 3 1}]"},
		"-u alice 10_3":             {"cancel 10 [{3 3 1}]"},
		"--name array 10_[1-2]":     {"cancel 10 [{1 2 1}]"},
		"--me 10_[2,1]":             {"cancel 10 [{1 2 1}]"},
		"--me 10":                   {"cancel 10"},
		"--me 10_1 11":              {"cancel 10 [{1 1 1}]", "cancel 11"},
		"--name other 10_3":         nil,
		"-t RUNNING 10":             {"cancel 10 [{1 1 1}]"},
		"-t PENDING 10":             {"cancel 10 [{3 3 1}]"},
		"-t R --me":                 {"cancel 10 [{1 1 1}]"},
		"-t PD --me":                {"cancel 10 [{3 3 1}]", "cancel 11"},
		"-t PD,R --name array":      {"cancel 10 [{1 3 2}]"},
		"-t RUNNING 10_[1-3]":       {"cancel 10 [{1 1 1}]"},
		"-t PENDING 10_1":           nil,
		"-t PENDING 10_1 11 10_3":   {"cancel 10 [{3 3 1}]", "cancel 11"},
		"-s KILL -t RUNNING 10":     {"cancel 10 [{1 1 1}]"},
		"--partition main -u bob":   nil,
		"-t PENDING -p night 10 11": nil,
	} {
		s.Signals = nil
		if r := slurmCall(s, "scancel", strings.Fields(line)...); r.Code != 0 || !slices.Equal(s.Signals, want) {
			t.Errorf("scancel %s: %+v cancels %q, want %q", line, r, s.Signals, want)
		}
	}
}

// An array has a million elements, and every second one of the first thousand runs. One request cancels all others.
func TestScancelNamesElementsInRanges(t *testing.T) {
	s := newSite(t)
	clienttest.Answer(s, messages.Auctioneer, messages.VerbCancel, func(r job.CancelRequest) (job.CancelReply, error) {
		s.Signals = append(s.Signals, cancelOf(&r))
		return job.CancelReply{Job: r.Job}, nil
	})
	clienttest.ServeAt(s, agent.StreamSubject("west", "node2", "*"), messages.VerbStream, func(r agent.StreamRequest) (agent.StreamReply, error) {
		s.Signals = append(s.Signals, fmt.Sprintf("%v.%d %s", r.Attempt.Task, r.Attempt.Number, r.Signal))
		return agent.StreamReply{}, nil
	})
	array := job.JobSummary{Job: 40, Name: "sweep", Account: "alice", State: job.Running, Tasks: 1e6, Running: 500, Array: job.Array{{First: 1, Last: 1e6, Step: 1}}, Numbered: true}
	clienttest.Answer(s, messages.Auctioneer, messages.VerbJobs, func(r job.JobsRequest) (reply job.JobsReply, err error) {
		if (r.Jobs == nil || slices.Contains(r.Jobs, 40)) && (r.Before == 0 || r.Before > 40) {
			reply.Jobs = append(reply.Jobs, array)
		}
		return reply, nil
	})
	clienttest.Answer(s, messages.Auctioneer, messages.VerbJob, func(r job.JobRequest) (job.JobDetail, error) {
		return job.JobDetail{JobSummary: array}, nil
	})
	clienttest.Answer(s, messages.Auctioneer, messages.VerbTasks, func(r job.TasksRequest) (reply job.TasksReply, err error) {
		for i := uint32(0); i < 1000; i += 2 {
			reply.Tasks = append(reply.Tasks, job.TaskStatus{Task: messages.TaskRef{Job: 40, Index: i}, Attempt: 1, Index: i, Array: int64(i) + 1, State: "Running", Node: "node2"})
		}
		return reply, nil
	})
	for line, want := range map[string]string{
		"-t PENDING 40":         "cancel 40 [{1 999 2} {1000 999999 1}]",
		"-t RUNNING --me":       "cancel 40 [{0 998 2}]",
		"-t PENDING 40_[4-9]":   "cancel 40 [{3 7 2}]",
		"-u alice 540":          "cancel 40 [{500 500 1}]",
		"-t RUNNING 540 541":    "cancel 40 [{500 500 1}]",
		"-t PENDING 40_1000000": "cancel 40 [{999999 999999 1}]",
	} {
		s.Signals = nil
		if r := slurmCall(s, "scancel", strings.Fields(line)...); r.Code != 0 || len(s.Signals) != 1 || (s.Signals)[0] != want {
			t.Errorf("scancel %s: %+v cancels %q, want %q", line, r, s.Signals, want)
		}
	}
	s.Signals = nil
	if r := slurmCall(s, "scancel", "--me", "-s", "USR1", "540"); r.Code != 0 || len(s.Signals) != 1 || s.Signals[0] != "40.0.500.1 USR1" {
		t.Errorf("%+v sends %q", r, s.Signals)
	}
}

// Options of scancel that it cannot carry out must be refused. If it ignored them, it would cancel more than the user
// means.
func TestScancelRefusesWhatItCannotDo(t *testing.T) {
	s, _ := slurmSite(t)
	for line, want := range map[string]string{
		"-R weekend --me":      "--reservation: the site does not know which jobs name a reservation",
		"-i 10":                "--interactive asks at a terminal",
		"-M elsewhere 11":      "--clusters elsewhere: this is site west",
		"--cluster=other --me": "--clusters other: this is site west",
	} {
		if r := slurmCall(s, "scancel", strings.Fields(line)...); r.Code != 1 || !strings.Contains(r.Err, want) || s.Signals != nil {
			t.Errorf("scancel %s: %+v sends %q, want %q", line, r, s.Signals, want)
		}
	}
	if r := slurmCall(s, "scancel", "-M", "west", "11"); r.Code != 0 || !slices.Equal(s.Signals, []string{"cancel 11"}) {
		t.Errorf("%+v sends %q", r, s.Signals)
	}
}

// scancel --interactive must ask about each job at a terminal.
func TestScancelAsks(t *testing.T) {
	s, _ := slurmSite(t)
	user, tty := clienttest.OpenTerminal(t)
	var out bytes.Buffer
	a := s.App(&out, tty)
	a.In = tty
	ended := make(chan int)
	go func() {
		ended <- slurm.Run(context.Background(), a, "scancel", []string{"-i", "10_[1,3]", "11"})
	}()
	if text := clienttest.ReadUntil(t, user, "[y/n]? "); !strings.Contains(text, "Cancel job_id=10_[1,3] name=array partition=main") {
		t.Error(text)
	}
	fmt.Fprintln(user, "n")
	if text := clienttest.ReadUntil(t, user, "[y/n]? "); !strings.Contains(text, "Cancel job_id=11 ") {
		t.Error(text)
	}
	fmt.Fprintln(user, "y")
	if code := <-ended; code != 0 || !slices.Equal(s.Signals, []string{"cancel 11"}) {
		t.Errorf("exit code %d, sends %q", code, s.Signals)
	}
}

// scancel must fail if a job that it names does not exist, or if the user names a state in which no job can be
// cancelled. If a job has ended already, scancel must not fail.
func TestScancelNamesJobsThatAreNot(t *testing.T) {
	s, _ := slurmSite(t)
	for line, want := range map[string]string{
		"--me 99":         "Kill job error on job id 99: Invalid job id specified",
		"-t R 10 99":      "Kill job error on job id 99: Invalid job id specified",
		"-t COMPLETED 10": "Invalid job state specified: COMPLETED; valid: PENDING, RUNNING, SUSPENDED",
		"--me 6":          "",
	} {
		if r := slurmCall(s, "scancel", strings.Fields(line)...); (r.Code == 0) != (want == "") || !strings.Contains(r.Err, want) {
			t.Errorf("scancel %s: %+v, want %q", line, r, want)
		}
	}
}
