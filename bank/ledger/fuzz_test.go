package ledger

import (
	"bytes"
	"reflect"
	"testing"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/money"
)

func someCommands() []Command {
	return []Command{
		{Verb: Expire, At: 5000},
		{Verb: Grant, At: 1, By: "ops", Grant: money.GrantRequest{Key: "k", Account: "ada", Amount: 5, Reason: "spring"}},
		{Verb: Member, At: 1, By: "ops", Member: money.MemberRequest{Account: "ada", Member: "bob", Remove: true}},
		{Verb: Transfers, At: 1, By: "$auctioneer", Rank: Service, Transfers: linked(held("a", "ada", 1), post("b", "a", 1), extend("c", "h", 9), void("d", "h"), posted("e", "ada", "$site", 1))},
		{Verb: Transfers, At: 1, By: "$auctioneer", Rank: Service},
		{Verb: Project, At: 1, By: "ops", Project: money.ProjectRequest{Account: "lab", Title: "t", Owners: []messages.Name{"ada"}}},
		{Verb: Grant, At: 1, By: "ops", Grant: money.GrantRequest{Key: "e", Account: "lab", Amount: 5, Expires: 3000}},
		{Verb: Member, At: 1, By: "ada", Rank: User, Member: money.MemberRequest{Account: "lab", Member: "bob", Role: new(money.Role), Limit: new(messages.Credits)}},
		{Verb: Pay, At: 1, By: "ada", Rank: User, Pay: money.PayRequest{Key: "k", From: "lab", To: "ada", Amount: 1}},
		{Verb: Freeze, At: 1, By: "ada", Rank: User, Freeze: money.FreezeRequest{Account: "ada", Frozen: true}},
		{Verb: Credit, At: 1, By: "ops", Credit: money.CreditRequest{Account: "ada", Credit: 3}},
		{Verb: Withdraw, At: 1, By: "ops", Withdraw: money.WithdrawRequest{Key: "k", Account: "ada", Amount: 1, Reason: "r"}},
		{Verb: Correct, At: 1, By: "ops", Correct: money.CorrectRequest{Transfer: "$grant/ops/k", Reason: "r"}},
	}
}

// FuzzApply applies arbitrary bytes. Nothing may panic, bytes that cannot be decoded must change nothing, and the books
// must balance.
func FuzzApply(f *testing.F) {
	for _, cmd := range someCommands() {
		f.Add(cmd.Encode())
	}
	f.Add([]byte{})
	f.Add([]byte{plain, byte(Transfers), 0, 0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1})
	f.Fuzz(func(t *testing.T, data []byte) {
		b := newBed(t)
		b.grant("ada", 10)
		h := held("h", "ada", 5)
		h.Expires = 4000
		b.do(h)
		before := b.Hash()
		r := b.Apply(data)
		var cmd Command
		if err := cmd.decode(data, nil); err != nil {
			if r.Error == nil || b.Hash() != before {
				t.Fatalf("a command that cannot be read (%v) changed the ledger", err)
			}
			return
		}
		if len(r.Transfers) != len(cmd.Transfers) {
			t.Fatalf("%d results for %d transfers", len(r.Transfers), len(cmd.Transfers))
		}
		b.balanced()
		if restored := restore(t, encodeImage(t, b.Ledger)); restored.Hash() != b.Hash() {
			t.Fatal("what it did cannot be restored")
		}
		var again Command
		if err := again.decode(cmd.Encode(), nil); err != nil || !reflect.DeepEqual(again, cmd) {
			t.Fatalf("%+v encodes to what is read as %+v, %v", cmd, again, err)
		}
	})
}

// FuzzRestore restores arbitrary bytes, to which it adds the right digest, so that they look complete.
func FuzzRestore(f *testing.F) {
	l := New()
	f.Add(body(f, l))
	for _, cmd := range someCommands() {
		l.Apply(cmd.Encode())
		f.Add(body(f, l))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		l := New()
		if err := l.Restore(bytes.NewReader(resign(data))); err != nil {
			return
		}
		if books := l.Capture().Audit(); !books.Balanced {
			t.Fatalf("restored books that do not balance: %s", books.Message)
		}
	})
}

func body(t testing.TB, l *Ledger) []byte {
	var out bytes.Buffer
	if err := l.Capture().body(&out, false); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// TestCommandsSurviveTheirEncoding encodes and decodes commands. An encoded command with a byte more or less must not
// be decoded.
func TestCommandsSurviveTheirEncoding(t *testing.T) {
	for _, cmd := range someCommands() {
		data := cmd.Encode()
		var got Command
		if err := got.decode(data, nil); err != nil || !reflect.DeepEqual(got, cmd) {
			t.Errorf("%+v came back as %+v, %v", cmd, got, err)
		}
		for i := range data {
			if err := new(Command).decode(data[:i], nil); err == nil {
				t.Errorf("verb %d cut to %d of %d bytes is read", cmd.Verb, i, len(data))
			}
		}
		if err := new(Command).decode(append(data, 0), nil); err == nil {
			t.Errorf("verb %d with a byte too many is read", cmd.Verb)
		}
	}
}

func TestCommandsThatAreRefused(t *testing.T) {
	full := Command{Verb: Transfers, By: "ops", Transfers: make([]money.Transfer, MaxBatch)}
	over := Command{Verb: Transfers, Transfers: make([]money.Transfer, MaxBatch+1)}
	for name, tc := range map[string]struct {
		data []byte
		want messages.Kind
	}{
		"another form":   {[]byte{99, byte(Expire), 0, 0}, messages.Invalid},
		"an older form":  {[]byte{2, byte(Expire), 0, 0, 0}, messages.Invalid},
		"unknown verb":   {[]byte{plain, 77, 0, 0}, messages.Invalid},
		"before 1970":    {(&Command{Verb: Expire, At: -5}).Encode(), messages.Invalid},
		"claimed length": {[]byte{plain, byte(Transfers), 0, 0, 100, 1, 2, 3}, messages.Invalid},
		"too many":       {over.Encode(), messages.TooLarge},
	} {
		l := New()
		before := l.Hash()
		r := l.Apply(tc.data)
		if r.Error == nil || r.Error.Kind != tc.want || l.Hash() != before {
			t.Errorf("%s: %v", name, r.Error)
		}
	}
	if r := New().Apply(full.Encode()); r.Error != nil || len(r.Transfers) != MaxBatch {
		t.Errorf("as many as may be: %v", r.Error)
	}
}

func TestSizeIsABound(t *testing.T) {
	for _, x := range []money.Transfer{{}, {Kind: money.Extend, Amount: -1 << 63, Expires: -1 << 63, Job: 1<<64 - 1, Linked: true}, held("id", "ada", 5)} {
		var w codec
		if w.transfer(&x); len(w.b) > Size(&x) || len(w.b) < smallestTransfer {
			t.Errorf("%+v takes %d bytes, Size says %d", x, len(w.b), Size(&x))
		}
	}
}
