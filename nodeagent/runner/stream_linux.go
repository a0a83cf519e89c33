package runner

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/candor-grid/candor/messages"
)

// stream is the input and output of one process, or of a connection, between the process
// and the requests of a client. It keeps a bounded part of each direction: a process whose
// client is slow waits in its write, and a client whose process is slow waits for room.
type stream struct {
	what     messages.Interactive
	terminal *os.File          // the master of a terminal; nil: there is none
	send     func(name string) // a signal, to the processes; nil: there are none
	stop     func()            // ends what the client began; nil: the task's own stream, which ends with the task

	mu        sync.Mutex
	moved     chan struct{} // closed, and replaced, when a field below changes
	client    string        // the client that uses the stream
	signalled uint64        // the number of the client's last signal
	heard     time.Time     // when a client last asked
	active    time.Time     // when a byte last went in either direction
	input     []byte        // taken, and not yet given to the process
	writing   int           // bytes that are being given to the process
	next      int64         // position of the first byte of input that was not taken
	ended     bool          // the input has ended
	deaf      bool          // the process no longer reads
	output    source
	errors    source
	done      bool // the process has ended
	code      int
	gone      bool // no client asks any more
}

// source is output that was read and that the client has not received.
type source struct {
	at   int64 // position of the first byte of data
	data []byte
	over bool // nothing follows data
}

// maxKept bounds the bytes kept for each direction of a stream.
const maxKept = messages.MaxStreamPiece

func newStream(what messages.Interactive) *stream {
	now := time.Now()
	return &stream{what: what, moved: make(chan struct{}), heard: now, active: now}
}

// move tells all who wait that something has changed. s.mu is held.
func (s *stream) move() {
	close(s.moved)
	s.moved = make(chan struct{})
}

