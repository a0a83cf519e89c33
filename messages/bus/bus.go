// Package bus carries messages between actors: publish and subscribe, request and reply,
// discoverable services, and a durable stream. [Connect] returns a bus over NATS. [NewMemory]
// returns one inside the process with the same semantics, for tests and simulated grids in
// virtual time.
package bus

import (
	"context"
	"time"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/wire"
)

// Bus is one actor's or user's connection. It is safe for concurrent use.
type Bus interface {
	// Publish sends a message to the present subscribers. It does not wait, and the message may be lost.
	Publish(subject string, payload []byte) error
	// Subscribe calls `handle` for each message on the subject `subject`, from one goroutine in order of arrival. A
	// token of the subject may be "*", and the last token may be ">". After Subscribe has returned, every message that
	// is published arrives, unless a slow handler makes the bus drop it. Handlers may keep the payload.
	Subscribe(subject string, handle func(subject string, payload []byte)) (Subscription, error)
	// Request sends a payload and waits for one reply, until ctx ends. The error is the service's *messages.Error, or
	// PermissionDenied. If nobody serves the subject, or if ctx ended first, the error is Unavailable. The request may
	// then have been carried out.
	Request(ctx context.Context, subject string, payload []byte) ([]byte, error)
	// Serve answers requests until the service is stopped. Up to Service.Concurrency handlers run at once. A bounded
	// number of further requests waits, and callers take turns. Above this number, the caller with the most waiting
	// requests gets the error Exhausted. Services on the same subject share its requests.
	Serve(service Service) (Subscription, error)
	// Stream opens the durable stream with a name, and creates it if needed.
	Stream(ctx context.Context, name string, subjects []string) (Stream, error)
	// Objects opens the bucket with a name, and creates it if needed.
	Objects(ctx context.Context, bucket string, c BucketConfig) (Objects, error)
	// Kept opens an existing bucket and lists its objects; NotFound if there is none.
	Kept(ctx context.Context, bucket string) (Objects, []string, error)
	// Close sends what is buffered, and stops every subscription.
	Close() error
}

// Subscription is something that can be stopped. Stop returns when no handler runs any more, or after a time limit.
type Subscription interface{ Stop() error }

// Service is a set of endpoints. It replies only to subjects in the caller's inbox. A discoverable service answers
// queries, and the discovery requests of NATS micro clients (ping, info, stats). Other services answer commands, and
// run only at the leader.
type Service struct {
	Name         string // e.g. candor-auctioneer
	Version      string // semantic version
	Description  string
	Discoverable bool
	Concurrency  int // default 64
	Pace         int // bytes of answers to one caller in a second; 0 means no bound
	Endpoints    []Endpoint
}

// Endpoint is one verb of a service.
type Endpoint struct {
	Name    string // the verb
	Subject string // with "*" for the caller's account
	Handle  Handler
}

// Handler answers one request with the reply's payload, or with an error, which the caller gets as a *messages.Error.
// The reply has the request's format; [Handle] encodes it.
type Handler func(ctx context.Context, request Request) ([]byte, error)

// Request is a request as a handler gets it.
type Request struct {
	Subject string
	Caller  messages.Name // the account that sent the request: the last token of the subject
	Payload []byte
	Format  wire.Format
	Proof   *messages.Proof // the proof that came with the request, not checked yet; nil means none

	size int // bytes of the message with its headers; 0 means only the payload
}

// Stream is a durable, ordered sequence of messages, each delivered at least once.
type Stream interface {
	// Append adds a message, unless one with the same id was appended in the last two minutes.
	Append(ctx context.Context, subject, id string, payload []byte) error
	// Consume calls the function `handle` for every message whose sequence number is larger than `after`, in order.
	// `handle` gets the sequence number and must not fail. ctx bounds only the opening of the subscription.
	Consume(ctx context.Context, after uint64, handle func(seq uint64, subject string, payload []byte)) (Subscription, error)
}

// UserPace is the pace of services that answer users. A list of 1,000 jobs takes 0.3 to 0.4 MB.
const UserPace = 16 << 20

// RequestTimeout is how long [Call] waits if its context has no deadline.
const RequestTimeout = 10 * time.Second
