package ledger

import (
	"bytes"
	"strings"
	"testing"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/money"
)

// eachRecord returns the records of a small ledger with every kind of record.
func eachRecord(t *testing.T) (*bed, [][]byte) {
	b := newBed(t)
	b.grant("ada", 100)
	b.join("ada", "bob")
	h := held("h", "ada", 10)
	h.Expires = 1500
	b.do(h)
	b.do(extend("e", "h", 1600))
	b.do(held("i", "ada", 7))
	b.do(post("c", "i", 5))
	b.do(posted("p", "ada", money.SiteAccount, 3))
	b.refuse(messages.Insufficient, posted("no", "ada", money.SiteAccount, 1000))
	b.at = 1700
	b.command(Command{Verb: Expire})
	b.do(held("open", "ada", 2))
	history := b.History()
	var all [][]byte
	for n := uint64(1); n <= history.Count(); n++ {
		record, err := history.Record(n)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, bytes.Clone(record))
	}
	return b, all
}

func verify(records [][]byte, rules bool) (*Verifier, error) {
	var store Store
	if rules {
		store = newKept(300)
	}
	v := NewVerifier(store)
	for _, record := range records {
		if err := v.Add(record); err != nil {
			return v, err
		}
	}
	return v, v.End()
}

func TestVerifierAgrees(t *testing.T) {
	b, all := eachRecord(t)
	for _, rules := range []bool{false, true} {
		v, err := verify(all, rules)
		if err != nil {
			t.Fatal(err)
		}
		want, err := b.Standings(100)
		if err != nil {
			t.Fatal(err)
		}
		history, books := b.History(), v.Totals()
		if v.Head() != history.Head() || v.Count() != history.Count() || !equal(v.Standings(), want) {
			t.Errorf("rules %v: %+v, want %+v", rules, v.Standings(), want)
		}
		if !books.Balanced || books.Issued != 100 || books.Held != 2 || books.Holds != 1 {
			t.Errorf("rules %v: %+v", rules, books)
		}
	}
	if _, err := b.Standings(2); messages.KindOf(err) != messages.TooLarge {
		t.Errorf("more standings than asked for: %v", err)
	}
}

func equal(a, b []money.Standing) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i] != b[i] {
			return false
		}
	}
	return true
}

// TestVerifierSeesEveryChange leaves out, swaps, repeats or alters records. Verification must fail, or compute another
// hash than the signed one.
func TestVerifierSeesEveryChange(t *testing.T) {
	b, all := eachRecord(t)
	history := b.History()
	wrong := func(what string, changed [][]byte) {
		t.Helper()
		if v, err := verify(changed, true); err == nil && v.Head() == history.Head() {
			t.Errorf("%s: not seen", what)
		}
	}
	for i := range all {
		without := append(append([][]byte(nil), all[:i]...), all[i+1:]...)
		wrong("a record left out", without)
		wrong("a record twice", append(append(append([][]byte(nil), all[:i+1]...), all[i]), all[i+1:]...))
		if i > 0 {
			swapped := append([][]byte(nil), all...)
			swapped[i], swapped[i-1] = swapped[i-1], swapped[i]
			wrong("records swapped", swapped)
		}
		for j := range all[i] {
			altered := append([][]byte(nil), all...)
			altered[i] = bytes.Clone(all[i])
			altered[i][j] ^= 1
			wrong("a byte altered", altered)
		}
	}
}

// TestVerifierNamesWhatBreaksTheRules checks that a record that breaks a rule is found and named, even if all sums are
// right.
func TestVerifierNamesWhatBreaksTheRules(t *testing.T) {
	b := newBed(t)
	b.grant("ada", 100)
	h := held("h", "ada", 10)
	h.Member = "eve" // eve is not a member
	s := step{asked: &h, debit: b.accounts.byName["ada"], held: 10, hold: newHold(&h, b.accounts.byName["ada"])}
	b.books.do(&s)
	b.books.commit("eve", &s)
	history := b.History()
	var all [][]byte
	for n := uint64(1); n <= history.Count(); n++ {
		record, _ := history.Record(n)
		all = append(all, record)
	}
	if _, err := verify(all, false); err != nil {
		t.Errorf("by addition: %v", err)
	}
	if _, err := verify(all, true); err == nil || !strings.Contains(err.Error(), "record 3") || !strings.Contains(err.Error(), "member") {
		t.Errorf("by the rules: %v", err)
	}
}
