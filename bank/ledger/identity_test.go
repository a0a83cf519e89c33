package ledger

import (
	"fmt"
	"reflect"
	"testing"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/money"
)

// TestSameIdentifier repeats transfers with the same identifier. The first result must be returned; other content must
// be a conflict.
func TestSameIdentifier(t *testing.T) {
	b := newBed(t)
	b.grant("ada", 10)
	hold, tooMuch, charge := held("h", "ada", 6), held("x", "ada", 5), post("c", "h", 4)
	for _, x := range []money.Transfer{hold, charge} {
		b.do(x)
	}
	b.do(held("h2", "ada", 6)) // so that the next hold is refused
	b.refuse(messages.Insufficient, tooMuch)
	b.do(void("v", "h2")) // now the refused hold could be carried out
	hash := b.Hash()
	if b.do(hold) != 6 || b.do(charge) != 4 {
		t.Fatal("another result than the first")
	}
	b.refuse(messages.Insufficient, tooMuch)
	for _, change := range []func(*money.Transfer){
		func(x *money.Transfer) { x.Amount-- },
		func(x *money.Transfer) { x.Reason = "other" },
		func(x *money.Transfer) { x.Job = 9 },
		func(x *money.Transfer) { x.Credit = money.SiteAccount },
		func(x *money.Transfer) { x.Member = "bob" },
	} {
		other := hold
		change(&other)
		b.refuse(messages.Conflict, other)
	}
	b.refuse(messages.Conflict, money.Transfer{ID: "h", Kind: money.Void, Pending: "h2"})
	if b.Hash() != hash {
		t.Fatal("a repeated request changed the state")
	}
}

// TestHoldAskedAgainLater repeats a request for a hold. The expiry of a hold is counted from the time of the request,
// so the second request has a later expiry. The hold must keep the first expiry.
func TestHoldAskedAgainLater(t *testing.T) {
	b := newBed(t)
	b.grant("ada", 10)
	h := held("h", "ada", 6)
	h.Expires = 2000
	b.do(h)
	b.at = 1500
	h.Expires = 2500
	if b.do(h) != 6 || b.NextExpiry() != 2000 {
		t.Fatalf("expires at %v", b.NextExpiry())
	}
	b.has("ada", 10, 6)
}

// TestMalformedIsNotRemembered checks that a malformed transfer does not use up its identifier.
func TestMalformedIsNotRemembered(t *testing.T) {
	b := newBed(t)
	b.grant("ada", 10)
	hash := b.Hash()
	b.refuse(messages.Invalid, held("h", "ada", 0))
	b.refuse(messages.TooLarge, held("h", "ada", messages.MaxCredits+1))
	if b.Hash() != hash {
		t.Fatal("a malformed transfer changed the state")
	}
	b.do(held("h", "ada", 10))
}

func TestChain(t *testing.T) {
	b := newBed(t)
	b.grant("ada", 10)
	b.grant("bob", 1)
	b.grant("cyd", 1)
	// In this chain, bob receives credits in the first transfer and pays them in the second one, although bob had too
	// few before. The ledger must accept this.
	r := b.send(linked(posted("1", "ada", "bob", 10), posted("2", "bob", "cyd", 11), held("3", "cyd", 12))...)
	for i := range r {
		if r[i].Error != nil {
			t.Fatal(r[i].Error)
		}
	}
	b.has("cyd", 12, 12)
	hash, records := b.Hash(), b.Totals().Records
	// If one transfer of a chain fails, the bank must take back all transfers of the chain. This also holds for
	// transfers that post, extend or void a hold.
	failing := linked(post("4", "3", 5), posted("5", money.SiteAccount, "ada", 5), posted("6", "ada", "bob", 99))
	r = b.send(failing...)
	for i := range r {
		if r[i].Error == nil || r[i].Error.Kind != messages.Insufficient {
			t.Fatalf("%d: %+v", i, r[i])
		}
	}
	b.has("cyd", 12, 12)
	b.has(money.SiteAccount, 0, 0)
	if b.Totals().Records != records+3 || b.Hash() == hash {
		t.Fatal("the refusals were not remembered")
	}
	for i, again := range b.send(failing...) {
		if again.Error == nil || again.Error.Kind != messages.Insufficient {
			t.Fatalf("%d again: %+v, first: %+v", i, again, r[i])
		}
	}
	b.balanced()
}

