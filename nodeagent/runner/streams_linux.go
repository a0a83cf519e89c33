package runner

import (
	"context"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/agent"
	jobmsg "github.com/candor-grid/candor/messages/job"
	"github.com/candor-grid/candor/nodeagent/runner/launch"
	"github.com/candor-grid/candor/nodeagent/runner/program"
	"github.com/candor-grid/candor/nodeagent/runner/session"
	"github.com/candor-grid/candor/nodeagent/runner/stream"
)

// Stream answers a client's request about one of two streams: the own stream of a task, or the stream of a command or
// connection that a client started next to a running task.
func (p *Processes) Stream(ctx context.Context, r agent.StreamRequest) (agent.StreamReply, error) {
	if r.Client == "" {
		return agent.StreamReply{}, p.signalTask(&r)
	}
	s, err := p.stream(ctx, &r)
	if err != nil {
		return agent.StreamReply{}, err
	}
	if r.Close {
		p.streams.Drop(stream.Key{Attempt: r.Attempt, Name: r.Stream})
		return agent.StreamReply{}, nil
	}
	return s.Exchange(ctx, &r)
}

func (p *Processes) stream(ctx context.Context, r *agent.StreamRequest) (*stream.Stream, error) {
	key := stream.Key{Attempt: r.Attempt, Name: r.Stream}
	t := p.lookup(r.Attempt)
	if t != nil && r.Stream == "" { // the task may not have started yet
		ctx, cancel := context.WithTimeout(ctx, maxLogWait)
		defer cancel()
		select {
		case <-t.opened:
		case <-t.ended:
		case <-ctx.Done():
		}
	}
	switch s := p.streams.Get(key); {
	case s != nil:
		return s, nil
	case r.Begin != nil && t != nil:
		return p.beginStream(key, t, r.Begin)
	case r.Stream == "" && t != nil && t.comes():
		return nil, messages.Errorf(messages.Unavailable, "task %v is starting; ask again", r.Attempt.Task)
	case r.Stream == "" && t != nil:
		return nil, messages.Errorf(messages.Conflict, "task %v has no stream, because `candor run` did not start it; `candor logs --follow` shows the output, and `candor exec` runs a command next to the task", r.Attempt.Task)
	case t != nil:
		return nil, messages.Errorf(messages.NotFound, "the stream has ended")
	}
	return nil, messages.Errorf(messages.NotFound, "attempt %d of task %v does not run here, and its stream has ended", r.Attempt.Number, r.Attempt.Task)
}

// comes reports whether the task will have a stream, but has no stream yet.
func (t *process) comes() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.task.interactive() != nil && t.stream == nil
}

func (p *Processes) signalTask(r *agent.StreamRequest) error {
	t := p.lookup(r.Attempt)
	if t == nil {
		return messages.Errorf(messages.Ended, "attempt %d of task %v does not run here", r.Attempt.Number, r.Attempt.Task)
	}
	return t.send(&jobmsg.EarlySignal{Name: r.Signal, First: r.SignalFirst, Rest: r.SignalRest})
}

func (t *process) send(w *jobmsg.EarlySignal) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case t.over:
		return messages.Errorf(messages.Ended, "attempt %d of task %v has ended", t.task.Attempt.Number, t.task.Attempt.Task)
	case t.child.PID == 0:
		return messages.Errorf(messages.Unavailable, "task %v is starting; ask again", t.task.Attempt.Task)
	}
	t.alert(w)
	return nil
}

// inside returns a function that calls other functions inside the task's room. If the task has no room, inside returns
// nil.
func (t *process) inside() func(func() error) error {
	if t.room == nil {
		return nil
	}
	return t.room.Inside
}

// openStream opens the stream of an interactive task. The result `theirs` has the files for its process.
func (t *process) openStream(as *syscall.Credential) (theirs []*os.File, err error) {
	s := stream.New(*t.task.interactive())
	theirs, ours, err := s.Process(as, t.inside())
	if err != nil {
		return nil, err
	}
	s.Send = func(name string) { _ = t.send(&jobmsg.EarlySignal{Name: name}) }
	t.mu.Lock()
	t.stream, t.ours = s, ours
	t.mu.Unlock()
	return theirs, t.runner.streams.Add(t.task.Program.Account, stream.Key{Attempt: t.task.Attempt}, s)
}

