package book

import (
	"bytes"
	"os"
	"testing"

	"github.com/vmihailenco/msgpack/v5"
)

// TestVersion1: an image that an earlier version wrote, with an annex, is the
// state that the same commands make now.
func TestVersion1(t *testing.T) {
	retaining(t, 4)
	image, err := os.ReadFile("testdata/version1.image")
	if err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile("testdata/version1.log")
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
	for _, b := range []*Book{restored, replayed} {
		if err := sound(b); err != nil {
			t.Error(err)
		}
	}
}

// TestVersion1WithoutAnnex: the first images had neither an annex nor a supplement.
// An image that is cut elsewhere is refused, and leaves the book as it was.
func TestVersion1WithoutAnnex(t *testing.T) {
	image, err := os.ReadFile("testdata/version1.image")
	if err != nil {
		t.Fatal(err)
	}
	left := bytes.NewReader(image)
	dec := msgpack.NewDecoder(left)
	for range 2 {
		if err := dec.Skip(); err != nil {
			t.Fatal(err)
		}
		at := len(image) - left.Len()
		b := New()
		if err := b.Restore(bytes.NewReader(image[:at])); err != nil || b.LastJob() == 0 {
			t.Errorf("cut at %d: %v, last job %d", at, err, b.LastJob())
		}
		if err := b.Restore(bytes.NewReader(image[:at-9])); err == nil || b.LastJob() == 0 {
			t.Errorf("cut at %d: %v, last job %d", at-9, err, b.LastJob())
		}
	}
}

// TestImageThatIsCutIsRefused, wherever it is cut, and so is one of a later version.
func TestImageThatIsCutIsRefused(t *testing.T) {
	s := newSite(t)
	s.submit("k", mapStage(2))
	s.register("n1", 7, 1)
	s.claim("n1", 7, 1, 1, 1)
	image := imageOf(s.Book)
	for n := range image {
		b := New()
		if err := b.Restore(bytes.NewReader(image[:n])); err == nil {
			t.Fatalf("the first %d of %d bytes are taken for an image", n, len(image))
		}
	}
	if err := New().Restore(bytes.NewReader(append([]byte{imageVersion + 1}, image[1:]...))); err == nil {
		t.Error("an image of a later version is read")
	}
}

// TestImageOfALargeJob: its tasks are in several records.
func TestImageOfALargeJob(t *testing.T) {
	s := newSite(t)
	s.submit("k", mapStage(1))
	j := s.own(1)
	j.Stages[0].Total = 3*mostTasks + 1
	for i := range j.Stages[0].Total {
		j.Stages[0].Tasks = append(j.Stages[0].Tasks, Task{Attempt: uint32(i), Phase: Pending})
		j.Stages[0].Again = append(j.Stages[0].Again, uint32(i))
	}
	other := New()
	copyInto(t, s.Book, other)
	if other.Hash() != s.Hash() || len(other.Job(1).Stages[0].Again) != j.Stages[0].Total {
		t.Error("a large job is another one once restored")
	}
}
