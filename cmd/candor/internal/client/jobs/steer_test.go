package jobs_test

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/candor-grid/candor/cmd/candor/internal/client/cli"
	"github.com/candor-grid/candor/cmd/candor/internal/client/clienttest"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/agent"
	jobmsg "github.com/candor-grid/candor/messages/job"
)

func TestSteering(t *testing.T) {
	s := clienttest.AnswerAll(newSite(t))
	clienttest.Answer(s, messages.Auctioneer, jobmsg.VerbHold, func(r jobmsg.JobRequest) (jobmsg.HoldReply, error) {
		return jobmsg.HoldReply{Job: r.Job, Hold: true, Changed: r.Job != 3, Running: int(r.Job - 1)}, nil
	})
	clienttest.Answer(s, messages.Auctioneer, jobmsg.VerbRelease, func(r jobmsg.JobRequest) (jobmsg.HoldReply, error) {
		return jobmsg.HoldReply{Job: r.Job, Changed: r.Job != 3}, nil
	})
	s.Run("hold", "1", "2", "3", "4").Expect(t, cli.CodeOK, "Job 1 is on hold\nJob 2 is on hold; 1 task goes on\nJob 3 is on hold already\nJob 4 is on hold; 3 tasks go on\n", "")
	s.Run("release", "1", "3").Expect(t, cli.CodeOK, "Released job 1\nJob 3 is not on hold\n", "")
	s.Run("hold", "x").Expect(t, cli.CodeUsage, "", `"x" is not the number of a job`)
	var asked jobmsg.RequeueRequest
	clienttest.Answer(s, messages.Auctioneer, jobmsg.VerbRequeue, func(r jobmsg.RequeueRequest) (jobmsg.RequeueReply, error) {
		asked = r
		return jobmsg.RequeueReply{Job: r.Job, Tasks: 2}, nil
	})
	s.Run("requeue", "103").Expect(t, cli.CodeOK, "Job 103: 2 tasks are ended and will run again\n", "")
	if asked.Stage != nil || asked.Task != nil {
		t.Errorf("asked for %+v", asked)
	}
	stage := clienttest.Job().Stages[1].Name
	s.Run("requeue", "103", "--task", "5", "--stage", stage).Expect(t, cli.CodeOK, "2 tasks", "")
	if asked.Stage == nil || *asked.Stage != 1 || asked.Task == nil || *asked.Task != 5 {
		t.Errorf("asked for %+v", asked)
	}
	s.Run("requeue", "103", "--stage", "nosuch").Expect(t, cli.CodeNotFound, "", "--stage nosuch: job 103 has no such stage")
	s.Run("requeue", "103", "--task", "5").Expect(t, cli.CodeUsage, "", "name one with --stage")
}

