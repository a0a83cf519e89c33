package clearing

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/candor-grid/candor/bank/ledger"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/clearing"
	moneymsg "github.com/candor-grid/candor/messages/money"
	"github.com/candor-grid/candor/messages/proof"
)

// TestReconciliationNamesTheFirstDifference compares signed pages of two books. Equal books must have no difference. If
// one line was changed, the comparison must name this line.
func TestReconciliationNamesTheFirstDifference(t *testing.T) {
	east, west := pair(t)
	for n := range 20 {
		east.pay(west, fmt.Sprint(n), 1)
	}
	for number := uint64(1); number <= 20; number++ {
		ours, theirs := east.lines(west, "east"), west.lines(east, "east")
		if d := Compare(ours, theirs); d != nil {
			t.Fatalf("equal books: %v", d)
		}
		falsified := west.lines(east, "east")
		for i := number - 1; i < 20; i++ {
			digest := sha256.Sum256(falsified[i].Digest)
			falsified[i].Digest = digest[:]
		}
		falsified[number-1].Moved++
		d := Compare(ours[:15+number/4], falsified[min(3, max(number, 2)-2):])
		if d == nil || d.Number != number || d.Earlier {
			if number > uint64(15+number/4) && d == nil {
				continue // the instruction is on the way: only one book has this number
			}
			t.Errorf("falsified at %d: got %v", number, d)
		}
	}
}

// lines returns the first page of the lines in which a side has booked payments with another side. It also checks that
// the side can sign this page.
func (s *side) lines(other *side, sender messages.Name) []clearing.ClearingLine {
	s.Helper()
	page, err := s.state.Lines(other.name, clearing.LinesRequest{Sender: sender, From: 1})
	if err != nil {
		s.Fatal(err)
	}
	signed, err := SignLines(s.keys, page)
	if err != nil {
		s.Fatal(err)
	}
	if !verifyAny(proof.Verified, []string{s.public()}, domainLines, &signed.Lines, signed.Signature) {
		s.Fatal("the signature does not verify")
	}
	return signed.Lines.List
}

func TestLinesArePagedAndBounded(t *testing.T) {
	east, west := pair(t)
	for n := range 5 {
		east.pay(west, fmt.Sprint(n), 1)
	}
	page, err := west.state.Lines("east", clearing.LinesRequest{Sender: "east", From: 2, Limit: 2})
	if err != nil || len(page.List) != 2 || page.List[0].Number != 2 || page.Last != 5 || page.Oldest != 1 {
		t.Errorf("got %+v, %v", page, err)
	}
	for _, r := range []clearing.LinesRequest{{Sender: "north"}, {Sender: "east", Limit: -1}, {Sender: "east", Limit: 5000}} {
		if _, err := west.state.Lines("east", r); err == nil {
			t.Errorf("%+v is answered", r)
		}
	}
	if _, err := west.state.Lines("north", clearing.LinesRequest{Sender: "east"}); messages.KindOf(err) != messages.NotFound {
		t.Errorf("got %v", err)
	}
}

// TestBookIsBounded checks that a book keeps a limited number of lines. The book must have its running totals after
// each of these lines, and before the first line.
func TestBookIsBounded(t *testing.T) {
	b := newBook("east", "west")
	i := &clearing.Instruction{Kind: clearing.InstructPay, Account: "ada", Amount: 2}
	for range 3 * keptLines {
		b.enter(i, &moneymsg.TransferResult{Amount: 2})
	}
	if n := len(b.Lines); n < keptLines || n > keptLines+keptLines/4 {
		t.Errorf("%d lines are kept", n)
	}
	for _, n := range []uint64{b.oldest() - 1, b.oldest(), b.Total.Number} {
		if total, ok := b.at(n); !ok || total.Number != n || total.Owed != messages.Credits(2*n) {
			t.Errorf("at %d: %+v, %v", n, total, ok)
		}
	}
	for _, n := range []uint64{0, b.oldest() - 2, b.Total.Number + 1} {
		if total, ok := b.at(n); ok {
			t.Errorf("at %d: %+v", n, total)
		}
	}
}

// TestImage checks that an image restores the same state, byte for byte, and that an altered image is refused.
func TestImage(t *testing.T) {
	east, west := pair(t)
	east.pay(west, "a", 3)
	a, b := east.authorise(west, "k", 10), west.authorise(east, "l", 5)
	west.must(accepting(a))
	east.must(accepting(b))
	east.must(charging(b, 4))
	east.must(Command{By: "ada", Revoke: &clearing.RevokeRequest{ID: a.Authorisation.ID}})
	east.close(1)
	east.do(accepting(a)) // the authorisation is for another site, so it is refused and counted

	var image bytes.Buffer
	if _, err := east.state.Capture().WriteTo(&image); err != nil {
		t.Fatal(err)
	}
	fresh := New("east", east.ledger, proof.Verified)
	rest := strings.NewReader("what follows")
	if err := fresh.Restore(io.MultiReader(bytes.NewReader(image.Bytes()), rest)); err != nil {
		t.Fatal(err)
	}
	if rest.Len() != len("what follows") {
		t.Error("restoring reads beyond the image")
	}
	if fresh.Hash() != east.state.Hash() || fresh.Due() != east.state.Due() || fresh.Refused(Misaddressed) != 1 {
		t.Error("the restored state differs")
	}
	for i := 0; i < image.Len(); i += 7 {
		damaged := bytes.Clone(image.Bytes())
		damaged[i] ^= 0x20
		if err := fresh.Restore(bytes.NewReader(damaged)); err == nil {
			t.Fatalf("byte %d is damaged, and the image is restored", i)
		}
		if err := fresh.Restore(bytes.NewReader(image.Bytes()[:i])); err == nil {
			t.Fatalf("the first %d bytes are restored", i)
		}
	}
	if fresh.Hash() != east.state.Hash() {
		t.Error("a failed restore changed the state")
	}
	if err := New("west", west.ledger, proof.Verified).Restore(bytes.NewReader(image.Bytes())); err == nil {
		t.Error("the image of another site is restored")
	}
}

