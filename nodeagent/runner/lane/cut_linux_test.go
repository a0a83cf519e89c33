package lane

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// A reader first looks for the holes in an output, and then reads the output. The test cuts the output between these
// two steps. The reader must be told of the loss.
func TestFirstCutWhileOutputIsRead(t *testing.T) {
	const block, size = 16 << 10, 64 << 10
	file, err := os.Create(filepath.Join(t.TempDir(), "out"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if _, err := file.Write(bytes.Repeat([]byte("x"), size)); err != nil {
		t.Fatal(err)
	}
	if err := unix.Fallocate(int(file.Fd()), unix.FALLOC_FL_PUNCH_HOLE|unix.FALLOC_FL_KEEP_SIZE, block, block); err != nil {
		t.Skip("the file system makes no holes: ", err)
	}
	var read, missing int64
	for from := int64(0); from < size; {
		r, err := readKept(file, from, size, size, false)
		if err != nil {
			t.Fatal(err)
		}
		if bytes.IndexByte(r.Data, 0) >= 0 {
			t.Fatalf("zeros are read from %d on", from)
		}
		read, missing, from = read+int64(len(r.Data)), missing+r.Missing, r.Next
	}
	if missing != block || read != size-block {
		t.Errorf("read %d bytes, and %d are missing", read, missing)
	}
}
