package access

import (
	"os"
	"path/filepath"
	"testing"
)

func TestConceals(t *testing.T) {
	for _, test := range []struct {
		dir, hidden string
		want        bool
	}{
		{"/srv/candor", "/srv/candor", true},
		{"/srv/candor/work", "/srv/candor", true},
		{"/srv/candors", "/srv/candor", false},
		{"/srv", "/srv/candor", false}, // tasks see the rest of /srv; only the state is hidden
		{"/", "/tmp/candor", false},
		{"/tmp", "/tmp/candor", true},
		{"/tmp/a", "/tmp/a/b/candor", true},
		{"/tmp/b", "/tmp/a/candor", false},
		{"/var/tmp/", "/var/tmp/candor", true},
	} {
		if got := Conceals(test.dir, test.hidden); got != test.want {
			t.Errorf("%s with %s: %v", test.dir, test.hidden, got)
		}
	}
	at := t.TempDir()
	if err := os.Mkdir(filepath.Join(at, "state"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("state", filepath.Join(at, "link")); err != nil {
		t.Fatal(err)
	}
	if !Conceals(filepath.Join(at, "link"), filepath.Join(at, "state")) {
		t.Error("a link to what is hidden is taken for another directory")
	}
}
