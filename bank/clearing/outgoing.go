package clearing

import (
	"cmp"

	"github.com/candor-grid/candor/bank/ledger"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/clearing"
	moneymsg "github.com/candor-grid/candor/messages/money"
)

type outgoing struct {
	peers  *peers
	money  *money
	issuer *issuer
	cycles *cycles
}

// Outgoing returns the message for a peer: the first unanswered instructions. If there are none, the message only says
// which outcomes this site has. Outgoing returns false if nothing may be sent to the peer.
func (s *State) Outgoing(name messages.Name, at messages.Time) (clearing.Instructions, bool) {
	p := s.peers.byName[name]
	if p == nil || p.Standing == clearing.PeerParted || s.peers.whole(p) != nil {
		return clearing.Instructions{}, false
	}
	m := clearing.Instructions{From: s.peers.site, To: name, First: p.Out.Total.Number + 1, List: []clearing.Instruction{}, Known: p.Out.Total, At: at, Incarnation: s.peers.incarnationFor(p)}
	for i := range p.outbox[:min(len(p.outbox), clearing.MaxInstructions)] {
		m.List = append(m.List, p.outbox[i].Instruction)
	}
	return m, true
}

// remittance returns the identifier of a remittance's hold.
func remittance(by messages.Name, key string) string { return remittanceHold + by + "/" + key }

// remit reserves credits and instructs the peer to pay them out.
func (out *outgoing) remit(by messages.Name, rank ledger.Rank, r *clearing.RemitRequest) (*clearing.ClearingReply, *Rejected) {
	p, err := out.peers.find(r.Peer)
	if err != nil {
		return nil, err
	}
	account := r.Account
	if account == "" {
		account = by
	}
	if !messages.ValidName(by) {
		return nil, ordinary(messages.Errorf(messages.PermissionDenied, "%q is no user: only users give credits to accounts of other sites", clip(by)))
	}
	if err := users(account); err != nil {
		return nil, err
	}
	id := remittance(by, r.Key)
	if !out.money.books.Done(id) { // a repeated request is not refused because of later changes
		if rank != ledger.Operator && !out.money.books.Owns(by, account) {
			return nil, ordinary(messages.Errorf(messages.PermissionDenied, "account %q may not remit from account %q: ask an owner of that account, or an operator", clip(by), clip(account)))
		}
		if err := cmp.Or(out.peers.trades(p), out.peers.credible(p), out.peers.room(p)); err != nil {
			return nil, err
		}
	}
	hold := moneymsg.Transfer{
		ID: id, Kind: moneymsg.Hold, Debit: account, Credit: PeerAccount(p.Name), Member: by,
		Amount: r.Amount, Reason: "to " + r.Payee + " at site " + p.Name + ": " + r.Reason,
	}
	fresh, err := out.money.once(by, account, hold)
	if err != nil || !fresh {
		return &clearing.ClearingReply{Number: p.numbers[hold.ID]}, err
	}
	i := clearing.Instruction{Kind: clearing.InstructPay, ID: account + "/" + by + "/" + r.Key, Account: r.Payee, Amount: r.Amount, Reason: r.Reason}
	number := p.send(item{Instruction: i, Hold: hold.ID, Held: r.Amount})
	return &clearing.ClearingReply{Number: number}, nil
}

// learn processes the outcomes in a peer's receipt, in order and each only once. If these outcomes do not lead to the
// running total in the receipt, learn processes none of them.
func (out *outgoing) learn(signed *clearing.SignedReceipt) *Rejected {
	p := out.peers.byName[signed.Receipt.From]
	outcomes, err := out.news(p, &signed.Receipt)
	if err != nil || len(outcomes) == 0 {
		return err
	}
	for i := range outcomes {
		out.resolve(p, &p.outbox[i], &outcomes[i])
		p.Out.enter(&p.outbox[i].Instruction, &outcomes[i])
	}
	p.answered(len(outcomes))
	return nil
}

// Learns is called with a receipt that has passed all checks. It returns how many new outcomes the receipt has, and
// whether the receipt changes anything. A receipt that changes nothing need not be in the log. The error says why the
// receipt is refused.
func (s *State) Learns(signed *clearing.SignedReceipt) (outcomes int, changes bool, err *Rejected) {
	p := s.peers.byName[signed.Receipt.From]
	is := *p // copied, because only Apply may change the peer
	list, err := s.outgoing.news(&is, &signed.Receipt)
	return len(list), len(list) > 0 || is.known() != p.known() || s.turns(&Command{Receipt: signed}), err
}

