package executor

import (
	"bufio"
	"encoding/binary"
	"io"
	"net"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/agent"
	"github.com/candor-grid/candor/messages/wire"
)

type kind uint8

const (
	hello     kind = iota // the executor's first frame: fields Names (build, configuration and abilities), Number (level of its release)
	has                   // one of the executor's tasks: fields Attempt, Name (class), Number (slots), Suspended, Finished (if it has ended)
	ready                 // end of the list; the field Number is 1 if tasks can take the slots of others
	program               // fields Number, Program; the frame start refers to a program by its number
	start                 // fields Attempt, Array, Number
	stop                  // fields Attempt, Time (grace)
	suspend               // fields Attempt, Suspended
	ended                 // fields Finished, Attempt (the task that took its slot), Number (when; nanoseconds since the machine started)
	confirm               // field Attempt: the agent has the report of its end
	keep                  // fields Time (how long tasks may still run), Number (the end of that time, since the machine was started)
	owner                 // asks for the owner of a job: fields Number, Logs.Attempt
	logs                  // fields Number, Logs
	reply                 // field Number, and one of Name, Reply, Streamed and Error
	end                   // the executor must kill everything and end
	stream                // fields Number, Stream; the reply has the field Streamed
	follow                // fields Attempt, Array, Position, Number: a task to start when one of its class has ended
	withdraw              // field Attempt: do not start the task any more
	withdrawn             // field Attempt: the task was not started, and will not be
	say                   // fields Attempt, Name (the words of the task's last line): for a stop that follows
)

// frame is one message. Its kind decides which fields are used.
type frame struct {
	Kind      kind
	Attempt   messages.Attempt
	Number    uint64
	Array     int64
	Time      messages.Duration
	Suspended bool
	Name      messages.Name
	Names     []messages.Name
	Program   *agent.Program
	Finished  *agent.Finished
	Logs      *agent.LogsRequest
	Reply     *agent.LogsReply
	Error     *messages.Error
	Position  uint32
	Nodes     string
	Steps     string
	Stream    *agent.StreamRequest
	Streamed  *agent.StreamReply
}

// conn is one end of the socket. Sending never blocks: bytes that the kernel does not accept at once are written later.
type conn struct {
	net.Conn
	raw syscall.RawConn
	in  *bufio.Reader

	mu      sync.Mutex
	out     []byte // bytes that are not written yet
	writing bool   // a goroutine writes these bytes, or is about to
	soon    bool   // the goroutine will flush the collected bytes soon
	closed  bool
}

func newConn(c *net.UnixConn) *conn {
	k := &conn{Conn: c, in: bufio.NewReaderSize(c, 64<<10)}
	if raw, err := c.SyscallConn(); err == nil {
		k.raw = raw
	}
	return k
}

// send sends a frame. After the connection has broken, it does nothing.
func (k *conn) send(f *frame) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.add(f)
	k.flush()
}

// sendAll writes the frames that sendSoon collected.
func (k *conn) sendAll() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.flush()
}

// sendSoon collects a frame. All collected frames are written when the caller next waits for something.
func (k *conn) sendSoon(f *frame) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.add(f)
	if !k.soon {
		k.soon = true
		go func() {
			k.mu.Lock()
			defer k.mu.Unlock()
			k.soon = false
			k.flush()
		}()
	}
}

// sendLater collects a frame, which is written together with the next frame that is sent.
func (k *conn) sendLater(f *frame) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.add(f)
}

// add adds a frame to the bytes that wait. The caller holds k.mu.
func (k *conn) add(f *frame) {
	data, err := wire.Marshal(f, wire.Msgpack)
	if err != nil || k.closed { // data from a leader or a task are too large for a frame
		return
	}
	k.out = binary.BigEndian.AppendUint32(k.out, uint32(len(data)))
	k.out = append(k.out, data...)
}

// flush writes the collected bytes in this goroutine, as far as the kernel accepts them: waking another goroutine would
// cost more. The caller holds k.mu.
func (k *conn) flush() {
	if k.writing || k.closed || len(k.out) == 0 {
		return
	}
	if k.raw != nil {
		_ = k.raw.Write(func(fd uintptr) bool {
			if n, err := unix.Write(int(fd), k.out); err == nil {
				k.out = append(k.out[:0], k.out[n:]...)
			}
			return true
		})
	}
	if len(k.out) > 0 {
		k.writing = true
		go k.write()
	}
}

// write writes the bytes in k.out, and waits for the kernel as long as needed.
func (k *conn) write() {
	k.mu.Lock()
	defer k.mu.Unlock()
	for len(k.out) > 0 {
		data := k.out
		k.out = nil
		k.mu.Unlock()
		_, err := k.Conn.Write(data)
		k.mu.Lock()
		if err != nil {
			k.closed, k.out = true, nil
		}
	}
	k.writing = false
	if k.closed {
		_ = k.Conn.Close()
	}
}

func (k *conn) receive() (*frame, error) {
	var head [4]byte
	if _, err := io.ReadFull(k.in, head[:]); err != nil {
		return nil, err
	}
	n := binary.BigEndian.Uint32(head[:])
	if n > wire.MaxPayload {
		return nil, messages.Errorf(messages.TooLarge, "a frame of %d bytes: the limit is %d", n, wire.MaxPayload)
	}
	data := make([]byte, n)
	if _, err := io.ReadFull(k.in, data); err != nil {
		return nil, err
	}
	f := new(frame)
	return f, wire.Unmarshal(data, wire.Msgpack, f)
}

// finish closes the connection after all frames are written.
func (k *conn) finish() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.flush()
	k.closed = true
	if !k.writing {
		_ = k.Conn.Close()
	}
}
