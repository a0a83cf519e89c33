package messages

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Kind says what sort of error a reply carries. The list is append-only: a
// kind keeps its number and its name for ever.
type Kind uint8

// The kinds of error.
const (
	Internal         Kind = iota // a defect, or a failure that names no other kind
	Invalid                      // the request is malformed or breaks a stated rule
	TooLarge                     // a count, size or amount is above a limit
	NotFound                     // what the request names does not exist
	PermissionDenied             // the account may not do this
	Insufficient                 // the account cannot cover the amount
	Conflict                     // the identifier was used before with other content
	NotLeader                    // this replica cannot answer; ask again
	Unavailable                  // a part that is needed does not answer; ask again
	Unknown                      // the outcome is not known; ask again with the same key
	Fenced                       // the sender was replaced: a later term, session or attempt exists
	Exhausted                    // a limit of the site is reached: space, rate, jobs
	Expired                      // a hold, quote or deadline has passed
	Ended                        // the job has ended already
	Unproven                     // who asks is not proven, or not any more: sign the request again
)

var kindNames = [...]string{"Internal", "Invalid", "TooLarge", "NotFound", "PermissionDenied", "Insufficient",
	"Conflict", "NotLeader", "Unavailable", "Unknown", "Fenced", "Exhausted", "Expired", "Ended", "Unproven"}

// Kinds are all kinds of error.
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

// UnmarshalText reads a kind's name; a name from a newer version is Internal.
func (k *Kind) UnmarshalText(b []byte) error {
	*k = Kind(max(int(Internal), slices.Index(kindNames[:], string(b))))
	return nil
}

// Retriable says whether the same request, with the same key, may be sent
// again with hope of another answer.
func (k Kind) Retriable() bool { return k == NotLeader || k == Unavailable || k == Unknown }

// Passing says whether an error may be another the next time, so that nothing is
// decided by it. An actor that cannot tell who asks can do so after a rotation of keys.
func Passing(err error) bool {
	kind := KindOf(err)
	return err != nil && (kind.Retriable() || kind == Unproven)
}

// Waits says whether what was refused with an error is to be asked for again later: the
// error passes, or there is no room now, which says nothing of what was done before.
func Waits(err error) bool { return Passing(err) || KindOf(err) == Exhausted }

// Detail is the sentence of an error, without its kind.
func Detail(err error) string { return AsError("", err).Message }

// Clip shortens a text to at most so many bytes.
func Clip(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "")
}

// Short keeps text that a stranger sent short enough to repeat in an error: at most so many
// bytes of it, and … where there are more.
func Short(text string, most int) string {
	if len(text) > most {
		return text[:most] + "…"
	}
	return text
}

// Error is an error as it crosses the wire: what sort, what was being done,
// and a sentence that tells the user what is wrong and what to do.
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

// Is matches any error of the same kind, so that errors.Is(err, &Error{Kind: NotFound}) works.
func (e *Error) Is(target error) bool {
	t, ok := target.(*Error)
	return ok && t.Kind == e.Kind && t.Op == "" && t.Message == ""
}

// Errorf makes an error of a kind; the message says what is wrong and what to do.
func Errorf(kind Kind, format string, args ...any) *Error {
	return &Error{Kind: kind, Message: fmt.Sprintf(format, args...)}
}

// KindOf returns the kind of err, Internal if it has none.
func KindOf(err error) Kind {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Kind
	}
	return Internal
}

// AsError returns err as an *Error with its operation set to op where it had
// none; an error of no kind becomes Internal.
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
