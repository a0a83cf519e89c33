package desk

import (
	"cmp"
	"maps"
	"slices"

	"github.com/candor-grid/candor/auctioneer/book"
	"github.com/candor-grid/candor/auctioneer/market"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/clearing"
	"github.com/candor-grid/candor/messages/money"
)

const (
	// transfersAtOnce is the number of transfers in one request to the bank.
	transfersAtOnce = 512
	// feesAtOnce is the number of charges to other sites in one batch.
	feesAtOnce = 32
)

// An effect is a request to the bank that follows from the book. payments asks the bank to carry out the effects in
// batches, oldest first. A failed effect is tried again with the same identifier, even if no other event happens. Some
// charges to other sites cannot be accepted by the bank yet. Such a charge does not delay other effects.
type payments struct {
	*core
	effects bool                   // the book may have effects for the bank
	current *batch                 // the batch that is being carried out
	wait    map[messages.Name]bool // sites whose charges wait until retry
	silent  bool                   // the bank did not answer: all effects wait until `retry`
	fails   int
	retry   messages.Duration // time of the next try; 0 if nothing waits
}

// batch is a set of effects that are carried out together. A batch has either one round of payments between jobs, or
// the charges that come before the next round. So a charge comes only after the earlier rounds: they pay from the same
// hold.
type batch struct {
	ids       []uint64 // effects of the transfers
	transfers []money.Transfer
	round     bool  // the transfers are one linked set
	fees      []fee // charges to other sites
	last      bool  // no effect comes after this batch
	done      book.Confirm
	open      int // number of requests without an answer
	failed    error
}

// fee is the charge for a job of another site.
type fee struct {
	effect uint64
	ask    clearing.ChargeRequest
}

// feeOf returns the charge for an ended visiting job. The charge also ends the authorisation, which frees the credits
// that are not charged.
func feeOf(effect uint64, j *book.Job) fee {
	return fee{effect, clearing.ChargeRequest{Issuer: j.Visit.Home, ID: j.Visit.Authorisation, Amount: j.Owed, Job: j.ID,
		Reason: j.Spec.Labels.Labelled("job "+j.Visit.Visit.String()+": "+market.Used(j), clearing.MaxClearingReason)}}
}

func (p *payments) step(more bool) {
	p.effects = p.effects || more
	switch {
	case p.current != nil:
		return
	case p.retry != 0 && p.now.Mono >= p.retry:
		p.wait, p.silent, p.retry, p.effects = nil, false, 0, true
	case p.retry != 0:
		p.wakeIn(p.retry - p.now.Mono)
	}
	if p.silent || !p.effects {
		return
	}
	p.book.Read(func(b *book.Book) { p.current = p.nextBatch(b) })
	p.effects = !p.current.last
	p.begin(p.current)
}

// nextBatch returns the next effects for the bank, oldest first. It leaves out charges to the other sites in p.wait.
// Charges to other sites have their own limit, so they do not delay effects of this site.
func (p *payments) nextBatch(b *book.Book) *batch {
	w, fees, whole := &batch{}, map[messages.Name][]fee{}, true
	for e := range b.EachEffect {
		money := len(w.ids) + len(w.done.Effects)
		if e.Kind == book.Observe {
			continue
		}
		if money == transfersAtOnce || w.round || (e.Kind == book.Round || e.Kind == book.Refund || e.Kind == book.RaiseBudget) && money > 0 {
			whole = false
			break
		}
		switch j := b.Job(e.Job); {
		case !b.Names(&e):
			p.tell(Forgotten{e.ID, e.Job})
			w.done.Effects = append(w.done.Effects, forgotten(e))
		case e.Kind == book.Release:
			w.ids, w.transfers = append(w.ids, e.ID), append(w.transfers, market.Release(e.Hold))
		case e.Kind == book.Round || e.Kind == book.Refund:
			w.ids, w.round = []uint64{e.ID}, true
			w.transfers = market.Round(b, &e, p.until())
		case e.Kind == book.RaiseBudget && j.Raise.Effect != e.ID: // the bank has already answered this effect
			w.done.Effects = append(w.done.Effects, book.Confirmation{Effect: e.ID})
		case e.Kind == book.RaiseBudget:
			w.ids, w.round = []uint64{e.ID}, true
			w.transfers = market.Raise(j, p.until())
		case j.Visit != nil:
			switch home := j.Visit.Home; {
			case p.wait[home]:
			case len(fees[home]) < feesAtOnce:
				fees[home] = append(fees[home], feeOf(e.ID, j))
			default:
				whole = false
			}
		case j.HoldID() == "":
			w.done.Effects = append(w.done.Effects, book.Confirmation{Effect: e.ID})
		default:
			w.ids, w.transfers = append(w.ids, e.ID), append(w.transfers, market.Charge(j))
		}
	}
	var all bool
	w.fees, all = fair(fees, feesAtOnce)
	w.last = whole && all
	return w
}

// until returns the time at which a hold that is made now expires. It returns 0 if holds never expire.
func (c *core) until() messages.Time {
	if c.HoldFor == 0 {
		return 0
	}
	return c.now.Wall.Add(c.HoldFor)
}

// fair returns up to n charges. It takes the oldest charge of each site, then the second oldest of each site, and so
// on. If it has returned all charges, the result `all` is true.
func fair(fees map[messages.Name][]fee, n int) (out []fee, all bool) {
	sites := slices.Sorted(maps.Keys(fees))
	for turn := 0; ; turn++ {
		before := len(out)
		for _, site := range sites {
			if turn >= len(fees[site]) {
				continue
			}
			if len(out) == n {
				return out, false
			}
			out = append(out, fees[site][turn])
		}
		if len(out) == before {
			return out, true
		}
	}
}

