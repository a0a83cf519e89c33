package books_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/candor-grid/candor/bank/history"
	"github.com/candor-grid/candor/bank/ledger"
	"github.com/candor-grid/candor/cmd/candor/internal/client/cli"
	"github.com/candor-grid/candor/deploy/identity"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/money"
	"github.com/candor-grid/candor/messages/proof"
	"github.com/candor-grid/candor/messages/wire"
)

// proven is a ledger that accepts only requests with proofs. Its field authority has the keys of the site.
type proven struct {
	*testing.T
	*ledger.Ledger
	authority *identity.Authority
	at        messages.Time
}

func newProven(t *testing.T, keys string) *proven {
	t.Helper()
	p := &proven{T: t, Ledger: ledger.New(), at: messages.TimeOf(time.Now())}
	var err error
	if p.authority, err = identity.Create(keys, "west"); err != nil {
		t.Fatal(err)
	}
	exchange, err := p.authority.Exchange()
	if err != nil {
		t.Fatal(err)
	}
	p.Trust(&ledger.Root{Site: "west", Account: p.authority.AccountKey(), Exchange: exchange, Later: p.authority.Later})
	payload, err := wire.Marshal(&messages.SiteKeys{Site: "west", Roles: p.authority.RoleKeys()}, wire.Msgpack)
	if err != nil {
		t.Fatal(err)
	}
	signature, err := p.authority.SignAccount(proof.KeysText(payload))
	if err != nil {
		t.Fatal(err)
	}
	p.does(p.Apply, ledger.Command{Verb: ledger.Keys, Asked: &messages.SignedRequest{Proof: messages.Proof{Signature: signature}, Payload: payload}})
	return p
}

func (p *proven) does(apply func([]byte) ledger.Result, c ledger.Command) {
	p.Helper()
	c.At = p.at
	if r := apply(c.Encode()); r.Error != nil {
		p.Fatal(r.Error)
	}
}

func (p *proven) signed(role identity.Role, name messages.Name, verb string, request any) *messages.SignedRequest {
	p.Helper()
	payload, err := wire.Marshal(request, wire.Msgpack)
	if err != nil {
		p.Fatal(err)
	}
	c, err := p.authority.Credentials(role, name)
	if err != nil {
		p.Fatal(err)
	}
	principal := proof.Principal{Token: c.Token, Seed: c.Seed}
	signature, err := principal.Sign("west", verb, name, p.at, payload)
	if err != nil {
		p.Fatal(err)
	}
	return &messages.SignedRequest{Proof: signature, Payload: payload}
}

// A forged record pays bob from alice's account, as if an operator had asked for it. The request is signed by bob, who
// is no operator. The verification must fail; with --quick, it must say that nothing proves who asked. The page on
// books shows the same texts.
func TestVerifyFindsATheft(t *testing.T) {
	page, err := os.ReadFile("../../../../../deploy/docs/books.md")
	if err != nil {
		t.Fatal(err)
	}
	words := strings.Join(strings.Fields(string(page)), " ")
	for what, c := range map[string]struct {
		plants      bool
		args        []string
		code        int
		prints, err string
	}{
		"honest books":        {code: cli.CodeOK, prints: "The books verify"},
		"a theft":             {plants: true, code: cli.CodeFailed, err: "does not follow from the records before it: the request claims another role"},
		"a theft, by --quick": {plants: true, args: []string{"--quick"}, code: cli.CodeOK, prints: "not proven: that somebody asked for these records"},
	} {
		t.Run(what, func(t *testing.T) {
			if !strings.Contains(words, c.prints) || !strings.Contains(words, c.err) {
				t.Errorf("the page on books does not have %q and %q", c.prints, c.err)
			}
			state := t.TempDir()
			keys, dir := filepath.Join(state, "keys"), filepath.Join(state, messages.Bank, "1")
			p := newProven(t, keys)
			for _, name := range []messages.Name{"alice", "bob"} {
				r := money.GrantRequest{Key: name, Account: name, Amount: 1000 * messages.Credit, Reason: "allocation"}
				p.does(p.Apply, ledger.Command{Verb: ledger.Grant, By: "ops", Rank: ledger.Operator, Asked: p.signed(identity.Operator, "ops", messages.VerbGrant, r)})
			}
			if c.plants {
				pay := money.PayRequest{Key: "x", From: "alice", To: "bob", Amount: 900 * messages.Credit, Reason: "r"}
				if _, err := p.Asked(money.VerbPay, "bob", p.signed(identity.User, "bob", money.VerbPay, pay), p.Now()); err != nil {
					t.Fatal(err)
				}
				p.does(p.ApplyOwn, ledger.Command{Verb: ledger.Pay, By: "bob", Rank: ledger.Operator, Within: true, Pay: pay})
			}
			files, err := history.Directory(filepath.Join(dir, "history"))
			if err != nil {
				t.Fatal(err)
			}
			if err := history.New(files, history.SegmentBytes, nil).SaveTail(p.Capture().Tail()); err != nil {
				t.Fatal(err)
			}
			r := withBooks(t).site.Run(append([]string{"bank", "verify", "--history", dir}, c.args...)...)
			r.Expect(t, c.code, c.prints, c.err)
		})
	}
}
