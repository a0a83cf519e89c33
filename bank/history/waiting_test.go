package history

import (
	"bytes"
	"errors"
	"syscall"
	"testing"

	"github.com/candor-grid/candor/messages/money"
)

type crammed struct {
	Files
	full bool
}

func (c *crammed) Write(name string, parts ...[]byte) error {
	if c.full {
		return syscall.ENOSPC
	}
	return c.Files.Write(name, parts...)
}

// TestFullDiskStopsNoBooks: if the disk has no room for a segment, the segment must stay readable in memory. No
// snapshot may be written before the segment is on the disk.
func TestFullDiskStopsNoBooks(t *testing.T) {
	directory, err := Directory(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	files := directory.(*waiting)
	disk := &crammed{files.Files, true}
	files.Files = disk
	r := &replica{files: files}
	if err := r.start(); err != nil {
		t.Fatal(err)
	}
	commands := script(40)
	for _, c := range commands {
		r.ledger.Apply(c)
	}
	if err := r.ledger.Err(); err != nil {
		t.Fatalf("a full disk stops the books: %v", err)
	}
	if _, err := r.ledger.Statement(money.StatementRequest{Account: "ada"}); err != nil {
		t.Errorf("a statement while segments wait: %v", err)
	}
	if err := r.cut(); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("a snapshot while segments wait: %v", err)
	}
	disk.full = false
	if err := r.cut(); err != nil {
		t.Fatal(err)
	}
	if len(files.content) != 0 {
		t.Errorf("%d segments still wait", len(files.content))
	}
	again := &replica{files: files, snapshot: bytes.Clone(r.snapshot)}
	if err := again.start(); err != nil {
		t.Fatal(err)
	}
	if again.ledger.Hash() != r.ledger.Hash() {
		t.Error("a replica that starts again has other books")
	}
}
