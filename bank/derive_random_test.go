package bank

import (
	"bytes"
	"context"
	"crypto/ecdh"
	crypto "crypto/rand"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"testing"

	"github.com/nats-io/nkeys"

	"github.com/candor-grid/candor/bank/clearing"
	"github.com/candor-grid/candor/bank/ledger"
	"github.com/candor-grid/candor/messages"
	clearingmsg "github.com/candor-grid/candor/messages/clearing"
	"github.com/candor-grid/candor/messages/money"
	"github.com/candor-grid/candor/messages/proof"
	"github.com/candor-grid/candor/messages/wire"
)

// past is a bank with a history of random requests. The requests are correctly signed, and come from all kinds of
// callers.
type past struct {
	*rand.Rand
	b    *bed
	k    *siteKeys
	east nkeys.KeyPair // the key of a peer

	issued   map[string]proof.Principal
	sessions []marking
	transfer []string // identifiers of transfers
	granted  []clearingmsg.Authorisation
	accepted []string
	n        int
	batch    [][]byte
	after    []func(result any)
	done     map[string]int // number of requests that were carried out, by kind
}

type marking struct {
	number uint64
	marker *proof.Marker
	by     messages.Name
	rank   ledger.Rank
}

var pastNames = []messages.Name{"ada", "bob", "cyd", "project", "nobody", money.SiteAccount}

func (p *past) name() messages.Name { return pastNames[p.IntN(len(pastNames))] }
func (p *past) key() string         { p.n++; return fmt.Sprint(p.n - p.IntN(2)) }
func (p *past) amount() messages.Credits {
	return messages.Credits(1 + p.Int64N(int64(8*c)))
}

func (p *past) id() string {
	if len(p.transfer) == 0 {
		return "none"
	}
	return p.transfer[len(p.transfer)-1-p.IntN(min(12, len(p.transfer)))]
}

func (p *past) later() messages.Time { return p.b.clock() + messages.Time(p.Int64N(1800_000_000)) }

func (p *past) asked(role string, by messages.Name, verb string, request any) *messages.SignedRequest {
	p.b.Helper()
	who, known := p.issued[role+by]
	if !known {
		who = p.k.issue(role, by)
		p.issued[role+by] = who
	}
	payload, err := wire.Marshal(request, wire.Msgpack)
	if err != nil {
		p.b.Fatal(err)
	}
	p.n++
	signed, err := who.Sign("here", verb, by, p.b.clock()+messages.Time(p.n), payload)
	if err != nil {
		p.b.Fatal(err)
	}
	return &messages.SignedRequest{Proof: signed, Payload: payload}
}

var pastRanks = map[string]ledger.Rank{"operator": ledger.Operator, "user": ledger.User, "service": ledger.Service}

func (p *past) asks(verb ledger.Verb, name, role string, by messages.Name, request any) {
	p.proposes(&ledger.Command{Verb: verb, By: by, Rank: pastRanks[role], Asked: p.asked(role, by, name, request)}, func(r ledger.Result) {
		if r.Error == nil {
			p.done[name]++
		}
	})
}

func (p *past) proposes(command *ledger.Command, then func(ledger.Result)) {
	command.At = p.b.clock() - messages.Time(p.IntN(3)*500) // a leader's clock may be behind the clock of the leader before it
	p.batch = append(p.batch, command.Encode())
	p.after = append(p.after, func(r any) { then(r.(ledger.Result)) })
}

func (p *past) settles(name string, command clearing.Command, then func(clearing.Result)) {
	command.At = p.b.clock()
	data, err := command.Encode()
	if err != nil {
		p.b.Fatal(err)
	}
	p.batch = append(p.batch, data)
	p.after = append(p.after, func(result any) {
		r := result.(clearing.Result)
		if r.Error == nil {
			p.done[name]++
		} else {
			p.done["refused by the clearing"]++
		}
		if then != nil {
			then(r)
		}
	})
}

// flush applies the collected commands as one entry of the log.
func (p *past) flush() {
	results, err := p.b.bank.machine.Apply(0, p.batch)
	if err != nil {
		p.b.Fatal(err)
	}
	for i, r := range results {
		p.after[i](r)
	}
	p.batch, p.after = nil, nil
}

func (p *past) step() {
	switch n := p.IntN(40); {
	case n < 12:
		p.manage()
	case n < 20:
		p.marked()
	case n < 34:
		p.trade()
	case n < 38:
		p.passes()
	case n < 39:
		p.opens()
	default:
		p.keys()
	}
	if p.IntN(3) > 0 {
		p.flush()
	}
}

