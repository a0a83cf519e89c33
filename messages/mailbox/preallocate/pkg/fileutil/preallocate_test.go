package fileutil

import (
	"os"
	"path/filepath"
	"testing"
)

// Preallocate must make a file larger only if `extend` is true. It must never make a file smaller, and must keep its
// content.
func TestPreallocate(t *testing.T) {
	f, err := os.Create(filepath.Join(t.TempDir(), "f"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteString("content"); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		size   int64
		extend bool
		want   int64
	}{{1 << 16, false, 7}, {0, true, 7}, {4, true, 7}, {1 << 16, true, 1 << 16}, {1 << 10, true, 1 << 16}} {
		if err := Preallocate(f, c.size, c.extend); err != nil {
			t.Fatal(err)
		}
		if info, err := f.Stat(); err != nil || info.Size() != c.want {
			t.Errorf("%+v: the size is %d, %v", c, info.Size(), err)
		}
	}
	text := make([]byte, 7)
	if _, err := f.ReadAt(text, 0); err != nil || string(text) != "content" {
		t.Errorf("the content is %q, %v", text, err)
	}
}
