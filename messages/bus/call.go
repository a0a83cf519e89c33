package bus

import (
	"context"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/backoff"
	"github.com/candor-grid/candor/messages/wire"
)

// These constants set how long [Call] waits for an answer to one attempt. Usually it waits as long as recent answers
// took (see [answers]), but at most attemptTimeout. To this, it adds one second for each 100 kB of payload. After
// steadyAttempts without an answer, each attempt waits twice as long as the attempt before it, but at most
// RequestTimeout. So a slow site does not get more and more requests.
const (
	attemptTimeout = 2 * time.Second
	bytesPerSecond = 100_000
	// Three attempts are enough if a host has stopped. Other servers may not know this yet, and may still send requests
	// to this host.
	steadyAttempts = 3
)

// waits has the bounds of the pause between two attempts of a call.
var waits = backoff.Backoff{First: 10 * time.Millisecond, Last: time.Second}

// Call sends a request in msgpack and decodes the reply. If nobody can answer, or the outcome is unknown (NotLeader,
// Unavailable, Unknown), Call repeats the request until ctx ends. If ctx has no deadline, Call repeats it for
// RequestTimeout. So a request may be carried out twice, and must do no harm then. The error is the error of the last
// attempt, or Unknown if an earlier attempt may have been carried out.
func Call[Reply any](ctx context.Context, b Bus, subject string, request any) (reply Reply, err error) {
	err = CallInto(ctx, b, subject, request, &reply)
	return reply, err
}

// CallInto does the same as [Call], for a reply of any type. It decodes the reply into the value that `reply` points
// to.
func CallInto(ctx context.Context, b Bus, subject string, request, reply any) error {
	if _, bounded := ctx.Deadline(); !bounded {
		var cancel func()
		ctx, cancel = context.WithTimeout(ctx, RequestTimeout)
		defer cancel()
	}
	ctx, cancel := context.WithCancel(ctx) // ends the attempts that are still waiting
	defer cancel()
	patience, waits := firstPatience(b, subject, request)
	encode := encoder(b, subject, request)
	all := attempts{bus: b, subject: subject, answered: make(chan []byte, 1)}
	if m, measures := b.(answering); measures && !waits {
		all.times = m.answerTimes()
	}
	unanswered := 0
	unproven := false // the previous attempt was refused as Unproven
	data, err := all.retry(ctx, func() ([]byte, error) {
		payload, err := encode(ctx, unproven)
		if err != nil {
			return nil, err
		}
		sending := time.Second * time.Duration(len(payload)/bytesPerSecond)
		data, late, err := all.send(ctx, payload, patience+sending)
		if late {
			if unanswered++; unanswered >= steadyAttempts {
				patience = min(2*patience, RequestTimeout)
			}
		}
		unproven = err != nil && messages.KindOf(err) == messages.Unproven
		return data, err
	})
	if err != nil {
		return err
	}
	return wire.UnmarshalReply(data, reply)
}

// attempts has the state of all attempts of one call. An answer to an earlier attempt counts even after a later attempt
// was sent. Otherwise the answers of a slow service would always come too late.
type attempts struct {
	bus      Bus
	subject  string
	answered chan []byte  // the first answer to any attempt
	times    *answers     // measures answer times; nil means that they are not measured
	open     atomic.Int64 // number of attempts that were, or may still be, carried out
}

// send sends the request once more. It returns the first answer to any attempt, or the error of this last attempt. If
// no answer came in time, `late` is true.
func (a *attempts) send(ctx context.Context, payload []byte, within time.Duration) (data []byte, late bool, err error) {
	failed := make(chan error, 1)
	a.open.Add(1)
	go func() {
		began := time.Now()
		data, err := a.bus.Request(ctx, a.subject, payload)
		if err != nil {
			if !doubtful(err) {
				a.open.Add(-1)
			}
			failed <- err
			return
		}
		if a.times != nil {
			a.times.note(a.subject, time.Since(began))
		}
		select {
		case a.answered <- data:
		default: // an answer has already arrived
		}
	}()
	enough := time.NewTimer(within)
	defer enough.Stop()
	select {
	case data := <-a.answered:
		return data, false, nil
	case err := <-failed:
		return nil, false, err
	case <-enough.C:
		if m, measures := a.bus.(answering); measures {
			go m.look(a.subject)
		}
		return nil, true, unanswered(a.subject, "in time")
	}
}

// retry calls send until it succeeds, returns a final error, or ctx ends.
func (a *attempts) retry(ctx context.Context, send func() ([]byte, error)) ([]byte, error) {
	end, _ := ctx.Deadline()
	unproven := 0
	for attempts := 1; ; attempts++ {
		data, err := send()
		if err != nil && messages.KindOf(err) == messages.Unproven {
			unproven++
		} else if err == nil || !a.again(err) {
			if Unserved(err) { // an attempt that was not served says nothing about the earlier attempts
				err = a.end(err)
			}
			return data, err
		}
		if unproven > provenTries {
			return nil, a.end(err)
		}
		wait := rand.N(waits.Bound(attempts)) + time.Millisecond
		if time.Until(end) < wait {
			return nil, a.end(err)
		}
		select {
		case <-ctx.Done():
			return nil, a.end(err)
		case <-time.After(wait):
			if ctx.Err() != nil { // ctx ended during the pause: return the error from before
				return nil, a.end(err)
			}
		}
	}
}

// doubtful reports whether an attempt with this error may have been carried out, or may still be carried out.
func doubtful(err error) bool {
	kind := messages.KindOf(err)
	return kind == messages.Unknown || kind == messages.Unavailable && !Unserved(err)
}

// The method again reports whether the request must be sent again after an error. An earlier attempt may have been
// carried out, although no answer came. Then the method also returns true for the errors Exhausted and Internal,
// because they say nothing about the earlier attempt.
func (a *attempts) again(err error) bool {
	switch kind := messages.KindOf(err); {
	case doubtful(err):
		return true
	case kind == messages.Exhausted, kind == messages.Internal:
		return a.open.Load() > 0
	default:
		return kind.Retriable()
	}
}

func (a *attempts) end(err error) error {
	if kind := messages.KindOf(err); a.open.Load() == 0 || kind == messages.Unknown || kind == messages.Unavailable && !Unserved(err) {
		return err
	}
	last := messages.AsError("", err)
	return &messages.Error{Kind: messages.Unknown, Op: last.Op, Message: "the outcome is not known, because a request had no answer; ask again with the same key. The last answer: " + last.Message}
}

// Handle makes a handler from a function with typed requests and replies. It decodes a payload in msgpack or JSON, and
// encodes the reply in the same format. If an error has no operation, `op` becomes its operation.
func Handle[Req, Rep any](op string, f func(ctx context.Context, caller messages.Name, request Req) (Rep, error)) Handler {
	return func(ctx context.Context, request Request) ([]byte, error) {
		var req Req
		if err := wire.Unmarshal(request.Payload, request.Format, &req); err != nil {
			return nil, messages.AsError(op, err)
		}
		if request.Proof != nil {
			ctx = WithAsked(ctx, &messages.SignedRequest{Proof: *request.Proof, Payload: request.Payload})
		}
		rep, err := f(ctx, request.Caller, req)
		if err != nil {
			return nil, messages.AsError(op, err)
		}
		data, err := wire.Marshal(rep, request.Format)
		if err != nil {
			return nil, messages.AsError(op, err)
		}
		return data, nil
	}
}
