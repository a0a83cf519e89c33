package nodeagent

import (
	"os"
	"strings"
	"testing"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/job"
	"github.com/candor-grid/candor/nodeagent/runner/store"
)

// TestAWrongSizeDropsNoFile asks for a kept file by its digest with a wrong size. The file must stay.
func TestAWrongSizeDropsNoFile(t *testing.T) {
	in := openInputs(t.TempDir())
	f := job.File{Name: "x", Digest: strings.Repeat("a", 64), Size: 4}
	fetches := 0
	fetch := func(to *os.File) error {
		fetches++
		_, err := to.WriteString("good")
		return err
	}
	good, err := in.acquire(t.Context(), f, fetch)
	if err != nil {
		t.Fatal(err)
	}
	wrong := f
	wrong.Size = 5
	if _, err := in.acquire(t.Context(), wrong, fetch); messages.KindOf(err) != messages.Invalid {
		t.Errorf("a wrong size: %v", err)
	}
	in.release([]*input{good})
	if again, err := in.acquire(t.Context(), f, fetch); err != nil || again != good {
		t.Errorf("the input that is there: %+v, %v", again, err)
	}
	if fetches != 1 || in.bytes != 4 {
		t.Errorf("fetched %d times, %d bytes are counted", fetches, in.bytes)
	}
	if _, err := os.Stat(store.InputFile(in.dir, f.Digest)); err != nil {
		t.Error(err)
	}
}

// TestACutFileIsFetchedAnew shortens a kept file while no agent runs. The file must be fetched again for the next task.
func TestACutFileIsFetchedAnew(t *testing.T) {
	dir := t.TempDir()
	f := job.File{Name: "x", Digest: strings.Repeat("a", 64), Size: 4}
	path := store.InputFile(dir, f.Digest)
	if err := os.MkdirAll(store.InputsDir(dir), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte("go"), 0o600); err != nil {
		t.Fatal(err)
	}
	in := openInputs(dir)
	_, err := in.acquire(t.Context(), f, func(to *os.File) error {
		_, err := to.WriteString("good")
		return err
	})
	if text, _ := os.ReadFile(path); err != nil || string(text) != "good" || in.bytes != 4 {
		t.Errorf("%v: the file has %q, and %d bytes are counted", err, text, in.bytes)
	}
}
