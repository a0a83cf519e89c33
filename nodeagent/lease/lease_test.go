package lease

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/candor-grid/candor/messages"
)

// An attempt is alive as long as the lease lasts and nobody told it to stop.
func TestAlive(t *testing.T) {
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Dir(File(dir)), 0o700); err != nil {
		t.Fatal(err)
	}
	attempt := func(n uint32) messages.Attempt {
		return messages.Attempt{Task: messages.TaskRef{Job: 7, Index: 3}, Number: n}
	}
	asks := func(a messages.Attempt, now, yet time.Duration, want messages.Kind) {
		t.Helper()
		switch err := Alive(Value(dir, a), now, yet); {
		case want == 0 && err != nil, want != 0 && messages.KindOf(err) != want, want != 0 && err == nil:
			t.Errorf("attempt %d at %v, for %v: %v, want the kind %v", a.Number, now, yet, err, want)
		}
	}
	asks(attempt(1), 0, 0, messages.Unavailable) // no agent has written
	if err := Write(File(dir), 100*time.Second, []messages.Attempt{attempt(1)}); err != nil {
		t.Fatal(err)
	}
	asks(attempt(1), 90*time.Second, 0, messages.Fenced) // was told to stop
	asks(attempt(2), 90*time.Second, 0, 0)
	asks(attempt(11), 90*time.Second, 0, 0) // of another number that begins alike
	asks(attempt(2), 90*time.Second, 11*time.Second, messages.Fenced)
	asks(attempt(2), 100*time.Second, 0, messages.Fenced) // nobody renewed the lease
	if err := Write(File(dir), 0, nil); err != nil {
		t.Fatal(err)
	}
	asks(attempt(2), 0, 0, messages.Fenced) // lost
	if err := Alive("", 0, 0); messages.KindOf(err) != messages.Unavailable {
		t.Errorf("outside a task: %v", err)
	}
	if err := os.WriteFile(File(dir), []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	asks(attempt(2), 0, 0, messages.Unavailable)
}
