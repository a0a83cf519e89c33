package mailbox

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/hashicorp/raft-wal/fs"
	"github.com/hashicorp/raft-wal/types"
)

// TestZerosAhead: what is written is followed by zeros, also where an earlier write broke off;
// what was written before stays, and the file keeps its size.
func TestZerosAhead(t *testing.T) {
	const size = 1 << 20
	dir := t.TempDir()
	files := aheadFS{fs.New()}
	write := func(f types.WritableFile, text string, at int64) {
		t.Helper()
		if n, err := f.WriteAt([]byte(text), at); n != len(text) || err != nil {
			t.Fatal(n, err)
		}
		if err := f.Sync(); err != nil {
			t.Fatal(err)
		}
	}
	expect := func(want []byte) {
		t.Helper()
		if is, err := os.ReadFile(filepath.Join(dir, "f")); err != nil || !bytes.Equal(is, want) {
			t.Fatalf("%d bytes are other than they should be, %v", len(is), err)
		}
	}
	f, err := files.Create(dir, "f", size)
	if err != nil {
		t.Fatal(err)
	}
	want := make([]byte, size)
	write(f, "first", 0)
	write(f, "second", 5)
	copy(want, "firstsecond")
	expect(want)
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	broken := bytes.Repeat([]byte{255}, size-11)
	if err := os.WriteFile(filepath.Join(dir, "f"), append(want[:11:11], broken...), 0o600); err != nil {
		t.Fatal(err)
	}
	copy(want[11:], broken)
	if f, err = files.OpenWriter(dir, "f"); err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	write(f, "third", 11)
	copy(want[11:], "third")
	clear(want[16:][:zerosAhead])
	expect(want)
	write(f, "fourth", 16)
	copy(want[16:], "fourth")
	expect(want)
	write(f, "last", size-10)
	copy(want[size-10:], "last\x00\x00\x00\x00\x00\x00")
	expect(want)
	write(f, "beyond", size)
	expect(append(want, "beyond"...))
}

// BenchmarkSync writes 4 KiB and syncs, into room that is reserved and into room that has zeros.
func BenchmarkSync(b *testing.B) {
	for name, files := range map[string]types.VFS{"reserved": fs.New(), "zeros": aheadFS{fs.New()}} {
		b.Run(name, func(b *testing.B) {
			f, err := files.Create(b.TempDir(), "f", 256<<20)
			if err != nil {
				b.Fatal(err)
			}
			defer f.Close()
			block := bytes.Repeat([]byte{1}, 4<<10)
			for at := int64(0); b.Loop(); at = (at + int64(len(block))) % (256 << 20) {
				if _, err := f.WriteAt(block, at); err != nil {
					b.Fatal(err)
				}
				if err := f.Sync(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
