package recent

import (
	"fmt"
	"testing"
)

// The key that was not touched for the longest time must be removed, and visits must be in the order of touching.
func TestForgetsTheLongestUntouched(t *testing.T) {
	m, made := New[string, *int](2), 0
	touch := func(k string) *int { return m.Touch(k, func() *int { made++; return new(int) }) }
	*touch("a") = 1
	*touch("b") = 2
	if *touch("a") != 1 {
		t.Error("a was made anew")
	}
	*touch("c") = 3
	if _, ok := m.Get("b"); ok || m.Len() != 2 || made != 3 {
		t.Errorf("b is still there, or something was made twice: %d keys, %d made", m.Len(), made)
	}
	if _, ok := m.Get("a"); !ok {
		t.Error("a is gone")
	}
	order := ""
	m.OldestFirst(func(k string, v *int) { order += fmt.Sprint(k, *v, " ") })
	if order != "a1 c3 " {
		t.Errorf("visited %q", order)
	}
}
