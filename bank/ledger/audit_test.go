package ledger

import (
	"strings"
	"testing"

	"github.com/candor-grid/candor/messages/money"
)

// TestAuditSeesPlantedFaults inserts faults that a defect of the ledger could cause. The audit must find each of them.
func TestAuditSeesPlantedFaults(t *testing.T) {
	for name, plant := range map[string]func(*bed){
		"a balance changed without a record": func(b *bed) { b.accounts.byName["ada"].balance++ },
		"credits out of nothing, hidden in two accounts": func(b *bed) {
			b.accounts.byName["ada"].balance++
			b.accounts.issuer.balance--
		},
		"a reservation without a hold": func(b *bed) { b.accounts.byName["ada"].reserved++ },
		"a hold forgotten":             func(b *bed) { delete(b.holds.byID, "h") },
		"a total that is off":          func(b *bed) { b.holds.sum++ },
		"an account without a record":  func(b *bed) { b.accounts.open("eve") },
		"a record lost":                func(b *bed) { b.records.journal = without(b.records.journal, b.records.journal.count-1) },
		"a hold posted twice": func(b *bed) {
			s := step{asked: &money.Transfer{ID: "p2", Kind: money.Post, Pending: "done", Amount: 5}, debit: b.accounts.byName["ada"], credit: b.accounts.byName["$site"], amount: 5, held: -5}
			b.books.move(&s, 1)
			s.debitAfter, s.creditAfter = s.debit.standing, s.credit.standing
			b.books.commit("eve", &s)
		},
		"a record that says another standing": func(b *bed) {
			s := step{asked: &money.Transfer{ID: "p2", Kind: money.Posted, Debit: "ada", Credit: "$site", Amount: 5}, debit: b.accounts.byName["ada"], credit: b.accounts.byName["$site"], amount: 5}
			b.books.do(&s)
			s.creditAfter.balance++
			b.books.commit("eve", &s)
		},
		"a hold made twice": func(b *bed) {
			again := held("h", "ada", 10)
			s := step{asked: &again, debit: b.accounts.byName["ada"], held: 10, hold: newHold(&again, b.accounts.byName["ada"])}
			s.hold.by = "$auctioneer"
			b.books.do(&s)
			b.books.commit("eve", &s)
			b.do(void("v", "h"))
			b.accounts.byName["ada"].reserved, b.holds.sum = 0, 0 // as if the hold had been charged
		},
		"a balance below zero": func(b *bed) {
			s := step{asked: &money.Transfer{ID: "p2", Kind: money.Posted, Debit: "ada", Credit: "$site", Amount: 500}, debit: b.accounts.byName["ada"], credit: b.accounts.byName["$site"], amount: 500}
			b.books.do(&s)
			b.books.commit("eve", &s)
		},
	} {
		b := newBed(t)
		b.grant("ada", 100)
		b.do(held("done", "ada", 5))
		b.do(post("p", "done", 5))
		b.do(held("h", "ada", 10))
		b.balanced()
		plant(b)
		for _, a := range b.accounts.order {
			b.accounts.touch(a) // marks the page as stale, which normally a record does; the inserted change has no record
		}
		if books := b.Capture().Audit(); books.Balanced || books.Message == "" || strings.Contains(books.Message, "recomputed") {
			t.Errorf("%s: not seen: %+v", name, books)
		}
	}
}

func without(j journal, number uint64) (out journal) {
	out = newJournal(memory{})
	j.each(1, func(n uint64, record []byte) error {
		if n == number {
			return nil
		}
		_, err := out.append(record, 0)
		return err
	})
	return out
}
