package faults

import (
	"bytes"
	"fmt"
	"slices"

	"github.com/candor-grid/candor/auctioneer/book"
	"github.com/candor-grid/candor/bank/ledger"
	"github.com/candor-grid/candor/messages"
)

const (
	class = "cpu"
	lease = 10 * second
)

var market = messages.Market{Name: "main", Mechanism: "fifo", Classes: []messages.Name{class}}

// bookState is a replica's book.
type bookState struct {
	*World
	on *machine // nil: of the reference
	*book.Book
}

func newBookState(w *World, m *machine) *bookState { return &bookState{w, m, book.New()} }

func (b *bookState) apply(data []byte) any {
	if data == nil {
		return nil
	}
	c, err := book.Decode(data)
	if err != nil {
		return err
	}
	if b.Bug == LocalClock && b.on != nil {
		c.At = c.At.Add(b.on.offset)
	}
	if b.Bug == NoDedupe && c.Submit != nil {
		c.Submit.Key += fmt.Sprint("#", b.LastJob())
	}
	if b.Bug == StaleAttempt && c.Exchange != nil {
		b.stale(c)
	}
	return b.Apply(c)
}

// stale is a planted bug: the end of an attempt counts for whichever holds the
// task now.
func (b *bookState) stale(c *book.Command) {
	for _, f := range c.Exchange.Finished {
		for _, n := range b.Nodes() {
			if h, held := n.Claims[f.Attempt.Task]; held && h.Attempt != f.Attempt.Number {
				f.Attempt.Number = h.Attempt
				b.Apply(&book.Command{At: c.At, Exchange: &book.Exchange{Node: n.Name, Session: n.Session, Seq: n.Seq + 1, Finished: []messages.Finished{f}}})
			}
		}
	}
}

func (b *bookState) capture() []byte {
	var out bytes.Buffer
	if _, err := b.Capture().WriteTo(&out); err != nil {
		b.violate("the book cannot be captured: %v", err)
	}
	return out.Bytes()
}

func (b *bookState) restore(image []byte) error { return b.Restore(bytes.NewReader(image)) }
func (b *bookState) hash() [32]byte             { return b.Hash() }

// bankState is a replica's ledger.
type bankState struct{ *ledger.Ledger }

func newBankState() *bankState { return &bankState{ledger.New()} }

func (b *bankState) apply(data []byte) any {
	if data == nil {
		return nil
	}
	return b.Apply(data)
}

func (b *bankState) capture() []byte {
	var out bytes.Buffer
	b.Capture().WriteTo(&out) //nolint:errcheck // a buffer takes everything
	return out.Bytes()
}

func (b *bankState) restore(image []byte) error { return b.Restore(bytes.NewReader(image)) }
func (b *bankState) hash() [32]byte             { return b.Hash() }

// transfer asks the bank, on behalf of whoever is not gone.
func (w *World) transfer(from string, gone func() bool, t messages.Transfer, answered func(messages.TransferResult)) {
	w.call(from, w.banks, gone, func(r *replica, answer func(any)) {
		list := []messages.Transfer{t}
		c := ledger.Command{Verb: ledger.Transfers, At: r.clock(), By: messages.ServiceIdentity(messages.Auctioneer), Rank: ledger.Service, Transfers: list}
		data := c.Encode()
		w.asked[string(data)] = list
		r.propose(data, answer)
	}, func(reply any) { answered(reply.(ledger.Result).Transfers[0]) })
}

func (r *replica) clock() messages.Time { return r.now.Add(r.host.offset) }

// desk is what a leader of the book has in memory.
type desk struct {
	*World
	r     *replica
	term  uint64
	asked map[uint64]bool
	heard map[messages.Name]messages.Time
	seq   uint64
}

// lead begins a leader's work, which ends with its term or its life.
func (w *World) lead(r *replica) {
	d := &desk{World: w, r: r, term: r.term, asked: map[uint64]bool{}, heard: map[messages.Name]messages.Time{}}
	r.desk = d
	d.turn(r.host.life)
}

func (d *desk) gone() bool {
	return d.r.desk != d || d.r.role != leading || d.r.term != d.term || d.r.host.down
}

func (d *desk) book() *book.Book { return d.r.state.(*bookState).Book }

func (d *desk) propose(c *book.Command, answered func(any)) {
	c.At = d.r.clock()
	data, err := c.Encode()
	if err != nil {
		d.violate("a command cannot be written down: %v", err)
		return
	}
	d.r.propose(data, answered)
}

func (d *desk) turn(life int) {
	d.after(&d.r.host.host, second/4, func() {
		if d.gone() {
			return
		}
		d.settle()
		d.carryOut()
		d.expire()
		d.publish()
		d.turn(life)
	})
}

