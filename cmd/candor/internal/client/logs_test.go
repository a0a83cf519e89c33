package client

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/candor-grid/candor/cmd/candor/internal/client/cli"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/agent"
	"github.com/candor-grid/candor/messages/job"
	"github.com/candor-grid/candor/messages/market"
)

// written has the standard output of attempts of job 5 on one node. Standard error is the same text in capitals.
type written map[messages.Attempt]string

func attempt(stage, index, number uint32) messages.Attempt {
	return messages.Attempt{Task: messages.TaskRef{Job: 5, Stage: stage, Index: index}, Number: number}
}

// chunk is the number of bytes in each answer of a fake node.
const chunk = 4

// withNode makes a node of the site answer with the output in w. ended reports whether an attempt has ended.
func withNode(s *fakeSite, node messages.Name, w written, ended func(messages.Attempt) bool) {
	serveAt(s, messages.LogsSubject("west", node, "*"), "logs", func(r agent.LogsRequest) (agent.LogsReply, error) {
		text, ok := w[r.Attempt]
		if !ok {
			return agent.LogsReply{}, messages.Errorf(messages.NotFound, "attempt %v: did not run on this node", r.Attempt)
		}
		if r.Stderr {
			text = strings.ToUpper(text)
		}
		rest := text[min(r.Offset, int64(len(text))):]
		piece := rest[:min(len(rest), chunk)]
		return agent.LogsReply{Data: []byte(piece), Next: r.Offset + int64(len(piece)), End: len(piece) == len(rest) && ended(r.Attempt)}, nil
	})
}

func always(messages.Attempt) bool { return true }

// withTasks makes the site list the tasks of job 5, two on each page.
func withTasks(s *fakeSite, tasks func() []job.TaskStatus) {
	answer(s, messages.Auctioneer, messages.VerbTasks, func(r job.TasksRequest) (job.TasksReply, error) {
		reply := job.TasksReply{Account: "alice"}
		for _, t := range tasks() {
			if int(t.Task.Stage) != *r.Stage || t.Task.Index < r.From {
				continue
			}
			if len(reply.Tasks) == min(r.Limit, 2) {
				reply.More = true
				break
			}
			reply.Tasks = append(reply.Tasks, t)
		}
		return reply, nil
	})
}

func task(a messages.Attempt, node messages.Name) job.TaskStatus {
	return job.TaskStatus{Task: a.Task, Attempt: a.Number, Node: node}
}

func twoStages(state job.State, maps, reduces int) job.JobDetail {
	return job.JobDetail{JobSummary: job.JobSummary{Job: 5, State: state},
		Stages: []job.StageStatus{{Name: "map", Tasks: maps}, {Name: "reduce", Tasks: reduces}}}
}

// finishedJob returns a site with a job on two nodes: three map tasks, one of them in its second attempt, and a
// reduce task.
func finishedJob(t *testing.T) *fakeSite {
	s := newSite(t)
	reply(s, messages.Auctioneer, messages.VerbJob, twoStages(job.Completed, 3, 1))
	withTasks(s, func() []job.TaskStatus {
		return []job.TaskStatus{task(attempt(0, 0, 1), "n1"), task(attempt(0, 1, 2), "n2"), task(attempt(0, 2, 1), "n1"), task(attempt(1, 0, 1), "n2")}
	})
	withNode(s, "n1", written{attempt(0, 0, 1): "alpha\nbeta\n", attempt(0, 2, 1): ""}, always)
	reply(s, messages.Auctioneer, messages.VerbNodes, market.NodesReply{Nodes: []market.NodeStatus{{Node: "n0", State: "Lost"}, {Node: "n1"}, {Node: "n2"}}})
	withNode(s, "n2", written{attempt(0, 1, 1): "lost\n", attempt(0, 1, 2): "no end of line", attempt(1, 0, 1): "total\n"}, always)
	return s
}

