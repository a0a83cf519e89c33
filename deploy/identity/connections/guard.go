package connections

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"go.uber.org/zap"

	"github.com/candor-grid/candor/deploy/identity"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/bus"
)

// Config configures a [Guard]. System, Bus, Account, Role and Most are needed.
type Config struct {
	System  bus.Bus                           // connection to the system account of the site's servers
	Bus     bus.Bus                           // connection as a service; it tells clients the reason
	Account string                            // public key of the account whose connections are counted
	Role    func(issuer string) identity.Role // the role whose credentials a key signs; "": none
	// Most is the maximum number of open connections of a user. An operator may have four times this number.
	Most int
	// Server is the server whose connections the guard closes; "" means any server.
	Server  string
	Log     *zap.Logger           // nil means no log
	Metrics prometheus.Registerer // nil means no metrics
}

// operatorTimes is the limit of an operator, as a multiple of a user's limit.
const operatorTimes = 4

// mostOthers is the largest number of connections of a node, and also of the holder of a token. Normally, each of them
// has one connection. After a lost connection, it opens a second one before the server notices the loss.
const mostOthers = 16

// These are the time limits and intervals of a guard.
const (
	grace     = 500 * time.Millisecond // from the moment when there are too many connections to the message about it
	farewell  = 200 * time.Millisecond // from the message to the closing of the connections
	lookEvery = time.Second
	listEvery = 5 * time.Minute
	silence   = 45 * time.Second // a server that reports nothing for this time is forgotten; servers report every ten seconds
	askWithin = 5 * time.Second
)

// Guard closes connections of each user, node or other client that has more of them than its limit.
type Guard struct {
	c       Config
	refused *prometheus.CounterVec
	subs    []bus.Subscription
	ctx     context.Context
	cancel  context.CancelFunc
	wake    chan struct{} // gets a value when there is something to check
	work    sync.WaitGroup

	mu     sync.Mutex
	census *census
}

// Start starts a guard.
func Start(c Config) (*Guard, error) {
	if c.System == nil || c.Bus == nil || c.Account == "" || c.Role == nil || c.Most <= 0 {
		return nil, messages.Errorf(messages.Invalid, "connections: System, Bus, Account, Role and Most must be set")
	}
	if c.Log == nil {
		c.Log = zap.NewNop()
	}
	c.Log = bus.Bounded(c.Log, 1)
	g := &Guard{c: c, census: newCensus(), wake: make(chan struct{}, 1), refused: newRefused(c.Metrics)}
	g.ctx, g.cancel = context.WithCancel(context.Background())
	if c.Server != "" {
		g.census.hear(c.Server, time.Now())
	}
	for pattern, handle := range map[string]func(string, []byte){
		"$SYS.ACCOUNT." + c.Account + ".*": g.event, // one subscription for all events, so that the events of a server stay in order
		"$SYS.SERVER.*.STATSZ":             g.alive,
	} {
		sub, err := c.System.Subscribe(pattern, handle)
		if err != nil {
			return nil, errors.Join(fmt.Errorf("connections: %w", err), g.Close())
		}
		g.subs = append(g.subs, sub)
	}
	g.work.Go(g.watch)
	return g, nil
}

func newRefused(r prometheus.Registerer) *prometheus.CounterVec {
	refused := promauto.With(r).NewCounterVec(prometheus.CounterOpts{Name: "candor_connections_refused_total",
		Help: "Connections to NATS that were cut, because too many were open under one name, by the role of the name."}, []string{"role"})
	for _, role := range []identity.Role{identity.User, identity.Operator, identity.Node, identity.Joiner, identity.Peer, identity.Door} {
		refused.WithLabelValues(string(role))
	}
	return refused
}

// Close stops the guard.
func (g *Guard) Close() error {
	g.cancel()
	var failed []error
	for _, sub := range g.subs {
		failed = append(failed, sub.Stop())
	}
	g.work.Wait()
	return errors.Join(failed...)
}

func (g *Guard) most(by holder) int {
	switch by.role {
	case identity.User, identity.Peer:
		return g.c.Most
	case identity.Operator:
		return g.c.Most * operatorTimes
	case identity.Node, identity.Joiner, identity.Door:
		return mostOthers
	}
	return 0
}

func (g *Guard) event(subject string, data []byte) {
	var e struct {
		Server struct{ ID string }
		Client struct {
			ID    uint64
			JWT   string
			Start time.Time
		}
	}
	if json.Unmarshal(data, &e) != nil || e.Server.ID == "" {
		return
	}
	at := place{e.Server.ID, e.Client.ID}
	g.mu.Lock()
	defer g.mu.Unlock()
	news := g.census.servers[at.server] == nil
	switch subject[strings.LastIndexByte(subject, '.')+1:] {
	case "DISCONNECT":
		g.census.closed(at, time.Now())
	case "CONNECT":
		by := g.holder(e.Client.JWT)
		g.census.opened(connection{place: at, by: by, start: e.Client.Start}, time.Now())
		most := g.most(by)
		news = news || most > 0 && g.census.open[by] > most
	}
	if news {
		g.look()
	}
}

