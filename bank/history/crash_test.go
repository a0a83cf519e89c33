package history

import (
	"bytes"
	"strings"
	"testing"

	"github.com/candor-grid/candor/bank/ledger"
	"github.com/candor-grid/candor/messages"
)

// TestPowerLossAtEveryOperation runs the same commands once for each file operation, and loses power at this operation.
// Data that were not synced are lost, torn or kept. The replica must end with the same bytes as a replica that never
// lost power.
func TestPowerLossAtEveryOperation(t *testing.T) {
	commands := script(130)
	reference := NewVolatile()
	want := whole(t, reference, commands)
	if reference.Operations() < 60 {
		t.Fatalf("only %d operations: the script is to fill some segments", reference.Operations())
	}
	for operation := 1; operation <= reference.Operations(); operation++ {
		for _, fate := range []Fate{Lost, Torn, Kept} {
			files := NewVolatile()
			r := failing(files, files, operation, commands)
			files.Restart(fate)
			if err := r.start(); err != nil {
				t.Fatalf("operation %d, fate %d: after %d commands: %v", operation, fate, r.done, err)
			}
			if err := r.run(commands); err != nil {
				t.Fatalf("operation %d, fate %d: %v", operation, fate, err)
			}
			same(t, r, want)
		}
	}
}

func failing(files Files, power *Volatile, operation int, commands [][]byte) *replica {
	power.FailAt(operation)
	r := &replica{files: files}
	if err := r.start(); err == nil {
		_ = r.run(commands) // the error is the power loss, or follows from it
	}
	return r
}

func same(t *testing.T, r, want *replica) {
	t.Helper()
	if r.ledger.Hash() != want.ledger.Hash() || r.ledger.Totals() != want.ledger.Totals() {
		t.Fatalf("%+v, want %+v", r.ledger.Totals(), want.ledger.Totals())
	}
	if books := r.ledger.Capture().Audit(); !books.Balanced {
		t.Fatal(books.Message)
	}
	names, _ := want.files.List()
	for _, name := range names {
		if !bytes.Equal(contentOf(r.files, name), contentOf(want.files, name)) {
			t.Fatalf("file %s differs from that of a replica that never failed", name)
		}
	}
}

func contentOf(files Files, name string) []byte { return files.(*Volatile).Content(name) }

// careless is a fault that tests insert: it skips operations that make files durable. The tests must find the fault.
type careless struct {
	*Volatile
	sync, commit bool // skip this operation
}

func (c careless) Sync(name string) error {
	if c.sync {
		return nil
	}
	return c.Volatile.Sync(name)
}

func (c careless) Commit() error {
	if c.commit {
		return nil
	}
	return c.Volatile.Commit()
}

// TestSkippedSyncIsCaught inserts a bug: a snapshot is written although the files that it depends on were not synced.
// After some power losses, the replica must find this and refuse to start.
func TestSkippedSyncIsCaught(t *testing.T) {
	commands := script(60)
	for _, bug := range []careless{{sync: true}, {commit: true}} {
		caught := 0
		for operation := 1; operation < 40; operation++ {
			bug.Volatile = NewVolatile()
			r := failing(bug, bug.Volatile, operation, commands)
			bug.Restart(Lost)
			if err := r.start(); err != nil {
				caught++
				if !strings.Contains(err.Error(), "restore the file from a backup") {
					t.Fatalf("the error does not say what to do: %v", err)
				}
			}
		}
		if caught == 0 {
			t.Errorf("sync skipped %v, commit skipped %v: not caught", bug.sync, bug.commit)
		}
	}
}

// TestReplicasHaveTheSameFiles checks that all replicas have the same files. One of the replicas got its history from
// another replica.
func TestReplicasHaveTheSameFiles(t *testing.T) {
	commands := script(60)
	first, second := whole(t, NewVolatile(), commands), whole(t, NewVolatile(), commands)
	same(t, second, first)

	fetched := 0
	late := NewVolatile()
	store := New(late, segmentBytes, func(s ledger.Sum) ([]byte, error) {
		fetched++
		b, _, err := Part(first.files, s.First, 0, 1<<20)
		return b, err
	})
	l := ledger.Open(store)
	if err := l.Restore(bytes.NewReader(first.snapshot)); err != nil {
		t.Fatal(err)
	}
	if fetched == 0 {
		t.Fatal("nothing was fetched")
	}
	late.Restart(Lost) // fetched files are durable at once
	third := &replica{files: late, snapshot: first.snapshot, log: first.log}
	if err := third.start(); err != nil {
		t.Fatal(err)
	}
	same(t, third, first)
}

