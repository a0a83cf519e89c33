package jobs_test

import (
	"context"
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/candor-grid/candor/cmd/candor/internal/client/cli"
	"github.com/candor-grid/candor/cmd/candor/internal/client/clienttest"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/agent"
	"github.com/candor-grid/candor/messages/clearing"
	jobmsg "github.com/candor-grid/candor/messages/job"
	"github.com/candor-grid/candor/messages/market"
)

func TestLogsOfAnotherSite(t *testing.T) {
	s := newSite(t)
	task := jobmsg.TaskStatus{Task: messages.TaskRef{Job: 17}, Attempt: 2, Node: "n1", State: "Done"}
	clienttest.Reply(s, messages.Auctioneer, messages.VerbJob, awayJob())
	clienttest.Answer(s, messages.Auctioneer, messages.VerbTasks, func(jobmsg.TasksRequest) (jobmsg.TasksReply, error) {
		return jobmsg.TasksReply{Tasks: []jobmsg.TaskStatus{task}}, nil
	})
	var asked clearing.OutputRequest
	clienttest.Answer(s, messages.Auctioneer, clearing.VerbOutput, func(r clearing.OutputRequest) (agent.LogsReply, error) {
		asked = r
		return agent.LogsReply{Data: []byte("hello\n"), Next: 6, End: true}, nil
	})
	s.Run("logs", "17", "--task", "0", "--stderr").Expect(t, cli.CodeOK, "hello\n", "")
	want := clearing.OutputRequest{Node: "n1", Logs: agent.LogsRequest{Attempt: messages.Attempt{Task: task.Task, Number: 2}, Stderr: true}}
	if !reflect.DeepEqual(asked, want) {
		t.Errorf("asked %+v, want %+v", asked, want)
	}
}

// If a part of the logs is missing, a line of its own must say which part. If the other lines begin with the name of
// their task, this line must begin with the name too.
func TestLogsSayWhatIsMissing(t *testing.T) {
	s := newSite(t)
	clienttest.ServeAt(s, messages.LogsSubject("west", "n1", "*"), "logs", func(r agent.LogsRequest) (agent.LogsReply, error) {
		if r.Offset == 0 {
			return agent.LogsReply{Data: []byte("first\nhal"), Next: 9}, nil
		}
		return agent.LogsReply{Data: []byte("f\nlast\n"), Next: 1016, Missing: 1000, End: true}, nil
	})
	n := 1
	withTasks(s, func() []jobmsg.TaskStatus {
		return []jobmsg.TaskStatus{task(attempt(0, 0, 1), "n1"), task(attempt(0, 1, 1), "n1")}[:n]
	})
	clienttest.Reply(s, messages.Auctioneer, messages.VerbJob, twoStages(jobmsg.Completed, 2, 0))
	const line = "[candor: 1,000 bytes of the output are missing here: the site limits the size of an output]\n"
	one := []string{"logs", "5", "--stage", "map", "--task", "0"}
	s.Run(one...).Expect(t, cli.CodeOK, "first\nhal\n"+line+"f\nlast\n", "")
	s.Run(append(one, "-f")...).Expect(t, cli.CodeOK, "first\nhal\n"+line+"f\nlast\n", "")
	s.Run(append(one, "--json")...).Expect(t, cli.CodeOK, `"missing":1000`, "")
	n = 2
	if got := s.Run("logs", "5"); strings.Count(got.Out, " | "+line) != 2 {
		t.Errorf("%q", got.Out)
	}
}

// written has, for attempts of job 5 on one node, what they wrote to standard output. What they wrote to standard error
// is the same text in capital letters.
type written map[messages.Attempt]string

func attempt(stage, index, number uint32) messages.Attempt {
	return messages.Attempt{Task: messages.TaskRef{Job: 5, Stage: stage, Index: index}, Number: number}
}

// chunk is the number of bytes in each answer of a fake node.
const chunk = 4

