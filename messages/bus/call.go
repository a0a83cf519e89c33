package bus

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/backoff"
)

// The waits of [Call]: the first attempt waits attemptTimeout for its answer,
// and a second more for each 100 kB that it sends; one after an attempt that was
// not answered twice as long as that, so that a site that is slow is not asked
// ever more, but not above RequestTimeout, within which whoever takes a request
// answers it. An attempt that was refused, as they are while nobody leads, leaves
// the wait as it is: the next one may be lost with the replica that takes it.
// Between attempts it waits a random time below a bound that doubles.
const (
	attemptTimeout = 2 * time.Second
	bytesPerSecond = 100_000
)

// waits bounds the waits between the attempts of a call.
var waits = backoff.Backoff{First: 10 * time.Millisecond, Last: time.Second}

// Call sends a request, in msgpack, and decodes the reply. While nobody can
// answer, or the outcome is not known (NotLeader, Unavailable, Unknown), it
// sends the same request again until ctx ends, or RequestTimeout where ctx has
// no deadline: so a request must be one that may be carried out twice. The
// error is then the last attempt's. Once the outcome of an attempt is not known, it
// is not known at the end either, unless a later one finds it out: a full disk
// (Exhausted) or a failure (Internal) decides nothing then.
func Call[Reply any](ctx context.Context, b Bus, subject string, request any) (reply Reply, err error) {
	err = CallInto(ctx, b, subject, request, &reply)
	return reply, err
}

// CallInto is [Call] for an answer of any type, which is read into what reply points to.
func CallInto(ctx context.Context, b Bus, subject string, request, reply any) error {
	if _, bounded := ctx.Deadline(); !bounded {
		var cancel func()
		ctx, cancel = context.WithTimeout(ctx, RequestTimeout)
		defer cancel()
	}
	patience := attemptTimeout
	encode := encoder(b, subject, request)
	unproven := false // the attempt before was refused so
	data, err := retry(ctx, func() ([]byte, error) {
		payload, err := encode(ctx, unproven)
		if err != nil {
			return nil, err
		}
		sending := time.Second * time.Duration(len(payload)/bytesPerSecond)
		last := time.Now().Add(patience + sending)
		data, err := attempt(ctx, last, b, subject, payload)
		if err != nil && !time.Now().Before(last) {
			patience = min(2*patience, RequestTimeout)
		}
		unproven = err != nil && messages.KindOf(err) == messages.Unproven
		return data, err
	})
	if err != nil {
		return err
	}
	return messages.Unmarshal(data, messages.Detect(data, ""), reply)
}

// attempt sends a request once.
func attempt(ctx context.Context, end time.Time, b Bus, subject string, payload []byte) ([]byte, error) {
	ctx, cancel := context.WithDeadline(ctx, end)
	defer cancel()
	return b.Request(ctx, subject, payload)
}

// retry repeats send while its error says that nobody could answer, until the
// deadline of ctx.
func retry(ctx context.Context, send func() ([]byte, error)) ([]byte, error) {
	end, _ := ctx.Deadline()
	var sent doubt
	unproven := 0
	for attempts := 1; ; attempts++ {
		data, err := send()
		if err != nil && messages.KindOf(err) == messages.Unproven {
			unproven++
		} else if err == nil || !sent.again(err) {
			return data, err
		}
		if unproven > provenTries {
			return nil, sent.end(err)
		}
		wait := rand.N(waits.Bound(attempts)) + time.Millisecond
		if time.Until(end) < wait {
			return nil, sent.end(err)
		}
		select {
		case <-ctx.Done():
			return nil, sent.end(err)
		case <-time.After(wait):
		}
	}
}

// doubt is whether some attempt of a request may have been carried out, or may be
// yet, though it was not answered.
type doubt bool

// again reports whether the request is to be sent again after an error. In doubt,
// that is also so of a refusal that looks at no identifier: it says nothing of what
// became of the attempts before it.
func (d *doubt) again(err error) bool {
	var unheard unserved
	switch kind := messages.KindOf(err); {
	case kind == messages.Unknown, kind == messages.Unavailable && !errors.As(err, &unheard):
		*d = true
		return true
	case kind == messages.Exhausted, kind == messages.Internal:
		return bool(*d)
	default:
		return kind.Retriable()
	}
}

// end is the error with which the last attempt's leaves a request.
func (d *doubt) end(err error) error {
	if kind := messages.KindOf(err); !*d || kind == messages.Unknown || kind == messages.Unavailable {
		return err
	}
	last := messages.AsError("", err)
	return &messages.Error{Kind: messages.Unknown, Op: last.Op, Message: "it is not known whether this was done, for an attempt was not answered; ask again with the same key. The last answer: " + last.Message}
}

// Handle makes a handler of a function on typed requests. A payload in msgpack
// or JSON is decoded, f is run, and its reply is encoded in the same format;
// every error carries op unless it names an operation of its own.
func Handle[Req, Rep any](op string, f func(ctx context.Context, caller messages.Name, request Req) (Rep, error)) Handler {
	return func(ctx context.Context, request Request) ([]byte, error) {
		var req Req
		if err := messages.Unmarshal(request.Payload, request.Format, &req); err != nil {
			return nil, messages.AsError(op, err)
		}
		if request.Proof != nil {
			ctx = WithAsked(ctx, &messages.SignedRequest{Proof: *request.Proof, Payload: request.Payload})
		}
		rep, err := f(ctx, request.Caller, req)
		if err != nil {
			return nil, messages.AsError(op, err)
		}
		data, err := messages.Marshal(rep, request.Format)
		if err != nil {
			return nil, messages.AsError(op, err)
		}
		return data, nil
	}
}
