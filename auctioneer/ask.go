package auctioneer

import (
	"context"
	"slices"
	"sync"

	"go.uber.org/zap"

	"github.com/candor-grid/candor/auctioneer/book"
	"github.com/candor-grid/candor/auctioneer/desk"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/agent"
	"github.com/candor-grid/candor/messages/bus"
	"github.com/candor-grid/candor/messages/job"
	"github.com/candor-grid/candor/messages/wire"
)

// ask sends a request of the desk (the leader's state machine) to another actor. It waits for the answer until ctx ends
// or the request's time is over.
func (l *term) ask(ctx context.Context, r *desk.Request) (any, error) {
	if r.Within > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, r.Within.Std())
		defer cancel()
	}
	switch r.To {
	case desk.Notices:
		return nil, l.Notify.Send(ctx, r.Body.(*book.Notice))
	case desk.Observations:
		return l.observe(ctx, r.Body.([]job.Observation))
	case messages.Auctioneer:
		return r.Reply, l.federated.peers.ask(ctx, r.Peer, r.Verb, r.Body, r.Reply)
	}
	subject := messages.Subject(l.Site, r.To, r.Verb, messages.ServiceIdentity(messages.Auctioneer))
	return r.Reply, bus.CallInto(ctx, l.Bus, subject, r.Body, r.Reply)
}

// observe publishes observations to the estimator's stream, and returns how many the stream stored.
func (l *term) observe(ctx context.Context, list []job.Observation) (int, error) {
	stream, err := l.Bus.Stream(ctx, messages.ObservationStream(l.Site), []string{messages.ObservationSubject(l.Site)})
	if err != nil {
		return 0, err
	}
	errs := make([]error, len(list))
	for from := 0; from < len(list); from += observedAtOnce {
		var sent sync.WaitGroup
		for i := from; i < min(from+observedAtOnce, len(list)); i++ {
			sent.Go(func() {
				data, err := wire.Marshal(&list[i], wire.Msgpack)
				if err == nil {
					err = stream.Append(ctx, messages.ObservationSubject(l.Site), list[i].Site+"/"+list[i].Job.String(), data)
				}
				errs[i] = err
			})
		}
		sent.Wait()
		if i := slices.IndexFunc(errs, func(err error) bool { return err != nil }); i >= 0 {
			return i, errs[i]
		}
	}
	return len(list), nil
}

// The function observe sends observations. After each group of observedAtOnce observations, it waits until the stream
// has stored them.
const observedAtOnce = 32

func (l *term) publish(subject string, what any) {
	data, err := wire.Marshal(what, wire.Msgpack)
	if err == nil {
		err = l.Bus.Publish(subject, data)
	}
	if err != nil {
		l.Log.Warn("cannot publish", zap.String("subject", subject), zap.Error(err))
		return
	}
	if _, ok := what.(agent.Vector); ok {
		l.metrics.vectors.Inc()
		l.metrics.vectorBytes.Add(float64(len(data)))
	}
}