// TestChainUndoesEveryKind sends chains that fail. The first transfer of each chain has a different kind, and must be
// undone.
func TestChainUndoesEveryKind(t *testing.T) {
	b := newBed(t)
	b.grant("ada", 100)
	for i, id := range []string{"a", "b", "c"} {
		h := held(id, "ada", 10)
		h.Expires = messages.Time(2000 + i)
		b.do(h)
	}
	before := b.Accounts()
	r := b.send(linked(extend("e", "a", 9000), extend("e2", "a", 0), post("p", "b", 5), void("v", "c"), held("h", "ada", 60), posted("x", "ada", "ada2", 1))...)
	if r[5].Error.Kind != messages.NotFound {
		t.Fatal(r[5].Error)
	}
	if !reflect.DeepEqual(b.Accounts(), before) || b.NextExpiry() != 2000 {
		t.Fatalf("left %+v, next expiry %v", b.Accounts(), b.NextExpiry())
	}
	b.at = 2002
	if r := b.command(Command{Verb: Expire}); r.Lapsed != 3 {
		t.Fatalf("%d lapsed", r.Lapsed)
	}
	b.balanced()
}

func TestChainThatIsMalformed(t *testing.T) {
	b := newBed(t)
	b.grant("ada", 10)
	hash := b.Hash()
	open := held("b", "ada", 1)
	open.Linked = true
	for name, chain := range map[string][]money.Transfer{
		"without an end":        linked(held("a", "ada", 1), open),
		"of one without an end": {open},
		"identifier twice":      linked(held("a", "ada", 1), held("a", "ada", 1)),
		"a malformed member":    linked(held("a", "ada", 1), held("c", "ada", 0)),
	} {
		for i, r := range b.send(chain...) {
			if r.Error == nil || r.Error.Kind != messages.Invalid {
				t.Errorf("%s: %d: %v", name, i, r.Error)
			}
		}
	}
	if b.Hash() != hash {
		t.Fatal("a malformed chain changed the state")
	}
}

// TestChainInPart sends some transfers of an earlier chain again, together with new transfers. The new transfers must
// be refused.
func TestChainInPart(t *testing.T) {
	b := newBed(t)
	b.grant("ada", 10)
	a := held("a", "ada", 1)
	a.Linked = true
	b.send(a, held("b", "ada", 1))
	r := b.send(a, held("c", "ada", 1))
	if r[0].Error != nil || r[0].Amount != 1 || r[1].Error == nil || r[1].Error.Kind != messages.Conflict {
		t.Fatalf("%+v", r)
	}
	b.has("ada", 10, 2)
	b.do(held("c", "ada", 1)) // the identifier of the refused transfer is still free
}

func TestGrantIsIdempotent(t *testing.T) {
	b := newBed(t)
	g := money.GrantRequest{Key: "k", Account: "ada", Amount: 5, Reason: "spring"}
	for range 3 {
		if r := b.command(Command{Verb: Grant, By: "ops", Grant: g}); r.Error != nil || r.Account.Balance != 5 {
			t.Fatalf("%+v", r)
		}
	}
	if r := b.command(Command{Verb: Grant, By: "ops2", Grant: g}); r.Error != nil || r.Account.Balance != 10 {
		t.Fatalf("another operator's grant under the same key: %+v", r)
	}
	g.Amount = 6
	if r := b.command(Command{Verb: Grant, By: "ops", Grant: g}); r.Error == nil || r.Error.Kind != messages.Conflict {
		t.Fatalf("other content: %v", r.Error)
	}
	b.has("ada", 10, 0)
}

// TestReasonOfAJob repeats a job's charge with a longer reason. The first reason must stay.
func TestReasonOfAJob(t *testing.T) {
	b := newBed(t)
	b.grant("ada", 10)
	b.do(held("h", "ada", 6))
	charge := post("c", "h", 4)
	charge.Job, charge.Reason = 7, "it was cancelled"
	b.do(charge)
	hash := b.Hash()
	again := charge
	again.Reason = "it was cancelled; used 3ms of processor time"
	if b.do(again) != 4 || b.Hash() != hash {
		t.Error("another result than the first")
	}
	for _, change := range []func(*money.Transfer){
		func(x *money.Transfer) { x.Amount-- },
		func(x *money.Transfer) { x.Job++ },
	} {
		other := again
		change(&other)
		b.refuse(messages.Conflict, other)
	}
}

// TestCollision checks that two identifiers with the same hash are distinguished.
func TestCollision(t *testing.T) {
	b := newBed(t)
	b.records.known.digest = func(string) uint64 { return 7 }
	b.grant("ada", 1000)
	for range 2 { // in the second round, each transfer gets its own first result
		for i := range 20 {
			if got := b.do(held(fmt.Sprint(i), "ada", messages.Credits(i+1))); got != messages.Credits(i+1) {
				t.Fatalf("%d: %v", i, got)
			}
		}
		b.has("ada", 1000, 20*21/2)
	}
	b.refuse(messages.NotFound, void("v", "no such hold"))
	b.balanced()
}