// forgotten confirms an effect about a job that the book does not have. A correct book has no such effect.
func forgotten(e book.Effect) book.Confirmation {
	return book.Confirmation{Effect: e.ID, Refused: "it is about a job that is no longer in the book"}
}

// begin sends all requests of a batch to the bank.
func (p *payments) begin(w *batch) {
	w.open = 1 + len(w.fees)
	for _, f := range w.fees {
		ask(p.core, Request{To: messages.Bank, Verb: clearing.VerbCharge, Body: f.ask}, func(_ *clearing.ClearingReply, err error) {
			p.collected(w, f, err)
			p.answered(w)
		})
	}
	if len(w.transfers) == 0 {
		p.answered(w)
		return
	}
	p.transferEach(w.transfers, w.round, func(results []money.TransferResult, err error) {
		if w.failed = err; err == nil {
			p.charged(w, results)
		}
		p.answered(w)
	})
}

// charged stores the bank's answers to the transfers of a batch. The transfers of a round are linked: the bank carries
// out all or none. If it refuses them, usually only the last error says why. So charged stores this error for each
// transfer.
func (p *payments) charged(w *batch, results []money.TransferResult) {
	for i, effect := range w.ids {
		r, c := results[i], book.Confirmation{Effect: effect}
		for k := 0; w.round && k < len(results); k++ {
			if results[k].Error != nil {
				r = results[k]
			}
		}
		switch {
		case r.Error != nil:
			c.Refused = r.Error.Error()
			p.tell(Refused{Charge: w.transfers[i].ID, Err: r.Error})
		case w.transfers[i].Kind == money.Post:
			c.Amount = r.Amount
		}
		w.done.Effects = append(w.done.Effects, c)
	}
}

// collected stores the answer to a charge to another site. The bank answers at once, and settles with the other bank
// later.
func (p *payments) collected(w *batch, f fee, err error) {
	if err != nil && messages.Waits(err) {
		if p.wait == nil {
			p.wait = map[messages.Name]bool{}
		}
		p.wait[f.ask.Issuer] = true
		p.tell(Waiting{"charges to other sites", err})
		return
	}
	c := book.Confirmation{Effect: f.effect, Amount: f.ask.Amount}
	if err != nil {
		c.Amount, c.Refused = 0, err.Error()
		p.tell(Refused{Charge: f.ask.ID, Site: f.ask.Issuer, Err: err})
	}
	w.done.Effects = append(w.done.Effects, c)
}

func (p *payments) answered(w *batch) {
	if w.open--; w.open > 0 {
		return
	}
	p.confirm(&w.done, p.patience(), w.failed, p.end)
}

// confirm commits the known outcomes of effects, if there are any, and calls the function `then` when it is done. If
// the outcomes of other effects are unknown, the argument `failed` is an error, and `then` is called with this error.
// Otherwise `then` is called with the error of the commit.
func (c *core) confirm(done *book.Confirm, patience messages.Duration, failed error, then func(error)) {
	if len(done.Effects) == 0 {
		then(failed)
		return
	}
	c.proposeWithin(patience, &book.Command{Confirm: done}, func(_ any, err error) { then(cmp.Or(failed, err)) })
}

// end ends the present batch of payments. If a part of the batch was not done, end sets the time of the next try.
func (p *payments) end(err error) {
	p.current = nil
	switch {
	case err != nil:
		p.silent = true
		p.tell(Waiting{"payments and notices of jobs", err})
	case len(p.wait) == 0:
		p.fails = 0
		return
	case p.retry != 0:
		return
	}
	p.fails++
	p.retry = p.retryAt(p.fails)
}

func (c *core) transfer(list []money.Transfer, then func([]money.TransferResult, error)) {
	r := Request{To: messages.Bank, Verb: messages.VerbTransfer, Body: money.TransferRequest{Transfers: list}}
	ask(c, r, func(reply *money.TransferReply, err error) {
		switch {
		case err != nil:
			then(nil, err)
		case len(reply.Results) != len(list):
			then(nil, messages.Errorf(messages.Internal, "the bank answered %d of %d transfers", len(reply.Results), len(list)))
		default:
			then(reply.Results, nil)
		}
	})
}

// transferEach does what transfer does, with one difference: if the bank refuses the whole request, transferEach sends
// each transfer alone. Linked transfers are never sent alone.
func (c *core) transferEach(list []money.Transfer, linked bool, then func([]money.TransferResult, error)) {
	c.transfer(list, func(results []money.TransferResult, err error) {
		switch {
		case err == nil || !refused(err):
			then(results, err)
		case linked || len(list) == 1:
			results = make([]money.TransferResult, len(list))
			for i := range results {
				results[i].Error = messages.AsError(messages.VerbTransfer, err)
			}
			then(results, nil)
		default:
			c.oneByOne(list, nil, then)
		}
	})
}

func (c *core) oneByOne(list []money.Transfer, answered []money.TransferResult, then func([]money.TransferResult, error)) {
	if len(answered) == len(list) {
		then(answered, nil)
		return
	}
	next := len(answered)
	c.transferEach(list[next:next+1], false, func(results []money.TransferResult, err error) {
		if err != nil {
			then(nil, err)
			return
		}
		c.oneByOne(list, append(answered, results...), then)
	})
}
