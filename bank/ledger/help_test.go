package ledger

import (
	"bytes"
	"testing"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/money"
)

const c = messages.Credit

// bed is a ledger under test. Each of its methods applies one command.
type bed struct {
	*testing.T
	*Ledger
	at       messages.Time
	commands [][]byte
}

func newBed(t *testing.T) *bed { return &bed{T: t, Ledger: New(), at: 1000} }

func (b *bed) command(c Command) Result {
	c.At = b.at
	data := c.Encode()
	b.commands = append(b.commands, data)
	return b.Apply(data)
}

func (b *bed) send(ts ...money.Transfer) []money.TransferResult {
	b.Helper()
	r := b.command(Command{Verb: Transfers, By: "$auctioneer", Rank: Service, Transfers: ts})
	if r.Error != nil {
		b.Fatalf("batch refused: %v", r.Error)
	}
	return r.Transfers
}

func (b *bed) do(t money.Transfer) messages.Credits {
	b.Helper()
	r := b.send(t)[0]
	if r.Error != nil {
		b.Fatalf("%s %q refused: %v", t.Kind, t.ID, r.Error)
	}
	return r.Amount
}

// refuse carries out a transfer that must be refused, and returns the message.
func (b *bed) refuse(kind messages.Kind, t money.Transfer) string {
	b.Helper()
	r := b.send(t)[0]
	if r.Error == nil || r.Error.Kind != kind {
		b.Fatalf("%s %q: got %v, want a refusal of kind %v", t.Kind, t.ID, r.Error, kind)
	}
	return r.Error.Message
}

func (b *bed) grant(account messages.Name, amount messages.Credits) {
	b.Helper()
	g := money.GrantRequest{Key: "first " + account, Account: account, Amount: amount, Reason: "allocation"}
	if r := b.command(Command{Verb: Grant, By: "ops", Grant: g}); r.Error != nil {
		b.Fatalf("grant to %s: %v", account, r.Error)
	}
}

func (b *bed) join(project, member messages.Name) {
	b.Helper()
	if r := b.command(Command{Verb: Member, By: "ops", Member: money.MemberRequest{Account: project, Member: member}}); r.Error != nil {
		b.Fatalf("member: %v", r.Error)
	}
}

func (b *bed) has(name messages.Name, balance, reserved messages.Credits) {
	b.Helper()
	a, err := b.Account(name)
	if err != nil {
		b.Fatal(err)
	}
	if a.Balance != balance || a.Reserved != reserved || a.Available != balance-reserved {
		b.Fatalf("%s has balance %v, reserved %v, available %v; want %v, %v", name, a.Balance, a.Reserved, a.Available, balance, reserved)
	}
}

func (b *bed) balanced() money.BooksReply {
	b.Helper()
	books := b.Capture().Audit()
	if !books.Balanced {
		b.Fatal(books.Message)
	}
	return books
}

func posted(id string, debit, credit messages.Name, amount messages.Credits) money.Transfer {
	return money.Transfer{ID: id, Kind: money.Posted, Debit: debit, Credit: credit, Amount: amount}
}

func held(id string, account messages.Name, amount messages.Credits) money.Transfer {
	return money.Transfer{ID: id, Kind: money.Hold, Debit: account, Member: account, Amount: amount}
}

func post(id, hold string, amount messages.Credits) money.Transfer {
	return money.Transfer{ID: id, Kind: money.Post, Pending: hold, Credit: money.SiteAccount, Amount: amount}
}

func void(id, hold string) money.Transfer {
	return money.Transfer{ID: id, Kind: money.Void, Pending: hold}
}

func extend(id, hold string, until messages.Time) money.Transfer {
	return money.Transfer{ID: id, Kind: money.Extend, Pending: hold, Expires: until}
}

func linked(ts ...money.Transfer) []money.Transfer {
	for i := range ts[:len(ts)-1] {
		ts[i].Linked = true
	}
	return ts
}

func encodeImage(t testing.TB, l *Ledger) []byte {
	t.Helper()
	var out bytes.Buffer
	n, err := l.Capture().WriteTo(&out)
	if err != nil || n != int64(out.Len()) {
		t.Fatalf("WriteTo: %d bytes of %d, %v", n, out.Len(), err)
	}
	return out.Bytes()
}

func restore(t testing.TB, image []byte) *Ledger {
	t.Helper()
	l := New()
	restoreInto(t, l, image)
	return l
}

func restoreInto(t testing.TB, l *Ledger, image []byte) {
	t.Helper()
	if err := l.Restore(bytes.NewReader(image)); err != nil {
		t.Fatal(err)
	}
}
