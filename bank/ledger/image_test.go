package ledger

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"testing"
	"testing/iotest"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/money"
)

// busy returns a ledger that has every kind of entry, on several pages.
func busy(t *testing.T) *bed {
	b := newBed(t)
	b.grant("ada", 1_000_000)
	b.grant("lab", 1_000_000)
	b.join("lab", "ada")
	b.join("lab", "bob")
	for i := range 60 {
		var batch []money.Transfer
		for j := range 250 {
			id := fmt.Sprintf("%d/%d", i, j)
			h := held(id, "ada", 1)
			h.Expires = messages.Time(1000 + (i*j)%97 + 1)
			h.Reason = "a reason that takes some room in the journal, as those of users do"
			batch = append(batch, h, extend(id+"/e", id, h.Expires+5))
			if j%3 == 0 {
				batch = append(batch, post(id+"/c", id, 1))
			}
		}
		b.at += 2
		b.send(batch...)
	}
	b.command(Command{Verb: Member, By: "ops", Member: money.MemberRequest{Account: "lab", Member: "bob", Remove: true}})
	b.send(linked(held("x", "lab", 1), held("y", "lab", 9_000_000))...)
	return b
}

func TestRestoreIsIdentical(t *testing.T) {
	b := busy(t)
	if segments := len(b.records.journal.sealed); segments < 2 {
		t.Fatalf("only %d segments: the test is to cross some", segments)
	}
	image := encodeImage(t, b.Ledger)
	twin := restore(t, image)
	if twin.Hash() != b.Hash() || !bytes.Equal(encodeImage(t, twin), image) || twin.Totals() != b.Totals() {
		t.Fatalf("%+v restored from %+v", twin.Totals(), b.Totals())
	}
	b.at = 1090
	from := len(b.commands)
	b.command(Command{Verb: Expire})
	b.send(held("z", "lab", 5), held("1/1", "ada", 1), post("z/c", "z", 2))
	for _, data := range b.commands[from:] {
		twin.Apply(data)
	}
	if twin.Hash() != b.Hash() {
		t.Fatal("the restored ledger went another way")
	}
	b.balanced()
}

func TestReplicasAreIdentical(t *testing.T) {
	b := busy(t)
	replica := New()
	for _, data := range b.commands {
		replica.Apply(data)
	}
	if replica.Hash() != b.Hash() || !bytes.Equal(encodeImage(t, replica), encodeImage(t, b.Ledger)) {
		t.Fatal("two replicas differ")
	}
}

func TestImageIsUntouched(t *testing.T) {
	b := busy(t)
	before := encodeImage(t, b.Ledger)
	image := b.Capture()
	b.at = 3000
	b.command(Command{Verb: Expire})
	b.send(held("late", "lab", 5))
	b.grant("cyd", 7)
	var after bytes.Buffer
	if _, err := image.WriteTo(&after); err != nil || !bytes.Equal(after.Bytes(), before) {
		t.Fatalf("the image changed: %d bytes, %d before, %v", after.Len(), len(before), err)
	}
	if books := image.Audit(); !books.Balanced {
		t.Fatal(books.Message)
	}
}

// TestImageIsReadWhileLedgerChanges reads an image in one goroutine while another changes the ledger. The race detector
// reports it if the image shares changing memory with the ledger.
func TestImageIsReadWhileLedgerChanges(t *testing.T) {
	b := busy(t)
	image := b.Capture()
	done := make(chan money.BooksReply)
	go func() { done <- image.Audit() }()
	for i := range 50 {
		b.do(held(fmt.Sprint("while ", i), "lab", 1))
	}
	if books := <-done; !books.Balanced {
		t.Fatal(books.Message)
	}
}

func TestHashSeesTimeAndMembers(t *testing.T) {
	b := newBed(t)
	b.grant("lab", 1)
	first := b.Hash()
	b.at++
	b.command(Command{Verb: Expire})
	second := b.Hash()
	b.join("lab", "ada")
	if third := b.Hash(); first == second || second == third {
		t.Fatal("different states have one hash")
	}
}

func TestDamagedImage(t *testing.T) {
	image := smallImage(t)
	l := New()
	empty := l.Hash()
	for i := range image {
		for _, damage := range [][]byte{image[:i], flip(image, i)} {
			if err := l.Restore(bytes.NewReader(damage)); err == nil || l.Hash() != empty {
				t.Fatalf("byte %d of %d: restored %d bytes: %v", i, len(image), len(damage), err)
			}
		}
	}
}

// TestForgedImage changes an image in many ways, and gives each changed image a correct digest. The ledger must refuse
// a changed image, unless it is the image of another correct history.
func TestForgedImage(t *testing.T) {
	image := smallImage(t)
	refused := 0
	for i := range image[:len(image)-sha256.Size] {
		forged, l := resign(flip(image[:len(image)-sha256.Size], i)), New()
		if err := l.Restore(bytes.NewReader(forged)); err != nil {
			refused++
			continue
		}
		books := l.Capture().Audit()
		if !books.Balanced || books.Issued != 10 || books.Held != 2 {
			t.Errorf("byte %d: restored books %+v", i, books)
		}
		if !bytes.Equal(encodeImage(t, l), forged) {
			t.Errorf("byte %d: the restored ledger has another image", i)
		}
	}
	if refused < 100 {
		t.Errorf("only %d of %d changes were refused", refused, len(image))
	}
}

func smallImage(t *testing.T) []byte {
	b := newBed(t)
	b.grant("ada", 10)
	h := held("h", "ada", 5)
	h.Expires = 5000
	b.do(h)
	b.do(post("p", "h", 1))
	b.do(held("h2", "ada", 2))
	return encodeImage(t, b.Ledger)
}

func flip(image []byte, i int) []byte {
	out := bytes.Clone(image)
	if i < len(out) {
		out[i] ^= 1
	}
	return out
}

// resign appends the right digest to a changed body, so that it looks complete.
func resign(body []byte) []byte {
	digest := sha256.Sum256(body)
	return append(bytes.Clone(body), digest[:]...)
}

func TestRestoreReaderFails(t *testing.T) {
	b := busy(t)
	image := encodeImage(t, b.Ledger)
	broken := errors.New("disk on fire")
	err := New().Restore(io.MultiReader(bytes.NewReader(image[:len(image)/2]), iotest.ErrReader(broken)))
	if !errors.Is(err, broken) {
		t.Fatalf("%v", err)
	}
	if err := New().Restore(iotest.OneByteReader(bytes.NewReader(image))); err != nil {
		t.Fatalf("byte by byte: %v", err)
	}
}
