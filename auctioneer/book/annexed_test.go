package book

import (
	"bytes"
	"os"
	"testing"

	"github.com/vmihailenco/msgpack/v5"
)

// TestImageWithAnnex: an image that an earlier version wrote, with an annex, is the
// state that the same commands make now.
func TestImageWithAnnex(t *testing.T) {
	retaining(t, 4)
	image, err := os.ReadFile("testdata/annexed.image")
	if err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile("testdata/annexed.log")
	if err != nil {
		t.Fatal(err)
	}
	var log [][]byte
	if err := msgpack.Unmarshal(data, &log); err != nil {
		t.Fatal(err)
	}
	restored, replayed := New(), New()
	if err := restored.Restore(bytes.NewReader(image)); err != nil {
		t.Fatal(err)
	}
	for _, data := range log {
		apply(replayed, data)
	}
	if restored.Hash() != replayed.Hash() {
		t.Error("the image is another state than its commands make")
	}
	if !bytes.Equal(imageOf(replayed), image) {
		t.Error("bytes")
	}
	for _, b := range []*Book{restored, replayed} {
		if err := sound(b); err != nil {
			t.Error(err)
		}
	}
}