func (p *past) passes() {
	p.flush()
	by := []int64{1, 2_000_000, 600_000_000, 1700_000_000}[p.IntN(4)]
	p.b.setClock(p.b.clock() + messages.Time(1+p.Int64N(by)))
	if p.IntN(2) == 0 {
		p.settles("the passing of time", clearing.Command{}, nil)
		return
	}
	p.proposes(&ledger.Command{Verb: ledger.Expire}, func(r ledger.Result) { p.done["lapsed"] += r.Lapsed })
}

func (p *past) manage() {
	a, b, amount := p.name(), p.name(), p.amount()
	switch p.IntN(11) {
	case 0, 1, 2:
		g := money.GrantRequest{Key: p.key(), Account: a, Amount: 4 * amount, Reason: "r"}
		if p.IntN(2) == 0 {
			g.Expires = p.later()
		}
		p.transfer = append(p.transfer, "$grant/ops/"+g.Key)
		p.asks(ledger.Grant, messages.VerbGrant, "operator", "ops", g)
	case 3:
		r := money.PayRequest{Key: p.key(), From: a, To: b, Amount: amount, Reason: "r"}
		p.transfer = append(p.transfer, "$pay/"+a+"/"+r.Key)
		p.asks(ledger.Pay, money.VerbPay, "user", a, r)
	case 4:
		p.asks(ledger.Pay, money.VerbPay, "operator", "ops", money.PayRequest{Key: p.key(), From: a, To: b, Amount: amount, Reason: "r"})
	case 5:
		p.asks(ledger.Freeze, money.VerbFreeze, "operator", "ops", money.FreezeRequest{Account: a, Frozen: p.IntN(3) == 0, Reason: "r"})
	case 6:
		p.asks(ledger.Credit, money.VerbCredit, "operator", "ops", money.CreditRequest{Account: a, Credit: amount, Reason: "r"})
	case 7:
		p.asks(ledger.Withdraw, money.VerbWithdraw, "operator", "ops", money.WithdrawRequest{Key: p.key(), Account: a, Amount: amount, Reason: "r"})
	case 8:
		r := money.CorrectRequest{Transfer: p.id(), Reason: "r"}
		if p.IntN(2) == 0 {
			r.Amount = amount
		}
		p.asks(ledger.Correct, money.VerbCorrect, "operator", "ops", r)
	case 9:
		r := money.MemberRequest{Account: "project", Member: a, Remove: p.IntN(4) == 0}
		if p.IntN(2) == 0 && !r.Remove {
			role, limit := money.Role(1+p.IntN(2)), amount
			r.Role, r.Limit = &role, &limit
		}
		p.asks(ledger.Member, messages.VerbMember, "operator", "ops", r)
	default:
		p.asks(ledger.Project, money.VerbProject, "operator", "ops", money.ProjectRequest{Account: "project", Title: fmt.Sprint("t", p.IntN(2))})
	}
}

func (p *past) opens() {
	own, err := ecdh.X25519().GenerateKey(crypto.Reader)
	if err != nil {
		p.b.Fatal(err)
	}
	_, exchange := p.b.bank.machine.ledger.Successors()
	public := own.PublicKey().Bytes()
	secret, err := proof.Agree("here", own, exchange.PublicKey().Bytes(), public, exchange.PublicKey().Bytes())
	if err != nil {
		p.b.Fatal(err)
	}
	role, by := "service", messages.Name("$auctioneer")
	if p.IntN(3) == 0 {
		role, by = "operator", "ops"
	}
	c := ledger.Command{Verb: ledger.Session, By: by, Rank: pastRanks[role], Asked: p.asked(role, by, messages.VerbSession, messages.SessionRequest{Key: public})}
	p.proposes(&c, func(r ledger.Result) {
		if r.Error == nil {
			p.done["session"]++
			p.sessions = append(p.sessions, marking{r.Session.Session, proof.NewMarker(secret), by, pastRanks[role]})
		}
	})
}

