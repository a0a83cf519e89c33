package clearing

import (
	"reflect"
	"testing"

	"github.com/candor-grid/candor/messages"
)

// TestOutcomesAreOfNoRelease: what is remembered of a refusal, and goes into the
// digests of both banks, is the same in whatever words a release refuses.
func TestOutcomesAreOfNoRelease(t *testing.T) {
	for kind := messages.Internal; kind <= messages.Unproven; kind++ {
		one := ordinary(messages.Errorf(kind, "there is no account %q", "bob")).final()
		other := ordinary(messages.Errorf(kind, "no such account")).final()
		if one.Error.Kind != kind || one.Error.Message == "" || !reflect.DeepEqual(one, other) {
			t.Errorf("%v: %+v and %+v", kind, one.Error, other.Error)
		}
	}
}
