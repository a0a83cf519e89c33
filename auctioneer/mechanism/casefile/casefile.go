// Package casefile reads the JSON documents of `candor solve` strictly. A document of another form is refused with a
// *messages.Error of kind Invalid. The error names the place, like jobs[3].budget, and says what to do. No missing
// value is guessed, and no part is ignored.
//
// The expected shape is a Go value: structs with `json:"key"` tags, slices, pointers, float64, the integer kinds,
// string and bool. A key is required unless its tag says omitempty. Only pointers and slices accept null. Keys must
// match exactly, including letter case. The keys of an embedded struct count as keys of the outer struct.
package casefile

import (
	"cmp"
	"fmt"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/wire"
)

// Read reads one JSON document. It refuses unknown, repeated and missing keys, numbers that are not finite or too large
// for their type, and anything after the document.
func Read[T any](data []byte) (v T, err error) {
	err = wire.ReadDocument(data, &v)
	return v, err
}

// Invalid returns an error about a place in a document. The message must say what is wrong there and what to
// do.
func Invalid(path, format string, args ...any) error {
	return messages.Errorf(messages.Invalid, "%s: %s", cmp.Or(path, "document"), fmt.Sprintf(format, args...))
}

// Or returns the value of an optional key. The argument `given` points to this value. If the key was left out, `given`
// is nil, and Or returns its second argument.
func Or[T any](given *T, otherwise T) T {
	if given == nil {
		return otherwise
	}
	return *given
}
