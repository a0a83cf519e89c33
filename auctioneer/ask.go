package auctioneer

import (
	"context"

	"go.uber.org/zap"

	"github.com/candor-grid/candor/auctioneer/desk"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/bus"
)

// ask asks another actor for the desk, until ctx ends or the request's time is over.
func (l *leader) ask(ctx context.Context, r *desk.Request) (any, error) {
	if r.Within > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, r.Within.Std())
		defer cancel()
	}
	switch {
	case r.Peer != "":
		return r.Reply, l.federated.peers.ask(ctx, r.Peer, r.Verb, r.Body, r.Reply)
	case r.Reply != nil:
		return r.Reply, l.federated.peers.askBank(ctx, r.Verb, r.Body, r.Reply)
	}
	switch body := r.Body.(type) {
	case []messages.Observation:
		return l.observe(ctx, body)
	case messages.TransferRequest:
		return answerOf[messages.TransferReply](ctx, l, r)
	case messages.ChargeRequest:
		return answerOf[messages.ClearingReply](ctx, l, r)
	case messages.RuntimeRequest:
		return answerOf[messages.RuntimeReply](ctx, l, r)
	case messages.SamplesRequest:
		return answerOf[messages.SamplesReply](ctx, l, r)
	}
	return answerOf[messages.ClassesReply](ctx, l, r)
}

func answerOf[Reply any](ctx context.Context, l *leader, r *desk.Request) (any, error) {
	return bus.Call[Reply](ctx, l.Bus, messages.Subject(l.Site, r.To, r.Verb, messages.ServiceIdentity(messages.Auctioneer)), r.Body)
}

// observe leaves observations in the estimator's stream, and returns how many.
func (l *leader) observe(ctx context.Context, list []messages.Observation) (int, error) {
	stream, err := l.Bus.Stream(ctx, messages.ObservationStream(l.Site), []string{messages.ObservationSubject(l.Site)})
	if err != nil {
		return 0, err
	}
	for i := range list {
		data, err := messages.Marshal(&list[i], messages.Msgpack)
		if err == nil {
			err = stream.Append(ctx, messages.ObservationSubject(l.Site), list[i].Site+"/"+list[i].Job.String(), data)
		}
		if err != nil {
			return i, err
		}
	}
	return len(list), nil
}

// publish sends something to whoever listens.
func (l *leader) publish(subject string, what any) {
	data, err := messages.Marshal(what, messages.Msgpack)
	if err == nil {
		err = l.Bus.Publish(subject, data)
	}
	if err != nil {
		l.Log.Warn("cannot publish", zap.String("subject", subject), zap.Error(err))
		return
	}
	if _, ok := what.(messages.Vector); ok {
		l.metrics.vectors.Inc()
		l.metrics.vectorBytes.Add(float64(len(data)))
	}
}
