package executor

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/candor-grid/candor/messages"
	agentmsg "github.com/candor-grid/candor/messages/agent"
	"github.com/candor-grid/candor/nodeagent/runner"
	"github.com/candor-grid/candor/nodeagent/runner/boottime"
)

// These are the times after which an executor ends if no agent connects. If the executor has had no task, it ends after
// 10 s. Otherwise it ends 10 minutes after the end of the last task, because an agent may still ask how the tasks
// ended.
const (
	lonely    = 10 * time.Second
	abandoned = 10 * time.Minute
)

// server is the executor's end of the connection, and its tasks.
type server struct {
	run               *runner.Processes
	inForce           inForce
	listener          net.Listener
	ends              string      // path of the file for the ends that no agent has confirmed
	home              os.FileInfo // the directory with the socket; nil means unknown
	lonely, abandoned time.Duration

	mu    sync.Mutex
	tasks map[messages.Attempt]*task
	kept  int             // number of tasks in the file of ends
	queue                 // tasks that wait for the slot of another task
	agent *conn           // the newest connection; nil means none
	lease *boottime.Timer // timer that kills every task when the lease expires
	alone *time.Timer     // timer that runs while there is no agent and no task; otherwise nil
}

// task is an attempt that the executor runs. It exists from the start of the attempt until the agent has confirmed its
// end.
type task struct {
	runner.Process
	class     messages.Name
	width     int                // number of the task's slots; 0 means 1
	files     bool               // the agent must store the task's files after its end
	finished  *agentmsg.Finished // nil while the task runs
	forget    bool               // the agent has confirmed the task's end
	suspended bool               // the agent has asked to suspend the task
	kept      bool               // the task's end is in the file of ends
}

// serve runs tasks for the agents that connect, one agent at a time, until it is told to end, the context ends, or
// nobody needs it.
func serve(ctx context.Context, l net.Listener, c runner.Config, is inForce) error {
	run, err := runner.NewProcesses(c)
	if err != nil {
		return err
	}
	if err := run.Lacks(); err != nil {
		fmt.Fprintln(os.Stderr, err) // standard error is the executor's log
	}
	s := newServer(run, l, c.Dir)
	s.inForce = is
	s.begin()
	return s.accept(ctx)
}

func newServer(run *runner.Processes, l net.Listener, dir string) *server {
	s := &server{run: run, listener: l, ends: filepath.Join(dir, endsFile), lonely: lonely, abandoned: abandoned, tasks: map[messages.Attempt]*task{}}
	s.lease = boottime.NewTimer(s.expire)
	s.home, _ = os.Stat(dir)
	return s
}

// begin reads the file with the ends of tasks that an earlier executor could not report.
func (s *server) begin() {
	s.mu.Lock()
	defer s.mu.Unlock()
	all, err := readEnds(s.ends)
	if err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v; the outcomes in this file are lost, and their tasks count as stopped\n", s.ends, err)
		_ = os.Remove(s.ends) // the file is damaged; it is written again when needed
	}
	for _, f := range all {
		s.run.Hold(f.Attempt)
		s.tasks[f.Attempt] = &task{class: f.Name, width: int(f.Number), finished: f.Finished, suspended: f.Suspended, kept: true}
	}
	s.kept = len(all)
	s.countDown()
}

// accept serves agents until the listener is closed or the context ends.
func (s *server) accept(ctx context.Context) error {
	defer s.lease.Close()
	defer context.AfterFunc(ctx, s.end)()
	for {
		c, err := s.listener.Accept()
		if err != nil {
			break
		}
		if socket, ok := c.(*net.UnixConn); ok {
			agent := newConn(socket)
			s.welcome(agent) // agents are welcomed in the order of arrival: an agent that gave up waiting must not count as the newest
			go s.serve(agent)
		}
	}
	err := s.run.Close()
	s.mu.Lock()
	defer s.mu.Unlock()
	if ctx.Err() != nil {
		err = errors.Join(err, s.keepEnds())
	}
	if s.agent != nil {
		s.agent.finish()
	}
	return err
}

func (s *server) serve(agent *conn) {
	programs := map[uint64]*agentmsg.Program{}
	for {
		f, err := agent.receive()
		if err != nil {
			break
		}
		s.handle(agent, programs, f)
	}
	agent.finish()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.agent == agent {
		s.agent = nil
		s.queue.clear()
		s.countDown()
	}
}

