package clearing

import (
	"bytes"
	"cmp"
	"strings"

	"github.com/candor-grid/candor/messages"
)

// repairs enter again what this bank lost, because an older backup was restored: the
// numbers of both books with their outcomes, what is to be asked again, and what the
// peer may still charge. Nothing is judged again: what is proven was carried out.
type repairs struct {
	peers    *peers
	money    *money
	terms    *terms
	issuer   *issuer
	acceptor *acceptor
	cycles   *cycles
	outgoing *outgoing
}

// repairing is one repair. It is planned whole before anything is done: so a plan can be
// shown, and a repair is done whole or not at all.
type repairing struct {
	*repairs
	p       *peer
	st      *messages.Statements
	bearer  messages.Name // stands in for users who cannot pay, or are not there
	granted map[string]*messages.Authorisation
	free    map[messages.Name]messages.Credits // what accounts have, as far as the plan has come
	plan    messages.RepairPlan
	do      []func()
	outbox  []item
	entered map[uint64]bool // numbers of the outbox that are in the plan
}

// Plan is what a repair by the statements of a peer would do.
func (s *State) Plan(bearer messages.Name, st *messages.Statements) (messages.RepairPlan, *Rejected) {
	p, err := s.peers.find(st.Site)
	if err != nil {
		return messages.RepairPlan{}, err
	}
	return s.repairs.planned(p, bearer, st).plan, nil
}

// repair carries out the plan that an operator has seen.
func (rs *repairs) repair(by messages.Name, r *messages.RepairRequest, st *messages.Statements) (*messages.RepairReply, *Rejected) {
	p, err := rs.peers.find(r.Peer)
	bearer := cmp.Or(r.Account, by)
	switch {
	case err != nil:
		return nil, err
	case st == nil || st.Site != p.Name || !bytes.Equal(r.Digest, digestOf(p, st)):
		return nil, ordinary(messages.Errorf(messages.Conflict, "the books of site %q, or of this site, have changed since the plan was shown: look at it again with candor peer reconcile %s", p.Name, p.Name))
	case users(bearer) != nil:
		return nil, users(bearer)
	}
	a := rs.planned(p, bearer, st)
	if a.plan.Borne > 0 && !a.covers(bearer, a.plan.Borne) {
		of, _ := rs.money.books.Account(bearer) // 0 of one that is not open
		return nil, ordinary(messages.Errorf(messages.Insufficient, "account %q has %s free, and must bear %v that users cannot pay: grant them to it first, or name another account", bearer, of.Available.Words(), a.plan.Borne))
	}
	a.carryOut()
	return &messages.RepairReply{Peer: rs.terms.describe(p), Done: a.plan}, nil
}

// carryOut does what is planned. The limits of the peer held when it was done first, in
// an order that need not be that of now.
func (a *repairing) carryOut() {
	p, m := a.p, a.money
	accounts := []messages.Name{PeerAccount(p.Name), a.terms.settledAccount(p)}
	a.terms.bound()
	var credits []messages.Credits
	for _, name := range accounts {
		of, _ := m.books.Account(name)
		credits = append(credits, of.Credit)
		a.terms.allot(name, "while what was lost is entered again", messages.MaxCredits)
	}
	for _, f := range a.do {
		f()
	}
	for i, name := range accounts {
		a.terms.allot(name, "as before what was lost was entered again", credits[i])
	}
	if a.peers.incarnation == p.Compared && a.plan.Numbers > 0 { // it was restored, and did not know
		a.peers.incarnation = max(a.peers.incarnation+1, uint64(m.books.Now()))
	}
	if len(a.plan.Unproven) == 0 {
		p.Compared, p.Dispute = a.peers.incarnation, ""
	}
}

