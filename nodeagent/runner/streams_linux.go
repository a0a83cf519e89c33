package runner

import (
	"cmp"
	"context"
	"errors"
	"net"
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
)

// streamKey identifies a stream: the stream of a task (name ""), or one that a client began next to it.
type streamKey struct {
	attempt messages.Attempt
	name    string // "": the task's own
}

// Bounds of streams.
const (
	maxStreams     = 512             // streams of a node, including ended ones that are still read
	maxTaskStreams = 32              // streams that clients began next to one task
	keepEnded      = 2 * time.Minute // how long an ended stream waits for its client
	keepRead       = time.Hour       // how long a client with a slow reader may still read an ended stream
)

// Stream answers a request of a client: for a task's stream, or for a stream next to a running task.
func (p *Processes) Stream(ctx context.Context, r agent.StreamRequest) (agent.StreamReply, error) {
	if r.Client == "" {
		return agent.StreamReply{}, p.signalTask(&r)
	}
	s, err := p.stream(ctx, &r)
	if err != nil {
		return agent.StreamReply{}, err
	}
	if r.Close {
		p.dropStream(streamKey{r.Attempt, r.Stream})
		return agent.StreamReply{}, nil
	}
	return s.exchange(ctx, &r)
}

// stream finds the stream of a request, or begins it.
func (p *Processes) stream(ctx context.Context, r *agent.StreamRequest) (*stream, error) {
	key := streamKey{r.Attempt, r.Stream}
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
	p.mu.Lock()
	s := p.streams[key]
	p.mu.Unlock()
	switch {
	case s != nil:
		return s, nil
	case r.Begin != nil && t != nil:
		return p.beginStream(key, t, r.Begin)
	case r.Stream == "" && t != nil:
		return nil, messages.Errorf(messages.Conflict, "task %v has no stream, because candor run did not start it; candor logs --follow shows its output, and candor exec runs a command next to it", r.Attempt.Task)
	case t != nil:
		return nil, messages.Errorf(messages.NotFound, "the stream has ended")
	}
	return nil, messages.Errorf(messages.NotFound, "attempt %d of task %v does not run here, and its stream has ended", r.Attempt.Number, r.Attempt.Task)
}

// addStream adds a stream. If there are too many, it drops the ended stream whose client has been silent for longest.
// Streams next to tasks never prevent a task's own stream.
func (p *Processes) addStream(key streamKey, s *stream) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	more := 0
	for k := range p.streams {
		if k.attempt == key.attempt && k.name != "" {
			more++
		}
	}
	full := len(p.streams) >= maxStreams && !p.makeRoom()
	if key.name != "" && (full || more >= maxTaskStreams) {
		return messages.Errorf(messages.Exhausted, "the node has %d streams, and %d of them belong to this task; close some", len(p.streams), more)
	}
	if p.streams == nil {
		p.streams = map[streamKey]*stream{}
	}
	p.streams[key] = s
	return nil
}

// makeRoom drops an ended stream, and reports whether there was one. The caller holds p.mu.
func (p *Processes) makeRoom() bool {
	var oldest streamKey
	var since time.Time
	for key, s := range p.streams {
		if done, heard := s.silence(); done && (key.name != "" || p.running[key.attempt] == nil) && (since.IsZero() || heard.Before(since)) {
			oldest, since = key, heard
		}
	}
	s := p.streams[oldest]
	if s == nil {
		return false
	}
	delete(p.streams, oldest)
	go s.leave()
	return true
}

// dropStream removes a stream.
func (p *Processes) dropStream(key streamKey) {
	p.mu.Lock()
	s := p.streams[key]
	if s != nil && key.name == "" && p.running[key.attempt] != nil { // a task's own stream stays until the task ends
		s = nil
	} else {
		delete(p.streams, key)
	}
	p.mu.Unlock()
	if s != nil {
		s.leave()
	}
}

// finishStream records the end of a stream's process. A client has keepEnded to read the rest. It has up to keepRead
// while it keeps asking, because its own reader may be slow.
func (p *Processes) finishStream(key streamKey, s *stream, code int, files ...*os.File) {
	s.finish(code, files...)
	ended := time.Now()
	var look func()
	look = func() {
		if _, heard := s.silence(); time.Since(heard) >= p.keepEnded || time.Since(ended) >= keepRead {
			p.dropStream(key)
			return
		}
		time.AfterFunc(p.keepEnded, look)
	}
	time.AfterFunc(p.keepEnded, look)
}

