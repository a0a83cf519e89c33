package lease

import (
	"math"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/candor-grid/candor/messages"
)

// TestAlive checks that an attempt is alive as long as its file names it and the lease has not ended.
func TestAlive(t *testing.T) {
	path := filepath.Join(t.TempDir(), "alive")
	attempt := func(n uint32) messages.Attempt {
		return messages.Attempt{Task: messages.TaskRef{Job: math.MaxUint64, Stage: math.MaxUint32, Index: 3}, Number: n}
	}
	asks := func(a messages.Attempt, now, yet time.Duration, want messages.Kind) {
		t.Helper()
		switch err := Alive(Value(path, a), now, yet); {
		case want == 0 && err != nil, want != 0 && messages.KindOf(err) != want, want != 0 && err == nil:
			t.Errorf("attempt %d at %v, for %v: %v, want the kind %v", a.Number, now, yet, err, want)
		}
	}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	asks(attempt(1), 0, 0, messages.Unavailable) // there is no file yet
	file, err := os.Create(path)
	must(err)
	defer file.Close()
	asks(attempt(1), 0, 0, messages.Unavailable) // the file is empty
	must(Tell(file, attempt(2), 100*time.Second))
	asks(attempt(1), 90*time.Second, 0, messages.Fenced)  // this attempt has ended
	asks(attempt(22), 90*time.Second, 0, messages.Fenced) // there was never such an attempt
	asks(attempt(2), 90*time.Second, 0, 0)
	asks(attempt(2), 90*time.Second, 11*time.Second, messages.Fenced)
	asks(attempt(2), 100*time.Second, 0, messages.Fenced) // nobody renewed the lease
	must(Tell(file, attempt(2), math.MaxInt64))
	asks(attempt(2), 100*time.Second, 0, 0)
	must(Blank(file))
	asks(attempt(2), 0, 0, messages.Fenced) // this attempt was stopped
	if err := Alive("", 0, 0); messages.KindOf(err) != messages.Unavailable {
		t.Errorf("outside a task: %v", err)
	}
	must(Tell(file, attempt(2), 100*time.Second))
	_, err = file.WriteAt([]byte("9"), 80) // makes the file a mix of two writes
	must(err)
	asks(attempt(2), 0, 0, messages.Unavailable)
}