// holder reads from a connection's claim who holds the connection. The server has checked the claim before. For a
// service of the site, the result is the zero holder, which has no limit.
func (g *Guard) holder(claim string) holder {
	part := strings.Split(claim, ".")
	if len(part) != 3 {
		return holder{}
	}
	var says struct {
		Name messages.Name `json:"name"`
		By   string        `json:"iss"`
	}
	text, err := base64.RawURLEncoding.DecodeString(part[1])
	if err != nil || json.Unmarshal(text, &says) != nil {
		return holder{}
	}
	return holder{g.c.Role(says.By), says.Name}
}

func (g *Guard) alive(subject string, _ []byte) {
	part := strings.Split(subject, ".")
	g.mu.Lock()
	defer g.mu.Unlock()
	isNew := g.census.servers[part[2]] == nil
	g.census.hear(part[2], time.Now())
	if isNew {
		g.look()
	}
}

// look wakes [Guard.watch], so that it checks at once.
func (g *Guard) look() {
	select {
	case g.wake <- struct{}{}:
	default:
	}
}

// watch closes connections above the limits, asks servers for their lists, and forgets silent
// servers.
func (g *Guard) watch() {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-g.ctx.Done():
			return
		case <-timer.C:
		case <-g.wake:
		}
		now := time.Now()
		g.mu.Lock()
		g.census.forget(now.Add(-silence))
		due := g.census.asking(now.Add(-listEvery))
		wait := lookEvery
		if g.weigh(now) {
			wait = farewell
		}
		g.mu.Unlock()
		for _, id := range due {
			g.work.Go(func() { g.list(id) })
		}
		timer.Reset(wait)
	}
}

func (g *Guard) list(id string) {
	all, err := g.ask(id)
	g.mu.Lock()
	defer g.mu.Unlock()
	g.census.list(id, all, time.Now())
	if err == nil {
		g.look()
	} else if g.ctx.Err() == nil {
		g.c.Log.Info("a NATS server does not list its connections", zap.String("server", id), zap.Error(err))
	}
}

// weigh reports whether any holder of connections has more than its limit. If a holder has more than twice its limit,
// weigh closes the connections above the limit at once. Otherwise it first tells the holder the reason, so that the
// holder can close connections itself. A later call closes the connections that are still above the limit.
func (g *Guard) weigh(now time.Time) (any bool) {
	for _, n := range g.census.excess(g.most) {
		if g.c.Server != "" && g.c.Server != n.server {
			continue
		}
		any = true
		switch flood := g.census.open[n.by] > 2*g.most(n.by); {
		case flood || !n.told.IsZero() && now.Sub(n.told) >= farewell:
			if now.Sub(n.cut) >= lookEvery {
				g.refuse(n, now)
			}
		case n.told.IsZero() && now.Sub(n.start) >= grace:
			n.told = now
			g.count(n) // counted before the client is told, because the client may then close the connection itself
			at, by := n.place, n.by
			g.work.Go(func() {
				if err := bus.Refuse(g.c.Bus, by.name, bus.Refusal{Server: at.server, Connection: at.id, Reason: by.tooMany(g.most(by))}); err != nil {
					g.c.Log.Info("cannot tell a client why its connection is closed", zap.Error(err))
				}
			})
		}
	}
	return any
}

// refuse asks a connection's server to close the connection. It can be called again if the connection is still open.
// The caller holds g.mu.
func (g *Guard) refuse(n *connection, now time.Time) {
	if n.cut.IsZero() && n.told.IsZero() {
		g.count(n)
	}
	n.cut = now
	at := n.place
	g.work.Go(func() {
		err := g.cut(at)
		g.mu.Lock()
		defer g.mu.Unlock()
		if err == nil {
			g.census.closed(at, time.Now())
		} else if g.ctx.Err() == nil {
			g.c.Log.Info("a connection was not closed; trying again", zap.String("server", at.server), zap.Error(err))
		}
	})
}

func (g *Guard) count(n *connection) {
	g.refused.WithLabelValues(string(n.by.role)).Inc()
	g.c.Log.Warn("a connection was refused: "+n.by.tooMany(g.most(n.by)), zap.String("server", n.server))
}

// tooMany returns the reason why a connection of the holder is closed.
func (h holder) tooMany(most int) string {
	who := "account"
	if h.role == identity.Node {
		who = "node"
	}
	return fmt.Sprintf("%s %s has %d open connections, its limit: end a running command, or ask an operator to raise limits.connections of the site", who, h.name, most)
}