// signalTask sends a signal to the processes of a running task.
func (p *Processes) signalTask(r *agent.StreamRequest) error {
	t := p.lookup(r.Attempt)
	if t == nil {
		return messages.Errorf(messages.Ended, "attempt %d of task %v does not run here", r.Attempt.Number, r.Attempt.Task)
	}
	return t.send(&jobmsg.EarlySignal{Name: r.Signal, First: r.SignalFirst, Rest: r.SignalRest})
}

// send sends a signal to the task's processes.
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

// openStream opens the stream of an interactive task. theirs are the files for its process.
func (t *process) openStream(as *syscall.Credential) (theirs []*os.File, err error) {
	s := newStream(*t.task.interactive())
	theirs, ours, err := s.process(as, t.room)
	if err != nil {
		return nil, err
	}
	s.send = func(name string) { _ = t.send(&jobmsg.EarlySignal{Name: name}) }
	t.mu.Lock()
	t.stream, t.ours = s, ours
	t.mu.Unlock()
	return theirs, t.runner.addStream(streamKey{t.task.Attempt, ""}, s)
}

// finishStream tells the task's client how the task ended. A task that was refused before it had a stream gets one
// for this.
func (t *process) finishStream(f *agent.Finished) {
	if t.task.interactive() == nil {
		return
	}
	t.mu.Lock()
	none := t.stream == nil
	if none {
		t.stream = newStream(*t.task.interactive())
		t.stream.output.over, t.stream.errors.over = true, true // no process writes to them
	}
	t.mu.Unlock()
	if none {
		_ = t.runner.addStream(streamKey{t.task.Attempt, ""}, t.stream) // never fails for a task's own stream
	}
	code := f.ExitCode
	if f.Outcome == agent.Unstartable {
		code = 127
		t.stream.mu.Lock()
		t.stream.errors.data = append(t.stream.errors.data, "candor: this task could not be started: "+f.Detail+"\r\n"...)
		t.stream.mu.Unlock()
	}
	t.runner.finishStream(streamKey{t.task.Attempt, ""}, t.stream, code, t.ours...)
}

// beginStream starts the command or the connection that a client asks for next to a running task.
func (p *Processes) beginStream(key streamKey, t *process, b *agent.StreamBegin) (*stream, error) {
	s := newStream(b.Interactive)
	if err := p.addStream(key, s); err != nil {
		return nil, err
	}
	var err error
	if with := (taskStream{t, key, s}); b.Port > 0 {
		err = with.dial(b.Port)
	} else {
		err = with.exec(b)
	}
	if err != nil {
		p.dropStream(key)
		return nil, err
	}
	return s, nil
}

// joinable returns why nothing can be started next to the task; nil: it can, because the task runs. The caller holds
// t.mu.
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

// taskStream is a stream that a client opens to a running task: to run another command on its node
// (candor exec), or to connect to a port of the task (candor port).
type taskStream struct {
	t   *process
	key streamKey
	s   *stream
}

// exec starts a command in the cell and the room of the task, as the task's user.
func (w taskStream) exec(b *agent.StreamBegin) error {
	t, s := w.t, w.s
	l := launch.New()
	if err := t.join(l); err != nil {
		return err
	}
	defer t.part(l)
	theirs, ours, err := s.process(t.program.As, t.room)
	if err != nil {
		return err
	}
	c, err := w.fork(l, b, theirs)
	_ = launch.CloseAll(theirs)
	if err != nil {
		s.finish(0, ours...)
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
	s.send = func(name string) { kill(unix.SignalNum("SIG" + name)) }
	s.stop = func() { kill(unix.SIGHUP); kill(unix.SIGKILL) }
	go func() {
		select {
		case <-t.ended:
			kill(unix.SIGKILL)
		case <-over:
		}
	}()
	t.runner.tasks.Add(1) // so that the room does not end before its processes are reaped
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
		t.runner.finishStream(w.key, s, code, ours...)
	})
	return nil
}

// join keeps the task's cell and room while l starts a process in them. If the task ends, it kills l and waits for
// it.
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

// joined reports whether something is being started next to the task, or its processes are being suspended. Neither
// begins after the task has ended.
func (t *process) joined() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.joining) > 0 || t.freezing
}