// FuzzApply applies arbitrary bytes. Commands that cannot be decoded must change nothing.
func FuzzApply(f *testing.F) {
	c := Command{At: 5, By: "ada", Remit: &clearing.RemitRequest{Key: "k", Peer: "west", Payee: "bob", Amount: 5}}
	data, err := c.Encode()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(data)
	f.Add([]byte{Mark})
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, data []byte) {
		east, _ := pair(t)
		r := east.state.Apply(data)
		if _, err := decode(data); err != nil && (r.Error == nil || east.state.Refused(r.Refused) == 0) {
			t.Errorf("what cannot be read came to %+v", r)
		}
		if fault := east.state.Fault(); fault != "" {
			t.Errorf("a step was refused by the ledger: %s", fault)
		}
	})
}

func (s *side) backup() (restore func()) {
	s.Helper()
	var image bytes.Buffer
	for _, i := range []io.WriterTo{s.state.Capture(), s.ledger.Capture()} {
		if _, err := i.WriteTo(&image); err != nil {
			s.Fatal(err)
		}
	}
	return func() {
		s.Helper()
		s.ledger = ledger.New()
		s.state = New(s.name, s.ledger, proof.Verified)
		if err := s.state.Restore(&image); err != nil {
			s.Fatal(err)
		}
		if err := s.ledger.Restore(&image); err != nil {
			s.Fatal(err)
		}
		s.ledger.Trust(signs().root(s.name))
	}
}

// lost compares this side's books with the other side's, and returns two numbers as a text. The first number is how
// many instructions of the sender this side has lost. The second number is how many the other side has lost. "2 0"
// means two and none.
func (s *side) lost(other *side, sender messages.Name) string {
	s.Helper()
	ours, theirs := s.lines(other, sender), other.lines(s, sender)
	if d := Compare(ours, theirs); d != nil {
		s.Errorf("the books differ: %+v", d)
	}
	page, err := other.state.Lines(s.name, clearing.LinesRequest{Sender: sender})
	if err != nil {
		s.Fatal(err)
	}
	end, certain := page.Last, s.state.Certain(other.name, sender)
	return fmt.Sprint(s.state.LostHere(other.name, sender, theirs), max(certain, end)-end)
}

// TestARestoredBankLostNumbers restores a bank from an old backup. So this bank forgets the newest instructions that it
// sent, and the newest instructions that it received. Each instruction has a number. Both banks must find how many
// numbers were lost in each of the two directions.
func TestARestoredBankLostNumbers(t *testing.T) {
	east, west := pair(t)
	trade := func(n int, keys string) {
		for i := range n {
			east.pay(west, fmt.Sprint("e", keys, i), 1)
			west.pay(east, fmt.Sprint("w", keys, i), 1)
		}
		east.exchange(west) // each side knows that the other has the outcomes
		west.exchange(east)
	}
	trade(2, "before")
	for _, sender := range []messages.Name{"east", "west"} {
		if got := east.lost(west, sender); got != "0 0" {
			t.Errorf("of %s before: %s", sender, got)
		}
	}
	restore := west.backup()
	trade(3, "after")
	restore()
	for _, sender := range []messages.Name{"east", "west"} {
		if got := west.lost(east, sender); got != "3 0" {
			t.Errorf("west says of the instructions of %s: %s", sender, got)
		}
		if got := east.lost(west, sender); got != "0 3" {
			t.Errorf("east says of the instructions of %s: %s", sender, got)
		}
	}
	before, err := east.ledger.Account("ada")
	if err != nil {
		t.Fatal(err)
	}
	for i := range 6 { // numbers 3 to 8; 3 to 5 were other instructions before
		west.must(Command{By: "ada", Remit: &clearing.RemitRequest{Key: fmt.Sprint("again", i), Peer: "east", Payee: "ada", Amount: 2 * messages.Credit}})
	}
	if got := west.lost(east, "west"); got != "3 0" {
		t.Errorf("with other instructions under the numbers: %s", got)
	}
	m := west.outgoing(east)
	east.refuse(Rewritten, messages.Conflict, Command{Instructions: &m})
	if now, _ := east.ledger.Account("ada"); now.Balance != before.Balance || east.state.terms.describe(east.state.peers.byName["west"]).Dispute == "" {
		t.Errorf("ada had %v and has %v", before.Balance, now.Balance)
	}
}
