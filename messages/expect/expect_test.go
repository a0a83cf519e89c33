package expect

import (
	"fmt"
	"slices"
	"testing"
)

type recorder struct {
	said  []string
	ended bool
}

func (r *recorder) Helper() {}
func (r *recorder) Errorf(format string, args ...any) {
	r.said = append(r.said, fmt.Sprintf(format, args...))
}
func (r *recorder) FailNow() { r.ended = true }

func TestSame(t *testing.T) {
	r := &recorder{}
	Same(r, "a", uint8(1), 1, "b", "x", "x", "c", true, true, "d", error(nil), nil, "e", (*int)(nil), nil)
	if len(r.said) != 0 || r.ended {
		t.Errorf("equal values fail: %q", r.said)
	}
	Same(r, "a", uint8(1), 2, "b", "x", "x", "c", true, false)
	if want := []string{"a is 1, want 2", "c is true, want false"}; !slices.Equal(r.said, want) || !r.ended {
		t.Errorf("%q, want %q", r.said, want)
	}
}