// finishStream tells the task's client how the task ended. A refused task may have no stream yet. For such a task,
// finishStream makes a stream that only tells the client the end.
func (t *process) finishStream(f *agent.Finished) {
	if t.task.interactive() == nil {
		return
	}
	t.mu.Lock()
	none := t.stream == nil
	if none {
		t.stream = stream.New(*t.task.interactive())
		t.stream.Mute()
	}
	t.mu.Unlock()
	if none {
		_ = t.runner.streams.Add(t.task.Program.Account, stream.Key{Attempt: t.task.Attempt}, t.stream) // adding a task's own stream never fails
	}
	code := f.ExitCode
	if f.Outcome == agent.Unstartable {
		code = 127
		t.stream.Say("candor: this task could not be started: " + f.Detail)
	}
	t.runner.streams.Finish(stream.Key{Attempt: t.task.Attempt}, t.stream, code, t.ours...)
}

// beginStream starts a command or a connection that a client asked for in addition to a running task.
func (p *Processes) beginStream(key stream.Key, t *process, b *agent.StreamBegin) (*stream.Stream, error) {
	s := stream.New(b.Interactive)
	if err := p.streams.Add(t.task.Program.Account, key, s); err != nil {
		return nil, err
	}
	var err error
	if with := (taskStream{t, key, s}); b.Port > 0 {
		err = with.dial(b.Port)
	} else {
		err = with.exec(b)
	}
	if err != nil {
		p.streams.Drop(key)
		return nil, err
	}
	return s, nil
}

// joinable returns an error unless the task runs. The caller holds t.mu.
func (t *process) joinable() error {
	switch {
	case t.child.PID == 0:
		return messages.Errorf(messages.Unavailable, "task %v is starting; ask again", t.task.Attempt.Task)
	case t.over || t.ending:
		return messages.Errorf(messages.Ended, "task %v is ending", t.task.Attempt.Task)
	case t.suspended:
		return messages.Errorf(messages.Conflict, "task %v is suspended, because its slot went to another job; try again when it runs", t.task.Attempt.Task)
	}
	return nil
}

// taskStream is a stream that a client opens to a running task: to run another command on its node (candor exec), or to
// connect to a port of the task (candor port).
type taskStream struct {
	t   *process
	key stream.Key
	s   *stream.Stream
}

// exec starts a command in the cell and the room of the task, as the task's user.
func (w taskStream) exec(b *agent.StreamBegin) error {
	t, s := w.t, w.s
	l := launch.New()
	if err := t.join(l); err != nil {
		return err
	}
	defer t.part(l)
	theirs, ours, err := s.Process(t.program.As, t.inside())
	if err != nil {
		return err
	}
	c, err := w.fork(l, b, theirs)
	_ = launch.CloseAll(theirs)
	if err != nil {
		s.Finish(0, ours...)
		return err
	}
	over := make(chan struct{})
	kill := func(signal unix.Signal) {
		select {
		case <-over:
		default:
			unix.Kill(-c.PID, signal)
			session.Signal(c.PID, signal)
		}
	}
	s.Send = func(name string) { kill(unix.SignalNum("SIG" + name)) }
	s.Stop = func() { kill(unix.SIGHUP); kill(unix.SIGKILL) }
	go func() {
		select {
		case <-t.ended:
			kill(unix.SIGKILL)
		case <-over:
		}
	}()
	t.runner.tasks.Add(1) // so that the room does not end before this process is reaped
	t.runner.ends.Await(c, func() {
		defer t.runner.tasks.Done()
		unix.Kill(-c.PID, unix.SIGKILL)
		close(over)
		status, _ := c.Reap()
		t.runner.forks.Remove(l)
		code := status.ExitStatus()
		if status.Signaled() {
			code = 128 + int(status.Signal())
		}
		t.runner.streams.Finish(w.key, s, code, ours...)
	})
	return nil
}

