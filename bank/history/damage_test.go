package history

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/candor-grid/candor/bank/ledger"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/money"
)

// TestDamagedFiles flips a bit in each byte of a file, zeroes bytes, and cuts the file at each position. A reader of
// the whole file must report the damage. A ledger that starts must give no wrong answer.
func TestDamagedFiles(t *testing.T) {
	files := NewVolatile()
	r := whole(t, files, script(40))
	names, _ := files.List()
	name := names[1]
	original := slices.Clone(files.Content(name))
	right := r.ledger.Hash()
	statement, err := r.ledger.Statement(money.StatementRequest{Account: "ada"})
	if err != nil {
		t.Fatal(err)
	}
	for i := range original {
		flipped := slices.Clone(original)
		flipped[i] ^= 1 << (i % 8)
		zeroed := slices.Clone(original)
		clear(zeroed[i:min(i+64, len(zeroed))])
		for _, damage := range [][]byte{flipped, zeroed, original[:i]} {
			files.Damage(name, damage)
			if _, _, err := Walk(files, func(uint64, []byte) error { return nil }); err == nil || !strings.Contains(err.Error(), name) {
				t.Fatalf("byte %d: all was read: %v", i, err)
			}
			started := &replica{files: files, snapshot: r.snapshot, log: r.log}
			if err := started.start(); err != nil {
				if !strings.Contains(err.Error(), "restore the file from a backup") {
					t.Fatalf("byte %d: the error does not say what to do: %v", i, err)
				}
				continue
			}
			if started.ledger.Hash() != right {
				t.Fatalf("byte %d: another ledger", i)
			}
			answer(t, i, started.ledger, statement)
		}
	}
}

// TestDamagedFileIsFetchedWhenRead damages each file of a running ledger. Reads must return the right data, and repair
// the file.
func TestDamagedFileIsFetchedWhenRead(t *testing.T) {
	files := NewVolatile()
	r := whole(t, files, script(40))
	names, _ := files.List()
	want := map[string][]byte{}
	for _, name := range names {
		want[name] = slices.Clone(files.Content(name))
	}
	fetch := func(sum ledger.Sum) ([]byte, error) { return want[nameOf(sum.First)], nil }
	l := ledger.Open(New(files, segmentBytes, fetch))
	if err := l.Restore(bytes.NewReader(r.snapshot)); err != nil {
		t.Fatal(err)
	}
	h := l.History()
	for _, s := range h.Segments() {
		name := nameOf(s.Sum().First)
		for _, damage := range []func([]byte) []byte{
			func(b []byte) []byte { b[len(magic)+20] ^= 1; return b },
			func(b []byte) []byte { clear(b[len(magic) : len(b)/2]); return b },
			func(b []byte) []byte { clear(b[len(b)-100:]); return b },
			func(b []byte) []byte { return b[:len(b)/2] },
			func([]byte) []byte { return nil },
		} {
			right := make([][]byte, s.Sum().Count)
			for i := range right {
				right[i], _ = s.Record(i)
			}
			files.Damage(name, damage(slices.Clone(want[name])))
			for i := range right {
				if got, err := s.Record(i); err != nil || !bytes.Equal(got, right[i]) {
					t.Fatalf("record %d of %s: %q, %v", i, name, got, err)
				}
			}
			if _, err := s.Segment(); err != nil || !bytes.Equal(files.Content(name), want[name]) {
				t.Fatalf("%s was not fetched: %v", name, err)
			}
		}
	}
}

// answer checks that a ledger on damaged files returns a right statement or an error.
func answer(t *testing.T, i int, l *ledger.Ledger, want money.StatementReply) {
	t.Helper()
	got, err := l.Statement(money.StatementRequest{Account: "ada"})
	switch {
	case err != nil:
		if messages.KindOf(err) != messages.Internal {
			t.Fatalf("byte %d: %v", i, err)
		}
	case !slices.Equal(got.Entries, want.Entries):
		t.Fatalf("byte %d: a wrong statement", i)
	}
	if books := l.Capture().Audit(); books.Balanced {
		t.Fatalf("byte %d: the audit saw nothing", i)
	}
}

func TestMissingFile(t *testing.T) {
	files := NewVolatile()
	r := whole(t, files, script(40))
	names, _ := files.List()
	files.Damage(names[1], nil)
	err := (&replica{files: files, snapshot: r.snapshot}).start()
	if err == nil || !strings.Contains(err.Error(), names[1]+" is missing") || !strings.Contains(err.Error(), "start the replica while other replicas run") {
		t.Fatalf("%v", err)
	}
	if _, _, err := Walk(files, func(uint64, []byte) error { return nil }); err == nil || !strings.Contains(err.Error(), "no file has records") {
		t.Fatalf("%v", err)
	}
}

// TestDirectory uses real files. The directory alone must be enough to verify all records and to restore a ledger.
func TestDirectory(t *testing.T) {
	files, err := Directory(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	r := whole(t, files, script(60))
	image := r.ledger.Capture()
	store := New(files, segmentBytes, nil)
	if err := store.SaveTail(image.Tail()); err != nil {
		t.Fatal(err)
	}
	v := ledger.NewVerifier(New(NewVolatile(), segmentBytes, nil))
	count, head, err := Walk(files, func(_ uint64, record []byte) error { return v.Add(record) })
	if err == nil {
		err = v.End()
	}
	if err != nil || count != image.Records() || head != image.Head() || v.Head() != head || !v.Totals().Balanced {
		t.Fatalf("%d records of %d, %v, %+v", count, image.Records(), err, v.Totals())
	}
	fresh := ledger.Open(store)
	if err := fresh.Restore(bytes.NewReader(r.snapshot)); err != nil {
		t.Fatal(err)
	}
	for _, command := range r.log {
		fresh.Apply(command)
	}
	if fresh.Hash() != r.ledger.Hash() {
		t.Fatal("restored to another ledger")
	}
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := Existing(t.TempDir() + "/none"); err == nil {
		t.Fatal("a directory that is not there is opened")
	}
}