// welcome makes a connection the current one, and tells the agent at its other end about all tasks of this executor.
func (s *server) welcome(agent *conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.agent != nil {
		s.agent.finish()
	}
	s.agent = agent
	s.queue.clear()
	s.countDown()
	agent.send(&frame{Kind: hello, Number: messages.Level, Names: append(s.inForce.names(), s.run.Abilities()...)})
	for a, t := range s.tasks {
		agent.send(t.has(a))
	}
	agent.send(&frame{Kind: ready, Number: follows})
}

// has returns the frame with which the executor tells an agent that it has this task.
func (t *task) has(a messages.Attempt) *frame {
	return &frame{Kind: has, Attempt: a, Name: t.class, Number: uint64(t.width), Suspended: t.suspended, Finished: t.finished}
}

// countDown starts the timer that ends the executor. The timer runs only while no agent is connected and no task runs.
// The caller holds s.mu.
func (s *server) countDown() {
	if s.alone != nil {
		s.alone.Stop()
		s.alone = nil
	}
	if s.agent != nil {
		return
	}
	wait := s.lonely
	for _, t := range s.tasks {
		if wait = s.abandoned; t.finished == nil {
			return
		}
	}
	s.alone = time.AfterFunc(wait, s.leave)
}

// homeless reports whether no agent can connect any more, because the directory with the executor's socket was removed
// or replaced.
func (s *server) homeless() bool {
	now, err := os.Stat(filepath.Dir(s.ends))
	return os.IsNotExist(err) || err == nil && s.home != nil && !os.SameFile(now, s.home)
}

// leave ends the executor if no agent has connected. Before that, it writes the ends of tasks that no agent has
// confirmed to a file, for the next executor. If it cannot write the file, the executor stays and tries again. If the
// state directory is gone, the executor ends without the file.
func (s *server) leave() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.agent != nil || s.alone == nil {
		return
	}
	if s.homeless() {
		fmt.Fprintln(os.Stderr, "the state directory is gone, so nobody will ask how the tasks ended")
	} else if err := s.keepEnds(); err != nil {
		fmt.Fprintf(os.Stderr, "%v; will try again\n", err)
		s.countDown()
		return
	}
	s.end()
}

// keepEnds writes the unconfirmed ends to a file, unless the file has them already. The caller holds s.mu.
func (s *server) keepEnds() error {
	var all []frame
	written := true
	for a, t := range s.tasks {
		if t.finished != nil {
			all, written = append(all, *t.has(a)), written && t.kept
		}
	}
	if written {
		return nil
	}
	if err := writeEnds(s.ends, all); err != nil {
		return fmt.Errorf("%s: cannot write how %d tasks ended: %w", s.ends, len(all), err)
	}
	for _, t := range s.tasks {
		t.kept = t.finished != nil
	}
	s.kept = len(all)
	return nil
}

// end closes the listener; Serve then ends the executor.
func (s *server) end() { _ = s.listener.Close() }

// handle carries out the order in a frame that an agent sent. If a newer agent is connected, handle ignores the order,
// because the newer agent sends all its orders again.
func (s *server) handle(agent *conn, programs map[uint64]*agentmsg.Program, f *frame) {
	switch f.Kind {
	case program:
		if f.Program == nil { // a list of programs begins; it has several frames if it is long
			clear(programs)
			return
		}
		programs[f.Number] = f.Program
	case start:
		s.start(agent, f, programs[f.Number])
	case follow:
		s.follow(agent, f, programs[f.Number])
	case owner, logs, stream:
		go s.answer(agent, f)
	default:
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.agent == agent {
			s.obey(f)
		}
	}
}

// obey carries out a frame of the current agent. The caller holds s.mu.
func (s *server) obey(f *frame) {
	t := s.tasks[f.Attempt]
	switch {
	case f.Kind == keep:
		s.lease.Reset(f.Time.Std())
		s.run.Keep(time.Duration(f.Number)) // a 0 comes from an earlier version, whose tasks do not learn the end of the lease
	case f.Kind == end:
		s.queue.clear()
		s.end()
	case f.Kind == withdraw:
		s.withdraw(f.Attempt, t)
	case t == nil:
	case f.Kind == confirm:
		t.forget = true
		s.let(f.Attempt, t)
	case f.Kind == suspend:
		t.suspended = f.Suspended
		t.now().Suspend(f.Suspended)
	case f.Kind == say:
		t.now().Say(f.Name)
	case f.Kind == stop:
		t.now().Stop(f.Time.Std())
	}
}

// now returns the process of a task. While the process is being started, it returns a value of type early, which
// remembers the orders of the agent, such as a stop.
func (t *task) now() runner.Process {
	if t.Process == nil {
		t.Process = new(early)
	}
	return t.Process
}

