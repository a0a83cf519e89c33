package bus

import (
	"context"
	"errors"
	"regexp"
	"sync"

	"github.com/candor-grid/candor/messages"
)

func errClosed() *messages.Error {
	return messages.Errorf(messages.Unavailable, "the connection to the bus is closed")
}

type unserved struct {
	refusal *messages.Error
	nobody  bool // no actor serves the subject
}

func (u unserved) Error() string { return u.refusal.Error() }
func (u unserved) Unwrap() error { return u.refusal }

// Unserved reports whether an error says that no service got the request.
func Unserved(err error) bool {
	_, ok := errors.AsType[unserved](err)
	return ok
}

// Nobody reports whether an error says that no actor serves the subject of a request.
func Nobody(err error) bool {
	u, ok := errors.AsType[unserved](err)
	return ok && u.nobody
}

type unconnected struct {
	refusal *messages.Error
	cause   error
}

func (u unconnected) Error() string   { return u.refusal.Error() }
func (u unconnected) Unwrap() []error { return []error{u.refusal, u.cause} }

func nobody(subject string) error {
	return unserved{nobody: true, refusal: messages.Errorf(messages.Unavailable, "no actor serves %s; check that the actor runs, and that the site and the verb are right", clip(subject))}
}

func noAnswer(ctx context.Context, subject string) error {
	why := "in time"
	if errors.Is(ctx.Err(), context.Canceled) {
		why = "before the request was given up"
	}
	return unanswered(subject, why)
}

func unanswered(subject, why string) error {
	return messages.Errorf(messages.Unavailable, "no answer on %s came %s; a request that changes something may have been carried out: ask again with the same key", clip(subject), why)
}

func connectionLost() error {
	return messages.Errorf(messages.Unavailable, "the connection to NATS was lost before an answer came; a request that changes something may have been carried out: ask again with the same key")
}

func deniedSend(subject string) error {
	return messages.Errorf(messages.PermissionDenied,
		"these credentials may not send to %s: the second part of the subject must be the site of the credentials, and the last part their account", clip(subject))
}

func deniedListen(subject string) error {
	return messages.Errorf(messages.PermissionDenied, "these credentials may not listen to %s", clip(subject))
}

var streamName = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z0-9_-]{1,128}$`) })

func checkStream(name string, subjects []string) error {
	if !streamName().MatchString(name) || len(subjects) == 0 {
		return messages.Errorf(messages.Invalid, "stream %q: needs subjects, and a name of letters, digits, '-' and '_'", clip(name))
	}
	for _, subject := range subjects {
		if err := checkPattern(subject); err != nil {
			return err
		}
	}
	return nil
}

func awaitStop(done <-chan struct{}) error {
	if !waitFor(done, stopTimeout) {
		return messages.Errorf(messages.Unavailable, "a handler still runs %v after the stop", stopTimeout)
	}
	return nil
}
