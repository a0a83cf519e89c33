package bus

import (
	"errors"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/micro"
	"go.uber.org/zap"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/proof"
)

// The headers of the NATS micro convention, in which errors travel; the
// payload of such a reply is the whole error, in the request's format.
const (
	errorHeader     = micro.ErrorHeader
	errorCodeHeader = micro.ErrorCodeHeader
	contentType     = "Content-Type"
)

// natsService is a service on a connection to NATS.
type natsService struct {
	bus    *natsBus
	server *server
	subs   []*nats.Subscription // without micro
	micro  micro.Service        // nil without
}

// Serve implements [Bus].
func (b *natsBus) Serve(s Service) (Subscription, error) {
	if err := s.Validate(); err != nil {
		return nil, err
	}
	service := &natsService{bus: b, server: newServer(s, b.log)}
	listen := service.subscribe
	if s.Discoverable {
		listen = func() error { return service.announce(s) }
	}
	if err := listen(); err != nil {
		return nil, errors.Join(err, service.Stop())
	}
	for _, e := range s.Endpoints {
		if err := b.settle(e.Subject); err != nil {
			return nil, errors.Join(err, service.Stop())
		}
	}
	return b.register(service)
}

// subscribe listens to the endpoints without announcing them.
func (s *natsService) subscribe() error {
	for _, e := range s.server.endpoints {
		sub, err := s.bus.conn.QueueSubscribe(e.Subject, micro.DefaultQueueGroup, func(m *nats.Msg) {
			s.receive(e, m.Subject, m.Reply, m.Header.Get(contentType), m.Header.Get(proof.Header), m.Data)
		})
		if err != nil {
			return sendError(e.Subject, err)
		}
		s.subs = append(s.subs, sub)
	}
	return nil
}

// announce listens to the endpoints as a service of the micro framework. The
// framework counts as a request's time only how long receive takes, so the true
// figures go into the data of its statistics.
func (s *natsService) announce(service Service) (err error) {
	s.micro, err = micro.AddService(s.bus.conn, micro.Config{
		Name: service.Name, Version: service.Version, Description: service.Description,
		StatsHandler: func(e *micro.Endpoint) any { return s.stats(e.Name) },
	})
	if err != nil {
		return announceError(service.Name, err)
	}
	for _, e := range s.server.endpoints {
		handle := func(r micro.Request) {
			s.receive(e, r.Subject(), r.Reply(), r.Headers().Get(contentType), r.Headers().Get(proof.Header), r.Data())
		}
		if err := s.micro.AddEndpoint(e.Name, micro.HandlerFunc(handle), micro.WithEndpointSubject(e.Subject)); err != nil {
			return announceError(service.Name, err)
		}
	}
	return nil
}

func announceError(name string, err error) error {
	if errors.Is(err, micro.ErrConfigValidation) {
		return messages.Errorf(messages.Invalid, "service %s: %v", clip(name), err)
	}
	return sendError(name, err)
}

// serviceStats is what an endpoint did, in the statistics of the micro framework.
type serviceStats struct {
	Requests       int64 `json:"requests"`
	Errors         int64 `json:"errors"`
	ProcessingTime int64 `json:"processing_time"` // nanoseconds, waiting included
}

func (s *natsService) stats(endpoint string) serviceStats {
	for _, e := range s.server.endpoints {
		if e.Name == endpoint {
			return serviceStats{e.requests.Load(), e.errors.Load(), e.nanoseconds.Load()}
		}
	}
	return serviceStats{}
}

// receive answers a request. A message without a subject to reply to is not carried
// out: nobody would learn its outcome.
func (s *natsService) receive(e *endpoint, subject, reply, content, proven string, payload []byte) {
	if reply == "" {
		s.bus.metrics.errors.Inc()
		return
	}
	r := Request{Subject: subject, Caller: messages.Caller(subject), Payload: payload, Format: messages.Detect(payload, content)}
	if proven != "" {
		r.Proof, _ = proof.DecodeHeader(proven) // one that cannot be read proves nothing
	}
	e.answer(r, func(data []byte, err *messages.Error) {
		if int64(len(data)) > s.bus.conn.MaxPayload() {
			err = messages.Errorf(messages.TooLarge, "the answer of %d bytes is above the %d that NATS carries; ask for less at a time", len(data), s.bus.conn.MaxPayload())
		}
		if failed := s.bus.conn.PublishMsg(replyTo(reply, r.Format, data, err)); failed != nil {
			s.bus.log.Warn("cannot reply", zap.String("subject", subject), zap.Error(failed))
		}
	})
}

func replyTo(reply string, f messages.Format, data []byte, err *messages.Error) *nats.Msg {
	m := &nats.Msg{Subject: reply, Data: data}
	if f == messages.JSON {
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
	m.Data, _ = messages.Marshal(err, f) // its three fields always have an encoding
	return m
}

// Stop implements [Subscription]. A request that still arrives is told to ask
// again.
func (s *natsService) Stop() error {
	s.bus.forget(s)
	var errs []error
	for _, sub := range s.subs {
		errs = append(errs, ignoreClosed(sub.Drain()))
	}
	if s.micro != nil {
		errs = append(errs, ignoreClosed(s.micro.Stop()))
	}
	return errors.Join(append(errs, s.server.stop())...)
}

func ignoreClosed(err error) error {
	if errors.Is(err, nats.ErrConnectionClosed) || errors.Is(err, nats.ErrBadSubscription) {
		return nil
	}
	return err
}