// join keeps the cell and the room of a task while a process is started in them. If the task ends before the start is
// complete, the process is killed, and the end of the task waits until it is dead.
func (t *process) join(l *launch.Launch) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if err := t.joinable(); err != nil {
		return err
	}
	if t.joining == nil {
		t.joining = map[*launch.Launch]bool{}
	}
	t.joining[l] = true
	t.guests.Add(1)
	return nil
}

func (t *process) part(l *launch.Launch) {
	t.mu.Lock()
	defer t.mu.Unlock()
	l.Drop()
	delete(t.joining, l)
	t.guests.Done()
}

// joined reports whether one of two things is happening: the command of a stream is being started in the task's cell,
// or the task's processes are being suspended. After the task has ended, neither of them can begin.
func (t *process) joined() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.joining) > 0 || t.freezing
}

// fork starts the command of a stream in the task's cell. The task's program, lane and cell do not change while streams
// join the task.
func (w taskStream) fork(l *launch.Launch, b *agent.StreamBegin, files []*os.File) (c launch.Child, err error) {
	t := w.t
	env := t.env(t.program, t.dir)
	if b.Term != "" {
		env = append(env, "TERM="+b.Term)
	}
	path, err := program.LookUp(b.Command[0], env, t.program.As)
	if err != nil {
		return c, err
	}
	fds := make([]uintptr, len(files))
	for i, f := range files {
		fds[i] = f.Fd()
	}
	t.runner.forks.Add(l)
	defer time.AfterFunc(startWithin, l.Kill).Stop()
	err = t.runner.forge.Run(t.cell, t.place(), t.program.IsRoot(), func() (err error) {
		sys := &syscall.SysProcAttr{Setsid: true, Credential: t.program.As, Setctty: b.Interactive.Terminal}
		t.cell.Attributes(sys)
		t.runner.forge.Bind(l, t.cell, t.has.Affinity())
		c, err = l.Spawn(path, b.Command, env, t.dir, t.program.Umask, fds, sys)
		return err
	})
	if err != nil {
		t.runner.forks.Remove(l)
		return c, messages.Errorf(messages.Invalid, "%s: %s", b.Command[0], program.ReasonOf(err))
	}
	return c, nil
}

func (w taskStream) dial(port int) error {
	conn, err := stream.Dial(w, port)
	if err != nil {
		return messages.Errorf(messages.Conflict, "port %d: no process of the task answers: %s", port, messages.Detail(err))
	}
	w.s.Carry(conn, w.t.ended, func() { w.t.runner.streams.Finish(w.key, w.s, 0) })
	return nil
}

// Ended returns a channel that is closed when the task has ended.
func (w taskStream) Ended() <-chan struct{} { return w.t.ended }

// Private reports whether the account has a network of its own.
func (w taskStream) Private() bool { return w.t.runner.config.Private }

// Socket makes a socket in the task's network.
func (w taskStream) Socket(family int) (*os.File, error) {
	t, l := w.t, launch.New()
	if err := t.join(l); err != nil {
		return nil, err
	}
	defer t.part(l)
	fd := -1
	open := func() (err error) {
		fd, err = unix.Socket(family, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
		return err
	}
	err := error(nil)
	if t.room != nil && t.runner.config.Private {
		err = t.room.Inside(open)
	} else {
		err = open()
	}
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), "socket"), nil
}

// Owns returns an error if a socket does not belong to the task. If each account has a user of its own, the socket must
// belong to the task's user. Otherwise it must belong to a process of the task.
func (w taskStream) Owns(sockets []stream.Listener) error {
	t, l := w.t, launch.New()
	if err := t.join(l); err != nil { // after join, the task keeps its cell and session until part is called
		return err
	}
	defer t.part(l)
	if program.PerAccount(t.runner.config.User) {
		return stream.OwnedBy(sockets, t.program.As, nil)
	}
	return stream.OwnedBy(sockets, nil, t.members())
}

// members returns the processes in a task's cell or, if it has none, in the task's session.
func (t *process) members() []int {
	if inside, known := t.cell.Processes(); known {
		return inside
	}
	return session.Members(t.child.PID)
}
