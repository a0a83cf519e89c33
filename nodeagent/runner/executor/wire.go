package executor

import (
	"bufio"
	"encoding/binary"
	"io"
	"net"
	"sync"

	"github.com/candor-grid/candor/messages"
)

// kind is what a frame says.
type kind uint8

const (
	hello   kind = iota // Names: abilities; first of all from the executor
	has                 // Attempt, Class, Finished if it has ended: one of what it has in hand
	ready               // that was all
	program             // Number, Program: what starts refer to
	start               // Attempt, Array, Number
	stop                // Attempt, Time: grace
	hold                // Attempt, Held
	ended               // Finished
	confirm             // Attempt: its end has been heard of
	keep                // Time: how long tasks may run from now
	owner               // Number, Logs.Attempt: whose job it is
	logs                // Number, Logs
	reply               // Number, and Name, Logs or Error
	end                 // kill everything and end
)

// frame is one message; which fields count depends on its kind.
type frame struct {
	Kind     kind
	Attempt  messages.Attempt
	Number   uint64
	Array    int64
	Time     messages.Duration
	Held     bool
	Name     messages.Name
	Names    []messages.Name
	Program  *messages.Program
	Finished *messages.Finished
	Logs     *messages.LogsRequest
	Reply    *messages.LogsReply
	Error    *messages.Error
}

// conn is one end of the socket. Sending never blocks: what is not yet written is
// collected and written together.
type conn struct {
	net.Conn
	in *bufio.Reader

	mu     sync.Mutex
	out    []byte
	more   sync.Cond
	closed bool
}

func newConn(c net.Conn) *conn {
	k := &conn{Conn: c, in: bufio.NewReaderSize(c, 64<<10)}
	k.more.L = &k.mu
	go k.write()
	return k
}

// send queues a frame; after the connection has broken it does nothing.
func (k *conn) send(f *frame) {
	data, err := messages.Marshal(f, messages.Msgpack)
	if err != nil { // of what a leader or a task made too large
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.closed {
		return
	}
	k.out = binary.BigEndian.AppendUint32(k.out, uint32(len(data)))
	k.out = append(k.out, data...)
	k.more.Signal()
}

// write writes what was collected until the connection is closed.
func (k *conn) write() {
	var spare []byte
	for {
		k.mu.Lock()
		for len(k.out) == 0 && !k.closed {
			k.more.Wait()
		}
		data := k.out
		k.out = spare[:0]
		closed := k.closed
		k.mu.Unlock()
		if len(data) > 0 {
			if _, err := k.Conn.Write(data); err != nil {
				closed = true
			}
		}
		if closed {
			_ = k.Conn.Close()
			return
		}
		spare = data
	}
}

// receive reads a frame.
func (k *conn) receive() (*frame, error) {
	var head [4]byte
	if _, err := io.ReadFull(k.in, head[:]); err != nil {
		return nil, err
	}
	n := binary.BigEndian.Uint32(head[:])
	if n > messages.MaxPayload {
		return nil, messages.Errorf(messages.TooLarge, "a frame of %d bytes: the limit is %d", n, messages.MaxPayload)
	}
	data := make([]byte, n)
	if _, err := io.ReadFull(k.in, data); err != nil {
		return nil, err
	}
	f := new(frame)
	return f, messages.Unmarshal(data, messages.Msgpack, f)
}

// finish closes the connection when all that was sent is written.
func (k *conn) finish() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.closed = true
	k.more.Signal()
}
