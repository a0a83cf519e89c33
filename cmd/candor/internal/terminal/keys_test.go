package terminal

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

func TestKeysAreReadWhole(t *testing.T) {
	for _, c := range []struct {
		pieces []string
		want   []Key
	}{
		{[]string{"q"}, []Key{'q'}},
		{[]string{"\x1b[A", "\x1bOB"}, []Key{Up, Down}},
		{[]string{"\x1b", "[", "5", "~j"}, []Key{PageUp, 'j'}},
		{[]string{"\x1b[1;5A", "\x1b[200~x"}, []Key{'x'}}, // an unknown sequence
		{[]string{"\x1bx"}, nil},                          // Alt-x
		{[]string{"\x1b"}, []Key{Escape}},
		{[]string{"\x1b\x1b"}, []Key{Escape, Escape}},
		{[]string{"\x1b["}, nil},
	} {
		var k Keys
		var got []Key
		for _, piece := range c.pieces {
			got = append(got, k.Feed([]byte(piece))...)
		}
		got = append(got, k.Flush()...)
		if !slices.Equal(got, c.want) || k.Waiting() {
			t.Errorf("%q: got %v, want %v", c.pieces, got, c.want)
		}
	}
}

// The same bytes in different pieces must give the same keys. An unfinished sequence must not grow without limit.
func TestKeysDoNotDependOnPieces(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		input := rapid.SliceOf(rapid.SampledFrom([]byte("\x1b[O15~;ABqé\x00\xff"))).Draw(t, "input")
		var whole, apart Keys
		want := whole.Feed(input)
		var got []Key
		for _, b := range input {
			got = append(got, apart.Feed([]byte{b})...)
			if len(apart.open) > longest {
				t.Fatalf("%d bytes are open", len(apart.open))
			}
		}
		if !slices.Equal(got, want) || !slices.Equal(apart.Flush(), whole.Flush()) {
			t.Fatalf("%q: %v in pieces, %v at once", input, got, want)
		}
	})
}
