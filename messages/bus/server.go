package bus

import (
	"cmp"
	"context"
	"runtime/debug"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/candor-grid/candor/messages"
)

// defaultConcurrency is how many handlers of a service run at the same time. For each of these, queuePerWorker further
// requests may wait.
const (
	defaultConcurrency = 64
	queuePerWorker     = 64
	mostWaiting        = 64 << 10 // for a whole service; so requests of up to 1 KiB are small, see smallRequest
)

// Validate returns an error for a missing or wrong field.
func (s *Service) Validate() error {
	if s.Name == "" || len(s.Endpoints) == 0 {
		return messages.Errorf(messages.Invalid, "service %q: needs a name and endpoints", s.Name)
	}
	if s.Concurrency < 0 || s.Pace < 0 {
		return messages.Errorf(messages.Invalid, "service %s: concurrency %d and pace %d must not be negative", s.Name, s.Concurrency, s.Pace)
	}
	for _, e := range s.Endpoints {
		if e.Name == "" || e.Handle == nil {
			return messages.Errorf(messages.Invalid, "service %s: endpoint %q needs a name and a handler", s.Name, e.Name)
		}
		if err := checkPattern(e.Subject); err != nil {
			return err
		}
	}
	return nil
}

// server runs the handlers of one service. Both implementations of Bus use it.
type server struct {
	endpoints []*endpoint
	pool      *pool
	pace      Pace
	log       *zap.Logger
	ctx       context.Context
	cancel    context.CancelFunc
}

// endpoint is an Endpoint of a server with its statistics.
type endpoint struct {
	Endpoint
	server                        *server
	requests, errors, nanoseconds atomic.Int64
}

func newServer(s Service, log *zap.Logger) *server {
	limit := s.Concurrency
	limit = cmp.Or(limit, defaultConcurrency)
	ctx, cancel := context.WithCancel(context.Background())
	server := &server{pool: newPool(limit, min(limit*queuePerWorker, mostWaiting)), pace: Pace{Rate: s.Pace}, log: log, ctx: ctx, cancel: cancel}
	for _, e := range s.Endpoints {
		server.endpoints = append(server.endpoints, &endpoint{Endpoint: e, server: server})
	}
	return server
}

// answer answers a request in another goroutine, or refuses it at once. It does not block.
func (e *endpoint) answer(r Request, respond func([]byte, *messages.Error)) {
	arrived := time.Now()
	// Clients take an error of one of these kinds to mean that the request was not carried out.
	refuse := func(kind messages.Kind, why string) {
		e.errors.Add(1)
		respond(nil, &messages.Error{Kind: kind, Op: e.Name, Message: why})
	}
	crowded := func() { refuse(messages.Exhausted, "too many requests are waiting here; ask again in a moment") }
	fate := e.server.pool.submit(job{caller: r.Caller, size: cmp.Or(r.size, len(r.Payload)), refuse: crowded, run: func() {
		ctx, cancel := context.WithDeadline(e.server.ctx, arrived.Add(RequestTimeout))
		defer cancel()
		if ctx.Err() != nil {
			refuse(messages.NotLeader, "the request waited too long to be handled; it was not carried out, ask again")
			return
		}
		data, err := e.run(ctx, r)
		e.requests.Add(1)
		e.nanoseconds.Add(int64(time.Since(arrived)))
		if err != nil {
			e.errors.Add(1)
		}
		respond(data, err)
		if wait := e.server.pace.After(r.Caller, len(data)); wait > 0 {
			waitFor(e.server.pool.closing, wait)
		}
	}})
	switch fate {
	case full:
		crowded()
	case heavy: // callers repeat it: else a task would lose its outputs or a step because others send much
		refuse(messages.NotLeader, "the waiting requests take too much memory here; this one was not carried out, ask again in a moment")
	case stopped:
		refuse(messages.NotLeader, "this replica is stopping; ask again")
	}
}

// run calls the handler. If the handler panics, only this request gets an error.
func (e *endpoint) run(ctx context.Context, r Request) (data []byte, refusal *messages.Error) {
	defer func() {
		if cause := recover(); cause != nil {
			e.server.log.Error("handler panicked", zap.String("endpoint", e.Name), zap.String("subject", r.Subject),
				zap.Any("cause", cause), zap.ByteString("stack", debug.Stack()))
			refusal = &messages.Error{Kind: messages.Internal, Op: e.Name, Message: "the site could not answer because of a defect; see its log"}
		}
	}()
	data, err := e.Handle(ctx, r)
	if err != nil {
		return nil, messages.AsError(e.Name, err)
	}
	return data, nil
}

// stop refuses new requests, and waits until the accepted requests are answered. After half of the allowed time, it
// ends the contexts of these requests, so that they stop waiting for other actors.
func (s *server) stop() error {
	s.pool.close()
	ended := waitFor(s.pool.idle, stopTimeout/2)
	s.cancel()
	if !ended && !waitFor(s.pool.idle, stopTimeout/2) {
		return messages.Errorf(messages.Unavailable, "handlers still run %v after the stop", stopTimeout)
	}
	return nil
}