// wait waits for a change, or for the end of a context. s.mu is held before and after.
func (s *stream) wait(ctx context.Context) bool {
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

// pump reads an output until it is over, and waits while too much of it is kept.
func (s *stream) pump(from io.Reader, to *source) {
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
		// Processes that outlive the task may still write; do not wait for them, but read what is
		// there.
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

// lastWords is how long an output may stay open after the end of its task.
const lastWords = 500 * time.Millisecond

// feed gives the process its input until that has ended; end is called then.
func (s *stream) feed(to io.Writer, end func()) {
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

// exchange answers one request of a client.
func (s *stream) exchange(ctx context.Context, r *messages.StreamRequest) (messages.StreamReply, error) {
	ctx, cancel := context.WithTimeout(ctx, min(r.Wait.Std(), maxLogWait))
	defer cancel()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.client == "" || r.Take && s.client != r.Client {
		s.client, s.signalled = r.Client, 0
		s.move()
	}
	if err := s.refuses(r); err != nil {
		return messages.StreamReply{}, err
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
		return messages.StreamReply{}, err
	}
	s.heard = time.Now()
	return s.reply(r.Poll), nil
}

// refuses says that the stream is another client's now. s.mu is held.
func (s *stream) refuses(r *messages.StreamRequest) error {
	if s.client != r.Client {
		return messages.Errorf(messages.Conflict, "another client has attached to the task")
	}
	return nil
}

// control does what a request asks for, except moving bytes. The caller holds s.mu.
func (s *stream) control(r *messages.StreamRequest) {
	s.heard = time.Now()
	if s.terminal != nil && r.Rows > 0 && r.Columns > 0 {
		resize(s.terminal, r.Rows, r.Columns)
	}
	if r.Signal != "" && s.send != nil && !s.done && (r.SignalNumber == 0 || r.SignalNumber > s.signalled) {
		s.signalled = max(s.signalled, r.SignalNumber)
		s.mu.Unlock() // the code for processes has its own lock
		s.send(r.Signal)
		s.mu.Lock()
	}
}

// take takes as much of the input as there is room for, and reports whether all input up to
// the request's end has been taken. s.mu is held.
func (s *stream) take(r *messages.StreamRequest) bool {
	end := r.InputAt + int64(len(r.Input))
	if r.InputAt > s.next || s.ended { // bytes in between were lost, or the input has ended
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
		return len(r.Input) > 0 && s.next > r.InputAt // a part is an answer
	}
	if r.InputEnd {
		s.ended = true
		s.move()
	}
	return true
}

// says reports whether there is something to tell a client. s.mu is held.
func (s *stream) says() bool {
	return len(s.output.data) > 0 || len(s.errors.data) > 0 || s.finished()
}

// finished reports that the process has ended and nothing more is read of it. s.mu is held.
func (s *stream) finished() bool { return s.done && s.output.over && s.errors.over }

// reply returns what is ready for the client. The caller holds s.mu.
func (s *stream) reply(poll bool) messages.StreamReply {
	r := messages.StreamReply{InputNext: s.next, OutputAt: s.output.at, ErrorsAt: s.errors.at}
	if poll {
		r.Output, r.Errors = s.output.piece(), s.errors.piece()
		r.Ended = s.finished() && len(r.Output) == len(s.output.data) && len(r.Errors) == len(s.errors.data)
		r.ExitCode = s.code
	}
	return r
}

// drop forgets what a client has received: everything before a position.
func (o *source) drop(until int64) {
	if n := min(until-o.at, int64(len(o.data))); n > 0 {
		o.data = o.data[:copy(o.data, o.data[n:])]
		o.at += n
	}
}

// piece returns a copy of the first bytes that are kept.
func (o *source) piece() []byte {
	return append([]byte(nil), o.data[:min(len(o.data), messages.MaxStreamPiece)]...)
}

// finish notes that the process has ended, and how.
func (s *stream) finish(code int, files ...*os.File) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.done, s.code = true, code
	s.move()
	for _, f := range files {
		_ = f.SetReadDeadline(time.Now().Add(lastWords))
	}
}

// silence reports whether the process has ended, and when a client asked last.
func (s *stream) silence() (done bool, heard time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.done, s.heard
}

// overdue returns why the process of the stream must end; "": it need not. While it is suspended,
// no time counts.
func (s *stream) overdue(suspended bool) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	linger := s.what.Linger
	if linger == 0 {
		linger = messages.DefaultLinger
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

// leave frees the stream's memory.
func (s *stream) leave() {
	s.mu.Lock()
	s.gone = true
	s.output.data, s.errors.data = nil, nil
	s.move()
	s.mu.Unlock()
	if s.stop != nil {
		s.stop()
	}
}

// process opens the files of a process: theirs are the ends for the process, and ours are the ends
// to close when the stream is finished. The user as gets the process's ends. A terminal belongs to
// the room in; nil: to this process.
func (s *stream) process(as *syscall.Credential, in *room) (theirs, ours []*os.File, err error) {
	if s.what.Terminal {
		theirs, ours, err = s.openTerminal(as, in)
	} else {
		theirs, ours, err = s.openPipes(as)
	}
	if err != nil {
		return nil, nil, messages.Errorf(messages.Unavailable, "stream: %v", err)
	}
	return theirs, ours, nil
}

func (s *stream) openPipes(as *syscall.Credential) (theirs, ours []*os.File, err error) {
	for i := range 3 {
		r, w, err := os.Pipe()
		if err != nil {
			_ = closeAll(append(theirs, ours...))
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

func (s *stream) openTerminal(as *syscall.Credential, in *room) (theirs, ours []*os.File, err error) {
	var master, slave *os.File
	open := func() (err error) {
		master, slave, err = newTerminal()
		return err
	}
	if in == nil {
		err = open()
	} else {
		err = in.inside(open)
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

// newTerminal opens both ends of a new terminal.
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

// give makes the user of a task the owner of a file, so that the task may also open it by name.
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

// resize tells a terminal how large it is, which signals its processes.
func resize(master *os.File, rows, columns int) {
	conn, err := master.SyscallConn()
	if err != nil {
		return
	}
	_ = conn.Control(func(fd uintptr) {
		_ = unix.IoctlSetWinsize(int(fd), unix.TIOCSWINSZ, &unix.Winsize{Row: uint16(rows), Col: uint16(columns)})
	})
}
