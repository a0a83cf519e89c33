package jobs_test

import (
	"testing"

	"github.com/candor-grid/candor/cmd/candor/internal/client/cli"
	"github.com/candor-grid/candor/cmd/candor/internal/client/clienttest"
	"github.com/candor-grid/candor/messages"
	jobmsg "github.com/candor-grid/candor/messages/job"
)

// TestSteering checks the requests that hold, release and requeue send, and what they print.
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
