package bus

import (
	"context"
	"errors"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/backoff"
)

const (
	// After a request that nobody answered, a server is suspect. lookFor is how long it may then send nothing. lookFor
	// is also how long a service may take to answer the question whether it runs.
	lookFor = time.Second
	// lookAgain is the pause between two checks of whether the server reaches the service.
	lookAgain = 250 * time.Millisecond
	// leaveJitter is the maximum random delay before a client's connection leaves its server. Without it, all
	// connections would leave the server at the same moment.
	leaveJitter = 500 * time.Millisecond
	// leavingEnds is how long the connection remembers, in a value of type leaving, that it has left a server.
	leavingEnds = time.Minute
)

// leaves is how long a connected server may fail to reach a service. After this time, the connection moves to another
// server. The time doubles with each move, because a move does not help if the service has no leader. It begins with 2
// s, because a site that loses a host elects a new leader in less than 2 s.
var leaves = backoff.Backoff{First: 2 * time.Second, Last: time.Minute}

// leaving counts how many servers in a row the connection has left because a service did not answer.
type leaving struct {
	times int
	last  time.Time
}

// The method `after` returns how long a connection waits before it leaves its server, if it cannot reach a service
// through this server. The argument `servers` is the number of known servers. The wait becomes longer each time that
// the connection has tried all servers.
func (l *leaving) after(now time.Time, servers int) time.Duration {
	if now.Sub(l.last) > leavingEnds {
		l.times = 0
	}
	return leaves.Bound(1 + l.times/servers)
}

func (l *leaving) leave(now time.Time) { l.times, l.last = l.times+1, now }

// hereHeader marks a request that only asks whether a service is there. A busy service answers it at once.
const hereHeader = "Candor-Here"

// look is called after a request got no answer. It checks whether the server still answers, and whether the server
// reaches the service. If the server does not answer, look gives the connection up at once. If the server cannot reach
// the service's host, look connects to another server, because servers do not forward requests for each other.
func (b *natsBus) look(subject string) {
	if !b.remote || !b.looking.CompareAndSwap(false, true) {
		return
	}
	defer b.looking.Store(false)
	began, servers := time.Now(), len(b.conn.Servers())
	wait := b.leaving.after(began, max(1, servers)) + rand.N(leaveJitter)
	for b.conn.IsConnected() {
		switch {
		case !b.serverAnswers():
			b.moveOn(zap.WarnLevel, "the server does not answer; connecting again", subject)
			return
		case servers < 2 || !isLed(subject) || b.serves(subject):
			return
		case time.Since(began) > wait:
			b.leaving.leave(time.Now())
			b.moveOn(zap.InfoLevel, "the server does not reach the service; connecting to another server", subject) // perhaps no replica leads yet
			return
		}
		waitFor(b.ended, lookAgain)
	}
}

// serverAnswers reports whether the server sends any bytes. A server that sends bytes is only slow. If the client
// closed the connection to it, the client would lose the server's answers.
func (b *natsBus) serverAnswers() bool {
	for b.conn.IsConnected() {
		before := b.received.Load()
		if !errors.Is(b.conn.FlushTimeout(lookFor), nats.ErrTimeout) {
			return true
		}
		if b.received.Load() == before {
			return false
		}
	}
	return true
}

// isLed reports whether a subject belongs to a service that only the leader of a group serves. Every group has a
// leader, or elects one soon. So if such a service does not answer for a long time, the fault is in this connection.
func isLed(subject string) bool {
	tokens := strings.Split(subject, ".")
	return len(tokens) == 5 && (tokens[2] == messages.Auctioneer || tokens[2] == messages.Bank)
}

func (b *natsBus) serves(subject string) bool {
	ctx, cancel := context.WithTimeout(context.Background(), lookFor)
	defer cancel()
	_, err := b.ask(ctx, &nats.Msg{Subject: subject, Header: nats.Header{hereHeader: {"?"}}})
	return err == nil
}

func (b *natsBus) moveOn(level zapcore.Level, why, subject string) {
	b.log.Log(level, why, zap.String("server", b.conn.ConnectedUrlRedacted()), zap.String("subject", subject))
	_ = b.conn.ForceReconnect() // this fails only if the bus was closed
}
