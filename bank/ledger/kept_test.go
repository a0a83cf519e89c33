package ledger

import (
	"errors"
	"testing"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/money"
)

// kept is a store in memory. It says that its segments are durable, as the segments of a store on a disk are. So an
// image does not repeat the segments, and has only their checksums.
type kept struct {
	bytes    int
	segments map[uint64]*Segment
	fails    error // if not nil, Seal and reads return this error
	reads    int   // number of records that were read
}

func newKept(bytes int) *kept { return &kept{bytes: bytes, segments: map[uint64]*Segment{}} }

func (k *kept) SegmentBytes() int   { return k.bytes }
func (k *kept) Sync() (bool, error) { return true, nil }

func (k *kept) Seal(s *Segment) (Sealed, error) {
	if k.fails != nil {
		return nil, k.fails
	}
	// The segment is encoded and read again, so that it has only what would be read from a file.
	read, err := ReadSegment(s.Table(), append([]byte(nil), s.Data...))
	if err != nil {
		return nil, err
	}
	k.segments[s.First] = read
	return keptSegment{inMemory{read}, k}, nil
}

func (k *kept) Open(sum Sum) (Sealed, error) {
	s := keptSegment{inMemory{k.segments[sum.First]}, k}
	if s.segment == nil || s.Sum() != sum {
		return nil, errors.New("there is no such segment")
	}
	return s, nil
}

type keptSegment struct {
	inMemory
	store *kept
}

func (s keptSegment) Record(place int) ([]byte, error) {
	if s.store.fails != nil {
		return nil, s.store.fails
	}
	s.store.reads++
	return s.inMemory.Record(place)
}

// TestStoreFails: after an error of the store, the ledger must refuse everything. Its image and log must give the state
// before the error.
func TestStoreFails(t *testing.T) {
	store := newKept(400)
	b := &bed{T: t, Ledger: Open(store), at: 1000}
	b.grant("ada", 1000)
	for i := range 20 {
		b.do(held(uitoa(uint64(i)), "ada", 1))
	}
	image := encodeImage(t, b.Ledger)
	store.fails = errors.New("disk on fire")
	again := held("0", "ada", 1) // the ledger has answered this transfer before, so it must read the record
	for range 2 {
		r := b.command(Command{Verb: Transfers, By: "$auctioneer", Rank: Service, Transfers: []money.Transfer{again}})
		if r.Error == nil || r.Error.Kind != messages.Internal || len(r.Transfers) != 0 || !errors.Is(b.Err(), store.fails) {
			t.Fatalf("%+v, %v", r, b.Err())
		}
		again.ID = "new"
	}
	store.fails = nil
	fresh := Open(store)
	b.Ledger = fresh
	restoreInto(t, fresh, image)
	again.ID = "0"
	if got := b.do(again); got != 1 {
		t.Fatalf("answered %v", got)
	}
	b.has("ada", 1000, 20)
	b.balanced()
}

// TestSealFails lets the sealing of a full segment fail. The new record must not be written in part.
func TestSealFails(t *testing.T) {
	store := newKept(400)
	b := &bed{T: t, Ledger: Open(store), at: 1000}
	b.grant("ada", 1000)
	store.fails = errors.New("disk full")
	for i := range 20 {
		count := b.records.journal.count
		r := b.command(Command{Verb: Transfers, By: "$auctioneer", Rank: Service, Transfers: []money.Transfer{held(uitoa(uint64(i)), "ada", 1)}})
		if r.Error != nil {
			if b.records.journal.count != count || b.Err() == nil {
				t.Fatalf("%d records, %d before; %v", b.records.journal.count, count, b.Err())
			}
			return
		}
	}
	t.Fatal("a segment of 400 bytes took 20 records")
}
