package stream

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/agent"
	jobmsg "github.com/candor-grid/candor/messages/job"
	"github.com/candor-grid/candor/nodeagent/runner/launch"
)

// Stream carries the input and output of one process, or of a connection, between the process and the requests of a
// client. It buffers a limited part in each direction. When a buffer is full, its writer waits.
type Stream struct {
	what     jobmsg.Interactive
	terminal *os.File          // the master of a terminal; nil if there is none
	Send     func(name string) // sends a signal to the processes; nil if there are none
	Stop     func()            // ends the client's command; nil for the task's own stream

	mu        sync.Mutex
	moved     chan struct{} // closed and replaced when a field below changes
	client    string        // name of the client that uses the stream
	signalled uint64        // number of the client's last signal
	heard     time.Time     // time of the client's last request
	active    time.Time     // time of the last byte in either direction
	input     []byte        // taken from the client, and not yet given to the process
	writing   int           // bytes that are being given to the process
	next      int64         // position of the next byte of input to take
	ended     bool          // all input was taken
	deaf      bool          // the process does not read any more
	output    source
	errors    source
	done      bool // the process has ended
	code      int
	gone      bool // the client does not come back
}

// source is the part of an output that was read from the process, but that the client has not received yet.
type source struct {
	at   int64 // position of the first byte of data
	data []byte
	over bool // no more bytes follow data
}

const maxWait = time.Second

// maxKept bounds the buffer for each direction of a stream, in bytes.
const maxKept = agent.MaxStreamPiece

func New(what jobmsg.Interactive) *Stream {
	now := time.Now()
	return &Stream{what: what, moved: make(chan struct{}), heard: now, active: now}
}

// Mute records that no process will ever write output to the stream, so that its output counts as ended.
func (s *Stream) Mute() { s.output.over, s.errors.over = true, true }

// Say adds a message for the client to the error output.
func (s *Stream) Say(message string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.errors.data = append(s.errors.data, message+"\r\n"...)
}

// move wakes all callers of the method `wait`. The caller holds s.mu.
func (s *Stream) move() {
	close(s.moved)
	s.moved = make(chan struct{})
}

// wait waits until something changes or ctx ends. It returns false if ctx has ended. The caller holds s.mu, and wait
// releases this lock while it waits.
func (s *Stream) wait(ctx context.Context) bool {
	moved := s.moved
	s.mu.Unlock()
	defer s.mu.Lock()
	select {
	case <-moved:
		return true
	case <-ctx.Done():
		return false
	}
}

// pump reads an output to its end. It waits while the buffer is full.
func (s *Stream) pump(from io.Reader, to *source) {
	piece, late := make([]byte, 64<<10), false
	for {
		n, err := from.Read(piece)
		s.mu.Lock()
		if n > 0 {
			to.data = append(to.data, piece[:n]...)
			s.active, late = time.Now(), false
			s.move()
		}
		for len(to.data) >= maxKept && !s.gone {
			s.wait(context.Background())
		}
		if s.gone {
			to.data = nil
		}
		// Processes that outlive the task may still write to the pipe. Read the bytes that are there now, and do not
		// wait for more.
		if f, is := from.(*os.File); is && errors.Is(err, os.ErrDeadlineExceeded) && !late {
			late, err = true, f.SetReadDeadline(time.Now().Add(lastWords))
		}
		if err != nil {
			to.over = true
			s.move()
		}
		s.mu.Unlock()
		if err != nil {
			return
		}
	}
}

// lastWords is how long an output may stay open after its task has ended.
const lastWords = 500 * time.Millisecond

// feed writes the input to the process until the input has ended, and then calls end.
func (s *Stream) feed(to io.Writer, end func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for {
		for len(s.input) == 0 && !s.ended && !s.done && !s.gone {
			s.wait(context.Background())
		}
		if len(s.input) == 0 || s.deaf {
			end()
			return
		}
		piece := s.input
		s.input, s.writing, s.active = nil, len(piece), time.Now()
		s.mu.Unlock()
		_, err := to.Write(piece)
		s.mu.Lock()
		s.writing, s.deaf = 0, err != nil
		s.move()
	}
}

// Exchange answers one request of a client.
func (s *Stream) Exchange(ctx context.Context, r *agent.StreamRequest) (agent.StreamReply, error) {
	ctx, cancel := context.WithTimeout(ctx, min(r.Wait.Std(), maxWait))
	defer cancel()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.client == "" || r.Take && s.client != r.Client {
		s.client, s.signalled = r.Client, 0
		s.move()
	}
	if err := s.refuses(r); err != nil {
		return agent.StreamReply{}, err
	}
	s.control(r)
	if len(r.Input) > 0 || r.InputEnd {
		for !s.take(r) && s.refuses(r) == nil && s.wait(ctx) {
		}
	}
	if r.Poll {
		s.output.drop(r.OutputAt)
		s.errors.drop(r.ErrorsAt)
		s.move()
		for !s.says() && s.refuses(r) == nil && s.wait(ctx) {
		}
	}
	if err := s.refuses(r); err != nil {
		return agent.StreamReply{}, err
	}
	s.heard = time.Now()
	return s.reply(r.Poll), nil
}