func TestLogs(t *testing.T) {
	s := finishedJob(t)
	for line, want := range map[string]string{
		"logs 5":                                        "map.0 | alpha\nmap.0 | beta\nmap.0 ! ALPHA\nmap.0 ! BETA\nmap.1 | no end of line\nmap.1 ! NO END OF LINE\nreduce.0 | total\nreduce.0 ! TOTAL\n",
		"logs 5 --stdout":                               "map.0 | alpha\nmap.0 | beta\nmap.1 | no end of line\nreduce.0 | total\n",
		"logs 5 --stage map --task 0":                   "alpha\nbeta\nALPHA\nBETA\n",
		"logs 5 --stage map --task 1 --stdout":          "no end of line",
		"logs 5 --stage reduce --stdout":                "total\n",
		"logs 5 --stage reduce --stderr":                "TOTAL\n",
		"logs 5 --task 0 --stderr":                      "map.0 ! ALPHA\nmap.0 ! BETA\nreduce.0 ! TOTAL\n",
		"logs 5 --task 2":                               "",
		"logs 5 --no-prefix --stdout":                   "alpha\nbeta\nno end of linetotal\n",
		"logs 5 --follow --stage map --task 1 --stdout": "no end of line",
		"logs 5 --task 1 --attempt 1 --stdout":          "lost\n",
		"logs 5 --attempt 2 --stdout":                   "map.1 | no end of line\n",
	} {
		if got := s.run(strings.Fields(line)...); got.code != 0 || got.out != want || got.err != "" {
			t.Errorf("%s: got %+v, want %q", line, got, want)
		}
	}
}

// TestLogsSayThatThereIsNothing reads logs without output. On a terminal, the command must say that there is nothing;
// a program must get only the output.
func TestLogsSayThatThereIsNothing(t *testing.T) {
	s := finishedJob(t)
	s.width = 80
	for line, want := range map[string]string{
		"logs 5 --task 2 --stage map": "candor logs: this part of job 5 wrote nothing\n",
		"logs 5 --task 2 --stderr":    "candor logs: this part of job 5 wrote nothing to standard error\n",
		"logs 5 --task 2 -f --stdout": "candor logs: this part of job 5 wrote nothing to standard output\n",
		"logs 5 --task 2 --json":      "",
		"logs 5 --task 1 --stderr":    "",
	} {
		if got := s.run(strings.Fields(line)...); got.code != 0 || got.err != want {
			t.Errorf("%s: got %+v, want %q", line, got, want)
		}
	}
	s = newSite(t)
	s.width = 80
	reply(s, messages.Auctioneer, messages.VerbJob, twoStages(job.Running, 3, 0))
	withTasks(s, func() []job.TaskStatus { return []job.TaskStatus{task(attempt(0, 2, 1), "n1")} })
	withNode(s, "n1", written{attempt(0, 2, 1): ""}, always)
	s.run("logs", "5").expect(t, cli.CodeOK, "", "candor logs: job 5 wrote nothing so far\n")
}

func TestLogsAsJSONCarryTheAttempt(t *testing.T) {
	got := finishedJob(t).run("logs", "5", "--json", "--stdout", "--stage", "map", "--task", "1")
	text := ""
	for line := range strings.Lines(got.out) {
		var piece struct {
			Task    messages.TaskRef
			Attempt uint32
			Node    messages.Name
			Data    []byte
		}
		if err := json.Unmarshal([]byte(line), &piece); err != nil || piece.Task != attempt(0, 1, 2).Task || piece.Attempt != 2 || piece.Node != "n2" {
			t.Fatalf("%v: %s", err, line)
		}
		text += string(piece.Data)
	}
	if text != "no end of line" {
		t.Errorf("got %q", text)
	}
}

