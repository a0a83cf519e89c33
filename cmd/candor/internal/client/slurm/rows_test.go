package slurm

import (
	"math"
	"slices"
	"testing"
)

// TestIndicesEnd: an index at the top of its type does not make the reading endless, and a list
// names no more elements than a command may.
func TestIndicesEnd(t *testing.T) {
	got, err := indicesOf("1-3,9223372036854775806-9223372036854775807")
	if err != nil || !slices.Equal(got, []int64{1, 2, 3, math.MaxInt64 - 1, math.MaxInt64}) {
		t.Errorf("%v, %v", got, err)
	}
	for _, text := range []string{"", "x", "3-1", "0-100000", "1-60000,1-60000", "0-9223372036854775807"} {
		if got, err := indicesOf(text); err == nil {
			t.Errorf("%q: %d indices", text, len(got))
		}
	}
}