// refuses returns an error if another client uses the stream now. The caller holds s.mu.
func (s *Stream) refuses(r *agent.StreamRequest) error {
	if s.client != r.Client {
		return messages.Errorf(messages.Conflict, "another client has attached to the task")
	}
	return nil
}

// control carries out what a request asks for in addition to moving bytes, such as a signal or a new size of the
// terminal. The caller holds s.mu.
func (s *Stream) control(r *agent.StreamRequest) {
	s.heard = time.Now()
	if s.terminal != nil && r.Rows > 0 && r.Columns > 0 {
		resize(s.terminal, r.Rows, r.Columns)
	}
	if r.Signal != "" && s.Send != nil && !s.done && (r.SignalNumber == 0 || r.SignalNumber > s.signalled) {
		s.signalled = max(s.signalled, r.SignalNumber)
		s.mu.Unlock() // release the lock, because the code for processes has its own lock
		s.Send(r.Signal)
		s.mu.Lock()
	}
}

// The method `take` stores the input of a request in the stream's buffer, as far as there is room. It returns true if
// the request can be answered now, and false if it must wait until the buffer has room again. The caller holds s.mu.
func (s *Stream) take(r *agent.StreamRequest) bool {
	end := r.InputAt + int64(len(r.Input))
	if r.InputAt > s.next || s.ended { // bytes before these are missing, or the input has ended
		return true
	}
	if fresh := end - s.next; fresh > 0 {
		piece := r.Input[int64(len(r.Input))-fresh:]
		if room := maxKept - len(s.input) - s.writing; !s.deaf && !s.done && len(piece) > room {
			piece = piece[:max(room, 0)]
		}
		s.next += int64(len(piece))
		if !s.deaf && !s.done {
			s.input = append(s.input, piece...)
		}
		s.move()
	}
	if s.next < end {
		return len(r.Input) > 0 && s.next > r.InputAt // answer the client if some bytes were taken
	}
	if r.InputEnd {
		s.ended = true
		s.move()
	}
	return true
}

// says reports whether the stream has anything to send to a client. The caller holds s.mu.
func (s *Stream) says() bool {
	return len(s.output.data) > 0 || len(s.errors.data) > 0 || s.finished()
}

// finished reports whether the process has ended and all its output was read. The caller holds s.mu.
func (s *Stream) finished() bool { return s.done && s.output.over && s.errors.over }

// reply returns a reply to the client. If poll is true, the reply has the output that is ready. The caller holds s.mu.
func (s *Stream) reply(poll bool) agent.StreamReply {
	r := agent.StreamReply{InputNext: s.next, OutputAt: s.output.at, ErrorsAt: s.errors.at}
	if poll {
		r.Output, r.Errors = s.output.piece(), s.errors.piece()
		r.Ended = s.finished() && len(r.Output) == len(s.output.data) && len(r.Errors) == len(s.errors.data)
		r.ExitCode = s.code
	}
	return r
}

// drop removes the bytes before a position, which the client has received.
func (o *source) drop(until int64) {
	if n := min(until-o.at, int64(len(o.data))); n > 0 {
		o.data = o.data[:copy(o.data, o.data[n:])]
		o.at += n
	}
}

func (o *source) piece() []byte {
	return append([]byte(nil), o.data[:min(len(o.data), agent.MaxStreamPiece)]...)
}

// Finish records that the process has ended, and its exit code.
func (s *Stream) Finish(code int, files ...*os.File) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.done, s.code = true, code
	s.move()
	for _, f := range files {
		_ = f.SetReadDeadline(time.Now().Add(lastWords))
	}
}

// silence returns whether the process has ended, and when the client sent its last request.
func (s *Stream) silence() (done bool, heard time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.done, s.heard
}

// Overdue returns why the process of the stream must end. It returns "" if the process may go on. Suspended time does
// not count.
func (s *Stream) Overdue(suspended bool) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	linger := s.what.Linger
	if linger == 0 {
		linger = agent.DefaultLinger
	}
	if suspended {
		s.active = now
	}
	switch {
	case s.done || s.gone:
		return ""
	case now.Sub(s.heard) > linger.Std():
		return "ended after " + linger.String() + " without a client"
	case s.what.Idle > 0 && now.Sub(s.active) > s.what.Idle.Std():
		return "ended after " + s.what.Idle.String() + " without input or output"
	}
	return ""
}

