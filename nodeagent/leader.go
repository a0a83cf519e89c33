package nodeagent

import (
	"context"
	"slices"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/agent"
	"github.com/candor-grid/candor/messages/wire"
	"github.com/candor-grid/candor/nodeagent/state"
)

// fetchWithin is how long an agent waits for a complete vector that it has requested.
const fetchWithin = 5 * time.Second

// follow subscribes to the vectors of the given markets, and ends the subscriptions to other markets. If the argument
// `markets` is nil, the subscriptions stay as they are.
func (a *Agent) follow(markets []messages.Name) {
	if markets == nil {
		return
	}
	for name, s := range a.markets {
		if !slices.Contains(markets, name) {
			delete(a.markets, name)
			go s.Stop() // Stop may wait for a handler that waits for this goroutine
		}
	}
	for _, name := range markets {
		if a.markets[name] != nil {
			continue
		}
		s, err := a.c.Bus.Subscribe(messages.VectorSubject(a.c.Site, name), func(_ string, payload []byte) {
			a.metrics.vectors.Inc()
			receive(a, payload, a.state.Vector)
		})
		if err != nil { // the next registration tries again
			a.c.Log.Error("cannot follow a market", zap.String("market", name), zap.Error(err))
			continue
		}
		a.markets[name] = s
	}
}

// transmit sends a request to the leader and cancels the previous request. The answer arrives as an event.
func (a *Agent) transmit(r *state.Request) {
	if a.cancel != nil {
		a.cancel()
	}
	var ctx context.Context
	ctx, a.cancel = context.WithTimeout(a.life, r.Within.Std())
	if r.Register != nil {
		r.Register.MostSuspended, r.Register.Resources, r.Register.Labels = a.c.MostSuspended, a.c.Resources, a.c.Labels
		go call(ctx, a, messages.VerbRegister, r, r.Register, a.registered)
		return
	}
	a.metrics.exchange(r.Exchange)
	go call(ctx, a, messages.VerbExchange, r, r.Exchange, a.exchanged)
}

// call sends one request and queues its answer. The state decides when to repeat the request.
func call[Reply any](ctx context.Context, a *Agent, verb string, r *state.Request, body any,
	answered func(messages.Time, uint64, *Reply)) {
	sent := time.Now()
	reply, err := ask[Reply](ctx, a, verb, body)
	a.queue.post(func(now messages.Time) {
		if err == nil {
			a.metrics.exchangeSeconds.Observe(time.Since(sent).Seconds())
			answered(now, r.ID, reply)
			return
		}
		a.metrics.failures.WithLabelValues(messages.KindOf(err).String()).Inc()
		a.c.Log.Log(levelOf(err), "a request to the leader failed", zap.String("verb", verb), zap.Error(err))
		a.state.Failed(now, r.ID, err)
	})
}

func (a *Agent) registered(now messages.Time, id uint64, r *agent.RegisterReply) {
	if err := messages.CheckLevels("the auctioneer of the site", r.Level, "the agent of node "+a.c.Node, messages.Level); err != nil {
		a.c.Log.Error("this agent cannot serve the site", zap.Error(err))
		a.state.Failed(now, id, err)
		return
	}
	a.state.Registered(now, id, r)
}

func (a *Agent) exchanged(now messages.Time, id uint64, r *agent.ExchangeReply) {
	a.metrics.grants.Add(float64(len(r.Grants)))
	a.state.Answered(now, id, r)
}

// levelOf returns the log level for an error of the leader. The level is low if a later request may succeed.
func levelOf(err error) zapcore.Level {
	if messages.KindOf(err).Retriable() {
		return zap.DebugLevel
	}
	return zap.WarnLevel
}

// ask sends a request to the auctioneer under the node's name.
func ask[Reply any](ctx context.Context, a *Agent, verb string, body any) (*Reply, error) {
	payload, err := wire.Marshal(body, wire.Msgpack)
	if err != nil {
		return nil, err
	}
	data, err := a.c.Bus.Request(ctx, messages.Subject(a.c.Site, messages.Auctioneer, verb, a.c.Node), payload)
	if err != nil {
		return nil, err
	}
	reply := new(Reply)
	return reply, wire.UnmarshalReply(data, reply)
}

func (a *Agent) fetch(market messages.Name) {
	ctx, cancel := context.WithTimeout(a.life, fetchWithin)
	defer cancel()
	v, err := ask[agent.Vector](ctx, a, messages.VerbVector, agent.VectorRequest{Market: market})
	if err == nil && v.Market != market {
		err = messages.Errorf(messages.Internal, "asked for the vector of market %q, got the vector of market %q", market, v.Market)
	}
	a.queue.post(func(now messages.Time) {
		if err != nil {
			a.c.Log.Log(levelOf(err), "no vector", zap.String("market", market), zap.Error(err))
			a.state.FetchFailed(now, market)
			return
		}
		if err := a.state.Fetched(now, v); err != nil {
			a.metrics.refused.Inc()
			a.c.Log.Warn("an allocation vector was refused", zap.Error(err))
		}
	})
}
