package submit_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/candor-grid/candor/cmd/candor/internal/client/cli"
	"github.com/candor-grid/candor/cmd/candor/internal/client/clienttest"
	"github.com/candor-grid/candor/messages"
	jobmsg "github.com/candor-grid/candor/messages/job"
)

// TestRerunForTheConsole writes an ended job, and the job that candor rerun submits for it. A test of the console
// checks that the console submits the same.
func TestRerunForTheConsole(t *testing.T) {
	s := newSite(t)
	stages := []jobmsg.Stage{
		{Name: "first", Class: "map", Tasks: 2, Script: "x"},
		{Name: "array", Class: "map", Array: jobmsg.Array{{First: 10, Last: 16, Step: 2}, {First: 20, Last: 20, Step: 1}}, After: []messages.Name{"first"}, Script: "x"},
		{Name: "again", Class: "map", Array: jobmsg.Array{{First: 3, Last: 5, Step: 1}}, Repeats: &jobmsg.Repeats{Tasks: 9, Positions: jobmsg.Array{{First: 2, Last: 8, Step: 3}}}, After: []messages.Name{"array"}, Script: "x"},
		{Name: "gang", Class: "map", Tasks: 2, Gang: true, Script: "x"},
	}
	job := jobmsg.JobDetail{
		JobSummary: jobmsg.JobSummary{Job: 7, State: jobmsg.Failed, Tasks: 12, Done: 6, Budget: 10*messages.Credit + 1},
		Spec:       jobmsg.JobSpec{Name: "j", Budget: 10*messages.Credit + 1, Hold: true, AfterOK: []messages.JobID{3}, RerunOf: 5, Stages: stages},
		Stages:     []jobmsg.StageStatus{{Name: "first", Tasks: 2, Done: 2}, {Name: "array", Tasks: 5, Done: 2}, {Name: "again", Tasks: 3, Done: 1}, {Name: "gang", Tasks: 2, Done: 1}},
	}
	done := [][]uint32{{0, 1}, {0, 3}, {1}, {0}}
	clienttest.Gives[jobmsg.JobRequest](messages.Auctioneer, messages.VerbJob, job)(s)
	clienttest.Answer(s, messages.Auctioneer, messages.VerbTasks, func(r jobmsg.TasksRequest) (reply jobmsg.TasksReply, err error) {
		for _, k := range done[*r.Stage] {
			reply.Tasks = append(reply.Tasks, jobmsg.TaskStatus{Task: messages.TaskRef{Job: 7, Stage: uint32(*r.Stage), Index: k}, State: "Done"})
		}
		return reply, nil
	})
	var asked jobmsg.SubmitRequest
	clienttest.Answer(s, messages.Auctioneer, messages.VerbSubmit, func(r jobmsg.SubmitRequest) (jobmsg.SubmitReply, error) {
		asked = r
		return jobmsg.SubmitReply{Job: 9, Market: "main", Payer: "alice", Held: r.Spec.Budget, Tasks: r.Spec.TaskCount()}, nil
	})
	s.Run("rerun", "7").Expect(t, cli.CodeOK, "Submitted job 9", "")
	text, err := json.MarshalIndent(map[string]any{"job": job, "done": done, "spec": asked.Spec}, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	clienttest.Golden(t, "rerun.json", string(text)+"\n")
}

// The new job must have the tasks that failed or never began, with their indices and positions, and their part of the
// budget.
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
	clienttest.Answer(s, messages.Auctioneer, messages.VerbJob, func(r jobmsg.JobRequest) (jobmsg.JobDetail, error) {
		j := old
		if r.Job == 8 {
			j.Job, j.State = 8, jobmsg.Running
		}
		if r.Job == 9 {
			j.Job, j.State = 9, jobmsg.Completed
		}
		if r.Job == 6 { // the job was cancelled, but one of its tasks has not ended yet
			j.Job, j.State, j.Running = 6, jobmsg.Cancelled, 1
		}
		if r.Job == 5 { // a job with a single task
			j.Job, j.Tasks, j.Done, j.Failed = 5, 1, 0, 1
			j.Spec.Stages, j.Stages = []jobmsg.Stage{stage("first", 1)}, []jobmsg.StageStatus{{Name: "first", Tasks: 1}}
		}
		return j, nil
	})
	clienttest.Answer(s, messages.Auctioneer, messages.VerbTasks, func(r jobmsg.TasksRequest) (reply jobmsg.TasksReply, err error) {
		for k, state := range map[int][]string{1: {"Done", "Failed", "Done", "Failed"}}[*r.Stage] {
			reply.Tasks = append(reply.Tasks, jobmsg.TaskStatus{Task: messages.TaskRef{Job: 7, Stage: 1, Index: uint32(k)}, State: state})
		}
		return reply, nil
	})
	kept := true
	clienttest.Answer(s, messages.Depot, jobmsg.VerbPut, func(r jobmsg.PutRequest) (jobmsg.PutReply, error) { return jobmsg.PutReply{Done: kept}, nil })
	var asked jobmsg.SubmitRequest
	clienttest.Answer(s, messages.Auctioneer, messages.VerbSubmit, func(r jobmsg.SubmitRequest) (jobmsg.SubmitReply, error) {
		asked = r
		return jobmsg.SubmitReply{Job: 9, Market: "main", Payer: "alice", Held: r.Spec.Budget, Tasks: r.Spec.TaskCount()}, r.Validate()
	})
	s.Run("rerun", "7").Expect(t, cli.CodeOK, "5 of the 9 tasks of job 7 did not end well; the new budget is 0.000006 credits, the old one was 0.00001 credits\nSubmitted job 9 (0.000006 credits held from alice)\n", "")
	left := jobmsg.Array{{First: 1, Last: 3, Step: 2}, {First: 4, Last: 4, Step: 1}}
	if got := asked.Spec; got.RerunOf != 7 || len(got.Stages) != 2 || !slices.Equal(got.Stages[0].Array, left) ||
		got.Stages[0].Repeats == nil || got.Stages[0].Repeats.Tasks != 5 || !slices.Equal(got.Stages[0].Repeats.Positions, left) || len(got.Stages[0].After) != 0 || got.Stages[1].Repeats != nil || len(got.Stages[1].After) != 1 {
		t.Errorf("submitted %+v", got)
	}
	s.Run("rerun", "7", "--budget", "3", "--dry-run").Expect(t, cli.CodeOK, "the new budget is 3 credits", "")
	s.Run("rerun", "7", "--wait").Expect(t, cli.CodeOK, "Submitted job 9 (0.000006 credits held from alice)\nJob 9 Completed", "")
	s.Run("rerun", "5").Expect(t, cli.CodeOK, "the only task of job 5 did not end well", "")
	s.Run("rerun", "7", "--wait", "--json").Expect(t, cli.CodeOK, `{"job":9,`, "")
	s.Run("rerun", "6").Expect(t, cli.CodeFailed, "", "job 6 is over, but 1 running task can still end well")
	s.Run("rerun", "8").Expect(t, cli.CodeFailed, "", "job 8 has not ended; \"candor requeue 8\" runs")
	kept = false
	s.Run("rerun", "7").Expect(t, cli.CodeNotFound, "", "input data: the site no longer has the file")
	kept = true
	s.Write("state/site.json", `{"site":"west","server":"nats://127.0.0.1:4222","default_account":"alice","hidden":["/secret"]}`)
	old.Spec.Dir = "/secret/keys"
	s.Run("rerun", "7").Expect(t, cli.CodeFailed, "", "job 7 ran in /secret/keys: tasks cannot see /secret")
	s.Run("rerun", "zero").Expect(t, cli.CodeUsage, "", "is not the number of a job")
}
