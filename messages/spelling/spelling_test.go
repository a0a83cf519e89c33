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

func TestList(t *testing.T) {
	if one, none := spelling.List([]string{"east", "north"}), spelling.List(nil); one != "east, north" || none != "none" {
		t.Errorf("%q, %q", one, none)
	}
}

func TestNumber(t *testing.T) {
	for n, want := range map[int]string{0: "0 jobs wait", 1: "1 job waits", 12: "12 jobs wait", 123: "123 jobs wait", 1200: "1,200 jobs wait", 1234567: "1,234,567 jobs wait"} {
		if got := spelling.Number(n, "job waits", "jobs wait"); got != want {
			t.Errorf("%d: %q, want %q", n, got, want)
		}
	}
}
