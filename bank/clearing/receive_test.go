package clearing

import (
	"reflect"
	"testing"

	"github.com/candor-grid/candor/messages"
)

// TestOutcomesAreOfNoRelease checks that the outcome of a refusal is the same in every version of the program. This is
// necessary because the outcome is part of the digests of both banks' books.
func TestOutcomesAreOfNoRelease(t *testing.T) {
	for kind := messages.Internal; kind <= messages.Unproven; kind++ {
		one := ordinary(messages.Errorf(kind, "there is no account %q", "bob")).final()
		other := ordinary(messages.Errorf(kind, "no such account")).final()
		if one.Error.Kind != kind || one.Error.Message == "" || !reflect.DeepEqual(one, other) {
			t.Errorf("%v: %+v and %+v", kind, one.Error, other.Error)
		}
	}
}