// planned plans a repair.
func (rs *repairs) planned(p *peer, bearer messages.Name, st *messages.Statements) *repairing {
	a := &repairing{repairs: rs, p: p, st: st, bearer: bearer, granted: map[string]*messages.Authorisation{},
		free: map[messages.Name]messages.Credits{}, entered: map[uint64]bool{}, plan: messages.RepairPlan{Digest: digestOf(p, st), Changes: []messages.RepairChange{}}}
	for i := range st.Authorisations {
		a.granted[st.Authorisations[i].Authorisation.ID] = &st.Authorisations[i].Authorisation
	}
	if st.Receipt != nil {
		a.prove(st.To, p.In.Total, st.Receipt.Receipt.Total, a.received)
	}
	if st.Instructions != nil {
		if m := &st.Instructions.Instructions; a.prove(st.From, p.Out.Total, m.Known, a.sent) {
			a.unanswered(m)
			a.requeue()
		}
	}
	a.authorise()
	return a
}

// prove plans to enter instructions that are proven, and reports whether they are.
func (a *repairing) prove(list []messages.Carried, from, to messages.RunningTotal, enter func(number uint64, c *messages.Carried)) bool {
	list, err := proven(list, from, to)
	if err != nil {
		a.plan.Unproven = append(a.plan.Unproven, err.Err.Message)
		return false
	}
	for i := range list {
		enter(from.Number+uint64(i)+1, &list[i])
		a.plan.Numbers++
	}
	return true
}

func (a *repairing) then(f func()) { a.do = append(a.do, f) }

// covers reports whether an account can still pay an amount, which is then gone from it.
func (a *repairing) covers(account messages.Name, amount messages.Credits) bool {
	of, err := a.money.books.Account(account)
	if err != nil || of.Frozen != "" || users(account) != nil {
		return false
	}
	if _, seen := a.free[account]; !seen {
		a.free[account] = of.Available
	}
	if a.free[account] < amount {
		return false
	}
	a.free[account] -= amount
	return true
}

// pays plans that an account pays, or the operator's account where it cannot.
func (a *repairing) pays(c messages.RepairChange, account messages.Name) messages.Name {
	if c.Account = account; !a.covers(account, -c.Amount) {
		c.Account, c.Borne = a.bearer, true
		a.plan.Borne -= c.Amount
	}
	a.plan.Changes = append(a.plan.Changes, c)
	return c.Account
}

// gets plans that an account is paid, or the operator's account where it is not there.
func (a *repairing) gets(c messages.RepairChange, account messages.Name) messages.Name {
	c.Account = account
	if of, err := a.money.books.Account(account); err != nil {
		c.Account, c.Borne = a.bearer, true
	} else if _, seen := a.free[account]; seen {
		a.free[account] += c.Amount
	} else {
		a.free[account] = of.Available + c.Amount
	}
	a.plan.Changes = append(a.plan.Changes, c)
	return c.Account
}

func (a *repairing) move(t messages.Transfer) {
	t.Reason = clip("entered again: " + t.Reason)
	a.then(func() {
		if t.ID != "" && a.money.books.Done(t.ID) {
			t.ID = ""
		}
		a.money.must(t)
	})
}

// received plans to enter an instruction of the peer.
func (a *repairing) received(number uint64, c *messages.Carried) {
	p, i, o := a.p, &c.Instruction, &c.Outcome
	change := messages.RepairChange{Sender: p.Name, Number: number, Kind: i.Kind, Amount: o.Amount}
	switch {
	case o.Error != nil:
	case i.Kind == messages.InstructPay:
		to := a.gets(change, i.Account)
		a.move(messages.Transfer{Kind: messages.Posted, Debit: PeerAccount(p.Name), Credit: to, Amount: o.Amount, Reason: "from site " + p.Name + ": " + i.Reason})
	case i.Kind == messages.InstructCharge:
		a.honoured(change, i)
	case i.Kind == messages.InstructSettle:
		a.then(func() {
			c := p.cycle(i.Cycle, a.cycles.latest)
			c.Received, c.ReceivedFinal = o.Amount, true
		})
		if o.Amount > 0 {
			a.move(messages.Transfer{Kind: messages.Posted, Debit: SettledAccount(p.Name), Credit: PeerAccount(p.Name), Amount: o.Amount, Reason: "settlement with site " + p.Name})
		}
	case i.Kind == messages.InstructRevoke:
		a.then(func() { a.closeAccepted(i.ID, revoked, 0, i.Expires) })
	case i.Kind == messages.InstructPart:
		a.then(func() { p.Left = true })
	}
	a.then(func() {
		p.In.enter(i, o)
		p.Outcomes = append(p.Outcomes, *o)
	})
}

