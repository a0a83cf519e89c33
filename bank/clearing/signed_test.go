package clearing

import (
	"bytes"
	"cmp"
	"fmt"
	"sync"

	"github.com/nats-io/jwt/v2"
	"github.com/nats-io/nkeys"

	"github.com/candor-grid/candor/bank/ledger"
	"github.com/candor-grid/candor/messages"
	moneymsg "github.com/candor-grid/candor/messages/money"
	"github.com/candor-grid/candor/messages/proof"
	"github.com/candor-grid/candor/messages/wire"
)

// signatory signs requests in tests, for any caller.
type signatory struct {
	account nkeys.KeyPair
	roles   map[string]nkeys.KeyPair

	mu     sync.Mutex
	issued map[string]proof.Principal // by role and name
	count  messages.Time              // number of requests, so that no two are signed for the same time
}

var signs = sync.OnceValue(func() *signatory {
	s := &signatory{account: sure(nkeys.CreateAccount()), roles: map[string]nkeys.KeyPair{}, issued: map[string]proof.Principal{}}
	for _, role := range []string{"user", "operator", "service"} {
		s.roles[role] = sure(nkeys.CreateAccount())
	}
	return s
})

func sure[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

func (s *signatory) root(site messages.Name) *ledger.Root {
	return &ledger.Root{Site: site, Account: sure(s.account.PublicKey())}
}

// keys returns the first command of a journal. It records the site's public keys, in a statement that the site's
// account signed.
func (s *signatory) keys(site messages.Name) []byte {
	k := messages.SiteKeys{Site: site}
	for _, role := range []string{"user", "operator", "service"} {
		k.Roles = append(k.Roles, messages.RoleKey{Role: role, Key: sure(s.roles[role].PublicKey())})
	}
	payload := sure(wire.Marshal(&k, wire.Msgpack))
	c := ledger.Command{Verb: ledger.Keys, Asked: &messages.SignedRequest{Proof: messages.Proof{Signature: sure(s.account.Sign(proof.KeysText(payload)))}, Payload: payload}}
	return c.Encode()
}

// asked returns a request signed by a caller, with credentials of a role that may make the request.
func (s *signatory) asked(site, by messages.Name, verb string, request any, at messages.Time) *messages.SignedRequest {
	s.mu.Lock()
	defer s.mu.Unlock()
	role := "user"
	switch {
	case by == "ops":
		role = "operator"
	case by[:1] == "$":
		role = "service"
	}
	p := s.principal(role, by)
	payload := sure(wire.Marshal(request, wire.Msgpack))
	s.count++
	return &messages.SignedRequest{Proof: sure(p.Sign(site, verb, by, at+s.count%second, payload)), Payload: payload}
}

func (s *signatory) principal(role string, name messages.Name) proof.Principal {
	key := role + " " + name
	if p, issued := s.issued[key]; issued {
		return p
	}
	user := sure(nkeys.CreateUser())
	claims := jwt.NewUserClaims(sure(user.PublicKey()))
	claims.Name, claims.IssuerAccount = name, sure(s.account.PublicKey())
	claims.SetScoped(true)
	p := proof.Principal{Token: sure(claims.Encode(s.roles[role])), Seed: string(sure(user.Seed()))}
	s.issued[key] = p
	return p
}

// sign adds the signature to a command that needs one.
func (s *signatory) sign(site messages.Name, c *Command, now messages.Time) {
	verb, request := c.request()
	if verb == "" || c.Asked != nil {
		return
	}
	by := cmp.Or(c.By, "ops")
	c.By, c.Asked = by, s.asked(site, by, verb, request, max(c.At, now))
}

// signCommand does the same as sign, for a command of the ledger.
func (s *signatory) signCommand(site messages.Name, c *ledger.Command, now messages.Time) {
	verb, request := "", any(nil)
	switch c.Verb {
	case ledger.Grant:
		verb, request = messages.VerbGrant, &c.Grant
	case ledger.Freeze:
		verb, request = moneymsg.VerbFreeze, &c.Freeze
	case ledger.Credit:
		verb, request = moneymsg.VerbCredit, &c.Credit
	case ledger.Withdraw:
		verb, request = moneymsg.VerbWithdraw, &c.Withdraw
	case ledger.Correct:
		verb, request = moneymsg.VerbCorrect, &c.Correct
	case ledger.Pay:
		verb, request = moneymsg.VerbPay, &c.Pay
	case ledger.Member:
		verb, request = messages.VerbMember, &c.Member
	case ledger.Project:
		verb, request = moneymsg.VerbProject, &c.Project
	default:
		return
	}
	c.Asked = s.asked(site, c.By, verb, request, max(c.At, now))
}

// derives returns an error if the image of a state differs from the state derived from its records.
func derives(state *State, books *ledger.Ledger) error {
	if books.Proven() == 0 {
		return fmt.Errorf("its records are not proven")
	}
	var image bytes.Buffer
	if _, err := books.Capture().WriteTo(&image); err != nil {
		return err
	}
	var derived *State
	fresh := ledger.New()
	fresh.Trust(signs().root(state.peers.site))
	settles := func(l *ledger.Ledger) ledger.Settler {
		derived = New(state.peers.site, l, state.screen.verify)
		return derived
	}
	if _, err := fresh.RestoreWith(&image, ledger.Checking{Settles: settles}); err != nil {
		return fmt.Errorf("a false alarm: %w", err)
	}
	if fresh.Hash() != books.Hash() {
		return fmt.Errorf("a false alarm: the ledger is derived as another")
	}
	if err := state.Differs(derived); err != nil {
		return fmt.Errorf("a false alarm: %w%s", err, difference(state.Capture(), derived.Capture()))
	}
	return nil
}

// difference returns the parts of two images that differ.
func difference(a, b *Image) (text string) {
	a.head.Refused, b.head.Refused = nil, nil
	add := func(x, y string) {
		from := 0
		for from < min(len(x), len(y)) && x[from] == y[from] {
			from++
		}
		if from = max(0, from-60); x != y {
			text += "\n" + messages.Short(x[from:], 300) + "\nand derived\n" + messages.Short(y[from:], 300)
		}
	}
	add(fmt.Sprintf("%+v", a.head), fmt.Sprintf("%+v", b.head))
	for i := range min(len(a.peers), len(b.peers)) {
		add(fmt.Sprintf("%+v", a.peers[i]), fmt.Sprintf("%+v", b.peers[i]))
	}
	add(fmt.Sprintf("%+v", a.waiting), fmt.Sprintf("%+v", b.waiting))
	add(fmt.Sprintf("%+v", a.issued), fmt.Sprintf("%+v", b.issued))
	add(fmt.Sprintf("%+v", a.accepted), fmt.Sprintf("%+v", b.accepted))
	return text
}
