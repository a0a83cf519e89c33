package submit_test

import (
	"bytes"
	"context"
	"os/signal"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/candor-grid/candor/cmd/candor/internal/client/clienttest"
	"github.com/candor-grid/candor/cmd/candor/internal/client/submit"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/agent"
	"github.com/candor-grid/candor/messages/clearing"
	"github.com/candor-grid/candor/messages/job"
	"github.com/candor-grid/candor/messages/market"
)

// commandSite is a site that runs one command. The command has written some output and has ended.
type commandSite struct {
	*clienttest.Site
	output  string
	end     job.State
	reason  string
	state   string        // state of the task; "" means that the task never had a node
	lost    bool          // the node does not know the stream any more
	failing int           // number of further requests to the node that get no answer
	early   int           // number of further requests before the node has the task
	idle    chan struct{} // gets a value when the client sends a request without data, to show that it still runs
	told    atomic.Bool
	node    string
	asked   func() // called at each request to the node, if it is not nil
}

func newCommandSite(t *testing.T) *commandSite {
	s := &commandSite{Site: newSite(t), output: "hi\n", end: job.Completed, state: "Done", node: "node1", idle: make(chan struct{}, 1)}
	s.Env["CANDOR_BUDGET"] = "2"
	clienttest.Answer(s.Site, messages.Auctioneer, messages.VerbSubmit, func(r job.SubmitRequest) (job.SubmitReply, error) {
		return job.SubmitReply{Job: 33, Site: r.Site, Market: "main", Payer: "alice", Held: r.Spec.Budget}, nil
	})
	clienttest.Answer(s.Site, messages.Auctioneer, messages.VerbJob, func(r job.JobRequest) (job.JobDetail, error) {
		return job.JobDetail{JobSummary: job.JobSummary{Job: 33, State: s.end, Reason: s.reason, Charged: 500_000}}, nil
	})
	clienttest.Answer(s.Site, messages.Auctioneer, messages.VerbTasks, func(job.TasksRequest) (r job.TasksReply, err error) {
		if s.state != "" {
			r.Tasks = []job.TaskStatus{{Task: messages.TaskRef{Job: 33}, Attempt: 1, Node: s.node, State: s.state, Ended: clienttest.At(3600)}}
		}
		return r, nil
	})
	clienttest.Reply(s.Site, messages.Auctioneer, messages.VerbMarkets, market.MarketsReply{Markets: []market.MarketStatus{
		{Market: market.Market{Name: "main", Classes: []messages.Name{"cpu"}}, Tariffs: []market.SlotTariff{{Class: "cpu", Price: 20_000}}}}})
	clienttest.ServeAt(s.Site, agent.StreamSubject("west", "node1", "*"), messages.VerbStream, s.stream)
	return s
}

// away lets another site run the command. Only the auctioneer can then reach the node.
func (s *commandSite) away() {
	clienttest.Answer(s.Site, messages.Auctioneer, clearing.VerbOutput, func(r clearing.OutputRequest) (reply agent.LogsReply, err error) {
		if r.Node != "node7" || r.Stream == nil || r.Stream.Attempt.Task.Job != 33 {
			return reply, messages.Errorf(messages.Invalid, "%+v", r)
		}
		answer, err := s.stream(*r.Stream)
		return agent.LogsReply{Stream: &answer}, err
	})
	s.node = "node7"
}

// stream answers a request with at most 3 bytes of output.
func (s *commandSite) stream(r agent.StreamRequest) (reply agent.StreamReply, err error) {
	if s.asked != nil {
		s.asked()
	}
	switch {
	case s.lost:
		return reply, messages.Errorf(messages.NotFound, "the stream has ended")
	case s.early > 0:
		s.early--
		return reply, messages.Errorf(messages.NotFound, "attempt 1 of task 33 does not run here")
	case s.failing > 0:
		s.failing--
		return reply, messages.Errorf(messages.Unavailable, "no answer")
	case !r.Poll && !r.Take && !r.Close && len(r.Input) == 0 && !r.InputEnd:
		if s.told.CompareAndSwap(false, true) {
			close(s.idle)
		}
	}
	reply.InputNext = r.InputAt + int64(len(r.Input))
	rest := s.output[min(r.OutputAt, int64(len(s.output))):]
	reply.OutputAt, reply.Output = r.OutputAt, []byte(rest[:min(3, len(rest))])
	reply.Ended = r.Poll && len(rest) <= 3
	if r.Poll && r.OutputAt > 0 { // repeat the last answer, as if it had been lost
		reply.OutputAt, reply.Output = r.OutputAt-1, []byte(s.output[r.OutputAt-1:][:min(4, len(rest)+1)])
	}
	return reply, nil
}

// A command ends before the client connects to the command's stream. The client must still print the command's output
// and report its end.
func TestRunOfACommandThatHasEnded(t *testing.T) {
	s := newCommandSite(t)
	s.output, s.failing = "one\ntwo\nthree\n", 2
	r := s.Run("run", "--", "echo")
	r.Expect(t, 0, "", "Job 33 Completed, 0.5 credits charged")
	if r.Out != s.output {
		t.Errorf("output %q", r.Out)
	}
}

// The leader reports a task before its node knows it. The client must try again.
func TestRunIsThereBeforeItsTask(t *testing.T) {
	s := newCommandSite(t)
	s.state, s.early = "Running", 3
	s.Run("run", "--", "echo").Expect(t, 0, "hi\n", "Job 33 Completed, 0.5 credits charged")
}

