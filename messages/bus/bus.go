// Package bus carries messages between actors: publish and subscribe, request
// and reply, discoverable services, and one durable stream. [Connect] gives a
// bus over NATS; [NewMemory] one inside the process, with the same semantics,
// for tests and for grids in virtual time.
package bus

import (
	"context"
	"time"

	"github.com/candor-grid/candor/messages"
)

// Bus is one actor's or user's connection. It is safe for concurrent use.
type Bus interface {
	// Publish sends to whoever subscribes now; it does not wait, and a
	// message may be lost.
	Publish(subject string, payload []byte) error
	// Subscribe calls handle, from one goroutine in order of arrival, for
	// each message on subject, in which tokens may be "*" and the last ">".
	// What is published after Subscribe returned arrives, unless the handler
	// falls so far behind that messages are dropped. Handlers may keep the payload.
	Subscribe(subject string, handle func(subject string, payload []byte)) (Subscription, error)
	// Request sends a payload and waits for one reply, until ctx ends. The
	// error is the *messages.Error of the replier; or Unavailable if nobody
	// serves the subject or ctx ended before an answer came (the request may
	// have been carried out); or PermissionDenied if the credentials do not
	// allow the subject.
	Request(ctx context.Context, subject string, payload []byte) ([]byte, error)
	// Serve answers requests until the service is stopped. Handlers of one
	// service run concurrently, at most Service.Concurrency at once. A bounded
	// number of requests waits, and callers take turns; beyond the bound, requests of
	// the caller with the most waiting requests are answered Exhausted.
	// Services that listen to the same subject share its requests.
	Serve(service Service) (Subscription, error)
	// Stream opens the durable stream of a name, creating it if need be.
	Stream(ctx context.Context, name string, subjects []string) (Stream, error)
	// Objects opens the bucket of a name, creating it if need be.
	Objects(ctx context.Context, bucket string, c BucketConfig) (Objects, error)
	// Kept opens the bucket of a name as it is, and lists what it has; NotFound if
	// there is none.
	Kept(ctx context.Context, bucket string) (Objects, []string, error)
	// Close sends what is buffered and ends every subscription.
	Close() error
}

// Subscription is something that can be stopped. Stop returns once no handler
// runs any more, or after a bounded wait.
type Subscription interface{ Stop() error }

// Service is a set of endpoints that an actor answers, each only at reply subjects
// in the inbox of its caller. With Discoverable the service answers questions of
// NATS micro clients (ping, info, stats) too: queries. Without, it serves commands,
// which only the leader answers.
type Service struct {
	Name         string // e.g. candor-auctioneer
	Version      string // semantic version
	Description  string
	Discoverable bool
	Concurrency  int // default 64
	Endpoints    []Endpoint
}

// Endpoint is one verb of a service.
type Endpoint struct {
	Name    string // the verb
	Subject string // with "*" where the caller's account stands
	Handle  Handler
}

// Handler answers one request: with the reply's payload, or with an error,
// which reaches the requester as a *messages.Error. The reply is encoded in
// the request's format, which [Handle] sees to.
type Handler func(ctx context.Context, request Request) ([]byte, error)

// Request is a received request.
type Request struct {
	Subject string
	Caller  messages.Name // the last token of the subject
	Payload []byte
	Format  messages.Format
	Proof   *messages.Proof // who asks, if it was sent; not checked
}

// Stream is a durable, ordered, at-least-once sequence of messages.
type Stream interface {
	// Append adds a message; one with an id that was appended within the last
	// minutes is dropped.
	Append(ctx context.Context, subject, id string, payload []byte) error
	// Consume hands over every message after sequence number after, in order;
	// handle is given the sequence number and must not fail. ctx bounds the
	// opening; messages come until the subscription is stopped.
	Consume(ctx context.Context, after uint64, handle func(seq uint64, subject string, payload []byte)) (Subscription, error)
}

// RequestTimeout is how long [Call] waits where its context has no deadline.
const RequestTimeout = 10 * time.Second
