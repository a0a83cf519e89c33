package bus

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/await"
	"github.com/candor-grid/candor/messages/market"
)

// sluggish is a NATS server that can be slow on its first connection. After a client has sent a request there, the
// server does not answer the client's pings until it has sent the whole reply. Each time that a ping comes, it sends
// one part of the reply or, if `silent` is true, nothing. It serves its other connections normally.
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

// A slow server sends a part of its answer after each ping of the client. answerParts is the number of parts. It is
// larger than the number of pings within two seconds, so the answer takes longer than this.
const answerParts = 4

func (s *sluggish) serve(conn net.Conn, slow bool) {
	defer conn.Close()
	send := func(text string) { _, _ = conn.Write([]byte(text)) } // the read fails if the connection has ended
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
			if _, err := in.ReadString('\n'); err != nil { // the payload of the request
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

// A server answers no ping for some seconds. If it still sends bytes, the client must keep the connection. If it sends
// nothing, the client must close the connection and open a new one.
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

func on(b Bus) string { return b.(*natsBus).conn.ConnectedServerId() }

// A client whose server does not reach the service must move to another server, and get its answer.
func TestAServerThatDoesNotReachTheServiceIsLeft(t *testing.T) {
	t.Parallel()
	there, here := startServer(t, nil), startServer(t, nil) // two servers that are not connected to each other
	client := connected(t, Config{URL: userURL(there, "alice") + "," + userURL(here, "alice"), Name: "alice"})
	if on(client) == there.ID() {
		there = here
	}
	serve(t, natsGrid(there, false)(t, "$auctioneer"), one("candor.west.auctioneer.jobs.*",
		Handle("jobs", func(context.Context, messages.Name, messages.Empty) (messages.Empty, error) {
			return messages.Empty{}, nil
		})))
	if _, err := Call[messages.Empty](within(t), client, "candor.west.auctioneer.jobs.alice", messages.Empty{}); err != nil {
		t.Error(err)
	}
}

// Only a leader's service is always there while the site works; other services need not exist. So the client must look
// only for services of leaders.
func TestOnlyLeadersAreLookedFor(t *testing.T) {
	for subject, want := range map[string]bool{
		messages.Subject("west", messages.Auctioneer, messages.VerbSubmit, "alice"): true,
		messages.Subject("west", messages.Bank, messages.VerbAccount, "alice"):      true,
		messages.Subject("west", messages.Estimator, market.VerbQuote, "alice"):     false,
		messages.LogsSubject("west", "bank", "alice"):                               false,
		"$JS.API.INFO": false,
	} {
		if isLed(subject) != want {
			t.Errorf("%s: %v, want %v", subject, !want, want)
		}
	}
}

// A service that has much to do answers late. The client must stay connected to its server meanwhile, because otherwise
// it would lose the answer.
func TestABusyServiceIsNotLeft(t *testing.T) {
	t.Parallel()
	s := startServer(t, nil)
	client := connected(t, Config{URL: userURL(s, "alice") + "," + userURL(startServer(t, nil), "alice"), Name: "alice"})
	if on(client) != s.ID() {
		_ = client.(*natsBus).conn.ForceReconnect()
		await.Until(t, "the client is at the server of the service", func() bool { return on(client) == s.ID() })
	}
	const subject = "candor.west.bank.books.alice"
	busy, done := make(chan struct{}), make(chan struct{})
	books := one(subject, func(context.Context, Request) ([]byte, error) {
		close(busy)
		<-done
		return nil, nil
	})
	books.Concurrency = 1
	serve(t, natsGrid(s, false)(t, "$auctioneer"), books)
	answered := make(chan error, 1)
	go func() {
		_, err := client.Request(within(t), subject, nil)
		answered <- err
	}()
	<-busy
	client.(*natsBus).look(subject)
	close(done)
	if err := <-answered; err != nil {
		t.Errorf("the answer of a slow service was lost: %v", err)
	}
}

// While no server reaches the service, the client goes from server to server. Before each change to another server, it
// must wait longer than before the previous change.
func TestServersAreLeftMoreAndMoreSeldom(t *testing.T) {
	var l leaving
	now, got := time.Now(), []time.Duration{}
	for range 18 {
		wait := l.after(now, 3)
		got, now = append(got, wait), now.Add(wait)
		l.leave(now)
	}
	for i, wait := range got {
		if want := leaves.Bound(1 + i/3); wait != want {
			t.Errorf("server %d is left after %v, want %v", i, wait, want)
		}
	}
	if first := l.after(now.Add(leavingEnds+1), 3); first != leaves.First {
		t.Errorf("a minute later a server is left after %v", first)
	}
}
