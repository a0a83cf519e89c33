package faults

import (
	"github.com/candor-grid/candor/auctioneer/book"
	"github.com/candor-grid/candor/auctioneer/market"
	"github.com/candor-grid/candor/messages"
)

// submit admits a bid, holds its budget, then enters the job. It may be asked
// again.
func (d *desk) submit(who messages.Name, key string, spec *messages.JobSpec, answer func(any)) {
	if j := d.book().ByKey(who, key); j != nil && d.Bug != NoDedupe {
		answer(j.ID)
		return
	}
	now := d.r.clock()
	if err := d.market.Admit(now, d.market.Bid(0, who, now, spec, nil)); err != nil {
		answer(err)
		return
	}
	hold := "job/" + who + "/" + key
	t := messages.Transfer{ID: hold, Kind: messages.Hold, Debit: who, Credit: messages.SiteAccount, Amount: spec.Budget, Member: who}
	d.transfer(d.r.host.name, d.gone, []messages.Transfer{t}, func(came []messages.TransferResult) {
		if err := came[0].Error; err != nil {
			answer(err)
			return
		}
		s := &book.Submit{Account: who, Key: key, Digest: []byte(key), Payer: who, Spec: spec, Hold: hold, Held: spec.Budget}
		d.propose(&book.Command{Submit: s}, func(result any) {
			if receipt, ok := result.(book.Receipt); ok {
				answer(receipt.Job)
			}
		})
	})
}

// carryOut makes the book's effects happen, oldest first: charges together, up
// to the next round, which goes alone.
func (d *desk) carryOut() {
	for _, e := range d.book().Effects(64) {
		switch {
		case d.asked[e.ID]:
		case e.Kind == book.Observe:
			d.asked[e.ID] = true
			d.confirm(book.Confirmation{Effect: e.ID})
		case e.Kind == book.Round && d.moving > 0:
			return
		default:
			d.asked[e.ID] = true
			d.move(&e)
		}
		if e.Kind == book.Round {
			return
		}
	}
}

func (d *desk) confirm(c book.Confirmation) {
	d.propose(&book.Command{Confirm: &book.Confirm{Effects: []book.Confirmation{c}}}, nil)
}

// move has the bank carry out a charge or a round.
func (d *desk) move(e *book.Effect) {
	if j := d.book().Job(e.Job); e.Kind == book.Charge && j.Visit != nil {
		d.collect(e, j)
		return
	}
	list := d.transfers(e)
	if len(list) == 0 { // rounds have used the hold up
		d.confirm(book.Confirmation{Effect: e.ID})
		return
	}
	d.moving++
	d.impatient(e, list)
	d.transfer(d.r.host.name, d.gone, list, func(came []messages.TransferResult) {
		d.moving--
		c := book.Confirmation{Effect: e.ID}
		if list[0].Kind != messages.Void { // the answer to Void is what it frees
			c.Amount = came[0].Amount
		}
		if came[0].Error != nil {
			c.Refused = came[0].Error.Message
		}
		d.confirm(c)
	})
}

// transfers are what the bank is asked for an effect; none: there is nothing to
// move.
func (d *desk) transfers(e *book.Effect) []messages.Transfer {
	if e.Kind == book.Round {
		return market.Round(d.book(), e, 0)
	}
	j := d.book().Job(e.Job)
	if j.HoldID() == "" {
		return nil
	}
	return d.spoil(market.Charge(j))
}

// spoil is a planted bug: part of what is paid goes on to somebody for whom the
// mechanism did not mean it.
func (d *desk) spoil(t messages.Transfer) []messages.Transfer {
	if d.Bug != Skim || t.Kind != messages.Post {
		return []messages.Transfer{t}
	}
	return []messages.Transfer{t, {ID: t.ID + "/skim", Debit: t.Credit, Credit: "u0", Amount: 1 + t.Amount/10, Job: t.Job}}
}

// impatient is a planted bug: another's hand frees what is not answered at once.
func (d *desk) impatient(e *book.Effect, list []messages.Transfer) {
	if d.Bug != RefundTimeout || list[0].Pending == "" {
		return
	}
	pending := list[0].Pending
	d.after(&d.r.host.host, second/50, func() {
		if !d.gone() && d.asked[e.ID] {
			t := messages.Transfer{ID: pending + "/refund", Kind: messages.Void, Pending: pending}
			d.transfer(d.r.host.name, d.gone, []messages.Transfer{t}, func([]messages.TransferResult) {})
		}
	})
}

// register admits a node.
func (d *desk) register(a *agent, q *messages.RegisterRequest, answer func(*messages.RegisterReply, error)) {
	c := &book.Register{Node: a.name, Session: q.Session, Slots: q.Slots, Running: q.Running}
	d.propose(&book.Command{Register: c}, func(result any) {
		if err, refused := result.(error); refused {
			answer(nil, err)
		} else if !d.gone() {
			d.heard[a.name] = d.r.clock()
			answer(&messages.RegisterReply{Lease: lease, Term: d.term, Stop: result.([]messages.Attempt), Markets: []messages.Market{d.site.market}}, nil)
		}
	})
}

// exchange commits what an agent finished and claims. One that carries neither
// only renews the lease.
func (d *desk) exchange(a *agent, x *messages.Exchange, answer func(*messages.ExchangeReply, error)) {
	heard := d.r.clock()
	n := d.book().Node(a.name)
	if len(x.Finished)+len(x.Claims) == 0 && (n == nil || !n.Examines(d.r.clock())) {
		d.r.verify(func() { d.heartbeat(a, x, heard, answer) })
		return
	}
	c := &book.Exchange{Node: a.name, Session: x.Session, Seq: x.Seq, Finished: x.Finished, Rules: book.RulesHealth}
	if d.Bug == BlindToHoles {
		c.Rules = 0
	}
	for i := range x.Claims {
		c.Claims = append(c.Claims, d.market.Resolve(d.book(), &x.Claims[i], d.rng))
	}
	d.propose(&book.Command{Exchange: c}, func(result any) {
		if err, refused := result.(error); refused {
			answer(nil, err)
		} else if !d.gone() {
			answer(d.reply(a, x, heard, result.([]messages.Grant)), nil)
		}
	})
}

func (d *desk) heartbeat(a *agent, x *messages.Exchange, heard messages.Time, answer func(*messages.ExchangeReply, error)) {
	switch n := d.book().Node(a.name); {
	case d.gone():
	case n == nil || !n.Up || n.Session != x.Session:
		answer(nil, messages.Errorf(messages.Fenced, "the session is over"))
	default:
		answer(d.reply(a, x, heard, nil), nil)
	}
}

func (d *desk) reply(a *agent, x *messages.Exchange, heard messages.Time, grants []messages.Grant) *messages.ExchangeReply {
	d.heard[a.name] = max(d.heard[a.name], heard)
	out := &messages.ExchangeReply{Seq: x.Seq, Grants: append([]messages.Grant(nil), grants...)}
	for _, g := range grants {
		if g.Attempt.Task.Job == 0 {
			out.Programs = append(out.Programs, book.ProbeProgram(class))
			continue
		}
		j := d.book().Job(g.Attempt.Task.Job)
		out.Programs = append(out.Programs, messages.Program{Job: j.ID, StageName: "main", Class: class, Command: j.Spec.Stages[0].Command})
	}
	if n := d.book().Node(a.name); n != nil && n.Session == x.Session {
		out.Stop, out.Held, out.Version = append([]messages.Attempt(nil), n.Stop...), n.Halted(), n.Version
	}
	return out
}