func (s *Stream) leave() {
	s.mu.Lock()
	s.gone = true
	s.output.data, s.errors.data = nil, nil
	s.move()
	s.mu.Unlock()
	if s.Stop != nil {
		s.Stop()
	}
}

// Process opens the files of a process. The process uses the files in the result `theirs`, which belong to the user
// `as`. The caller must close the files in the result `ours` when the stream has finished. If the process needs a
// terminal, Process calls `inside` with a function that opens it. `inside` runs this function in the process's room
// (its set of namespaces). If `inside` is nil, the terminal is opened outside of all rooms.
func (s *Stream) Process(as *syscall.Credential, inside func(func() error) error) (theirs, ours []*os.File, err error) {
	if s.what.Terminal {
		theirs, ours, err = s.openTerminal(as, inside)
	} else {
		theirs, ours, err = s.openPipes(as)
	}
	if err != nil {
		return nil, nil, messages.Errorf(messages.Unavailable, "stream: %v", err)
	}
	return theirs, ours, nil
}

func (s *Stream) openPipes(as *syscall.Credential) (theirs, ours []*os.File, err error) {
	for i := range 3 {
		r, w, err := os.Pipe()
		if err != nil {
			_ = launch.CloseAll(append(theirs, ours...))
			return nil, nil, err
		}
		their, our := w, r
		if i == 0 {
			their, our = r, w
		}
		theirs, ours = append(theirs, their), append(ours, our)
		give(their, as, 0o600)
	}
	input := ours[0]
	go s.feed(input, func() { _ = input.Close() })
	for i, to := range []*source{&s.output, &s.errors} {
		from := ours[i+1]
		go func() {
			defer from.Close()
			s.pump(from, to)
		}()
	}
	return theirs, ours[1:], nil
}

// endOfInput makes a terminal report the end of its input.
const endOfInput = "\x04"

func (s *Stream) openTerminal(as *syscall.Credential, inside func(func() error) error) (theirs, ours []*os.File, err error) {
	var master, slave *os.File
	open := func() (err error) {
		master, slave, err = newTerminal()
		return err
	}
	if inside == nil {
		err = open()
	} else {
		err = inside(open)
	}
	if err != nil {
		return nil, nil, err
	}
	give(slave, as, 0o620)
	if s.what.Rows > 0 && s.what.Columns > 0 {
		resize(master, s.what.Rows, s.what.Columns)
	}
	s.terminal, s.errors.over = master, true
	go s.feed(master, func() { _, _ = master.WriteString(endOfInput) })
	go func() {
		defer master.Close()
		s.pump(master, &s.output)
	}()
	return []*os.File{slave, slave, slave}, []*os.File{master}, nil
}

// terminals is the directory of the terminals, in a room and on the machine itself.
const terminals = "/dev/pts"

func newTerminal() (master, slave *os.File, err error) {
	fd, err := unix.Open("/dev/ptmx", unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, nil, &os.PathError{Op: "open", Path: "/dev/ptmx", Err: err}
	}
	master = os.NewFile(uintptr(fd), "terminal")
	number, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err == nil {
		err = unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0)
	}
	if err == nil {
		slave, err = os.OpenFile(filepath.Join(terminals, strconv.Itoa(number)), os.O_RDWR|unix.O_NOCTTY, 0)
	}
	if err != nil {
		return nil, nil, errors.Join(err, master.Close())
	}
	return master, slave, nil
}

// give makes the user of a task the owner of a file. The task may then also open it by name.
func give(f *os.File, as *syscall.Credential, mode os.FileMode) {
	conn, err := f.SyscallConn()
	if err != nil {
		return
	}
	_ = conn.Control(func(fd uintptr) {
		_ = unix.SetNonblock(int(fd), false)
		if as != nil {
			_ = unix.Fchown(int(fd), int(as.Uid), -1)
			_ = unix.Fchmod(int(fd), uint32(mode))
		}
	})
}

// Carry moves bytes between the client and a connection until the connection or the task ends, and then calls finish.
func (s *Stream) Carry(conn net.Conn, ended <-chan struct{}, finish func()) {
	s.errors.over = true
	over := make(chan struct{})
	s.Stop = func() { _ = conn.Close() }
	go func() {
		select {
		case <-ended:
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
		finish()
	}()
}

// resize sets the size of a terminal. The kernel then signals the terminal's processes.
func resize(master *os.File, rows, columns int) {
	conn, err := master.SyscallConn()
	if err != nil {
		return
	}
	_ = conn.Control(func(fd uintptr) {
		_ = unix.IoctlSetWinsize(int(fd), unix.TIOCSWINSZ, &unix.Winsize{Row: uint16(rows), Col: uint16(columns)})
	})
}