func (p *past) marked() {
	if len(p.sessions) == 0 {
		p.opens()
		return
	}
	s := p.sessions[len(p.sessions)-1-p.IntN(min(3, len(p.sessions)))]
	list := make([]money.Transfer, 1+p.IntN(4))
	for i := range list {
		a := p.name()
		t := money.Transfer{ID: fmt.Sprint("t", p.key()), Linked: i < len(list)-1 && p.IntN(2) == 0}
		switch p.IntN(6) {
		case 0, 1:
			t.Kind, t.Debit, t.Member, t.Amount = money.Hold, a, a, p.amount()
			if p.IntN(2) == 0 {
				t.Expires = p.later()
			}
		case 2:
			t.Kind, t.Debit, t.Credit, t.Amount = money.Posted, a, p.name(), p.amount()
		case 3:
			t.Kind, t.Pending = money.Void, p.id()
		case 4:
			t.Kind, t.Pending, t.Expires = money.Extend, p.id(), p.later()
		default:
			t.Kind, t.Pending, t.Credit, t.Amount = money.Post, p.id(), money.SiteAccount, p.amount()/4
		}
		p.transfer = append(p.transfer, t.ID)
		list[i] = t
	}
	c := ledger.Command{Verb: ledger.Transfers, By: s.by, Rank: s.rank, Transfers: list, Proof: &messages.TransferProof{Session: s.number, Marks: s.marker.Transfers(list)}}
	p.proposes(&c, func(r ledger.Result) {
		for i := range r.Transfers {
			if r.Transfers[i].Error == nil {
				p.done[list[i].Kind.String()]++
			} else {
				p.done["refused transfers"]++
			}
		}
	})
}

// keys makes the site change its keys: it rotates, ends or revokes one of them, or replaces the account's key.
func (p *past) keys() {
	p.flush()
	switch role := []string{"user", "operator", "service"}[p.IntN(3)]; p.IntN(5) {
	case 0, 1:
		p.k.rotate(role)
		p.issued = map[string]proof.Principal{}
	case 2:
		p.k.finish(role)
		p.issued = map[string]proof.Principal{}
	case 3:
		who := p.k.issue("user", "bob")
		token, err := proof.ReadToken(who.Token)
		if err != nil {
			p.b.Fatal(err)
		}
		p.k.mu.Lock()
		p.k.revoked = append(p.k.revoked, token.Key)
		p.k.mu.Unlock()
	default:
		p.k.succeed()
		p.sessions = nil
		p.done["succession"]++
	}
	if err := p.b.bank.keys.declare(context.Background()); err != nil {
		p.b.Fatal(err)
	}
}

func (p *past) peer() clearingmsg.PeerReply {
	for _, r := range p.b.bank.machine.clearing.Peers().Peers {
		return r
	}
	return clearingmsg.PeerReply{}
}

// trade makes a random request about a peer. The peer may answer with anything that it can sign.
func (p *past) trade() {
	ask := func(verb, role string, by messages.Name, c clearing.Command, request any, then func(clearing.Result)) {
		c.By, c.Asked = by, p.asked(role, by, verb, request)
		p.settles(verb, c, then)
	}
	user, amount := pastNames[p.IntN(3)], p.amount()
	switch is := p.peer(); p.IntN(16) {
	case 0, 1:
		if is.Standing == clearingmsg.PeerParted || p.IntN(8) == 0 {
			p.east = accountKey(p.b.T)
		}
		r := clearingmsg.PeerRequest{Peer: "east", Keys: []string{public(p.b.T, p.east)}, Limit: 10 * amount}
		ask(clearingmsg.VerbPeer, "operator", "ops", clearing.Command{Peer: &r}, r, nil)
	case 2, 3:
		r := clearingmsg.AuthoriseRequest{Key: p.key(), Peer: "east", Amount: amount, Interval: clearingmsg.MinInterval * messages.Duration(1+p.IntN(20))}
		ask(clearingmsg.VerbAuthorise, "user", user, clearing.Command{Authorise: &r}, r, func(r clearing.Result) {
			if r.Authorisation != nil {
				p.granted = append(p.granted, *r.Authorisation)
			}
		})
	case 4:
		if len(p.granted) > 0 {
			a := p.granted[p.IntN(len(p.granted))]
			r := clearingmsg.RevokeRequest{ID: a.ID}
			ask(clearingmsg.VerbRevoke, "user", a.Member, clearing.Command{Revoke: &r}, r, nil)
		}
	case 5, 6:
		r := clearingmsg.RemitRequest{Key: p.key(), Peer: "east", Payee: "eve", Amount: amount, Reason: "r"}
		ask(clearingmsg.VerbRemit, "user", user, clearing.Command{Remit: &r}, r, nil)
	case 7, 8:
		a := clearingmsg.Authorisation{Issuer: "east", Peer: "here", ID: "eve/" + p.key(), Account: "eve", Member: "eve", Amount: amount, Issued: p.b.clock(), Interval: clearingmsg.MinInterval * messages.Duration(1+p.IntN(20)), Margin: clearingmsg.MaxClockSkew}
		signed, err := clearing.SignAuthorisation(p.east, a)
		if err != nil {
			p.b.Fatal(err)
		}
		r := clearingmsg.AcceptRequest{Purpose: "job", Authorisation: signed}
		p.accepted = append(p.accepted, a.ID)
		ask(clearingmsg.VerbAccept, "service", "$auctioneer", clearing.Command{Accept: &r}, r, nil)
	case 9:
		if len(p.accepted) > 0 {
			r := clearingmsg.ChargeRequest{Issuer: "east", ID: p.accepted[p.IntN(len(p.accepted))], Amount: amount / 2}
			ask(clearingmsg.VerbCharge, "service", "$auctioneer", clearing.Command{Charge: &r}, r, nil)
		}
	case 10, 11, 12:
		p.said()
	case 13:
		p.answered()
	case 14:
		r := clearingmsg.CloseRequest{Cycle: p.b.bank.machine.clearing.Cycle() + 1}
		ask(clearingmsg.VerbClose, "operator", "ops", clearing.Command{Close: &r}, r, nil)
	default:
		p.rare(ask)
	}
}