// The terminal of a command under nohup is closed. The command must continue, and its task must not get the signal.
func TestRunGoesOnUnderNohup(t *testing.T) {
	signal.Ignore(syscall.SIGHUP)
	defer signal.Reset(syscall.SIGHUP)
	s := newCommandSite(t)
	s.state, s.early = "Running", 3
	s.asked = func() {
		if !signal.Ignored(syscall.SIGHUP) {
			t.Error("the command hears that its terminal is closed")
		}
	}
	s.Run("run", "--", "echo").Expect(t, 0, "hi\n", "Job 33 Completed, 0.5 credits charged")
}

// A command that runs at another site must use the standard input and output of the process that the user started here.
func TestRunAtAnotherSite(t *testing.T) {
	s := newCommandSite(t)
	s.away()
	s.Run("run", "--site", "east", "--", "echo").Expect(t, 0, "hi\n", "The command runs at site east\n")
}

// run must first print the price of the slot, and the longest time without input or output. With --quiet it must not
// print them.
func TestRunSaysItsTerms(t *testing.T) {
	s := newCommandSite(t)
	s.Run("run", "--idle", "30m", "--", "echo").Expect(t, 0, "hi\n",
		"Job 33 may cost up to 2 credits, paid by alice\nNow a slot of cpu costs 72 credits an hour\nThe command ends after 30m0s without input or output\n")
	if r := s.Run("run", "-q", "--", "echo"); r.Err != "" || r.Out != "hi\n" {
		t.Errorf("%+v", r)
	}
}

// A node has no stream of the command, and the job does not end. The error may say "was cancelled" only if the job was
// cancelled.
func TestRunSaysWhetherItCancelledTheJob(t *testing.T) {
	s := newCommandSite(t)
	defer submit.EndWithin(500 * time.Millisecond)()
	s.lost, s.end = true, job.Running
	cancelled := false
	var refused error
	clienttest.Answer(s.Site, messages.Auctioneer, messages.VerbCancel, func(job.CancelRequest) (job.CancelReply, error) {
		cancelled = true
		return job.CancelReply{}, refused
	})
	s.Run("run", "--", "echo").Expect(t, 3, "", "node node1 has no output of the command: job 33 was cancelled")
	if !cancelled {
		t.Error("the job was not cancelled")
	}
	refused = messages.Errorf(messages.PermissionDenied, "not now")
	s.Run("run", "--", "echo").Expect(t, 4, "", `job 33 could not be cancelled (not now): cancel it with "candor cancel 33"`)
	s.end = job.Settling
	s.Run("run", "--", "echo").Expect(t, 6, "", "the command of job 33 has ended, but the site has not settled its cost yet")
}

// In each of these cases, the command cannot run, or its job gets lost. candor run must then end with the given exit
// code and error message. Standard output must have only the output of the command.
func TestRunThatComesToNothing(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(*commandSite)
		code   int
		words  string
	}{
		{"no such command", func(s *commandSite) {
			s.end, s.reason, s.state, s.lost = job.Failed, "CannotStart", "Failed", true
		}, 127, "Job 33 Failed"},
		{"cancelled while it waits", func(s *commandSite) { s.end, s.state = job.Cancelled, "" }, 130, "Job 33 Cancelled"},
		{"the client was away for too long", func(s *commandSite) { s.lost = true }, 3, "the end of its output is lost"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newCommandSite(t)
			c.change(s)
			if r := s.Run("run", "--", "echo"); r.Code != c.code || r.Out != "" || !strings.Contains(r.Err, c.words) {
				t.Errorf("%+v", r)
			}
		})
	}
	newSite(t).Run("run").Expect(t, 2, "", "Usage: candor run")
	newSite(t).Run("shell", "bash").Expect(t, 2, "", "Usage: candor shell")
}

// slowReader is a writer that accepts its first bytes only when the test says so.
type slowReader struct {
	until <-chan struct{}
	bytes.Buffer
}

func (w *slowReader) Write(b []byte) (int, error) {
	select {
	case <-w.until:
	case <-time.After(time.Minute):
	}
	return w.Buffer.Write(b)
}

// If nobody reads the output of a command, its job must be cancelled at once. Otherwise it would keep its slot.
func TestRunWhoseReaderGoes(t *testing.T) {
	s, cancelled := newCommandSite(t), false
	clienttest.Answer(s.Site, messages.Auctioneer, messages.VerbCancel, func(r job.CancelRequest) (job.CancelReply, error) {
		cancelled = r.Job == 33
		return job.CancelReply{Job: 33}, nil
	})
	a := s.App(closedPipe{}, new(bytes.Buffer))
	code := s.Execute(t.Context(), a, "run", "-q", "--", "yes")
	if code != 141 || !cancelled {
		t.Errorf("exit code %d, cancelled: %v", code, cancelled)
	}
}

type closedPipe struct{}

func (closedPipe) Write([]byte) (int, error) { return 0, syscall.EPIPE }

// If the output of a client is blocked, the client must still send requests, because the node ends the commands of
// silent clients.
func TestRunStaysWhileItsReaderIsSlow(t *testing.T) {
	s := newCommandSite(t)
	out, errs := &slowReader{until: s.idle}, new(bytes.Buffer)
	a := s.App(out, errs)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if code := s.Execute(ctx, a, "run", "-q", "--", "echo"); code != 0 || out.String() != "hi\n" || !s.told.Load() {
		t.Errorf("exit code %d, output %q, errors %q, the client was heard: %v", code, out.String(), errs.String(), s.told.Load())
	}
}