// honoured plans what a charge of the peer took: from what is set aside for it, if that
// was before the backup, and otherwise from the account that had authorised it.
func (a *repairing) honoured(change messages.RepairChange, i *messages.Instruction) {
	if change.Amount = -change.Amount; a.issuer.issued.find(i.ID) != nil {
		if i.Amount > 0 {
			change.Account = a.issuer.issued.find(i.ID).Account
			a.plan.Changes = append(a.plan.Changes, change)
		}
		a.then(func() {
			if _, err := a.issuer.honour(a.p, i); err != nil && a.money.fault == "" {
				a.money.fault = clip(err.Error())
			}
		})
		return
	}
	if i.Amount == 0 {
		return
	}
	var account messages.Name
	if g := a.granted[i.ID]; g != nil {
		account = g.Account
	}
	from := a.pays(change, account)
	a.move(messages.Transfer{ID: authorisationHold + i.ID, Kind: messages.Posted, Debit: from, Credit: PeerAccount(a.p.Name), Amount: i.Amount, Reason: "charged by site " + a.p.Name + ": " + i.Reason})
}

// closeAccepted closes an authorisation of the peer as it was closed before.
func (a *repairing) closeAccepted(id string, as closing, taken messages.Credits, until messages.Time) {
	k := a.acceptor.accepted.find(acceptedKey(a.p.Name, id))
	switch {
	case k != nil && k.Closed == open:
		if k.Hold != "" {
			a.money.must(messages.Transfer{Kind: messages.Void, Pending: k.Hold, Reason: "entered again: it was charged or given up"})
		}
		k.Hold, k.Closed, k.Taken = "", as, taken
		a.p.open--
	case k == nil && until > a.money.books.Now() && until <= a.money.books.Now().Add(2*messages.MaxInterval):
		a.acceptor.remember(accepted{Owner: acceptedKey(a.p.Name, ""), Until: until, Authorisation: messages.Authorisation{Issuer: a.p.Name, ID: id}, Closed: as})
	}
}

// queued is the instruction that waits under a number, if it is a certain one: one that
// was entered after the restoration under a number that was used is another.
func (a *repairing) queued(number uint64, i *messages.Instruction) *item {
	first := a.p.Out.Total.Number + 1
	if number < first || number > a.p.last() {
		return nil
	}
	if it := a.p.outbox[number-first]; it.Instruction == *i {
		a.entered[number] = true
		return &it
	}
	return nil
}

// sent plans to enter an instruction of this site whose outcome it knew.
func (a *repairing) sent(number uint64, c *messages.Carried) {
	p, i, o := a.p, &c.Instruction, &c.Outcome
	if it := a.queued(number, i); it != nil {
		if o.Amount != 0 && o.Error == nil && i.Kind != messages.InstructSettle {
			a.plan.Changes = append(a.plan.Changes, messages.RepairChange{Sender: a.peers.site, Number: number, Kind: i.Kind, Account: a.holder(it), Amount: a.signed(i, o.Amount)})
		}
		a.then(func() { a.outgoing.resolve(p, it, o) })
	} else {
		a.sentAnew(number, i, o)
	}
	a.then(func() {
		if i.Kind == messages.InstructSettle {
			a.offered(i, o.Amount, true)
		}
		p.Out.enter(i, o)
	})
}

