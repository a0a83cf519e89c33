package clearing

import (
	"cmp"
	"reflect"
	"testing"

	"github.com/nats-io/nkeys"

	"github.com/candor-grid/candor/bank/ledger"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/clearing"
	moneymsg "github.com/candor-grid/candor/messages/money"
	"github.com/candor-grid/candor/messages/proof"
)

// side is one of two banks under test, with real keys. Each of its methods applies one command.
type side struct {
	testing.TB
	name   messages.Name
	keys   nkeys.KeyPair
	ledger *ledger.Ledger
	state  *State
	at     messages.Time

	meddled bool // the test changed the state without a command, so the state cannot be derived from the records
}

func newSide(t testing.TB, name messages.Name) *side {
	s := newBare(t, name)
	s.ledger.Trust(signs().root(name))
	if r := s.ledger.Apply(signs().keys(name)); r.Error != nil {
		t.Fatal(r.Error)
	}
	t.Cleanup(func() {
		if s.state == nil || s.meddled || t.Failed() {
			return
		}
		if err := derives(s.state, s.ledger); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	})
	return s
}

// newBare returns a side as newSide does, but without records of signed requests.
func newBare(t testing.TB, name messages.Name) *side {
	keys, err := nkeys.FromRawSeed(nkeys.PrefixByteAccount, []byte((name + "0123456789abcdef0123456789abcdef")[:32]))
	if err != nil {
		t.Fatal(err)
	}
	s := &side{TB: t, name: name, keys: keys, ledger: ledger.New(), at: 1000 * day}
	s.state = New(name, s.ledger, proof.Verified)
	return s
}

func (s *side) public() string {
	public, err := s.keys.PublicKey()
	if err != nil {
		s.Fatal(err)
	}
	return public
}

// pair returns east and west, peers with a limit of 100 credits. At each of them, ada has 100 credits.
func pair(t testing.TB) (east, west *side) {
	return acquainted(newSide(t, "east"), newSide(t, "west"))
}

// barePair does the same as pair, but the sides keep no records of signed requests. So a test can apply thousands of
// commands.
func barePair(t testing.TB) (east, west *side) {
	return acquainted(newBare(t, "east"), newBare(t, "west"))
}

func acquainted(east, west *side) (_, _ *side) {
	east.know(west, 100)
	west.know(east, 100)
	for _, s := range []*side{east, west} {
		s.grant("ada", 100)
	}
	return east, west
}

// know makes another site a peer with the given limit.
func (s *side) know(other *side, limit messages.Credits) {
	s.Helper()
	s.must(Command{Peer: &clearing.PeerRequest{Peer: other.name, Keys: []string{other.public()}, Limit: limit * messages.Credit}})
	s.must(Command{Reserve: &clearing.ReserveRequest{Limit: 1000 * messages.Credit}})
}

func (s *side) grant(account messages.Name, credits messages.Credits) {
	s.Helper()
	s.apply(ledger.Command{Verb: ledger.Grant, Grant: moneymsg.GrantRequest{Key: account, Account: account, Amount: credits * messages.Credit}})
}

func (s *side) apply(c ledger.Command) {
	s.Helper()
	c.At, c.By = s.ledger.Now(), "ops"
	if s.ledger.Proven() != 0 {
		signs().signCommand(s.name, &c, c.At)
	}
	if r := s.ledger.Apply(c.Encode()); r.Error != nil {
		s.Fatal(r.Error)
	}
}

func (s *side) do(c Command) Result {
	s.Helper()
	c.At = s.at
	if s.ledger.Proven() != 0 {
		signs().sign(s.name, &c, s.ledger.Now())
	} else if verb, _ := c.request(); verb != "" {
		c.By = cmp.Or(c.By, "ops")
	}
	data, err := c.Encode()
	if err != nil {
		s.Fatal(err)
	}
	return s.state.Apply(data)
}

func (s *side) must(c Command) Result {
	s.Helper()
	r := s.do(c)
	if r.Error != nil {
		s.Fatalf("%s: refused: %v", s.name, r.Error)
	}
	return r
}

// refuse applies a command that must be refused with a reason and a kind. The refusal must be counted once and have
// no other effect.
func (s *side) refuse(reason Refusal, kind messages.Kind, c Command) string {
	s.Helper()
	books, count := s.ledger.Accounts(), s.state.Refused(reason)
	r := s.do(c)
	if r.Error == nil || r.Refused != reason || r.Error.Kind != kind {
		s.Fatalf("%s: got %v (%v), want a refusal for %v of kind %v", s.name, r.Error, r.Refused, reason, kind)
	}
	if got := s.state.Refused(reason); got != count+1 {
		s.Fatalf("%s: %v was counted %d times, want %d", s.name, reason, got, count+1)
	}
	if !reflect.DeepEqual(s.ledger.Accounts(), books) {
		s.Fatalf("%s: a refused command changed an account", s.name)
	}
	return r.Error.Message
}

// authorise lets ada set credits aside for another site, for an hour.
func (s *side) authorise(other *side, key string, credits messages.Credits) clearing.SignedAuthorisation {
	s.Helper()
	r := s.must(Command{By: "ada", Authorise: &clearing.AuthoriseRequest{Key: key, Peer: other.name, Amount: credits * messages.Credit, Interval: 3600 * span}})
	signed, err := SignAuthorisation(s.keys, *r.Authorisation)
	if err != nil {
		s.Fatal(err)
	}
	return signed
}

func accepting(a clearing.SignedAuthorisation) Command {
	return Command{By: "$auctioneer", Accept: &clearing.AcceptRequest{Purpose: "job", Authorisation: a}}
}

func charging(a clearing.SignedAuthorisation, credits messages.Credits) Command {
	return Command{By: "$auctioneer", Charge: &clearing.ChargeRequest{Issuer: a.Authorisation.Issuer, ID: a.Authorisation.ID, Amount: credits * messages.Credit, Job: 7}}
}

func (s *side) outgoing(other *side) clearing.SignedInstructions {
	s.Helper()
	m, ok := s.state.Outgoing(other.name, s.at)
	if !ok {
		s.Fatalf("%s does not know %s", s.name, other.name)
	}
	return s.sign(m)
}

func (s *side) sign(m clearing.Instructions) clearing.SignedInstructions {
	s.Helper()
	signed, err := SignInstructions(s.keys, m)
	if err != nil {
		s.Fatal(err)
	}
	return signed
}

func (s *side) answer(m clearing.SignedInstructions) clearing.SignedReceipt {
	s.Helper()
	r := s.must(Command{Instructions: &m})
	signed, err := SignReceipt(s.keys, *r.Receipt)
	if err != nil {
		s.Fatal(err)
	}
	return signed
}

func (s *side) exchange(other *side) {
	s.Helper()
	receipt := other.answer(s.outgoing(other))
	s.must(Command{Receipt: &receipt})
}

func (s *side) has(account messages.Name, balance, reserved messages.Credits) {
	s.Helper()
	a, err := s.ledger.Account(account)
	if err != nil {
		s.Fatal(err)
	}
	if a.Balance != balance*messages.Credit || a.Reserved != reserved*messages.Credit {
		s.Errorf("%s: %s has %v with %v reserved, want %v with %v", s.name, account, a.Balance, a.Reserved, balance, reserved)
	}
}

func (s *State) Refused(r Refusal) uint64 { return s.incoming.refused[r] }