func TestLogsOfWhatIsNotThere(t *testing.T) {
	s := finishedJob(t)
	for line, want := range map[string]string{
		"logs 5 --stage sort":          "--stage sort: job 5 has no such stage: candor job 5 lists its stages (NotFound)",
		"logs 5 --task 3":              "--task 3: no stage of job 5 has so many tasks",
		"logs 5 --stage map --task 99": "--task 99: no stage",
	} {
		s.run(strings.Fields(line)...).expect(t, cli.CodeNotFound, "", want)
	}
	s.run("logs", "5", "--attempt", "3").expect(t, cli.CodeNotFound, "", "job 5 has no attempt 3 of tasks map.0 to map.2, reduce.0: candor tasks 5 --attempts lists the attempts")
	s.run("logs", "5", "--attempt", "1", "-f").expect(t, cli.CodeUsage, "", "exclude each other")
	s = newSite(t)
	reply(s, messages.Auctioneer, messages.VerbJob, twoStages(job.Waiting, 1, 1))
	withTasks(s, func() []job.TaskStatus { return nil })
	s.run("logs", "5").expect(t, cli.CodeNotFound, "", "job 5 is Waiting, and none of the tasks map.0, reduce.0 has started: wait with --follow")
	s.run("logs", "5", "--stage", "reduce").expect(t, cli.CodeNotFound, "", "and task reduce.0 has not started")
	s = newSite(t)
	reply(s, messages.Auctioneer, messages.VerbJob, twoStages(job.Running, 1001, 0))
	s.run("logs", "5", "-f").expect(t, cli.CodeUsage, "", "at most 1000 can be followed at once: choose with --task or --stage (TooLarge)")
}

// TestLogsGoOnWithoutANode reads logs after one node has lost its output. The output of the other nodes must be
// printed.
func TestLogsGoOnWithoutANode(t *testing.T) {
	s := newSite(t)
	reply(s, messages.Auctioneer, messages.VerbJob, twoStages(job.Completed, 2, 0))
	withTasks(s, func() []job.TaskStatus {
		return []job.TaskStatus{task(attempt(0, 0, 1), "n1"), task(attempt(0, 1, 1), "n1")}
	})
	withNode(s, "n1", written{attempt(0, 1, 1): "here\n"}, always)
	for _, follow := range []string{"-f=false", "-f"} {
		s.run("logs", "5", "--stdout", follow).expect(t, cli.CodeNotFound, "map.1 | here\n", "candor logs: map.0 on node n1: attempt")
	}
}

// TestLogsFollow follows a job that starts its tasks one by one, starts one task again, and ends.
func TestLogsFollow(t *testing.T) {
	s := newSite(t)
	asked := 0
	steps := [][]job.TaskStatus{
		{},
		{task(attempt(0, 0, 1), "n1")},
		{task(attempt(0, 0, 2), "n1"), task(attempt(0, 1, 1), "n1")},
	}
	answer(s, messages.Auctioneer, messages.VerbJob, func(job.JobRequest) (job.JobDetail, error) {
		state := job.Running
		if asked++; asked > len(steps)+2 {
			state = job.Completed
		}
		return twoStages(state, 2, 0), nil
	})
	withTasks(s, func() []job.TaskStatus { return steps[min(max(asked-2, 0), len(steps)-1)] })
	text := written{attempt(0, 0, 1): "first\n", attempt(0, 0, 2): "second\n", attempt(0, 1, 1): "other\n"}
	withNode(s, "n1", text, func(messages.Attempt) bool { return asked > len(steps)+2 })
	got := s.run("logs", "5", "-f", "--stdout")
	got.expect(t, cli.CodeOK, "map.0 | first\n", "")
	got.expect(t, cli.CodeOK, "map.0 | second\n", "")
	got.expect(t, cli.CodeOK, "map.1 | other\n", "")
	if strings.Count(got.out, "\n") != 3 {
		t.Errorf("got %q, want three lines", got.out)
	}
}

func TestAnInterruptEndsFollowing(t *testing.T) {
	s := newSite(t)
	ctx, interrupt := context.WithCancel(t.Context())
	reply(s, messages.Auctioneer, messages.VerbJob, twoStages(job.Running, 1, 0))
	withTasks(s, func() []job.TaskStatus { return []job.TaskStatus{task(attempt(0, 0, 1), "n1")} })
	withNode(s, "n1", written{attempt(0, 0, 1): "going on\n"}, func(messages.Attempt) bool { interrupt(); return false })
	s.runIn(ctx, "logs", "5", "-f").expect(t, cli.CodeInterrupted, "", "")
}
