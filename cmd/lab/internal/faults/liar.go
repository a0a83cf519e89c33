package faults

import (
	"fmt"
	"math/rand/v2"

	"github.com/candor-grid/candor/bank/clearing"
	"github.com/candor-grid/candor/messages"
	clearingmsg "github.com/candor-grid/candor/messages/clearing"
	"github.com/candor-grid/candor/messages/money"
)

// south is a lying site. It has no replicas or nodes: the simulation only sends messages in its name. If a plan has lies,
// south is a peer of the other sites. During a lie, south sends any message that it can sign to one site, the target of
// the lie. The other sites give south the limit southLimit and the share southShare.
const (
	south                       = "south"
	southLimit messages.Credits = 5 * messages.Credit
	southShare messages.Credits = 3 * messages.Credit
)

// liar has what a site knows about south, a peer that lies. The sums are computed from the committed commands.
type liar struct {
	rng      *rand.Rand
	said     []clearingmsg.SignedInstructions
	shown    int              // number of authorisations that south has shown to this site
	given    messages.Credits // credits that accounts here got and that south owes for, minus what south has paid
	redeemed messages.Credits // part of this site's debt to south that settlements have paid
	exposed  messages.Credits // south's debt according to the books
	disputed bool
}

func newLiar(s *site) liar {
	return liar{rng: rand.New(rand.NewPCG(s.seed, 0x6c696172+uint64(s.index)))}
}

// meet makes south a peer. One user sends south a payment, and the others authorise south to charge them.
func (s *site) meet() {
	share := southShare
	s.bank(s.clients, never, operator, clearing.Command{Peer: &clearingmsg.PeerRequest{Peer: south, Keys: []string{south}, Limit: southLimit, Share: &share}}, func(clearing.Result) {})
	for i := range users {
		at := 8*second + messages.Duration(s.liar.rng.Int64N(int64(s.plan.Duration)))
		c := clearing.Command{Authorise: &clearingmsg.AuthoriseRequest{Key: southKey, Peer: south, Amount: messages.Credit, Interval: roamFor}}
		if i == 0 {
			c = clearing.Command{Remit: &clearingmsg.RemitRequest{Key: southKey, Peer: south, Payee: "somebody", Amount: messages.Credit}}
		}
		s.queue.Push(s.now.Add(at), func() { s.bank(s.clients, never, userName(i), c, func(clearing.Result) {}) })
	}
}

// southKey is the idempotency key of users' requests about the site `south`.
const southKey = "south"

// lie makes south send messages to a site's bank until a given time.
func (w *World) lie(s *site, until messages.Time) {
	if w.now >= until {
		return
	}
	to := s.banks.replicas[s.liar.rng.IntN(3)]
	w.send(south, to.host.name, func() {
		if to.serving() {
			to.shell.(*bankLeader).hearLie()
		}
	})
	w.queue.Push(w.now.Add(second/20+messages.Duration(s.liar.rng.Int64N(int64(second/2)))), func() { w.lie(s, until) })
}

// hearLie gives the bank a random message that the liar south has signed. The liar knows the whole state of the bank.
func (o *bankLeader) hearLie() {
	p, known := peerIn(o.state().clearing, south)
	if !known {
		return
	}
	switch n := o.liar.rng.IntN(20); {
	case n < 9:
		o.receive(o.instruction(&p), func(*clearingmsg.SignedReceipt) {})
	case n < 11 && len(o.liar.said) > 0:
		again := o.liar.said[o.liar.rng.IntN(len(o.liar.said))]
		o.receive(&again, func(*clearingmsg.SignedReceipt) {})
	case n < 14:
		o.propose(&clearing.Command{By: auctioneer, Accept: o.show()}, nil)
	case n < 17:
		id := fmt.Sprint("eve/", o.liar.rng.IntN(o.liar.shown+1))
		o.propose(&clearing.Command{By: auctioneer, Charge: &clearingmsg.ChargeRequest{Issuer: south, ID: id, Amount: o.some()}}, nil)
	default:
		o.answerLie(&p)
	}
}

// The method `some` returns a random amount for a lie: usually less than 3 credits, and one time in eight the largest
// possible amount.
func (o *bankLeader) some() messages.Credits {
	if o.liar.rng.IntN(8) == 0 {
		return messages.MaxCredits
	}
	return messages.Credits(o.liar.rng.Int64N(int64(3 * messages.Credit)))
}

