package bus

import (
	"errors"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/micro"
	"go.uber.org/zap"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/proof"
	"github.com/candor-grid/candor/messages/wire"
)

// These headers describe an error in a reply, as NATS micro clients expect. The payload of such a reply is the whole
// error, in the request's format.
const (
	errorHeader     = micro.ErrorHeader
	errorCodeHeader = micro.ErrorCodeHeader
	contentType     = "Content-Type"
)

type natsService struct {
	bus    *natsBus
	server *server
	subs   []*nats.Subscription
}

// Serve implements [Bus].
func (b *natsBus) Serve(s Service) (Subscription, error) {
	if err := s.Validate(); err != nil {
		return nil, err
	}
	b.told.Store(true)
	service := &natsService{bus: b, server: newServer(s, b.log)}
	if err := service.subscribe(); err != nil {
		return nil, errors.Join(err, service.Stop())
	}
	if s.Discoverable {
		if err := service.announce(s); err != nil {
			return nil, errors.Join(err, service.Stop())
		}
	}
	for _, e := range s.Endpoints {
		if err := b.settle(e.Subject); err != nil {
			return nil, errors.Join(err, service.Stop())
		}
	}
	return b.register(service)
}

func (s *natsService) subscribe() error {
	for _, e := range s.server.endpoints {
		sub, err := s.bus.conn.QueueSubscribe(e.Subject, micro.DefaultQueueGroup, func(m *nats.Msg) { s.receive(e, m) })
		if err != nil {
			return sendError(e.Subject, err)
		}
		s.subs = append(s.subs, sub)
	}
	return nil
}

// receive answers a request. It refuses a message without a reply subject, because nobody would learn the outcome. It
// also refuses a reply subject on which the caller does not listen.
func (s *natsService) receive(e *endpoint, m *nats.Msg) {
	if !listensAt(m.Subject, m.Reply) {
		s.bus.refuseReply(m)
		return
	}
	if m.Header.Get(hereHeader) != "" {
		s.bus.reply(m.Subject, &nats.Msg{Subject: m.Reply})
		return
	}
	r := Request{Subject: m.Subject, Caller: messages.Caller(m.Subject), Payload: m.Data, Format: wire.Detect(m.Data, m.Header.Get(contentType)), size: m.Size()}
	if proven := m.Header.Get(proof.Header); proven != "" {
		var err error
		if r.Proof, err = proof.DecodeHeader(proven); err != nil { // a damaged proof must not count as a missing proof
			s.bus.reply(m.Subject, replyTo(m.Reply, r.Format, nil, messages.AsError("", err)))
			return
		}
	}
	e.answer(r, func(data []byte, err *messages.Error) {
		if int64(len(data)) > s.bus.conn.MaxPayload() {
			err = messages.Errorf(messages.TooLarge, "the answer of %d bytes is above the %d that NATS carries; ask for less at a time", len(data), s.bus.conn.MaxPayload())
		}
		s.bus.reply(m.Subject, replyTo(m.Reply, r.Format, data, err))
	})
}

func (b *natsBus) reply(subject string, answer *nats.Msg) {
	if err := b.conn.PublishMsg(answer); err != nil {
		b.sampled.Warn("cannot reply", zap.String("subject", subject), zap.Error(err))
	}
}

func replyTo(reply string, f wire.Format, data []byte, err *messages.Error) *nats.Msg {
	m := &nats.Msg{Subject: reply, Data: data}
	if f == wire.JSON {
		m.Header = nats.Header{contentType: {f.ContentType()}}
	}
	if err == nil {
		return m
	}
	if m.Header == nil {
		m.Header = nats.Header{}
	}
	m.Header[errorCodeHeader] = []string{err.Kind.String()}
	m.Header[errorHeader] = []string{headerText(err.Error())}
	m.Data, _ = wire.Marshal(err, f) // such an error can always be encoded
	return m
}

// Stop implements [Subscription]. A request that still arrives gets the error NotLeader.
func (s *natsService) Stop() error {
	s.bus.forget(s)
	var errs []error
	before := s.bus.conn.Stats().Reconnects
	for _, sub := range s.subs {
		errs = append(errs, ignoreClosed(sub.Drain()))
	}
	go s.bus.unsubscribed(s.subs, before)
	return errors.Join(append(errs, s.server.stop())...)
}

// unsubscribed waits until the subscriptions have ended. If the connection was lost meanwhile, nats.go subscribes them
// again at the server and then forgets them, so that the server would send their requests to nobody. To prevent this,
// unsubscribed closes the connection and lets nats.go open it once more. The argument `before` is the number of
// reconnections before the subscriptions began to end.
func (b *natsBus) unsubscribed(subs []*nats.Subscription, before uint64) {
	for _, sub := range subs {
		for sub.IsValid() && !b.conn.IsClosed() {
			time.Sleep(10 * time.Millisecond)
		}
	}
	seen := b.conn.Stats().Reconnects
	if seen == before {
		return
	}
	b.renewing.Lock() // several services may end together
	defer b.renewing.Unlock()
	if b.conn.Stats().Reconnects == seen && b.conn.IsConnected() {
		_ = b.conn.ForceReconnect() // the only error is that the connection is closed
		for wait := 0; wait < 500 && b.conn.Stats().Reconnects == seen && !b.conn.IsClosed(); wait++ {
			time.Sleep(10 * time.Millisecond)
		}
	}
}

func ignoreClosed(err error) error {
	if errors.Is(err, nats.ErrConnectionClosed) || errors.Is(err, nats.ErrBadSubscription) {
		return nil
	}
	return err
}