// fork starts the command. The task's program, lane and cell do not change while it is joined.
func (w taskStream) fork(l *launch.Launch, b *agent.StreamBegin, files []*os.File) (c launch.Child, err error) {
	t := w.t
	env := t.env(t.program, t.dir)
	if b.Term != "" {
		env = append(env, "TERM="+b.Term)
	}
	path, err := program.LookUp(b.Command[0], env)
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
		sys := &syscall.SysProcAttr{Setsid: true, Credential: t.program.As, Setctty: w.s.what.Terminal}
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

// dialWithin is how long a program of a task may take to accept a connection.
const dialWithin = 3 * time.Second

// dial connects to a port of the task's network.
func (w taskStream) dial(port int) error {
	t, s := w.t, w.s
	conn, err := w.dialLoopback(port)
	if err != nil {
		return messages.Errorf(messages.Conflict, "port %d: nothing of the task answers there: %s", port, messages.Detail(err))
	}
	s.errors.over = true
	over := make(chan struct{})
	s.stop = func() { _ = conn.Close() }
	go func() {
		select {
		case <-t.ended:
			_ = conn.Close()
		case <-over:
		}
	}()
	go s.feed(conn, func() {
		if half, is := conn.(interface{ CloseWrite() error }); is {
			_ = half.CloseWrite()
		}
	})
	go func() {
		s.pump(conn, &s.output)
		close(over)
		t.runner.finishStream(w.key, s, 0)
	}()
	return nil
}

// dialLoopback connects to a port of this machine, in the task's network.
func (w taskStream) dialLoopback(port int) (conn net.Conn, err error) {
	var foreign error
	for _, to := range []struct {
		family int
		at     unix.Sockaddr
	}{{unix.AF_INET, &unix.SockaddrInet4{Port: port, Addr: [4]byte{127, 0, 0, 1}}}, {unix.AF_INET6, &unix.SockaddrInet6{Port: port, Addr: [16]byte{15: 1}}}} {
		socket, socketErr := w.t.socket(to.family)
		if socketErr != nil {
			err = socketErr
			continue
		}
		if err = w.connect(socket, to.family, port, to.at); err == nil {
			conn, err = net.FileConn(socket)
		}
		_ = socket.Close()
		if err == nil {
			return conn, nil
		}
		if errors.Is(err, errForeign) {
			foreign = err
		}
	}
	return nil, cmp.Or(foreign, err)
}

// connect connects a socket to a listener of the task. It checks that the task is listening, because other processes
// may share the task's network and listen there.
func (w taskStream) connect(socket *os.File, family, port int, to unix.Sockaddr) error {
	if w.t.runner.config.Private { // the account has its own network
		return w.t.connect(socket, to)
	}
	before, err := w.t.listens(family, port)
	if err == nil {
		err = w.t.connect(socket, to)
	}
	if err == nil {
		err = w.t.reached(int(socket.Fd()), family, port, before)
	}
	return err
}

// socket makes a socket in the task's network.
func (t *process) socket(family int) (*os.File, error) {
	l := launch.New()
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

// connect connects a socket. It holds nothing of the task meanwhile, because the listener may let it wait.
func (t *process) connect(socket *os.File, to unix.Sockaddr) error {
	raw, err := socket.SyscallConn()
	if err != nil {
		return err
	}
	_ = socket.SetWriteDeadline(time.Now().Add(dialWithin))
	over := make(chan struct{})
	defer close(over)
	go func() {
		select {
		case <-t.ended:
			_ = socket.SetWriteDeadline(time.Now())
		case <-over:
		}
	}()
	begun, result := false, error(nil)
	err = raw.Write(func(fd uintptr) bool {
		if !begun {
			begun = true
			result = unix.Connect(int(fd), to)
			return result != unix.EINPROGRESS
		}
		number, err := unix.GetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_ERROR)
		if result = err; err == nil && number != 0 {
			result = unix.Errno(number)
		} else if err == nil {
			_, result = unix.Getpeername(int(fd)) // not connected yet: it was woken without a reason
		}
		return result != unix.ENOTCONN
	})
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return unix.ETIMEDOUT
	}
	return errors.Join(err, result)
}

// sweepStreams ends commands and connections that clients began next to tasks and abandoned.
func (p *Processes) sweepStreams() {
	p.mu.Lock()
	var left []streamKey
	for key, s := range p.streams {
		if key.name != "" && s.overdue(false) != "" {
			left = append(left, key)
		}
	}
	p.mu.Unlock()
	for _, key := range left {
		p.dropStream(key)
	}
}
