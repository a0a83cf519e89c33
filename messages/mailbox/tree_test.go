package mailbox

import (
	"encoding/binary"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hashicorp/raft"
)

// TestCircleOfPagesIsRefused: damage that leads from a page of a bolt file back to
// itself is found before the library follows it without end.
func TestCircleOfPagesIsRefused(t *testing.T) {
	c := newGroup(t, 1, func(c *Config) { c.Store = StoreBolt }).config("r1")
	if err := os.MkdirAll(c.Dir, 0o700); err != nil {
		t.Fatal(err)
	}
	store, err := openStore(&c)
	if err != nil {
		t.Fatal(err)
	}
	for i := range uint64(300) {
		if err := store.StoreLog(&raft.Log{Index: i + 1, Data: make([]byte, 500)}); err != nil {
			t.Fatal(err)
		}
	}
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(c.Dir, boltFile)
	if err := checkTree(path); err != nil {
		t.Fatalf("a whole file: %v", err)
	}
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	circles := 0
	for page := 2 * os.Getpagesize(); page < len(b); page += os.Getpagesize() {
		if binary.LittleEndian.Uint16(b[page+8:]) == treeBranch {
			copy(b[page+treeHeader+8:], b[page:page+8]) // the first element leads to the page itself
			circles++
		}
	}
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := openStore(&c); circles == 0 || err == nil || !strings.Contains(err.Error(), "twice") {
		t.Errorf("with %d circles: %v", circles, err)
	}
}