func (p *past) rare(ask func(verb, role string, by messages.Name, c clearing.Command, request any, then func(clearing.Result))) {
	switch p.IntN(12) {
	case 6, 7, 8, 9, 10, 11:
		r := clearingmsg.ReserveRequest{Limit: 20 * p.amount()}
		ask(clearingmsg.VerbReserve, "operator", "ops", clearing.Command{Reserve: &r}, r, nil)
	case 0, 1:
		p.settles("silence", clearing.Command{Silent: "east"}, nil)
	case 2:
		p.settles("restoration", clearing.Command{Incarnation: uint64(p.b.clock())}, nil)
		p.settles("comparison", clearing.Command{Compared: "east"}, nil)
	case 3:
		p.settles("comparison", clearing.Command{Compared: "east", Known: p.Uint64() >> p.IntN(64)}, nil)
	case 4:
		r := clearingmsg.PartRequest{Peer: "east"}
		ask(clearingmsg.VerbPart, "operator", "ops", clearing.Command{Part: &r}, r, nil)
	default:
		is := p.peer()
		loss := max(0, is.Settled-is.Owed)
		r := clearingmsg.PartRequest{Peer: "east", Loss: &loss, Account: pastNames[p.IntN(3)], Reason: "gone"}
		ask(clearingmsg.VerbPart, "operator", "ops", clearing.Command{Part: &r}, r, nil)
	}
}

// said makes the peer sign a message with random instructions. Often the rules between the banks do not allow these
// instructions.
func (p *past) said() {
	p.flush()
	is := p.peer()
	m := clearingmsg.Instructions{From: "east", To: "here", First: is.Received.Number + 1, Known: is.Received, At: p.b.clock(), List: []clearingmsg.Instruction{}, Incarnation: is.Incarnation}
	for range p.IntN(3) {
		i := clearingmsg.Instruction{Kind: clearingmsg.InstructPay, ID: "x", Account: p.name(), Amount: p.amount(), Reason: "r"}
		switch n := p.IntN(8); {
		case n < 2 && len(p.granted) > 0:
			a := p.granted[p.IntN(len(p.granted))]
			i = clearingmsg.Instruction{Kind: clearingmsg.InstructCharge, ID: a.ID, Amount: a.Amount / 2}
		case n == 2:
			i = clearingmsg.Instruction{Kind: clearingmsg.InstructSettle, Cycle: p.b.bank.machine.clearing.Cycle() + uint64(p.IntN(2)), Amount: p.amount()}
		case n == 3 && len(p.accepted) > 0:
			i = clearingmsg.Instruction{Kind: clearingmsg.InstructRevoke, ID: p.accepted[p.IntN(len(p.accepted))], Expires: p.later()}
		case n == 4 && p.IntN(6) == 0:
			i = clearingmsg.Instruction{Kind: clearingmsg.InstructPart}
		}
		m.List = append(m.List, i)
	}
	switch p.IntN(12) {
	case 0:
		m.First = max(1, m.First-1)
	case 1:
		m.First++
	case 2:
		m.Known.Owed++
	case 3:
		m.Incarnation++
	}
	signed, err := clearing.SignInstructions(p.east, m)
	if err != nil {
		p.b.Fatal(err)
	}
	for range 1 + p.IntN(2) {
		p.settles("instructions", clearing.Command{Instructions: &signed}, nil)
	}
}