// holder is the user's account that an instruction which waits takes from or gives to.
func (a *repairing) holder(it *item) messages.Name {
	if it.Instruction.Kind == messages.InstructCharge {
		return it.Payee
	}
	account, _ := payerOf(&it.Instruction)
	return account
}

// signed is what an instruction of this site does to an account here.
func (a *repairing) signed(i *messages.Instruction, amount messages.Credits) messages.Credits {
	if i.Kind == messages.InstructPay {
		return -amount
	}
	return amount
}

// payerOf reads who pays for a payment to a peer, and the identifier that the request
// has in the ledger for ever; none of payments that earlier rules made.
func payerOf(i *messages.Instruction) (account messages.Name, id string) {
	account, request, known := strings.Cut(i.ID, "/")
	if !known {
		return "", ""
	}
	return account, remittanceHold + request
}

// sentAnew plans what an instruction of this site came to, of which nothing is left here.
func (a *repairing) sentAnew(number uint64, i *messages.Instruction, o *messages.TransferResult) {
	p := a.p
	change := messages.RepairChange{Sender: a.peers.site, Number: number, Kind: i.Kind, Amount: a.signed(i, o.Amount)}
	switch i.Kind {
	case messages.InstructPay:
		if o.Error == nil {
			t := a.payment(change, i)
			a.then(func() {
				id := a.hold(t)
				a.money.must(messages.Transfer{Kind: messages.Post, Pending: id, Amount: o.Amount, Reason: clip("confirmed by site " + p.Name + ": " + i.Reason)})
			})
		}
	case messages.InstructCharge:
		a.then(func() { a.closeAccepted(i.ID, charged, i.Amount, 0) })
		if o.Error == nil && o.Amount > 0 {
			to := a.gets(change, cmp.Or(i.Account, messages.SiteAccount))
			a.move(messages.Transfer{ID: p.chargeID(&messages.ChargeRequest{Issuer: p.Name, ID: i.ID, Amount: i.Amount}), Kind: messages.Posted,
				Debit: PeerAccount(p.Name), Credit: to, Amount: o.Amount, Job: i.Job, Reason: "charge confirmed by site " + p.Name + ": " + i.Reason})
		}
	case messages.InstructSettle:
		if o.Amount > 0 {
			a.move(messages.Transfer{Kind: messages.Posted, Debit: PeerAccount(p.Name), Credit: SettlementAccount, Amount: o.Amount, Reason: "settlement with site " + p.Name})
		}
	case messages.InstructRevoke:
		a.then(func() { a.issuer.free(p, i, o) })
	case messages.InstructPart:
		a.then(func() { p.Standing, p.Since, p.Leaving = messages.PeerParting, a.money.books.Now(), true })
	}
}

// payment plans the hold of a payment to the peer, as it was made before: so its user
// can ask for it again, and is answered.
func (a *repairing) payment(change messages.RepairChange, i *messages.Instruction) messages.Transfer {
	account, id := payerOf(i)
	from := a.pays(change, account)
	return messages.Transfer{ID: id, Kind: messages.Hold, Debit: from, Credit: PeerAccount(a.p.Name), Member: from, Amount: i.Amount,
		Reason: "to " + i.Account + " at site " + a.p.Name + ": " + i.Reason}
}

// hold sets aside under the identifier that a transfer has, or a new one if it has none
// that is free, and returns that.
func (a *repairing) hold(t messages.Transfer) string {
	if t.ID == "" || a.money.books.Done(t.ID) {
		t.ID = a.money.mint()
	}
	a.money.must(t)
	return t.ID
}

// offered notes that a cycle was closed here, and what came of it with the peer.
func (a *repairing) offered(i *messages.Instruction, paid messages.Credits, final bool) {
	p := a.p
	a.cycles.latest = max(a.cycles.latest, i.Cycle)
	c := p.cycle(i.Cycle, 0)
	c.Paid, c.PaidFinal = paid, final
	if c.Volume == 0 {
		c.Volume, p.Counted = p.Out.Total.Volume-p.Counted, p.Out.Total.Volume
	}
}

