package spelling_test

import (
	"testing"

	"github.com/candor-grid/candor/messages/spelling"
)

func TestNearest(t *testing.T) {
	known := []string{"proportional", "map", "reduce", "alice"}
	for word, want := range map[string]string{
		"proportionel": "proportional", "mpa": "map", "redcue": "reduce", "alcie": "alice", "gpu": "", "": "", "x": "",
	} {
		if got := spelling.Nearest(word, known); got != want {
			t.Errorf("Nearest(%q) = %q, want %q", word, got, want)
		}
	}
}