func (s *server) start(agent *conn, f *frame, p *agentmsg.Program) {
	t := s.enter(agent, f.Attempt, p)
	if t == nil {
		return
	}
	s.launch(t, f.task(p))
}

// launch starts a task. The method enter has already added this task.
func (s *server) launch(t *task, what runner.Task) {
	process := s.run.Start(what, s.done) // called without the lock, because Start may call done before it returns
	s.mu.Lock()
	defer s.mu.Unlock()
	t.begun(process)
}

// enter adds a task and returns it. It returns nil if the task is known already or cannot be started.
func (s *server) enter(agent *conn, a messages.Attempt, p *agentmsg.Program) *task {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.agent != agent || s.tasks[a] != nil {
		return nil
	}
	s.queue.remove(a)
	if p == nil {
		t := &task{finished: &agentmsg.Finished{Attempt: a, Outcome: agentmsg.Unstartable, Detail: "the agent did not say what to run"}}
		s.tasks[a] = t
		s.countDown()
		s.report(t)
		return nil
	}
	return s.take(a, p)
}

// take adds a task. The caller holds s.mu.
func (s *server) take(a messages.Attempt, p *agentmsg.Program) *task {
	t := &task{class: p.Class, width: p.Width, files: len(p.Inputs)+len(p.Outputs) > 0}
	s.tasks[a] = t
	s.countDown()
	return t
}

// begun stores the process of a task that has just started. Orders for the task may have come before the start. begun
// gives these orders to the process.
func (t *task) begun(p runner.Process) {
	before, _ := t.Process.(*early)
	t.Process = p
	if before == nil {
		return
	}
	p.Suspend(before.suspended)
	if before.stopped {
		p.Stop(before.grace)
	}
}

// early remembers the orders for a task while it is being started.
type early struct {
	suspended, stopped bool
	grace              time.Duration
}

func (e *early) Suspend(suspended bool) { e.suspended = suspended }

func (*early) Say(string) {} // ignored: a task that has not started yet has no output

func (e *early) Stop(grace time.Duration) {
	if e.stopped {
		grace = min(grace, e.grace)
	}
	e.stopped, e.grace = true, grace
}

// done records how a task ended, and starts the task that follows it.
func (s *server) done(f agentmsg.Finished) {
	s.mu.Lock()
	t := s.tasks[f.Attempt]
	if t == nil {
		s.mu.Unlock()
		return
	}
	t.finished = &f
	next, what := s.next(t)
	if next == nil {
		s.report(t)
	} else {
		s.agent.sendLater(&frame{Kind: ended, Finished: t.finished, Attempt: what.Attempt, Number: uint64(boottime.Now())})
	}
	agent := s.agent
	s.let(f.Attempt, t)
	s.countDown()
	s.mu.Unlock()
	if next != nil {
		s.launch(next, what)
		s.tell(agent, f.Attempt.Task.Job == what.Attempt.Task.Job)
	}
}

// let removes a task that has ended, but only after the agent has confirmed the task's end. The caller holds s.mu.
func (s *server) let(a messages.Attempt, t *task) {
	if t.finished != nil && t.forget {
		delete(s.tasks, a)
		s.run.Confirm(a)
		s.countDown()
		if t.kept {
			if s.kept--; s.kept == 0 {
				_ = os.Remove(s.ends) // if this fails, a later agent gets these ends again
			}
		}
	}
}

func (s *server) report(t *task) {
	if s.agent != nil {
		s.agent.send(&frame{Kind: ended, Finished: t.finished})
	}
}

// expire kills all tasks, because the node's lease has expired: the leader may have given the tasks to other nodes.
func (s *server) expire() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.queue.clear()
	for _, t := range s.tasks {
		t.now().Stop(0)
	}
}

func (s *server) answer(agent *conn, f *frame) {
	r := &frame{Kind: reply, Number: f.Number}
	var err error
	switch {
	case f.Kind == stream && f.Stream != nil:
		var streamed agentmsg.StreamReply
		streamed, err = s.run.Stream(context.Background(), *f.Stream)
		r.Streamed = &streamed
	case f.Logs == nil:
		err = messages.Errorf(messages.Invalid, "attempt: is missing; name the attempt whose output you want")
	case f.Kind == owner:
		r.Name, err = s.run.Owner(f.Logs.Attempt.Task.Job)
	default:
		var piece agentmsg.LogsReply
		piece, err = s.run.ReadLog(context.Background(), *f.Logs)
		r.Reply = &piece
	}
	if err != nil {
		r.Error = messages.AsError("logs", err)
	}
	agent.send(r)
}