// withNode makes a node answer with the output in `w`. The function `ended` reports whether an attempt has ended.
func withNode(s *clienttest.Site, node messages.Name, w written, ended func(messages.Attempt) bool) {
	clienttest.ServeAt(s, messages.LogsSubject("west", node, "*"), "logs", func(r agent.LogsRequest) (agent.LogsReply, error) {
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
func withTasks(s *clienttest.Site, tasks func() []jobmsg.TaskStatus) {
	clienttest.Answer(s, messages.Auctioneer, messages.VerbTasks, func(r jobmsg.TasksRequest) (jobmsg.TasksReply, error) {
		reply := jobmsg.TasksReply{Account: "alice"}
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

func task(a messages.Attempt, node messages.Name) jobmsg.TaskStatus {
	return jobmsg.TaskStatus{Task: a.Task, Attempt: a.Number, Node: node}
}

func twoStages(state jobmsg.State, maps, reduces int) jobmsg.JobDetail {
	return jobmsg.JobDetail{JobSummary: jobmsg.JobSummary{Job: 5, State: state},
		Stages: []jobmsg.StageStatus{{Name: "map", Tasks: maps}, {Name: "reduce", Tasks: reduces}}}
}

// finishedJob returns a site with a job on two nodes: three map tasks, one in its second attempt, and a reduce task.
func finishedJob(t *testing.T) *clienttest.Site {
	s := newSite(t)
	clienttest.Reply(s, messages.Auctioneer, messages.VerbJob, twoStages(jobmsg.Completed, 3, 1))
	withTasks(s, func() []jobmsg.TaskStatus {
		return []jobmsg.TaskStatus{task(attempt(0, 0, 1), "n1"), task(attempt(0, 1, 2), "n2"), task(attempt(0, 2, 1), "n1"), task(attempt(1, 0, 1), "n2")}
	})
	withNode(s, "n1", written{attempt(0, 0, 1): "alpha\nbeta\n", attempt(0, 2, 1): ""}, always)
	clienttest.Reply(s, messages.Auctioneer, messages.VerbNodes, market.NodesReply{Nodes: []market.NodeStatus{{Node: "n0", State: "Lost"}, {Node: "n1"}, {Node: "n2"}}})
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
		if got := s.Run(strings.Fields(line)...); got.Code != 0 || got.Out != want || got.Err != "" {
			t.Errorf("%s: got %+v, want %q", line, got, want)
		}
	}
}

// On a terminal, the command must say that there is no output; a program must get only the output.
func TestLogsSayThatThereIsNothing(t *testing.T) {
	s := finishedJob(t)
	s.Width = 80
	for line, want := range map[string]string{
		"logs 5 --task 2 --stage map": "candor logs: this part of job 5 wrote nothing\n",
		"logs 5 --task 2 --stderr":    "candor logs: this part of job 5 wrote nothing to standard error\n",
		"logs 5 --task 2 -f --stdout": "candor logs: this part of job 5 wrote nothing to standard output\n",
		"logs 5 --task 2 --json":      "",
		"logs 5 --task 1 --stderr":    "",
	} {
		if got := s.Run(strings.Fields(line)...); got.Code != 0 || got.Err != want {
			t.Errorf("%s: got %+v, want %q", line, got, want)
		}
	}
	s = newSite(t)
	s.Width = 80
	clienttest.Reply(s, messages.Auctioneer, messages.VerbJob, twoStages(jobmsg.Running, 3, 0))
	withTasks(s, func() []jobmsg.TaskStatus { return []jobmsg.TaskStatus{task(attempt(0, 2, 1), "n1")} })
	withNode(s, "n1", written{attempt(0, 2, 1): ""}, always)
	s.Run("logs", "5").Expect(t, cli.CodeOK, "", "candor logs: job 5 wrote nothing so far\n")
}

func TestLogsAsJSONCarryTheAttempt(t *testing.T) {
	got := finishedJob(t).Run("logs", "5", "--json", "--stdout", "--stage", "map", "--task", "1")
	text := ""
	for line := range strings.Lines(got.Out) {
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
		"logs 5 --stage sort":          "--stage sort: job 5 has no such stage: `candor job 5` lists the stages (NotFound)",
		"logs 5 --task 3":              "--task 3: no stage of job 5 has so many tasks",
		"logs 5 --stage map --task 99": "--task 99: no stage",
	} {
		s.Run(strings.Fields(line)...).Expect(t, cli.CodeNotFound, "", want)
	}
	s.Run("logs", "5", "--attempt", "3").Expect(t, cli.CodeNotFound, "", "job 5 has no attempt 3 of tasks map.0 to map.2, reduce.0: `candor tasks 5 --attempts` lists the attempts")
	s.Run("logs", "5", "--attempt", "1", "-f").Expect(t, cli.CodeUsage, "", "exclude each other")
	s = newSite(t)
	clienttest.Reply(s, messages.Auctioneer, messages.VerbJob, twoStages(jobmsg.Waiting, 1, 1))
	withTasks(s, func() []jobmsg.TaskStatus { return nil })
	s.Run("logs", "5").Expect(t, cli.CodeNotFound, "", "job 5 is Waiting, and none of the tasks map.0, reduce.0 has started: wait with --follow")
	s.Run("logs", "5", "--stage", "reduce").Expect(t, cli.CodeNotFound, "", "and task reduce.0 has not started")
	s = newSite(t)
	clienttest.Reply(s, messages.Auctioneer, messages.VerbJob, twoStages(jobmsg.Running, 1001, 0))
	s.Run("logs", "5", "-f").Expect(t, cli.CodeUsage, "", "at most 1000 can be followed at once: choose tasks with --task or --stage (TooLarge)")
}

// After one node has lost its output, the output of the other nodes must be printed.
func TestLogsGoOnWithoutANode(t *testing.T) {
	s := newSite(t)
	clienttest.Reply(s, messages.Auctioneer, messages.VerbJob, twoStages(jobmsg.Completed, 2, 0))
	withTasks(s, func() []jobmsg.TaskStatus {
		return []jobmsg.TaskStatus{task(attempt(0, 0, 1), "n1"), task(attempt(0, 1, 1), "n1")}
	})
	withNode(s, "n1", written{attempt(0, 1, 1): "here\n"}, always)
	for _, follow := range []string{"-f=false", "-f"} {
		s.Run("logs", "5", "--stdout", follow).Expect(t, cli.CodeNotFound, "map.1 | here\n", "candor logs: map.0 on node n1: attempt")
	}
}

// TestLogsFollow follows the output of a job that starts its tasks one by one, starts one task again, and ends. The
// command must follow each attempt, and end with the job.
func TestLogsFollow(t *testing.T) {
	s := newSite(t)
	asked := 0
	steps := [][]jobmsg.TaskStatus{
		{},
		{task(attempt(0, 0, 1), "n1")},
		{task(attempt(0, 0, 2), "n1"), task(attempt(0, 1, 1), "n1")},
	}
	clienttest.Answer(s, messages.Auctioneer, messages.VerbJob, func(jobmsg.JobRequest) (jobmsg.JobDetail, error) {
		state := jobmsg.Running
		if asked++; asked > len(steps)+2 {
			state = jobmsg.Completed
		}
		return twoStages(state, 2, 0), nil
	})
	withTasks(s, func() []jobmsg.TaskStatus { return steps[min(max(asked-2, 0), len(steps)-1)] })
	text := written{attempt(0, 0, 1): "first\n", attempt(0, 0, 2): "second\n", attempt(0, 1, 1): "other\n"}
	withNode(s, "n1", text, func(messages.Attempt) bool { return asked > len(steps)+2 })
	got := s.Run("logs", "5", "-f", "--stdout")
	got.Expect(t, cli.CodeOK, "map.0 | first\n", "")
	got.Expect(t, cli.CodeOK, "map.0 | second\n", "")
	got.Expect(t, cli.CodeOK, "map.1 | other\n", "")
	if strings.Count(got.Out, "\n") != 3 {
		t.Errorf("got %q, want three lines", got.Out)
	}
}

func TestAnInterruptEndsFollowing(t *testing.T) {
	s := newSite(t)
	ctx, interrupt := context.WithCancel(t.Context())
	clienttest.Reply(s, messages.Auctioneer, messages.VerbJob, twoStages(jobmsg.Running, 1, 0))
	withTasks(s, func() []jobmsg.TaskStatus { return []jobmsg.TaskStatus{task(attempt(0, 0, 1), "n1")} })
	withNode(s, "n1", written{attempt(0, 0, 1): "going on\n"}, func(messages.Attempt) bool { interrupt(); return false })
	s.RunIn(ctx, "logs", "5", "-f").Expect(t, cli.CodeInterrupted, "", "")
}