// Wrong values are refused before the site is asked.
func TestChange(t *testing.T) {
	s := clienttest.AnswerAll(newSite(t))
	var asked []jobmsg.ChangeRequest
	var pending messages.Credits
	clienttest.Answer(s, messages.Auctioneer, jobmsg.VerbChange, func(r jobmsg.ChangeRequest) (jobmsg.ChangeReply, error) {
		asked = append(asked, r)
		return jobmsg.ChangeReply{Job: r.Job, Budget: 12 * messages.Credit, Pending: pending}, nil
	})
	stage := clienttest.Job().Stages[1].Name
	s.Run("change", "103", "--key", "k", "--name", "again", "--comment", "", "--after", "7").Expect(t, cli.CodeUsage, "", "--comment")
	s.Run("change", "103", "--key", "k", "--name", "again", "--max-running", "0", "--after", "7", "--rate", "36/h").Expect(t, cli.CodeOK, "Job 103 is changed; its budget is 12 credits\n", "")
	pending = 20 * messages.Credit
	s.Run("change", "103", "--key", "k", "--budget", "20", "--time", "2h", "--stage", stage, "--after-nothing").
		Expect(t, cli.CodeOK, "Job 103 is changed; its budget of 12 credits becomes 20 as soon as the bank answers\n", "")
	want := []jobmsg.ChangeRequest{
		{Key: "k", Job: 103, Name: "again", MaxRunning: new(0), Rate: 10_000, Waits: &jobmsg.Conditions{AfterJobs: []messages.JobID{7}}},
		{Key: "k", Job: 103, Budget: 20 * messages.Credit, Stage: new(1), TimeLimit: messages.Duration(2 * time.Hour), Waits: &jobmsg.Conditions{}},
	}
	if !reflect.DeepEqual(asked, want) {
		t.Errorf("asked for %+v, want %+v", asked, want)
	}
	for line, says := range map[string]string{
		"change 103 --budget 0":                "--budget \"0\": must be a number of credits above 0",
		"change 103 --rate much":               "--rate \"much\": must be a number of credits above 0",
		"change 103 --time soon":               "--time: ",
		"change 103 --after 7 --after-nothing": "--after-nothing and the other --after options exclude each other",
		"change 103 --after x":                 "is not the number of a job",
		"change x --name a":                    "is not the number of a job",
	} {
		s.Run(strings.Fields(line)...).Expect(t, cli.CodeUsage, "", says)
	}
	s.Run("change", "103", "--stage", "nosuch", "--time", "1h").Expect(t, cli.CodeNotFound, "", "job 103 has no such stage")
	if len(asked) != 2 {
		t.Errorf("wrong values were sent: %+v", asked[2:])
	}
}

// candor signal must count the tasks that got the signal. A task that has just ended did not get it: it must not be
// counted, and this is no error. If the signal fails for another reason, the error must name the task and its node.
func TestSignal(t *testing.T) {
	s := newSite(t)
	clienttest.Reply(s, messages.Auctioneer, messages.VerbJob, twoStages(jobmsg.Running, 3, 0))
	states := []string{"Running", "Suspended", "Done"}
	withTasks(s, func() (all []jobmsg.TaskStatus) {
		for index, state := range states {
			one := task(attempt(0, uint32(index), 1), "n1")
			one.State = state
			all = append(all, one)
		}
		return all
	})
	var sent []string
	var failure error
	clienttest.ServeAt(s, agent.StreamSubject("west", "n1", "*"), messages.VerbStream, func(r agent.StreamRequest) (agent.StreamReply, error) {
		sent = append(sent, fmt.Sprintf("%s to %d", r.Signal, r.Attempt.Task.Index))
		if r.Attempt.Task.Index == 1 {
			return agent.StreamReply{}, failure
		}
		return agent.StreamReply{}, nil
	})
	s.Run("signal", "5", "usr1").Expect(t, cli.CodeOK, "Sent SIGUSR1 to 2 tasks of job 5\n", "")
	s.Run("signal", "5", "15", "--stage", "map", "--task", "0").Expect(t, cli.CodeOK, "Sent SIGTERM to 1 task of job 5\n", "")
	failure = messages.Errorf(messages.Ended, "task ended")
	s.Run("signal", "5", "SIGTERM").Expect(t, cli.CodeOK, "Sent SIGTERM to 1 task of job 5\n", "")
	if want := []string{"USR1 to 0", "USR1 to 1", "TERM to 0", "TERM to 0", "TERM to 1"}; !slices.Equal(sent, want) {
		t.Errorf("sent %q, want %q", sent, want)
	}
	failure = messages.Errorf(messages.PermissionDenied, "not yours")
	s.Run("signal", "5", "HUP").Expect(t, cli.CodeDenied, "", "on n1: not yours")
	s.Run("signal", "5", "NOSUCH").Expect(t, cli.CodeUsage, "", "signal NOSUCH: is not one of")
	states = []string{"Done", "Done", "Pending"}
	s.Run("signal", "5", "HUP").Expect(t, cli.CodeFailed, "", "none of the chosen tasks runs: \"candor tasks 5\" lists all tasks")
}
