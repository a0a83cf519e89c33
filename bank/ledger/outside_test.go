package ledger

import (
	"encoding/binary"
	"fmt"
	"testing"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/money"
)

// outsider decodes a record of the bank. The person who wrote this decoder read only the page deploy/docs/books.md, and
// not the bank's code. So it shows that the page is enough.
type outsider struct {
	b []byte
	t testing.TB
}

func (o *outsider) octet() byte {
	v := o.b[0]
	o.b = o.b[1:]
	return v
}

func (o *outsider) unsigned() uint64 {
	v, n := binary.Uvarint(o.b)
	o.b = o.b[n:]
	return v
}

func (o *outsider) signed() int64 {
	v := o.unsigned()
	if v%2 == 1 {
		return -int64(v/2) - 1
	}
	return int64(v / 2)
}

func (o *outsider) text() string {
	n := o.unsigned()
	v := string(o.b[:n])
	o.b = o.b[n:]
	return v
}

func (o *outsider) transfer() (t money.Transfer) {
	t.Kind = money.TransferKind(o.octet())
	has := o.octet()
	t.Linked = has&1 != 0
	t.ID, t.Debit, t.Credit, t.Amount = o.text(), o.text(), o.text(), messages.Credits(o.signed())
	t.Pending, t.Expires, t.Member, t.Job, t.Reason = o.text(), messages.Time(o.signed()), o.text(), messages.JobID(o.unsigned()), o.text()
	if has&2 != 0 {
		t.Timeout = messages.Duration(o.signed())
	}
	return t
}

func (o *outsider) line(number uint64) (l Line) {
	names := []string{"", "opened", "membership", "done", "refused", "lapsed", "changed", "trusted", "requested", "said"}
	first := o.octet()
	l.Number, l.What, l.At, l.By = number, names[first&63], messages.Time(o.signed()), o.text()
	if first&128 != 0 {
		o.octet()
	}
	switch first & 63 {
	case 1, 2:
		l.Account = o.text()
		o.text()
		o.octet()
	case 6:
		o.octet()
		l.Account = o.text()
		o.text()
		o.signed()
		o.text()
	case 7, 8, 9:
		o.text()
		o.text()
		o.signed()
		o.text()
		o.text()
	case 4:
		l.Asked = o.transfer()
		o.octet()
	case 3, 5:
		l.Asked = o.transfer()
		o.outcome(&l)
	}
	if first&64 != 0 {
		o.unsigned()
		o.b = o.b[16:]
	}
	if len(o.b) != 0 {
		o.t.Fatalf("record %d goes on: %x", number, o.b)
	}
	return l
}

func (o *outsider) outcome(l *Line) {
	switch l.Asked.Kind {
	case 0:
		l.Debit, l.Credit, l.Amount, l.Job = l.Asked.Debit, l.Asked.Credit, l.Asked.Amount, l.Asked.Job
	case 1:
		l.Debit, l.Held, l.Job = l.Asked.Debit, l.Asked.Amount, l.Asked.Job
	default:
		l.Debit, l.Credit, l.Held, l.Job = o.text(), o.text(), messages.Credits(o.signed()), messages.JobID(o.unsigned())
		if l.Asked.Kind == 2 {
			l.Amount = l.Asked.Amount
		}
	}
	after := func(account messages.Name) money.Standing {
		return money.Standing{Account: account, Balance: messages.Credits(o.signed()), Reserved: messages.Credits(o.signed())}
	}
	l.DebitAfter = after(l.Debit)
	links := 1
	if l.Credit != "" {
		l.CreditAfter = after(l.Credit)
		links = 2
	}
	for range links {
		if o.unsigned() > 1 {
			o.unsigned()
			o.unsigned()
		}
	}
}

// A page for auditors describes the format of records. The test has a second reader, written only from this page.
// TestRecordsAreAsThePageHasThem checks that it reads the same as the bank's own reader.
func TestRecordsAreAsThePageHasThem(t *testing.T) {
	_, all := eachRecord(t)
	encoded := func(r record) {
		r.at, r.by = 2000, "ops"
		c := codec{}
		c.record(&r)
		all = append(all, c.b)
	}
	encoded(record{what: requested, verb: "pay", signed: messages.SignedRequest{
		Payload: []byte(`{"to":"ada"}`), Proof: messages.Proof{Token: "a.b.c", At: 1999, Signature: make([]byte, 64)},
	}})
	encoded(record{what: changed, change: change{setting: creditLimit, account: "ada", number: -5, text: "why"}})
	encoded(record{what: done, stamp: stamp{session: 300}, asked: money.Transfer{ID: "x", Kind: money.Hold, Debit: "ada", Amount: 1 << 40, Timeout: 1, Linked: true}})
	seen := map[string]bool{}
	for i, b := range all {
		want, err := ReadLine(uint64(i+1), b)
		if err != nil {
			t.Fatal(err)
		}
		got := (&outsider{b, t}).line(uint64(i + 1))
		got.Ground, got.Note = want.Ground, want.Note // these texts are not compared: they come from the bank's code, and not from the page
		if fmt.Sprintf("%+v", got) != fmt.Sprintf("%+v", want) {
			t.Errorf("record %d is, by the page,\n%+v, want\n%+v", i+1, got, want)
		}
		seen[want.What] = true
	}
	if len(seen) < 7 {
		t.Errorf("only %v were read", seen)
	}
}