// answered makes the peer answer some of the instructions that this bank has sent.
func (p *past) answered() {
	p.flush()
	m, _ := p.b.bank.machine.clearing.Outgoing("east", p.b.clock())
	r := clearingmsg.Receipt{From: "east", To: "here", First: m.First, Outcomes: []money.TransferResult{}, Total: m.Known, At: p.b.clock()}
	for i := range m.List[:min(len(m.List), p.IntN(4))] {
		o := money.TransferResult{Amount: m.List[i].Amount}
		if p.IntN(4) == 0 {
			o = money.TransferResult{Error: messages.Errorf(messages.NotFound, "no")}
		}
		r.Outcomes, r.Total = append(r.Outcomes, o), clearing.After(r.Total, &m.List[i], &o)
	}
	if p.IntN(8) == 0 {
		r.Total.Owed++
	}
	signed, err := clearing.SignReceipt(p.east, r)
	if err != nil {
		p.b.Fatal(err)
	}
	p.settles("receipt", clearing.Command{Receipt: &signed}, nil)
}

// starts restores an image into a new replica, and compares the new replica's state with the state of the old one.
func (p *past) starts() error {
	var image bytes.Buffer
	from := p.b.bank.machine
	if _, err := from.Capture().WriteTo(&image); err != nil {
		return err
	}
	m := &machine{site: "here", metrics: newMetrics(), archive: from.archive, root: from.root, time: from.time}
	m.ledger, m.clearing = m.open()
	if err := m.Restore(&image); err != nil {
		return err
	}
	if m.hash() != from.hash() {
		return fmt.Errorf("it starts with another state")
	}
	return nil
}

// The test makes random, correctly signed requests. The check must be able to derive the journal from the requests, and
// a replica must start with the journal. Then the test alters a record. The check must find the change, with two
// exceptions: a change that leaves all balances the same, and an omission (see isOmission). CANDOR_SEEDS is the number
// of seeds, and CANDOR_SEED is the first seed.
func TestHonestPastsAreDerived(t *testing.T) {
	pasts := uint64(12)
	if n, err := strconv.ParseUint(os.Getenv("CANDOR_SEEDS"), 10, 32); err == nil {
		pasts = n
	}
	first, _ := strconv.ParseUint(os.Getenv("CANDOR_SEED"), 10, 32)
	done := map[string]int{}
	for seed := first; seed < first+pasts; seed++ {
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
			b, k := provenBed(t, func(c *Config) { c.ExpiryInterval = messages.Duration(3600_000_000_000) })
			p := &past{Rand: rand.New(rand.NewPCG(seed, 46)), b: b, k: k, east: accountKey(t), issued: map[string]proof.Principal{}, done: done}
			for step := range 400 {
				if p.step(); step%100 == 99 {
					p.flush()
					if err := p.starts(); err != nil {
						t.Fatalf("step %d: a false alarm: %v", step, err)
					}
				}
			}
			sound := b.records()
			want, err := standings(t, k, sound)
			if err != nil {
				t.Fatalf("a false alarm: %v", err)
			}
			for range 3 {
				records, at := altered(p.Rand, sound)
				if is, err := standings(t, k, records); err == nil && !slices.Equal(is, want) && !isOmission(t, records, sound, at, is, want) {
					t.Errorf("record %d of %d was altered, and it verifies", at+1, len(sound))
				}
			}
		})
	}
	t.Log(done)
	if pasts < 12 {
		return
	}
	for _, what := range []string{
		messages.VerbGrant, money.VerbPay, money.VerbFreeze, money.VerbCredit, money.VerbWithdraw, money.VerbCorrect, messages.VerbMember, money.VerbProject,
		clearingmsg.VerbPeer, clearingmsg.VerbReserve, clearingmsg.VerbAuthorise, clearingmsg.VerbRevoke, clearingmsg.VerbRemit, clearingmsg.VerbAccept, clearingmsg.VerbCharge, clearingmsg.VerbClose, clearingmsg.VerbPart,
		"session", "succession", "lapsed", "hold", "post", "void", "extend", "posted", "refused transfers",
		"instructions", "receipt", "silence", "restoration", "comparison", "refused by the clearing",
	} {
		if done[what] == 0 {
			t.Errorf("%s: never", what)
		}
	}
}
