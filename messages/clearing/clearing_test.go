package clearing

import (
	"math"
	"strings"
	"testing"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/money"
)

// Each request has one fault. Its check must return an error of the right kind that begins with the field's name.
func TestClearingRequestsAreChecked(t *testing.T) {
	long := strings.Repeat("x", 300)
	authorisation := func(change func(*Authorisation)) error {
		a := Authorisation{Issuer: "east", Peer: "west", ID: "ada/k", Account: "ada", Member: "ada", Amount: 1, Issued: 1, Interval: MinInterval, Margin: MaxClockSkew}
		change(&a)
		return (&SignedAuthorisation{Authorisation: a}).Validate()
	}
	authorise := func(change func(*AuthoriseRequest)) error {
		r := AuthoriseRequest{Key: "k", Peer: "west", Amount: 1, Interval: MaxInterval}
		change(&r)
		return r.Validate()
	}
	remit := func(change func(*RemitRequest)) error {
		r := RemitRequest{Key: "k", Peer: "west", Payee: "bob", Amount: messages.MaxCredits}
		change(&r)
		return r.Validate()
	}
	charge := func(change func(*ChargeRequest)) error {
		r := ChargeRequest{Issuer: "east", ID: "ada/k", Payee: money.SiteAccount}
		change(&r)
		return r.Validate()
	}
	peer := func(change func(*PeerRequest)) error {
		r := PeerRequest{Peer: "west", Keys: []string{"k"}}
		change(&r)
		return r.Validate()
	}
	instruction := func(i Instruction) error { return i.Validate() }

	for _, good := range []error{
		authorisation(func(*Authorisation) {}), authorise(func(*AuthoriseRequest) {}), remit(func(*RemitRequest) {}),
		charge(func(*ChargeRequest) {}), peer(func(*PeerRequest) {}), (&RevokeRequest{ID: "ada/k"}).Validate(),
		(&ReserveRequest{}).Validate(), (&LinesRequest{Sender: "east", Limit: MaxBookLines}).Validate(),
		instruction(Instruction{Kind: InstructPay, Account: "bob", Amount: 1}), instruction(Instruction{Kind: InstructCharge, ID: "ada/k"}),
		instruction(Instruction{Kind: InstructSettle, Cycle: 1}), instruction(Instruction{Kind: InstructRevoke, ID: "ada/k"}),
	} {
		if good != nil {
			t.Errorf("refused: %v", good)
		}
	}
	for i, c := range []struct {
		err   error
		kind  messages.Kind
		field string
	}{
		{authorisation(func(a *Authorisation) { a.Issuer = "$east" }), messages.Invalid, "issuer"},
		{authorisation(func(a *Authorisation) { a.Peer = "" }), messages.Invalid, "peer"},
		{authorisation(func(a *Authorisation) { a.Account = "A da" }), messages.Invalid, "account"},
		{authorisation(func(a *Authorisation) { a.Member = "a b" }), messages.Invalid, "member"},
		{authorisation(func(a *Authorisation) { a.ID = "" }), messages.Invalid, "id"},
		{authorisation(func(a *Authorisation) { a.ID = long }), messages.TooLarge, "id"},
		{authorisation(func(a *Authorisation) { a.Amount = 0 }), messages.Invalid, "amount"},
		{authorisation(func(a *Authorisation) { a.Amount = math.MinInt64 }), messages.Invalid, "amount"},
		{authorisation(func(a *Authorisation) { a.Amount = math.MaxInt64 }), messages.TooLarge, "amount"},
		{authorisation(func(a *Authorisation) { a.Issued = 0 }), messages.Invalid, "issued"},
		{authorisation(func(a *Authorisation) { a.Issued = math.MaxInt64 }), messages.Invalid, "issued"},
		{authorisation(func(a *Authorisation) { a.Interval = MinInterval - 1 }), messages.Invalid, "interval"},
		{authorisation(func(a *Authorisation) { a.Interval = math.MaxInt64 }), messages.Invalid, "interval"},
		{authorisation(func(a *Authorisation) { a.Margin = MaxClockSkew - 1 }), messages.Invalid, "margin"},
		{authorisation(func(a *Authorisation) { a.Margin = math.MaxInt64 }), messages.Invalid, "margin"},
		{(&AcceptRequest{}).Validate(), messages.Invalid, "purpose"},
		{(&AcceptRequest{Purpose: long}).Validate(), messages.TooLarge, "purpose"},
		{(&AcceptRequest{Purpose: "job"}).Validate(), messages.Invalid, "issuer"},
		{authorise(func(r *AuthoriseRequest) { r.Key = "" }), messages.Invalid, "key"},
		{authorise(func(r *AuthoriseRequest) { r.Key = long }), messages.TooLarge, "key"},
		{authorise(func(r *AuthoriseRequest) { r.Account = "$site" }), messages.Invalid, "account"},
		{authorise(func(r *AuthoriseRequest) { r.Amount = -1 }), messages.Invalid, "amount"},
		{authorise(func(r *AuthoriseRequest) { r.Interval = 0 }), messages.Invalid, "interval"},
		{remit(func(r *RemitRequest) { r.Peer = "x.y" }), messages.Invalid, "peer"},
		{remit(func(r *RemitRequest) { r.Payee = "" }), messages.Invalid, "payee"},
		{remit(func(r *RemitRequest) { r.Amount++ }), messages.TooLarge, "amount"},
		{remit(func(r *RemitRequest) { r.Reason = long }), messages.TooLarge, "reason"},
		{remit(func(r *RemitRequest) { r.Reason = "a\nb" }), messages.Invalid, "reason"},
		{charge(func(r *ChargeRequest) { r.Issuer = "" }), messages.Invalid, "issuer"},
		{charge(func(r *ChargeRequest) { r.Payee = money.IssuerAccount }), messages.Invalid, "payee"},
		{charge(func(r *ChargeRequest) { r.Amount = -1 }), messages.Invalid, "amount"},
		{charge(func(r *ChargeRequest) { r.ID = "" }), messages.Invalid, "id"},
		{peer(func(r *PeerRequest) { r.Peer = "w" + strings.Repeat("x", MaxPeerName) }), messages.TooLarge, "peer"},
		{peer(func(r *PeerRequest) { r.Peer = messages.Auctioneer }), messages.Invalid, "peer"},
		{peer(func(r *PeerRequest) { r.Keys = nil }), messages.Invalid, "keys"},
		{peer(func(r *PeerRequest) { r.Keys = make([]string, MaxPeerKeys+1) }), messages.Invalid, "keys"},
		{peer(func(r *PeerRequest) { r.Limit = -1 }), messages.Invalid, "limit"},
		{(&ReserveRequest{Limit: math.MaxInt64}).Validate(), messages.Invalid, "limit"},
		{(&ReconcileRequest{}).Validate(), messages.Invalid, "peer"},
		{(&LinesRequest{}).Validate(), messages.Invalid, "sender"},
		{(&LinesRequest{Sender: "east", Limit: MaxBookLines + 1}).Validate(), messages.TooLarge, "limit"},
		{instruction(Instruction{Kind: InstructPay, Account: "bob"}), messages.Invalid, "amount"},
		{instruction(Instruction{Kind: InstructPay, Account: "$site", Amount: 1}), messages.Invalid, "account"},
		{instruction(Instruction{Kind: InstructSettle}), messages.Invalid, "cycle"},
		{instruction(Instruction{Kind: 9, Amount: 1}), messages.Invalid, "kind"},
	} {
		if c.err == nil || messages.KindOf(c.err) != c.kind || !strings.HasPrefix(messages.Detail(c.err), c.field) {
			t.Errorf("case %d: got %v, want %v about %q", i, c.err, c.kind, c.field)
		}
	}
}

func TestInstructionKindsHaveNames(t *testing.T) {
	for k := InstructPay; k <= InstructRevoke; k++ {
		text, err := k.MarshalText()
		var back InstructionKind
		if err != nil || back.UnmarshalText(text) != nil || back != k {
			t.Errorf("%v is written %q and read %v", k, text, back)
		}
	}
	var k InstructionKind
	if err := k.UnmarshalText([]byte("steal")); messages.KindOf(err) != messages.Invalid || InstructionKind(9).String() != "unknown" {
		t.Errorf("got %v", err)
	}
}
