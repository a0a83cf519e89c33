package ledger

import (
	"math/bits"
	"slices"
	"testing"

	"github.com/candor-grid/candor/messages/money"
)

// Each entry of an account has a link to the account's earlier entries. TestTrailLeadsEverywhere looks entries up along
// these links. A scan of all entries must give the same result. The test also counts how many records the search reads.
func TestTrailLeadsEverywhere(t *testing.T) {
	store := newKept(2000)
	b := &bed{T: t, Ledger: Open(store), at: 1000}
	b.grant("ada", 1_000_000)
	b.grant("bob", 1_000_000)
	var entries []uint64 // entries of ada's account
	for i := range 700 {
		b.at++
		other := "ada"
		if i%3 == 0 {
			other = "bob" // bob's entries separate ada's entries in the journal
		}
		b.do(posted(uitoa(uint64(i)), other, money.SiteAccount, 1))
		if other == "ada" {
			entries = append(entries, b.records.journal.count)
		}
	}
	a := b.accounts.byName["ada"]
	entries = append([]uint64{2}, entries...) // record 2 is the grant
	if a.trail.count != uint64(len(entries)) || len(a.trail.roots) > 2*bits.Len(uint(len(entries))) {
		t.Fatalf("%d entries with %d roots, want %d", a.trail.count, len(a.trail.roots), len(entries))
	}
	for _, from := range append([]uint64{0, 1, b.records.journal.count, b.records.journal.count + 1}, entries...) {
		store.reads = 0
		found, err := (&statement{a, b.records, b.holds}).oldest(func(e *entry) bool { return e.number >= from })
		if err != nil {
			t.Fatal(err)
		}
		i, _ := slices.BinarySearch(entries, from)
		switch {
		case i == len(entries):
			if found != nil {
				t.Fatalf("from %d: found %d", from, found.number)
			}
			continue
		case found == nil || found.number != entries[i]:
			t.Fatalf("from %d: %+v, want %d", from, found, entries[i])
		}
		if most := 6 * bits.Len(uint(len(entries))); store.reads > most {
			t.Fatalf("from %d: %d records were read to find one of %d, want at most %d", from, store.reads, len(entries), most)
		}
		got, err := (&statement{a, b.records, b.holds}).run(found, 10)
		if err != nil {
			t.Fatal(err)
		}
		for j, e := range got {
			if e.number != entries[i+j] {
				t.Fatalf("from %d: entry %d is %d, want %d", from, j, e.number, entries[i+j])
			}
		}
		if len(got) != min(10, len(entries)-i) {
			t.Fatalf("from %d: %d entries", from, len(got))
		}
	}
}

func TestIndexFindsAll(t *testing.T) {
	x := newIndex()
	const n = 100_000
	for i := uint64(1); i <= n; i++ {
		x.add(uitoa(i), i)
	}
	for i := uint64(1); i <= 2*n; i++ {
		got := x.find(x.hash(uitoa(i)), func(number uint64) bool { return number == i })
		if i <= n && got != i || i > n && got != 0 {
			t.Fatalf("%d: found %d", i, got)
		}
	}
}