// jobs lists the book's jobs in order.
func jobs(b *book.Book) (list []*book.Job) {
	for j := range b.Jobs {
		list = append(list, j)
	}
	slices.SortFunc(list, func(x, y *book.Job) int { return int(x.ID) - int(y.ID) })
	return list
}

// settle charges a tenth of a credit for a slot-second.
func (d *desk) settle() {
	for _, j := range jobs(d.book()) {
		if j.State == messages.Settling && !j.Settled {
			owed := min(j.Held, messages.Credits(j.Stages[0].SlotTime.Seconds()*1e5))
			d.propose(&book.Command{Settle: &book.Settle{Job: j.ID, Charge: owed, Reason: "slot time"}}, nil)
		}
	}
}

func (d *desk) carryOut() {
	for _, e := range d.book().Effects(64) {
		if d.asked[e.ID] {
			continue
		}
		d.asked[e.ID] = true
		confirm := func(c book.Confirmation) {
			d.propose(&book.Command{Confirm: &book.Confirm{Effects: []book.Confirmation{c}}}, nil)
		}
		if e.Kind == book.Observe {
			confirm(book.Confirmation{Effect: e.ID})
			continue
		}
		t := d.charge(d.book().Job(e.Job))
		if d.Bug == RefundTimeout { // another's hand: it frees what is not answered at once
			d.after(&d.r.host.host, second/50, func() {
				if !d.gone() && d.asked[e.ID] {
					d.transfer(d.r.host.name, d.gone, messages.Transfer{ID: t.Pending + "/refund", Kind: messages.Void, Pending: t.Pending}, func(messages.TransferResult) {})
				}
			})
		}
		d.transfer(d.r.host.name, d.gone, t, func(came messages.TransferResult) {
			c := book.Confirmation{Effect: e.ID, Amount: came.Amount}
			if t.Kind == messages.Void {
				c.Amount = 0 // it says what it freed
			}
			if came.Error != nil {
				c.Refused = came.Error.Message
			}
			confirm(c)
		})
	}
}

func (d *desk) charge(j *book.Job) messages.Transfer {
	t := messages.Transfer{ID: j.Hold + "/charge", Kind: messages.Post, Pending: j.Hold, Debit: j.Payer, Credit: messages.SiteAccount, Amount: j.Owed, Job: j.ID}
	if j.Owed == 0 {
		t.Kind, t.Debit, t.Credit = messages.Void, "", ""
	} else if d.Bug == DoubleCharge { // each leader charges under a number of its own, past the hold
		t.ID, t.Kind, t.Pending = fmt.Sprint(t.ID, d.term), messages.Posted, ""
	}
	return t
}

// expire takes back the claims of nodes that were not heard.
func (d *desk) expire() {
	for _, n := range d.book().Nodes() {
		if !n.Up {
			continue
		}
		if _, known := d.heard[n.Name]; !known {
			d.heard[n.Name] = d.r.clock()
		}
		if d.r.clock().Sub(d.heard[n.Name]) > lease+lease/4 {
			d.heard[n.Name] = d.r.clock()
			d.propose(&book.Command{Lost: &book.Lost{Node: n.Name, Session: n.Session}}, nil)
		}
	}
}

// vector has every job with work in it, alike.
func (d *desk) vector() *messages.Vector {
	v := messages.ClassVector{Class: class}
	for _, j := range jobs(d.book()) {
		if n := j.Claimable(0); n > 0 {
			v.Pending += n
			v.Jobs = append(v.Jobs, messages.JobWeight{Job: j.ID, Weight: 1})
		}
	}
	for _, n := range d.book().Nodes() {
		v.Idle += n.Idle(class)
	}
	d.seq++
	return &messages.Vector{Market: market.Name, Term: d.term, Seq: d.seq, Classes: []messages.ClassVector{v}}
}

func (d *desk) publish() {
	v := d.vector()
	for _, a := range d.agents {
		var stop []messages.Attempt
		if n := d.book().Node(a.name); n != nil {
			stop = slices.Clone(n.Stop)
		}
		d.send(d.r.host.name, a.name, func() {
			if a.down {
				return
			}
			a.state.Directive(&messages.Directive{Term: v.Term, Stop: stop})
			if err := a.state.Vector(a.clock(), v); err != nil {
				d.violate("a vector cannot be used: %v", err)
			}
			a.act()
		})
	}
}

// submit holds the budget, then enters the job. It may be asked again.
func (d *desk) submit(who messages.Name, key string, spec *messages.JobSpec, answer func(any)) {
	if j := d.book().ByKey(who, key); j != nil && d.Bug != NoDedupe {
		answer(j.ID)
		return
	}
	hold := "job/" + who + "/" + key
	t := messages.Transfer{ID: hold, Kind: messages.Hold, Debit: who, Credit: messages.SiteAccount, Amount: spec.Budget, Member: who}
	d.transfer(d.r.host.name, d.gone, t, func(came messages.TransferResult) {
		if came.Error != nil {
			answer(came.Error)
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
