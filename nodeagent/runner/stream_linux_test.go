package runner_test

import (
	"bytes"
	"context"
	"strings"
	"testing"
	"time"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/agent"
	"github.com/candor-grid/candor/messages/await"
	"github.com/candor-grid/candor/messages/job"
	"github.com/candor-grid/candor/nodeagent/runner"
)

type follower struct {
	b       *bench
	request agent.StreamRequest
	in      int64
	out     bytes.Buffer
	errs    bytes.Buffer
}

func (b *bench) follow(a messages.Attempt, name, client string) *follower {
	return &follower{b: b, request: agent.StreamRequest{Attempt: a, Stream: name, Client: client}}
}

func (f *follower) ask(change func(*agent.StreamRequest)) agent.StreamReply {
	f.b.t.Helper()
	r := f.request
	change(&r)
	reply, err := f.b.Stream(context.Background(), r)
	if err != nil {
		f.b.t.Fatal(err)
	}
	return reply
}

func (f *follower) write(text string, end bool) {
	for rest := text; rest != "" || end; {
		reply := f.ask(func(r *agent.StreamRequest) {
			r.Input, r.InputAt, r.InputEnd, r.Wait = []byte(rest), f.in, end, messages.Duration(patience)
		})
		rest = rest[reply.InputNext-f.in:]
		if f.in = reply.InputNext; rest == "" {
			return
		}
	}
}

// read reads output until it contains the text `until`. If `until` is "", it reads to the end. It returns the exit
// code.
func (f *follower) read(until string) (code int) {
	f.b.t.Helper()
	for range 100_000 {
		reply := f.ask(func(r *agent.StreamRequest) {
			r.Poll, r.OutputAt, r.ErrorsAt, r.Wait = true, int64(f.out.Len()), int64(f.errs.Len()), messages.Duration(patience)
		})
		f.out.Write(reply.Output)
		f.errs.Write(reply.Errors)
		if reply.Ended || until != "" && strings.Contains(f.out.String(), until) {
			return reply.ExitCode
		}
	}
	f.b.t.Fatalf("%q never came, but %q", until, f.out.String())
	return 0
}

func interactive(script string, i job.Interactive) agent.Program {
	return agent.Program{Script: script, Interactive: &i}
}

// TestStream checks that input and output arrive, that a repeated request has no second effect, and that a second
// client replaces the first.
func TestStream(t *testing.T) {
	b := newBench(t, nil)
	task := b.start(interactive("read a; echo got $a; echo oops >&2; cat; exit 5\n", job.Interactive{}))
	first := b.follow(task.attempt, "", "one")
	for range 2 { // the same request twice, as if the first answer had been lost
		first.in = 0
		first.write("x\n", false)
	}
	first.read("got x\n")
	second := b.follow(task.attempt, "", "two")
	second.in = second.ask(func(r *agent.StreamRequest) { r.Take = true }).InputNext
	if _, err := b.Stream(context.Background(), agent.StreamRequest{Attempt: task.attempt, Client: "one", Poll: true}); messages.KindOf(err) != messages.Conflict {
		t.Errorf("the first client goes on: %v", err)
	}
	second.write(strings.Repeat("0123456789", 100), true)
	if code := second.read(""); code != 5 || !strings.HasSuffix(second.out.String(), strings.Repeat("0123456789", 100)) || !strings.Contains(first.errs.String()+second.errs.String(), "oops\n") {
		t.Errorf("exit code %d, output of %d bytes, errors %q and %q", code, second.out.Len(), first.errs.String(), second.errs.String())
	}
	if f := <-task.done; f.ExitCode != 5 {
		t.Errorf("%+v", f)
	}
}