func TestDamagedFileIsFetchedAnew(t *testing.T) {
	r := whole(t, NewVolatile(), script(60))
	names, _ := r.files.List()
	intact := bytes.Clone(contentOf(r.files, names[1]))
	flipped := bytes.Clone(intact)
	flipped[len(intact)-trailerLen-3] ^= 1 // change one byte in the file's table
	for _, damage := range [][]byte{{}, intact[:len(intact)/2], flipped} {
		r.files.(*Volatile).Damage(names[1], damage)
		l := ledger.Open(New(r.files, segmentBytes, func(ledger.Sum) ([]byte, error) { return intact, nil }))
		if err := l.Restore(bytes.NewReader(r.snapshot)); err != nil {
			t.Errorf("%d bytes: %v", len(damage), err)
		}
		if !bytes.Equal(contentOf(r.files, names[1]), intact) {
			t.Errorf("%d bytes: the file is still damaged", len(damage))
		}
	}
}

func TestFetchIsChecked(t *testing.T) {
	r := whole(t, NewVolatile(), script(60))
	for name, fetch := range map[string]func(ledger.Sum) ([]byte, error){
		"damaged": func(s ledger.Sum) ([]byte, error) {
			b, _, err := Part(r.files, s.First, 0, 1<<20)
			b[len(magic)+3]++
			return b, err
		},
		"another": func(ledger.Sum) ([]byte, error) {
			names, _ := r.files.List()
			return contentOf(r.files, names[len(names)-2]), nil
		},
		"nothing": func(ledger.Sum) ([]byte, error) { return nil, nil },
	} {
		l := ledger.Open(New(NewVolatile(), segmentBytes, fetch))
		empty := l.Hash()
		if err := l.Restore(bytes.NewReader(r.snapshot)); err == nil || !strings.Contains(err.Error(), "was not fetched") || l.Hash() != empty {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestRefusalsUntilAFileIsFetched: a file of the journal is lost. As long as another replica may have the file, a
// caller who is refused must be told to ask again. If no replica has it, the error must say how to repair the file by
// hand.
func TestRefusalsUntilAFileIsFetched(t *testing.T) {
	r := whole(t, NewVolatile(), script(60))
	names, _ := r.files.List()
	var refusal error
	l := ledger.Open(New(r.files, segmentBytes, func(ledger.Sum) ([]byte, error) { return nil, refusal }))
	if err := l.Restore(bytes.NewReader(r.snapshot)); err != nil {
		t.Fatal(err)
	}
	r.files.(*Volatile).Damage(names[1], nil)
	for _, kind := range []messages.Kind{messages.Unavailable, messages.NotLeader, messages.Internal} {
		refusal = messages.Errorf(kind, "refused")
		h := l.History()
		_, err := h.Segments()[1].Segment()
		if err == nil || !strings.Contains(err.Error(), names[1]) || messages.KindOf(err).Retriable() != kind.Retriable() {
			t.Errorf("%v: %v: %v", kind, messages.KindOf(err), err)
		}
	}
}

// A replica gets a snapshot that refers to a file, which the replica wrote itself before. After a power loss, the
// replica must still have this file.
func TestInstalledSnapshotBuildsOnWhatLasts(t *testing.T) {
	commands := script(10)
	leader, files := whole(t, NewVolatile(), commands), NewVolatile()
	var snapshot bytes.Buffer
	if _, err := leader.ledger.Capture().WriteTo(&snapshot); err != nil {
		t.Fatal(err)
	}
	store := New(files, segmentBytes, nil)
	follower := ledger.Open(store)
	for _, command := range commands {
		follower.Apply(command)
	}
	if err := ledger.Open(store).Restore(bytes.NewReader(snapshot.Bytes())); err != nil {
		t.Fatal(err)
	}
	files.Restart(Lost)
	after := &replica{files: files, snapshot: snapshot.Bytes()}
	if err := after.start(); err != nil {
		t.Fatal(err)
	}
	if after.ledger.Hash() != leader.ledger.Hash() {
		t.Error("another state")
	}
}
