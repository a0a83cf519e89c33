package jobs_test

import (
	"fmt"
	"net"
	"strings"
	"testing"

	"github.com/candor-grid/candor/cmd/candor/internal/client/cli"
	"github.com/candor-grid/candor/cmd/candor/internal/client/clienttest"
	"github.com/candor-grid/candor/messages"
	jobmsg "github.com/candor-grid/candor/messages/job"
)

// manyTasks returns a site whose job 5 has 2,500 map tasks and a reduce task. A reply has at most one page of them.
func manyTasks(t *testing.T, asked *[]jobmsg.TasksRequest) *clienttest.Site {
	s := newSite(t)
	clienttest.Reply(s, messages.Auctioneer, messages.VerbJob, twoStages(jobmsg.Running, 2500, 1))
	clienttest.Answer(s, messages.Auctioneer, messages.VerbTasks, func(r jobmsg.TasksRequest) (jobmsg.TasksReply, error) {
		*asked = append(*asked, r)
		total := []uint32{2500, 1}[*r.Stage]
		out := jobmsg.TasksReply{Unstarted: 3}
		for i := r.From; i < total && (r.Until == 0 || i < r.Until); i++ {
			if out.More = len(out.Tasks) == r.Limit; out.More {
				out.Next = i
				break
			}
			status := task(attempt(uint32(*r.Stage), i, 1), "n1")
			status.Stage, status.Index, status.State = []messages.Name{"map", "reduce"}[*r.Stage], i, "Done"
			out.Tasks = append(out.Tasks, status)
		}
		return out, nil
	})
	return s
}

func TestTasksPage(t *testing.T) {
	var asked []jobmsg.TasksRequest
	s := manyTasks(t, &asked)
	for line, want := range map[string]struct {
		lines int
		more  bool
	}{
		"tasks 5":                             {1000, true},
		"tasks 5 -n 2400":                     {2400, true},
		"tasks 5 -n 2500":                     {2500, true}, // only the reduce task, which is the last one, is missing
		"tasks 5 -n 9999":                     {2501, false},
		"tasks 5 --stage reduce":              {1, false},
		"tasks 5 --index 7":                   {1, false},
		"tasks 5 --stage map --index 7-19":    {13, false},
		"tasks 5 --stage map --index 2490-":   {10, false},
		"tasks 5 --stage map --index 0-0 -n1": {1, false},
	} {
		got := s.Run(strings.Fields(line)...)
		lines := strings.Count(got.Out, "Done")
		if got.Code != 0 || lines != want.lines || strings.Contains(got.Out, "There are more tasks") != want.more {
			t.Errorf("%s: %d lines, want %d, more %v: %.300s %s", line, lines, want.lines, want.more, got.Out, got.Err)
		}
	}
}

// Filters are sent to the site. Filters without a meaning must be refused with advice.
func TestTasksFilters(t *testing.T) {
	var asked []jobmsg.TasksRequest
	s := manyTasks(t, &asked)
	s.Run("tasks", "5", "--state", "failed,Stopped", "--node", "n1", "--attempts", "--stage", "map", "--index", "3")
	stage := 0
	want := jobmsg.TasksRequest{Job: 5, Stage: &stage, From: 3, Until: 4, Limit: 1000, States: []string{"Failed", "Stopped"}, Node: "n1", Attempts: true}
	if len(asked) != 1 || fmt.Sprintf("%+v", deref(asked[0])) != fmt.Sprintf("%+v", deref(want)) {
		t.Errorf("asked for %+v, want %+v", asked, want)
	}
	for line, want := range map[string]string{
		"tasks 5 --state lost":       "--state lost: must be one of Running, Suspended, Gathering, Done, Failed, Stopped, Pending",
		"tasks 5 --index 9-7":        "--index 9-7: must be a position from 0 on, such as 7, or a range, such as 7-9",
		"tasks 5 --index -1":         "--index -1: must be a position",
		"tasks 5 --index 4294967299": "must be a position",
		"tasks 5 -n 0":               "--limit 0: must be a whole number from 1 on",
		"tasks five":                 "is not the number of a job",
	} {
		s.Run(strings.Fields(line)...).Expect(t, cli.CodeUsage, "", want)
	}
	s.Run("tasks", "5", "--stage", "sort").Expect(t, cli.CodeNotFound, "", "--stage sort: job 5 has no such stage")
}

func deref(r jobmsg.TasksRequest) any {
	stage := *r.Stage
	r.Stage = nil
	return []any{stage, r}
}

// A job runs at another site, which does not answer. The command has waited once for that site. It must not wait again
// for the tasks.
func TestSilentSiteIsAskedOnce(t *testing.T) {
	s := newSite(t)
	job := twoStages(jobmsg.Running, 2, 1)
	job.Away = &jobmsg.Away{Site: "east", Phase: "There", Known: clienttest.At(3000), Trouble: "the link is cut"}
	clienttest.Reply(s, messages.Auctioneer, messages.VerbJob, job)
	if got := s.Run("tasks", "5"); got.Code != cli.CodeUnavailable || !strings.Contains(got.Err, "site east, which runs job 5, does not answer: the link is cut") {
		t.Errorf("%d %s", got.Code, got.Err)
	}
}

// The command runs on the machine where the task runs, and is asked to forward a port to the same port of the task. It
// must refuse, because the node would connect to the command itself instead of the task.
func TestPortOfTheTasksOwnMachine(t *testing.T) {
	s := newSite(t)
	s.Write("state/site.json", `{"site":"west","server":"nats://127.0.0.1:4222","default_account":"alice"}`)
	s.Write("state/nodes/node1/jobs/x", "")
	clienttest.Reply(s, messages.Auctioneer, messages.VerbJob, twoStages(jobmsg.Running, 1, 1))
	clienttest.Answer(s, messages.Auctioneer, messages.VerbTasks, func(jobmsg.TasksRequest) (jobmsg.TasksReply, error) {
		return jobmsg.TasksReply{Tasks: []jobmsg.TaskStatus{{Task: messages.TaskRef{Job: 7}, Attempt: 1, State: "Running", Node: "node1"}}}, nil
	})
	s.Run("port", "7", "--stage", "map", "18888:18888").Expect(t, cli.CodeUsage, "", "candor port 7 0:18888")
}

// The error about a local port that is in use must propose a free port.
func TestPortThatIsInUse(t *testing.T) {
	s := newSite(t)
	clienttest.Reply(s, messages.Auctioneer, messages.VerbJob, twoStages(jobmsg.Running, 1, 1))
	clienttest.Answer(s, messages.Auctioneer, messages.VerbTasks, func(jobmsg.TasksRequest) (jobmsg.TasksReply, error) {
		return jobmsg.TasksReply{Tasks: []jobmsg.TaskStatus{{Task: messages.TaskRef{Job: 7}, Attempt: 1, State: "Running", Node: "node1"}}}, nil
	})
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	_, port, _ := net.SplitHostPort(taken.Addr().String())
	s.Run("port", "7", "--stage", "map", port).Expect(t, cli.CodeUsage, "", "candor port 7 0:"+port)
}
