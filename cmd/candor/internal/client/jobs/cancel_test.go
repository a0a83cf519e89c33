package jobs_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/candor-grid/candor/cmd/candor/internal/client/cli"
	"github.com/candor-grid/candor/cmd/candor/internal/client/clienttest"
	"github.com/candor-grid/candor/messages"
	jobmsg "github.com/candor-grid/candor/messages/job"
)

func TestCancelGoesOnAfterARefusal(t *testing.T) {
	s := newSite(t)
	clienttest.Answer(s, messages.Auctioneer, messages.VerbCancel, func(r jobmsg.CancelRequest) (reply jobmsg.CancelReply, err error) {
		for _, id := range r.Jobs {
			c := jobmsg.CancelOutcome{Job: id}
			if id == 2 {
				c.Error = messages.Errorf(messages.NotFound, "does not exist")
			}
			reply.Jobs = append(reply.Jobs, c)
		}
		return reply, nil
	})
	s.Run("cancel", "1", "2", "3").Expect(t, cli.CodeNotFound, "Cancelled job 1, which was Waiting\nCancelled job 3, which was Waiting\n", "candor cancel: job 2: does not exist (NotFound)\n")
}

// Nothing may be cancelled before the user agrees. After that, exactly the listed jobs must be cancelled.
func TestWhichJobsAreCancelled(t *testing.T) {
	s := newSite(t)
	var asked []jobmsg.JobsRequest
	var cancelled [][]messages.JobID
	clienttest.Answer(s, messages.Auctioneer, messages.VerbJobs, func(r jobmsg.JobsRequest) (jobmsg.JobsReply, error) {
		asked = append(asked, r)
		return jobmsg.JobsReply{Jobs: []jobmsg.JobSummary{{Job: 9, Name: "train-b", State: jobmsg.Running}, {Job: 8, State: jobmsg.Settling}, {Job: 7, Name: "train-a"}}}, nil
	})
	clienttest.Answer(s, messages.Auctioneer, messages.VerbCancel, func(r jobmsg.CancelRequest) (reply jobmsg.CancelReply, err error) {
		cancelled = append(cancelled, r.Jobs)
		for _, id := range r.Jobs {
			reply.Jobs = append(reply.Jobs, jobmsg.CancelOutcome{Job: id})
		}
		return reply, nil
	})
	for line, want := range map[string]string{
		"cancel":                "name the jobs",
		"cancel 7 --all":        "7: give job numbers, or flags",
		"cancel --all --name x": "--all cannot be used with another flag",
		"cancel 7 --dry-run":    "--dry-run can be used only with flags",
		"job 103 104":           "takes 1 argument, not 2",
		"hold":                  "takes at least 1 argument, not 0",
		"cancel --state gone":   `--state "gone": the states are Waiting, Running,`,
		"cancel --name train*":  "nothing was cancelled: give --yes to cancel 2 jobs without being asked",
	} {
		s.Run(strings.Fields(line)...).Expect(t, cli.CodeUsage, "", want)
	}
	s.Run("cancel", "--label", "run=7", "--state", "waiting", "--dry-run").Expect(t, 0, "2 jobs would be cancelled:", "")
	if last := asked[len(asked)-1]; len(cancelled) != 0 || !last.Active || !slices.Equal(last.Labels, []string{"run=7"}) || !slices.Equal(last.States, []string{"Waiting"}) {
		t.Errorf("%v after %+v", cancelled, last)
	}
	s.Run("cancel", "--all", "--yes").Expect(t, 0, "Cancelled job 9, which was Waiting\nCancelled job 7, which was Waiting\n", "")
	if len(cancelled) != 1 || !slices.Equal(cancelled[0], []messages.JobID{9, 7}) {
		t.Errorf("cancelled: %v", cancelled)
	}
}

func TestTasksOfAJobAreCancelled(t *testing.T) {
	s := newSite(t)
	var asked jobmsg.CancelRequest
	clienttest.Answer(s, messages.Auctioneer, messages.VerbCancel, func(r jobmsg.CancelRequest) (jobmsg.CancelReply, error) {
		asked = r
		return jobmsg.CancelReply{Job: r.Job, Tasks: int(r.Tasks.Count())}, nil
	})
	clienttest.Answer(s, messages.Auctioneer, messages.VerbJob, func(jobmsg.JobRequest) (j jobmsg.JobDetail, err error) {
		j.Spec.Stages = []jobmsg.Stage{{Name: "map"}, {Name: "reduce", Array: jobmsg.Array{{First: 10, Last: 50, Step: 10}}}}
		j.Stages = []jobmsg.StageStatus{{Name: "map"}, {Name: "reduce"}}
		return j, nil
	})
	for line, want := range map[string]string{
		"cancel 7 8 --task 1":             "need the number of one job",
		"cancel 7 --task 1 --array 2":     "name the tasks",
		"cancel 7 --stage map":            "name the tasks",
		"cancel 7 --task 5-3":             "--task 5-3: must be numbers and ranges",
		"cancel 7 --task 1%2":             "must be numbers and ranges",
		"cancel 7 --array 20":             "job 7 has 2 stages: name one with --stage",
		"cancel 7 --array 20 --stage map": "stage map of job 7 is no array",
		"cancel 7 --task 1 --dry-run":     "--dry-run can be used only with flags that choose jobs",
		"cancel --all --task 1":           "need the number of one job",
	} {
		s.Run(strings.Fields(line)...).Expect(t, cli.CodeUsage, "", want)
	}
	s.Run("cancel", "7", "--array", "25", "--stage", "reduce").Expect(t, cli.CodeNotFound, "", "the job has no task with the index 25")
	s.Run("cancel", "7", "--array", "20,40-50:10", "--stage", "reduce").Expect(t, 0, "Cancelled 3 tasks of job 7\n", "")
	if asked.Job != 7 || *asked.Stage != 1 || asked.Tasks.Count() != 3 || asked.Tasks.At(0) != 1 || asked.Tasks.At(2) != 4 {
		t.Errorf("asked for %+v", asked)
	}
	s.Run("cancel", "7", "--task", "3").Expect(t, 0, "Cancelled 1 task of job 7\n", "")
}
