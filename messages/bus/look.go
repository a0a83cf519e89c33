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
	// lookFor is how long a server may send nothing, a ping included, after a request had no answer,
	// and how long a service may take to say that it is there.
	lookFor = time.Second
	// lookAgain is the wait between two looks.
	lookAgain = 250 * time.Millisecond
	// leaveJitter spreads those who leave a server at the same time.
	leaveJitter = 500 * time.Millisecond
	// leavingEnds is how long after a server was left it does not matter any more.
	leavingEnds = time.Minute
)

// leaves bounds how long a server may carry nothing to a service, by how often all servers were
// left for that. While no server does, as where nobody leads, moving on is of no use. A site that
// loses a host has a leader again before that.
var leaves = backoff.Backoff{First: 2 * time.Second, Last: time.Minute}

// leaving counts the servers that were left in a row, because the service did not answer.
type leaving struct {
	times int
	last  time.Time
}

// after is how long a server that is one of several may carry nothing to a service.
func (l *leaving) after(now time.Time, servers int) time.Duration {
	if now.Sub(l.last) > leavingEnds {
		l.times = 0
	}
	return leaves.Bound(1 + l.times/servers)
}

func (l *leaving) leave(now time.Time) { l.times, l.last = l.times+1, now }

// hereHeader marks a request that only asks whether somebody serves its subject. A service
// answers it at once, also while it is busy.
const hereHeader = "Candor-Here"

// look finds out, after a request without an answer, whether the server is still there, and
// whether it carries requests to the service. A connection that was cut unseen is given up at
// once, not after several pings. A server whose route to the host of the service is cut is left
// for another server, since servers do not pass requests on for one another.
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
			b.moveOn(zap.WarnLevel, "the server does not answer; connecting anew", subject)
			return
		case servers < 2 || !isLed(subject) || b.serves(subject):
			return
		case time.Since(began) > wait:
			b.leaving.leave(time.Now())
			b.moveOn(zap.InfoLevel, "the server does not reach the service; connecting to another one", subject) // nobody may lead yet
			return
		}
		waitFor(b.ended, lookAgain)
	}
}

// serverAnswers reports whether the server is there. One that sends anything at all is only slow,
// and is waited for: its answers are on their way, and would be lost with the connection.
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

// isLed reports whether a leader of a group serves a subject: it is always somewhere, or soon.
func isLed(subject string) bool {
	tokens := strings.Split(subject, ".")
	return len(tokens) == 5 && (tokens[2] == messages.Auctioneer || tokens[2] == messages.Bank)
}

// serves reports whether anybody serves a subject, as far as the server carries requests.
func (b *natsBus) serves(subject string) bool {
	ctx, cancel := context.WithTimeout(context.Background(), lookFor)
	defer cancel()
	_, err := b.ask(ctx, &nats.Msg{Subject: subject, Header: nats.Header{hereHeader: {"?"}}})
	return err == nil
}

func (b *natsBus) moveOn(level zapcore.Level, why, subject string) {
	b.log.Log(level, why, zap.String("server", b.conn.ConnectedUrlRedacted()), zap.String("subject", subject))
	_ = b.conn.ForceReconnect() // fails only if the bus was closed
}
