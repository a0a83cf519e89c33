package mailbox

import (
	"crypto/tls"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"sync"
	"time"

	"github.com/hashicorp/raft"
)

// exchangeProtocol is the TLS protocol name of connections on which replicas ask about each other's logs. Raft's
// connections have another protocol name.
const exchangeProtocol = "candor-replicas"

// mostTold is the maximum size of a question or an answer, in bytes.
const mostTold = 64 << 10

// askFor is how long a replica waits for the answer to a question. It is as long as 1 s because a handshake can be slow
// on a busy machine.
const askFor = time.Second

// exchange sends questions to other replicas, and answers their questions. It uses its own connections, so that nothing
// is added to Raft's messages. A connection stays open after an answer, and is used again for the next question.
type exchange struct {
	stream *stream
	answer func(from string, q hello) hello

	mu    sync.Mutex
	lines map[string]*line // connections by address
}

// line is a connection to a replica, for one question at a time.
type line struct {
	mu   sync.Mutex
	conn net.Conn // nil means that none is open
}

// hello is what one replica tells another about its log and disk.
type hello struct {
	Leads      uint64 `json:",omitempty"` // the term in which the sender leads; 0 means that the sender is a candidate
	Introduces bool   `json:",omitempty"` // the sender leads, and describes its log in the fields after the report
	Notice     leaderNotice
	Report     standingReport

	Last    uint64  // last entry of its log
	Settled uint64  // index of the last entry that it knows to be committed
	Origin  origin  // identifies the restore from a backup that the replica's log comes from
	Reigns  []reign `json:",omitempty"`
	// Asked is the index of an entry of the log. Sum is the checksum of this entry in the leader's log, or "" if the
	// leader's log begins after this entry.
	Asked uint64 `json:",omitempty"`
	Sum   string `json:",omitempty"`

	// The fields below are only in answers to a leader.
	Term    uint64 `json:",omitempty"` // a later term than the leader's
	Same    bool   `json:",omitempty"` // the leader has every entry that was acknowledged here
	Refutes string `json:",omitempty"` // a text about entries that were acknowledged here and that the leader lacks
	Why     string `json:",omitempty"` // why Same is false
	Asks    uint64 `json:",omitempty"` // the entry whose checksum decides whether Same is true
}

func newExchange(s *stream, answer func(from string, q hello) hello) *exchange {
	return &exchange{stream: s, answer: answer, lines: map[string]*line{}}
}

// ask sends a question to a replica and returns the answer. If an open connection fails, perhaps because the other
// process restarted, ask connects once more.
func (x *exchange) ask(to raft.ServerAddress, q hello) (hello, error) {
	x.mu.Lock()
	l := x.lines[string(to)]
	if l == nil {
		l = &line{}
		x.lines[string(to)] = l
	}
	x.mu.Unlock()
	l.mu.Lock()
	defer l.mu.Unlock()
	was := l.conn != nil
	a, err := l.ask(x.stream, to, q)
	if err != nil && was {
		a, err = l.ask(x.stream, to, q)
	}
	return a, err
}

func (l *line) ask(s *stream, to raft.ServerAddress, q hello) (a hello, err error) {
	if l.conn == nil {
		if l.conn, err = s.dial(to, askFor, true); err != nil {
			l.conn = nil
			return a, err
		}
	}
	err = l.conn.SetDeadline(time.Now().Add(askFor))
	if err == nil {
		err = tell(l.conn, q)
	}
	if err == nil {
		a, err = told(l.conn)
	}
	if err != nil {
		_ = l.conn.Close()
		l.conn = nil
	}
	return a, err
}

func (x *exchange) serve(from string, c net.Conn) {
	defer c.Close()
	for {
		q, err := told(c)
		if err != nil {
			return
		}
		if tell(c, x.answer(from, q)) != nil {
			return
		}
	}
}

func tell(w io.Writer, h hello) error {
	body, err := json.Marshal(h)
	if err != nil {
		return err
	}
	_, err = w.Write(append(binary.BigEndian.AppendUint32(make([]byte, 0, 4+len(body)), uint32(len(body))), body...))
	return err
}

func told(r io.Reader) (h hello, err error) {
	var head [4]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return h, err
	}
	n := binary.BigEndian.Uint32(head[:])
	if n > mostTold {
		return h, fmt.Errorf("mailbox: a replica announced a message of %d bytes about its log, and the limit is %d", n, mostTold)
	}
	body := make([]byte, n)
	if _, err := io.ReadFull(r, body); err != nil {
		return h, err
	}
	return h, json.Unmarshal(body, &h)
}

// exchanges reports whether a connection is for exchanges, in which replicas ask about each other's logs. Raft's
// messages have other connections.
func exchanges(c *tls.Conn) bool {
	return c.ConnectionState().NegotiatedProtocol == exchangeProtocol
}