// TestStreamOfATaskThatCannotStart runs tasks without a command, a directory or an input that they need. The client
// must get the reason and exit code 127.
func TestStreamOfATaskThatCannotStart(t *testing.T) {
	b := newBench(t, nil)
	for name, p := range map[string]agent.Program{
		"command":   {Command: []string{"no-such-command"}},
		"directory": {Command: []string{"true"}, Dir: "/no/such/directory"},
		"input":     {Command: []string{"true"}, Inputs: []job.File{{Name: "in", Digest: strings.Repeat("0", 64), Size: 1}}},
	} {
		p.Interactive = &job.Interactive{}
		task := b.start(p)
		f := task.wait()
		stream := b.follow(task.attempt, "", "one")
		if code := stream.read(""); f.Outcome != agent.Unstartable || code != 127 || !strings.Contains(stream.errs.String(), f.Detail) {
			t.Errorf("%s: %+v; exit code %d, %q", name, f, code, stream.errs.String())
		}
	}
}

// TestStreamIsBounded checks that a node buffers only a limited amount: of output that no client reads, and of input
// that no process reads.
func TestStreamIsBounded(t *testing.T) {
	b := newBench(t, nil)
	task := b.start(interactive("yes & sleep 1000\n", job.Interactive{}))
	c := b.follow(task.attempt, "", "one")
	if r := c.ask(func(r *agent.StreamRequest) { r.Poll, r.Wait = true, messages.Duration(patience) }); len(r.Output) > agent.MaxStreamPiece {
		t.Errorf("%d bytes at once", len(r.Output))
	}
	taken := int64(0)
	for range 5 {
		taken = c.ask(func(r *agent.StreamRequest) { r.Input, r.InputAt = make([]byte, agent.MaxStreamPiece), taken }).InputNext
	}
	if taken > agent.MaxStreamPiece+256<<10 {
		t.Errorf("%d bytes were taken for a process that reads nothing", taken)
	}
	task.Stop(0)
	<-task.done
}

// TestExecBesideATask runs a command while a task runs, as candor exec does. The command must have the task's
// variables, report its exit code, and end with the task.
func TestExecBesideATask(t *testing.T) {
	b := newBench(t, nil)
	task := b.start(agent.Program{Script: "sleep 1000\n"})
	beside := func(name string, command ...string) *follower {
		f := b.follow(task.attempt, name, "one")
		f.request.Begin = &agent.StreamBegin{Command: command}
		for { // try again, because the task may not have started yet
			if _, err := b.Stream(context.Background(), f.request); messages.KindOf(err) != messages.Unavailable {
				if err != nil {
					t.Fatal(err)
				}
				return f
			}
		}
	}
	quick := beside("a", "sh", "-c", "echo $CANDOR_JOB; exit 3")
	if code := quick.read(""); code != 3 || quick.out.String() != "7\n" {
		t.Errorf("exit code %d, output %q", code, quick.out.String())
	}
	long := beside("b", "sh", "-c", "echo here; sleep 1000")
	long.read("here")
	if _, err := b.Stream(context.Background(), agent.StreamRequest{Attempt: task.attempt, Client: "x", Poll: true}); messages.KindOf(err) != messages.Conflict {
		t.Errorf("a task without a stream: %v", err)
	}
	if _, err := b.Stream(context.Background(), agent.StreamRequest{Attempt: task.attempt, Signal: "TERM"}); err != nil {
		t.Error(err)
	}
	<-task.done
	if code := long.read(""); code != 128+9 {
		t.Errorf("the command beside a task that has ended: %d", code)
	}
}

// TestTaskWithoutAClientEnds checks that an interactive task whose client has been away too long is ended, and that its
// reason says so.
func TestTaskWithoutAClientEnds(t *testing.T) {
	b := newBench(t, func(c *runner.Config) { c.CheckEvery = 1e6 })
	for _, i := range []job.Interactive{{Linger: 1e6}, {Idle: 1e6}} {
		f := <-b.start(interactive("sleep 1000\n", i)).done
		if f.Outcome != agent.Exceeded || !strings.Contains(f.Detail, "ended after 1ms without") {
			t.Errorf("%+v", f)
		}
	}
}

