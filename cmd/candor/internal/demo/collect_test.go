package demo

import (
	"os"
	"path/filepath"
	"testing"
)

func TestCollect(t *testing.T) {
	for _, c := range []struct {
		name  string
		files map[string]string
		want  string // empty means an error is expected
	}{
		{"one part", map[string]string{"result-0": "a b\n2 x\n1 y\n"}, "a b\n1 y\n2 x\n"},
		{"parts are merged by number", map[string]string{"result-0": "k\n2\n10\n", "result-1": "1\n3\n"}, "k\n1\n2\n3\n10\n"},
		{"rows without a number last, in their order", map[string]string{"result-0": "k\nz 1\n5\na 2\n"}, "k\n5\nz 1\na 2\n"},
		{"a whole result wins", map[string]string{"result": "w\n", "result-0": "p\n"}, "w\n"},
		{"an empty part", map[string]string{"result-0": ""}, ""},
		{"nothing", nil, ""},
		{"a missing first part", map[string]string{"result-1": "1\n"}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			out := t.TempDir()
			for name, text := range c.files {
				if err := os.WriteFile(filepath.Join(out, name), []byte(text), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			got, err := collect(out)
			_, first := c.files["result-0"]
			_, whole := c.files["result"]
			if (err == nil) != (first || whole) || got != c.want {
				t.Errorf("collected %q, error %v, want %q", got, err, c.want)
			}
		})
	}
}

func TestFirstDifference(t *testing.T) {
	for _, c := range []struct{ got, want, says string }{
		{"a\nb\n", "a\nb\n", ""},
		{"a\nb\n", "a\nc\n", `line 2 is "b", the known answer has "c"`},
		{"a\n", "a\nc\n", `line 2 is "", the known answer has "c"`},
		{"", "a", `line 1 is "", the known answer has "a"`},
		{"a", "a\n", `line 2 is "(nothing)", the known answer has ""`},
	} {
		if says := firstDifference(c.got, c.want); says != c.says {
			t.Errorf("of %q and %q it says %q, want %q", c.got, c.want, says, c.says)
		}
	}
}