// news returns the new outcomes of a receipt. It changes only the state of the peer.
func (out *outgoing) news(p *peer, m *clearing.Receipt) ([]moneymsg.TransferResult, *Rejected) {
	if p.Standing == clearing.PeerParted {
		return nil, parted(p)
	}
	end := m.First + uint64(len(m.Outcomes)) // the number after the last outcome
	switch next := p.Out.Total.Number + 1; {
	case end <= next:
		return nil, out.repeats(p, m, end-1)
	case m.First > next:
		return nil, reject(Gap, messages.Unavailable, "the outcomes of numbers %d to %d are missing", next, m.First-1)
	case end-1 > p.last():
		return nil, p.disputes(reject(Lost, messages.Conflict, "bank %q has outcomes up to number %d, and this bank's instructions end at %d: this bank lost what it had sent; restore it from a replica or a snapshot that has it",
			p.Name, end-1, p.last()))
	}
	outcomes := m.Outcomes[p.Out.Total.Number+1-m.First:]
	if err := p.tallies(outcomes, m.Total); err != nil {
		return nil, err
	}
	out.peers.hear(p, m.At, true)
	return outcomes, nil
}

// repeats handles a receipt without new outcomes. It refuses the receipt if its total differs from the total in this
// book, or if it repeats outcomes that are known. The argument `last` is the number of the last instruction that the
// receipt covers.
func (out *outgoing) repeats(p *peer, m *clearing.Receipt, last uint64) *Rejected {
	ours, known := p.Out.at(last)
	if known && !same(ours, m.Total) {
		return p.disputes(reject(Totals, messages.Conflict, "bank %q says that our instructions come to %v owed by number %d, and this book to %v: compare the lines of both books",
			p.Name, m.Total.Owed, last, ours.Owed))
	}
	if len(m.Outcomes) > 0 {
		return reject(Repeated, messages.Expired, "the outcomes up to number %d are known", last)
	}
	out.peers.hear(p, m.At, false)
	return nil
}

// tallies checks a peer's answer to our instructions. It returns a refusal if an outcome is impossible. It also returns
// a refusal if our total after these outcomes differs from `theirs`, the running total that the peer reports.
func (p *peer) tallies(outcomes []moneymsg.TransferResult, theirs clearing.RunningTotal) *Rejected {
	ours := p.Out.Total
	for i := range outcomes {
		o, asked := &outcomes[i], &p.outbox[i].Instruction
		if !plausible(asked, o) {
			return p.disputes(reject(Amount, messages.Conflict, "bank %q says it moved %v for number %d, which is of %v", p.Name, o.Amount, ours.Number+1, asked.Amount))
		}
		ours = After(ours, asked, o)
	}
	if !same(ours, theirs) {
		return p.disputes(reject(Totals, messages.Conflict, "bank %q says that our instructions come to %v owed by number %d, and this book comes to %v: compare the lines of both books",
			p.Name, theirs.Owed, theirs.Number, ours.Owed))
	}
	return nil
}

// plausible reports whether an outcome is possible: an instruction moves the whole amount or nothing, and a settlement
// may move a part.
func plausible(i *clearing.Instruction, o *moneymsg.TransferResult) bool {
	switch {
	case o.Error != nil:
		return o.Amount == 0 && len(o.Error.Op) == 0 && len(o.Error.Message) <= maxMessage
	case i.Kind == clearing.InstructSettle:
		return o.Amount >= 0 && o.Amount <= i.Amount
	case i.Kind == clearing.InstructRevoke, i.Kind == clearing.InstructPart:
		return o.Amount == 0
	}
	return o.Amount == i.Amount
}

// resolve ends the hold of an instruction by its outcome. The hold of an instruction that was carried out becomes a
// transfer; otherwise it is freed. Nothing else ends the hold.
func (out *outgoing) resolve(p *peer, it *item, o *moneymsg.TransferResult) {
	i := &it.Instruction
	switch {
	case i.Kind == clearing.InstructRevoke:
		out.issuer.free(p, i, o)
	case it.Hold == "":
	case o.Error != nil:
		out.money.must(moneymsg.Transfer{Kind: moneymsg.Void, Pending: it.Hold, Reason: clip("refused by site " + p.Name + ": " + o.Error.Message)})
	case o.Amount == 0:
		out.money.must(moneymsg.Transfer{Kind: moneymsg.Void, Pending: it.Hold, Reason: "nothing was taken by site " + p.Name})
	default:
		out.money.must(moneymsg.Transfer{Kind: moneymsg.Post, Pending: it.Hold, Credit: it.Payee, Amount: o.Amount, Job: i.Job,
			Reason: clip(i.Kind.String() + " confirmed by site " + p.Name + ": " + i.Reason)})
	}
	if i.Kind == clearing.InstructSettle {
		c := p.cycle(i.Cycle, out.cycles.latest)
		c.Paid, c.PaidFinal = o.Amount, true
	}
}