// instruction returns a signed message of south with random faults. In most cases the message has the next number and
// the right total, because otherwise the bank would not check the instructions in it.
func (o *bankLeader) instruction(p *clearingmsg.PeerReply) *clearingmsg.SignedInstructions {
	rng := o.liar.rng
	m := clearingmsg.Instructions{From: south, To: o.name, First: p.Received.Number + 1, Known: p.Received, At: o.now}
	switch rng.IntN(40) {
	case 0:
		m.Known.Owed -= messages.Credit
	case 1:
		m.First += uint64(rng.IntN(3))
	case 2:
		m.First -= min(m.First-1, uint64(rng.IntN(3)))
	}
	for range 1 + rng.IntN(4) {
		in := clearingmsg.Instruction{Kind: clearingmsg.InstructPay, Account: userName(rng.IntN(users)), Amount: o.some()}
		switch rng.IntN(5) {
		case 0, 1:
			in = clearingmsg.Instruction{Kind: clearingmsg.InstructSettle, Cycle: uint64(rng.IntN(40)), Amount: o.some()}
		case 2:
			in = clearingmsg.Instruction{Kind: clearingmsg.InstructCharge, ID: fmt.Sprint(userName(rng.IntN(users)), "/", southKey), Amount: o.some()}
		case 3:
			in = clearingmsg.Instruction{Kind: clearingmsg.InstructRevoke, ID: fmt.Sprint("eve/", rng.IntN(o.liar.shown+1)), Expires: o.now.Add(roamFor)}
		}
		m.List = append(m.List, in)
	}
	signed, err := clearing.SignInstructions(sealer(south), m)
	if err != nil {
		o.violate("a lie cannot be signed: %v", err)
	}
	o.liar.said = append(o.liar.said, signed)
	return &signed
}

// show returns an authorisation that south has issued. Sometimes its identifier is new. Sometimes the liar has used the
// identifier before, with other content.
func (o *bankLeader) show() *clearingmsg.AcceptRequest {
	rng := o.liar.rng
	if rng.IntN(3) > 0 {
		o.liar.shown++
	}
	n := rng.IntN(o.liar.shown + 1)
	a := clearingmsg.Authorisation{Issuer: south, Peer: o.name, ID: fmt.Sprint("eve/", n), Account: fmt.Sprint("eve", n), Member: "eve",
		Amount: max(1, o.some()), Issued: o.now, Interval: roamFor, Margin: clearingmsg.MaxClockSkew}
	signed, err := clearing.SignAuthorisation(sealer(south), a)
	if err != nil {
		o.violate("a lie cannot be signed: %v", err)
	}
	return &clearingmsg.AcceptRequest{Purpose: fmt.Sprint("job ", rng.IntN(3)), Authorisation: signed, Firm: rng.IntN(2) == 0}
}

// answerLie answers the bank's instructions as south, with arbitrary outcomes and a total that is not always their
// sum.
func (o *bankLeader) answerLie(p *clearingmsg.PeerReply) {
	m, known := o.state().clearing.Outgoing(south, o.now)
	if !known {
		return
	}
	o.words.instructions(o.World, &m)
	r := clearingmsg.Receipt{From: south, To: o.name, First: m.First, Outcomes: []money.TransferResult{}, Total: p.Sent, At: o.now}
	for i := range m.List {
		came := money.TransferResult{Amount: m.List[i].Amount}
		switch o.liar.rng.IntN(6) {
		case 0:
			came = money.TransferResult{Error: messages.Errorf(messages.NotFound, "no")}
		case 1:
			came.Amount = o.some()
		}
		r.Outcomes = append(r.Outcomes, came)
		r.Total = clearing.After(r.Total, &m.List[i], &came)
	}
	if o.liar.rng.IntN(20) == 0 {
		r.Total.Owed++
	}
	signed, err := clearing.SignReceipt(sealer(south), r)
	if err != nil {
		o.violate("a lie cannot be signed: %v", err)
		return
	}
	o.propose(&clearing.Command{Receipt: &signed}, nil)
}

// obeyed is called when this bank has carried out an instruction of the liar south. It counts the credits that south
// has gained or paid by this instruction.
func (l *liar) obeyed(in *clearingmsg.Instruction, o *money.TransferResult) {
	switch in.Kind {
	case clearingmsg.InstructPay:
		l.given += o.Amount
	case clearingmsg.InstructCharge:
		l.given -= o.Amount
	}
}

// learned counts what the liar south gains or pays when an instruction of this bank is carried out. `o` is south's
// answer to the instruction.
func (l *liar) learned(in *clearingmsg.Instruction, o *money.TransferResult) {
	switch in.Kind {
	case clearingmsg.InstructPay:
		l.given -= o.Amount
	case clearingmsg.InstructCharge:
		l.given += o.Amount
	case clearingmsg.InstructSettle:
		l.redeemed += o.Amount
	}
}

// bounded checks that south, the site that lies, got no more credits from this site than its limit and its share allow.
// After this site's bank has found a lie, bounded also checks that the bank trusts south with no more credits than
// before.
func (s *site) bounded() error {
	p, known := s.peer(south)
	if !known {
		return nil
	}
	l := &s.liar
	if had := l.given + l.redeemed; had > southLimit+southShare {
		return fmt.Errorf("invariant 7: %s has received %v, above its limit of %v and its share of %v together", south, had, southLimit, southShare)
	}
	exposed, disputed := p.Held-p.Owed+p.Settled, p.Dispute != ""
	if l.disputed && disputed && exposed > l.exposed {
		return fmt.Errorf("invariant 7: %s is trusted with %v during a dispute, but was trusted with %v before", south, exposed, l.exposed)
	}
	l.exposed, l.disputed = exposed, disputed
	return nil
}