func TestTerminal(t *testing.T) {
	b := newBench(t, nil)
	task := b.start(interactive("stty size; read x; stty size\n", job.Interactive{Terminal: true, Rows: 20, Columns: 70}))
	c := b.follow(task.attempt, "", "one")
	c.read("20 70")
	c.ask(func(r *agent.StreamRequest) { r.Rows, r.Columns = 30, 90 })
	c.write("\n", false)
	c.read("30 90")
	<-task.done
}

// TestTerminalsAreTheRoomsOwn checks that a task can open the terminals of its room by name, and not the terminals of
// the machine.
func TestTerminalsAreTheRoomsOwn(t *testing.T) {
	b := strangers(t, nil)
	task := b.start(interactive("echo by its name >$(tty)\n", job.Interactive{Terminal: true, Rows: 20, Columns: 70}))
	b.follow(task.attempt, "", "one").read("by its name")
	<-task.done
	s := b.start(sh("f() { if [ $1 = 300 ]; then exit 0; fi; f $(($1 + 1)) 3<>/dev/ptmx; }; f 0"))
	if f := s.wait(); f.Outcome != agent.Exited || f.ExitCode == 0 || !strings.Contains(b.read(s, false)+b.read(s, true), "/dev/ptmx") {
		t.Errorf("%+v %s", f, b.read(s, true))
	}
	s = b.start(sh("f() { if [ $1 = 100 ]; then exit; fi; f $(($1 + 1)) 3<>/dev/ptmx; }; f 0"))
	if f := s.wait(); f.ExitCode != 0 {
		t.Errorf("%+v %s", f, b.read(s, true))
	}
}

func TestSignalBeforeTheLimit(t *testing.T) {
	b := newBench(t, nil)
	inTime(t, 300*time.Millisecond, func(after time.Duration) bool {
		s := b.start(agent.Program{Script: "trap 'exit 9' USR2\necho ready\nwhile :; do sleep 0.01; done\n", TimeLimit: messages.Duration(10 * patience),
			Signal: &job.EarlySignal{Name: "USR2", Before: messages.Duration(10*patience - after), First: true}})
		f := s.wait()
		if b.read(s, false) == "" {
			return false
		}
		if f.Outcome != agent.Exited || f.ExitCode != 9 {
			t.Errorf("%+v", f)
		}
		return true
	})
}

// TestSignalOfAStop checks that a task also gets its early signal when the node stops it.
func TestSignalOfAStop(t *testing.T) {
	b := newBench(t, nil)
	task := b.start(agent.Program{Script: "trap '' TERM\ntrap 'exit 9' USR2\necho ready >&2\nwhile :; do sleep 0.01; done\n", Interactive: &job.Interactive{},
		Signal: &job.EarlySignal{Name: "USR2", First: true}})
	c := b.follow(task.attempt, "", "one")
	await.Until(t, "the script is ready", func() bool {
		return len(c.ask(func(r *agent.StreamRequest) { r.Poll, r.Wait = true, messages.Duration(patience) }).Errors) > 0
	})
	task.Stop(patience)
	if f := <-task.done; f.ExitCode != 9 {
		t.Errorf("%+v", f)
	}
}

// TestSignalOfTheRanks sends a signal that is meant for the ranks of srun. As in Slurm, neither the script nor a
// program that the script starts itself may get it.
func TestSignalOfTheRanks(t *testing.T) {
	b := newBench(t, nil)
	task := b.start(interactive("trap 'exit 9' USR2\nsleep 600 &\n"+
		"CANDOR_STEP=0 sh -c 'trap \"exit 4\" USR2; echo ready; while :; do sleep 0.01; done'\ncode=$?; kill $!; wait $!\n"+
		"[ $? = 143 ] || exit 5\nexit $code\n", job.Interactive{}))
	b.follow(task.attempt, "", "one").read("ready")
	await.Until(t, "the signal is sent", func() bool { // the signal is refused until the runner knows that the task runs
		_, err := b.Stream(context.Background(), agent.StreamRequest{Attempt: task.attempt, Signal: "USR2", SignalRest: true})
		return messages.KindOf(err) != messages.Unavailable
	})
	if f := <-task.done; f.ExitCode != 4 {
		t.Errorf("%+v", f)
	}
}
