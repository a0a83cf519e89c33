package ledger

import (
	"bytes"
	"encoding/binary"
	"os"
	"testing"
)

// TestTheFormat applies a stored log of random commands of all verbs. The result must have the stored hash and image.
func TestTheFormat(t *testing.T) {
	log, err := os.ReadFile("testdata/format.log")
	if err != nil {
		t.Fatal(err)
	}
	image, err := os.ReadFile("testdata/format.image")
	if err != nil {
		t.Fatal(err)
	}
	l := New()
	for {
		n := binary.BigEndian.Uint32(log)
		if log = log[4:]; n == 0 {
			break
		}
		l.Apply(log[:n])
		log = log[n:]
	}
	if hash := l.Hash(); !bytes.Equal(hash[:], log) {
		t.Error("the log comes to another hash")
	}
	if !bytes.Equal(encodeImage(t, l), image) {
		t.Error("the log comes to another image")
	}
	if again := restore(t, image); again.Hash() != l.Hash() {
		t.Error("the image restores to another ledger than the log")
	}
}