// unanswered plans to ask again for what the peer carried out, and has not heard that
// this site knows: under the same numbers, so that it is answered as it was.
func (a *repairing) unanswered(m *messages.Instructions) {
	known := max(m.Known.Number, a.p.Out.Total.Number)
	for n := max(m.First, known+1); n < m.First+uint64(len(m.List)); n++ {
		i := &m.List[n-m.First]
		if it := a.queued(n, i); it != nil {
			a.outbox = append(a.outbox, *it)
			continue
		}
		a.plan.Numbers++
		a.outbox = append(a.outbox, item{Instruction: *i})
		a.setAside(n, len(a.outbox)-1)
	}
}

// setAside plans what an instruction that is asked for again sets aside.
func (a *repairing) setAside(number uint64, at int) {
	p, i := a.p, &a.outbox[at].Instruction
	change := messages.RepairChange{Sender: a.peers.site, Number: number, Kind: i.Kind, Amount: a.signed(i, i.Amount), Held: true}
	t := messages.Transfer{Kind: messages.Hold, Amount: i.Amount, Debit: PeerAccount(p.Name), Member: PeerAccount(p.Name), Reason: i.Kind.String() + " asked of site " + p.Name + " again"}
	switch i.Kind {
	case messages.InstructPay:
		t = a.payment(change, i)
	case messages.InstructCharge:
		a.then(func() { a.closeAccepted(i.ID, charged, i.Amount, 0) })
		if i.Amount > 0 {
			a.outbox[at].Payee = a.gets(change, cmp.Or(i.Account, messages.SiteAccount))
		}
	case messages.InstructSettle:
		t.Credit = SettlementAccount
		a.then(func() { a.offered(i, 0, false) })
	case messages.InstructRevoke:
		a.then(func() {
			if of := a.issuer.issued.find(i.ID); of != nil {
				of.Revoking = true
			}
		})
		return
	case messages.InstructPart:
		a.then(func() { p.Standing, p.Since, p.Leaving = messages.PeerParting, a.money.books.Now(), true })
		return
	}
	if i.Amount > 0 {
		a.then(func() { a.outbox[at].Hold, a.outbox[at].Held = a.hold(t), i.Amount })
	}
}

// requeue plans the outbox: what has its number from before, then what was entered since
// the restoration, under numbers that were never used.
func (a *repairing) requeue() {
	p, first := a.p, a.p.Out.Total.Number+1
	for n := range p.outbox {
		if !a.entered[first+uint64(n)] {
			a.outbox = append(a.outbox, p.outbox[n])
		}
	}
	a.then(func() {
		p.outbox, p.charges = nil, 0
		for _, it := range a.outbox {
			p.send(it)
		}
	})
}

// authorise plans to set aside again what the peer may still charge, by what this bank
// signed after the backup.
func (a *repairing) authorise() {
	lost, now := chargedIn(a.st.To), a.money.books.Now()
	for i := range a.st.Authorisations {
		g := &a.st.Authorisations[i].Authorisation
		hold := authorisationHold + g.ID
		if lost[g.ID] || a.issuer.issued.find(g.ID) != nil || a.money.books.Done(hold) || g.Frees() <= now {
			continue
		}
		change := messages.RepairChange{Sender: a.p.Name, Kind: messages.InstructCharge, Amount: -g.Amount, Held: true}
		from := a.pays(change, g.Account)
		a.then(func() {
			a.money.must(messages.Transfer{ID: hold, Kind: messages.Hold, Debit: from, Credit: PeerAccount(a.p.Name), Member: from,
				Amount: g.Amount, Expires: g.Frees(), Reason: clip("for site " + a.p.Name + ": authorised before a restoration")})
			a.issuer.issued.add(issued{Authorisation: *g})
		})
	}
}
