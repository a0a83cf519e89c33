package messages

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Kind is the kind of an error in a reply. The list is append-only: a kind keeps its number and its name for ever.
type Kind uint8

// These are the kinds of error.
const (
	Internal         Kind = iota // a defect, or a failure that fits no other kind
	Invalid                      // the request is malformed or breaks a stated rule
	TooLarge                     // a count, size or amount is above a limit
	NotFound                     // the request names something that does not exist
	PermissionDenied             // the account may not do this
	Insufficient                 // the account cannot cover the amount
	Conflict                     // the identifier was used before with different content
	NotLeader                    // this replica cannot answer; ask again later
	Unavailable                  // a needed part of the site does not answer; ask again
	Unknown                      // the outcome is not known; ask again with the same key
	Fenced                       // the sender was replaced: there is a later term, session or attempt
	Exhausted                    // a limit of the site is reached: space, rate, jobs
	Expired                      // a hold, quote or deadline has passed
	Ended                        // the job has ended already
	Unproven                     // the caller is not proven, or no longer proven: sign the request again
)

var kindNames = [...]string{"Internal", "Invalid", "TooLarge", "NotFound", "PermissionDenied", "Insufficient",
	"Conflict", "NotLeader", "Unavailable", "Unknown", "Fenced", "Exhausted", "Expired", "Ended", "Unproven"}

// Kinds returns all kinds of error.
func Kinds() []Kind {
	kinds := make([]Kind, len(kindNames))
	for i := range kinds {
		kinds[i] = Kind(i)
	}
	return kinds
}

// String returns the kind's stable CamelCase name.
func (k Kind) String() string {
	if int(k) < len(kindNames) {
		return kindNames[k]
	}
	return fmt.Sprintf("Kind%d", uint8(k))
}

// MarshalText writes the kind's name.
func (k Kind) MarshalText() ([]byte, error) { return []byte(k.String()), nil }

// UnmarshalText reads a kind's name. If this version does not know the name, the kind is Internal.
func (k *Kind) UnmarshalText(b []byte) error {
	*k = Kind(max(int(Internal), slices.Index(kindNames[:], string(b))))
	return nil
}

// Retriable reports whether the same request, with the same key, may get a different answer.
func (k Kind) Retriable() bool { return k == NotLeader || k == Unavailable || k == Unknown }

// Passing reports whether an error is temporary. The same request may succeed later, so a caller must not conclude from
// a temporary error that the request is refused for ever. For example, a request may be refused as Unproven because an
// actor does not know a new key yet.
func Passing(err error) bool {
	kind := KindOf(err)
	return err != nil && (kind.Retriable() || kind == Unproven)
}

// Waits reports whether a request that was refused with `err` should be repeated later: the error is temporary, or
// there is no room now. An earlier attempt may still have been carried out.
func Waits(err error) bool { return Passing(err) || KindOf(err) == Exhausted }

// Detail returns the sentence of an error, without its kind.
func Detail(err error) string { return AsError("", err).Message }

// Clip cuts a text to at most the given number of bytes. A character that would be cut in two is dropped.
func Clip(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "")
}

// Short cuts a text that is longer than `most` bytes, and adds "…" to it. Error messages use Short to quote a text that
// comes from others.
func Short(text string, most int) string {
	if len(text) > most {
		return text[:most] + "…"
	}
	return text
}

// An Error is sent from one actor to another. It has the kind of the error, the operation, and a sentence. The sentence
// tells the user what is wrong and what to do.
type Error struct {
	Kind    Kind   `json:"kind"`
	Op      string `json:"op"`
	Message string `json:"message"`
}

// Error writes "op: message (kind)".
func (e *Error) Error() string {
	if e.Op == "" {
		return fmt.Sprintf("%s (%s)", e.Message, e.Kind)
	}
	return fmt.Sprintf("%s: %s (%s)", e.Op, e.Message, e.Kind)
}

// Is matches any error of the same kind, as in errors.Is(err, &Error{Kind: NotFound}).
func (e *Error) Is(target error) bool {
	t, ok := target.(*Error)
	return ok && t.Kind == e.Kind && t.Op == "" && t.Message == ""
}

// Errorf makes an error of the given kind. The message must say what is wrong and what to do.
func Errorf(kind Kind, format string, args ...any) *Error {
	return &Error{Kind: kind, Message: fmt.Sprintf(format, args...)}
}

// KindOf returns the kind of err; Internal if it has none.
func KindOf(err error) Kind {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Kind
	}
	return Internal
}

// AsError returns err as an *Error. If the operation is missing, it sets the operation to the argument `op`. If the
// kind is missing, it sets the kind to Internal.
func AsError(op string, err error) *Error {
	e, ok := errors.AsType[*Error](err)
	if !ok {
		return &Error{Kind: Internal, Op: op, Message: err.Error()}
	}
	if e.Op == "" {
		e = &Error{Kind: e.Kind, Op: op, Message: e.Message}
	}
	return e
}
