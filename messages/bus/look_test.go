package bus

import (
	"bufio"
	"fmt"
	"net"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/candor-grid/candor/messages"
)

// sluggish is a NATS server that leaves the pings of its first connection unanswered once a
// request has come there. With each such ping it sends a part of the answer; if it is silent,
// it sends nothing. Its other connections are served at once.
type sluggish struct {
	silent   bool
	accepted atomic.Int32
}

func (s *sluggish) listen(t *testing.T) (url string) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go s.serve(conn, s.accepted.Add(1) == 1)
		}
	}()
	return "nats://" + l.Addr().String()
}

// answerParts are more than a client sends pings within two seconds.
const answerParts = 4

func (s *sluggish) serve(conn net.Conn, slow bool) {
	defer conn.Close()
	send := func(text string) { _, _ = conn.Write([]byte(text)) } // a connection that ended is noticed by reading
	send("INFO {\"server_id\":\"S\",\"version\":\"2.12.0\",\"proto\":1,\"max_payload\":1048576}\r\n")
	answer, listener := "", ""
	part, pings := 0, 0
	for in := bufio.NewReader(conn); ; {
		line, err := in.ReadString('\n')
		if err != nil {
			return
		}
		switch words := strings.Fields(line); words[0] {
		case "SUB":
			listener = words[len(words)-1]
		case "PUB":
			if _, err := in.ReadString('\n'); err != nil { // the payload
				return
			}
			if answer == "" {
				answer = fmt.Sprintf("MSG %s %s 1\r\n\x90\r\n", words[2], listener)
			}
			if !slow {
				send(answer)
			}
		case "PING":
			if pings++; slow && answer != "" && part < answerParts {
				if part++; !s.silent {
					send(answer[(part-1)*len(answer)/answerParts : part*len(answer)/answerParts])
				}
				if part < answerParts || s.silent {
					continue
				}
			}
			send(strings.Repeat("PONG\r\n", pings))
			pings = 0
		}
	}
}

// TestSlowServerIsNotCutOff: a server that answers no ping for seconds, and from which bytes
// come, keeps its connection and with it the answers on their way; a silent one does not.
func TestSlowServerIsNotCutOff(t *testing.T) {
	for name, test := range map[string]struct {
		server      *sluggish
		connections int32
	}{
		"slow":   {&sluggish{}, 1},
		"silent": {&sluggish{silent: true}, 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := connected(t, Config{URL: test.server.listen(t), Name: "alice"})
			if _, err := Call[messages.Empty](within(t), b, "v.alice", messages.Empty{}); err != nil {
				t.Error(err)
			}
			if n := test.server.accepted.Load(); n != test.connections {
				t.Errorf("%d connections, want %d", n, test.connections)
			}
		})
	}
}
