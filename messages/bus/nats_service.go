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
	bus     *natsBus
	server  *server
	tallies []tally
	subs    []*nats.Subscription // without micro
	micro   micro.Service        // nil without
}

// Serve implements [Bus].
func (b *natsBus) Serve(s Service) (Subscription, error) {
	if err := s.Validate(); err != nil {
		return nil, err
	}
	service := &natsService{bus: b, server: newServer(s, b.log), tallies: make([]tally, len(s.Endpoints))}
	listen := service.subscribe
	if s.Discoverable {
		listen = service.announce
	}
	if err := listen(s); err != nil {
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
func (s *natsService) subscribe(service Service) error {
	for i := range service.Endpoints {
		e, t := &service.Endpoints[i], &s.tallies[i]
		sub, err := s.bus.conn.QueueSubscribe(e.Subject, micro.DefaultQueueGroup, func(m *nats.Msg) {
			s.receive(e, t, m.Subject, m.Reply, m.Header.Get(contentType), m.Header.Get(proof.Header), m.Data)
		})
		if err != nil {
			return sendError(e.Subject, err)
		}
		s.subs = append(s.subs, sub)
	}
	return nil
}

// announce listens to the endpoints as a service of the micro framework. What
// that counts as a request's time is only its arrival here, so that the true
// figures go into the data of its statistics.
func (s *natsService) announce(service Service) (err error) {
	s.micro, err = micro.AddService(s.bus.conn, micro.Config{
		Name: service.Name, Version: service.Version, Description: service.Description,
		StatsHandler: func(e *micro.Endpoint) any { return s.stats(service, e.Name) },
	})
	if err != nil {
		return announceError(service.Name, err)
	}
	for i := range service.Endpoints {
		e, t := &service.Endpoints[i], &s.tallies[i]
		handle := func(r micro.Request) {
			s.receive(e, t, r.Subject(), r.Reply(), r.Headers().Get(contentType), r.Headers().Get(proof.Header), r.Data())
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

func (s *natsService) stats(service Service, endpoint string) serviceStats {
	for i, e := range service.Endpoints {
		if e.Name == endpoint {
			t := &s.tallies[i]
			return serviceStats{t.requests.Load(), t.errors.Load(), t.nanoseconds.Load()}
		}
	}
	return serviceStats{}
}

// receive answers a request. What came without a place to reply to was no
// request, and is dropped: nobody would learn what became of it.
func (s *natsService) receive(e *Endpoint, t *tally, subject, reply, content, proven string, payload []byte) {
	if reply == "" {
		s.bus.metrics.errors.Inc()
		return
	}
	r := Request{Subject: subject, Caller: messages.Caller(subject), Payload: payload, Format: messages.Detect(payload, content)}
	if proven != "" {
		r.Proof, _ = proof.DecodeHeader(proven) // one that cannot be read proves nothing
	}
	s.server.handle(e, t, r, func(data []byte, err *messages.Error) {
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
