package auctioneer

import (
	"cmp"
	"context"
	"slices"
	"time"

	"go.uber.org/zap"

	"github.com/candor-grid/candor/auctioneer/book"
	"github.com/candor-grid/candor/auctioneer/mechanism"
	"github.com/candor-grid/candor/auctioneer/mechanism/highestbid"
	"github.com/candor-grid/candor/messages"
)

// decision is what a market decided and what is still to be committed of it.
type decision struct {
	market *trading
	*book.Decide
}

// allocate lets a market decide, and returns what of it must last; nil: nothing
// does. The caller holds l.mu.
func (l *leader) allocate(now messages.Time, t *trading) (d *book.Decide) {
	now = asOf(now, t.Wake())
	if !t.Attentive() {
		t.Allocate(now)
		return nil
	}
	l.replica.read(func(b *book.Book) {
		t.Charge(func(id messages.JobID) (messages.Credits, messages.Duration) {
			if j := b.Job(id); j != nil {
				return b.Used(j, now)
			}
			return 0, 0
		})
		d = l.settleOn(b, now, t)
	})
	t.deciding = d != nil
	return d
}

// asOf is the instant that a market decides for: the one at which it asked to
// be woken, if that has only just passed, as what begins then is meant to be
// whole.
func asOf(now, wake messages.Time) messages.Time {
	const lateness = messages.Duration(100 * time.Millisecond)
	if wake != 0 && wake <= now && now.Sub(wake) <= lateness {
		return wake
	}
	return now
}

// mostRounds bounds how often a mechanism is asked again because a suspended
// task cannot go on where it is.
const mostRounds = 4

// settleOn has the mechanism decide until every task that is to go on can.
func (l *leader) settleOn(b *book.Book, now messages.Time, t *trading) *book.Decide {
	t.Reveal()
	for round := 1; ; round++ {
		t.Allocate(now)
		p := l.plan(b, now, t)
		if len(p.stuck) == 0 || round == mostRounds {
			return p.decide(b, t)
		}
		for _, s := range p.stuck {
			t.Hide(s.job, s.class, s.tasks)
		}
	}
}

// plan is a market's directives on the way to attempts on nodes.
type plan struct {
	now     messages.Time
	suspend []messages.Attempt
	resume  []messages.Attempt
	start   []mechanism.Directive
	discard []messages.JobID
	cancel  []messages.JobID // because their slots go to others
	stuck   []stuck
}

// stuck is suspended tasks whose node has no slot for them.
type stuck struct {
	job   messages.JobID
	class int
	tasks int
}

func (l *leader) plan(b *book.Book, now messages.Time, t *trading) *plan {
	p := &plan{now: now}
	directives := t.Orders().Directives
	wanted := wantedNodes(b, t, directives)
	freed := map[uint32]int{} // slots by node
	for _, d := range directives {
		switch d.Action {
		case mechanism.Suspend:
			p.takeSlots(b, t, d, wanted, freed)
		case mechanism.Discard:
			p.discard = append(p.discard, d.Job)
		case mechanism.Start:
			p.start = append(p.start, d)
		}
	}
	for _, d := range directives {
		if d.Action == mechanism.Resume {
			p.goOn(b, t, d, freed)
		}
	}
	return p
}

// wantedNodes are those with tasks that are to go on.
func wantedNodes(b *book.Book, t *trading, directives []mechanism.Directive) map[uint32]bool {
	out := map[uint32]bool{}
	for _, d := range directives {
		if d.Action == mechanism.Resume {
			for _, c := range claims(b, d.Job, t.Config.Classes[d.Class], book.Suspended) {
				out[c.node] = true
			}
		}
	}
	return out
}

// claim is a claim that is not about to end, and where it is.
type claim struct {
	messages.Attempt
	node    uint32
	since   messages.Time // of its halt
	claimed messages.Time
}

// claims lists the claims of a job's class that go, or are suspended, in the
// order of stage and index.
func claims(b *book.Book, id messages.JobID, class messages.Name, halt book.Halt) (out []claim) {
	j := b.Job(id)
	if j == nil {
		return nil
	}
	for i := range j.Stages {
		if j.Spec.Stages[i].Class != class || j.Stages[i].Running == 0 {
			continue
		}
		for k := range j.Stages[i].Tasks {
			t := &j.Stages[i].Tasks[k]
			if t.Phase != book.Claimed {
				continue
			}
			r := messages.TaskRef{Job: id, Stage: uint32(i), Index: uint32(k)}
			if h := b.Nodes()[t.Node].Claims[r]; h.Attempt == t.Attempt && h.Halt == halt && !h.Leaving {
				out = append(out, claim{messages.Attempt{Task: r, Number: t.Attempt}, t.Node, h.Since, t.Claimed})
			}
		}
	}
	return out
}

// takeSlots chooses the tasks that lose their slots: first where others are to
// go on, then those that began last.
func (p *plan) takeSlots(b *book.Book, t *trading, d mechanism.Directive, wanted map[uint32]bool, freed map[uint32]int) {
	running := claims(b, d.Job, t.Config.Classes[d.Class], book.Goes)
	slices.SortStableFunc(running, func(x, y claim) int {
		if wanted[x.node] != wanted[y.node] {
			if wanted[x.node] {
				return -1
			}
			return 1
		}
		return cmp.Compare(y.claimed, x.claimed)
	})
	if d.Slots > 0 && d.Slots < len(running) {
		running = running[:d.Slots]
	}
	if t.Config.Preemption == messages.PreemptCancel {
		if len(running) > 0 {
			p.cancel = append(p.cancel, d.Job)
		}
		return
	}
	for _, c := range running {
		p.suspend = append(p.suspend, c.Attempt)
		if t.Config.Preemption != messages.PreemptRequeue {
			freed[c.node]++
		}
	}
}

// goOn chooses the tasks that get a slot again: those that have waited longest,
// where there is one.
func (p *plan) goOn(b *book.Book, t *trading, d mechanism.Directive, freed map[uint32]int) {
	class := t.Config.Classes[d.Class]
	waiting := claims(b, d.Job, class, book.Suspended)
	slices.SortStableFunc(waiting, func(x, y claim) int { return cmp.Compare(x.since, y.since) })
	left := cmp.Or(d.Slots, len(waiting))
	for _, c := range waiting {
		if left > 0 && b.Nodes()[c.node].Idle(class)+freed[c.node] > 0 {
			freed[c.node]--
			left--
			p.resume = append(p.resume, c.Attempt)
		}
	}
	if left > 0 {
		p.stuck = append(p.stuck, stuck{d.Job, d.Class, left})
	}
}

// decide makes the command of a plan; nil if there is nothing to commit.
func (p *plan) decide(b *book.Book, t *trading) *book.Decide {
	d := &book.Decide{Market: t.Config.Name, Suspend: p.suspend, Resume: p.resume}
	if t.Config.Preemption == messages.PreemptRequeue {
		d.Suspend, d.Requeue = nil, p.suspend
	}
	for _, id := range p.discard {
		if j := t.Job(id); j != nil {
			d.Discard = append(d.Discard, discarding(p.now, t, j))
		}
	}
	for _, id := range p.cancel {
		if !slices.Contains(p.discard, id) {
			d.Discard = append(d.Discard, book.Discarding{Job: id, Reason: "Preempted", Message: "its slots went to others, and its market ends what loses its slots",
				Change: []string{"a higher bid, or a market that suspends"}})
		}
	}
	if t.Commits() {
		for _, s := range p.start {
			if j := t.Job(s.Job); j != nil {
				d.Start = append(d.Start, starting(p.now, t, j, s))
			}
		}
	}
	if now := tariffs(t); !slices.Equal(now, b.Tariffs(t.Config.Name)) {
		d.Tariffs = now
	}
	if len(d.Suspend)+len(d.Resume)+len(d.Requeue)+len(d.Start)+len(d.Discard)+len(d.Tariffs) == 0 {
		return nil
	}
	return d
}

// discarding ends a job that its market will not run, with the market's own
// explanation.
func discarding(now messages.Time, t *trading, job *mechanism.Job) book.Discarding {
	x, _ := t.Explain(now, job.Job)
	d := book.Discarding{Job: job.Job, Reason: x.Reason, Message: x.Message, Change: x.Change}
	if t.Commits() {
		_, d.Legs = split(job.Job, t.Settle(now, job, mechanism.End{State: messages.Discarded, Tasks: job.Tasks, Done: job.Done}))
	}
	return d
}

// starting makes a market's word that a job starts final, with its price.
func starting(now messages.Time, t *trading, job *mechanism.Job, s mechanism.Directive) book.Starting {
	out := book.Starting{Job: job.Job, Order: book.Order{Class: t.Config.Classes[s.Class], Slots: max(s.Slots, 1), At: cmp.Or(s.At, now)}}
	out.Fixed, out.Legs = split(job.Job, t.Settle(now, job, mechanism.End{State: messages.Completed, Tasks: job.Tasks, Done: job.Tasks}))
	return out
}

// split divides payments into what a job owes to the site and what moves
// between jobs.
func split(id messages.JobID, payments []mechanism.Payment) (fixed *book.Fixed, legs []book.Leg) {
	for _, p := range payments {
		if p.From == id && p.To == 0 {
			fixed = &book.Fixed{Amount: p.Amount, Reason: p.Reason}
		} else if p.Amount > 0 {
			legs = append(legs, book.Leg{From: p.From, To: p.To, Amount: p.Amount, Reason: p.Reason})
		}
	}
	return fixed, legs
}

// tariffs are what a market charges from now on.
func tariffs(t *trading) []book.Tariff {
	m, given := &t.Config, t.Orders().Tariffs
	if len(given) == 0 {
		return nil
	}
	out := make([]book.Tariff, len(given))
	for k, g := range given {
		out[k] = book.Tariff{Class: m.Classes[k], Capped: m.Capped}
		switch g.Basis {
		case mechanism.AtReserve:
			out[k].Price = m.ReservePrice()
		case mechanism.OwnBid:
			out[k].OwnBid = true
		case mechanism.AtLevel:
			out[k].Price, out[k].Length = g.Rate, g.Length
			out[k].Capped = m.Capped || m.Algorithm == string(highestbid.NPHB)
		}
	}
	return out
}

// commit makes a decision last. Until it is known how that went, the market
// decides nothing else.
func (l *leader) commit(ctx context.Context, d decision) {
	_, err := l.propose(ctx, &book.Command{Decide: d.Decide})
	if err != nil && ctx.Err() == nil {
		l.Log.Warn("decision not committed, deciding again", zap.String("market", d.Market), zap.Error(err))
	}
	if err == nil {
		l.metrics.decisions.Inc()
		l.metrics.suspensions.Add(float64(len(d.Suspend) + len(d.Requeue)))
		l.metrics.resumptions.Add(float64(len(d.Resume)))
		l.metrics.discards.Add(float64(len(d.Discard)))
	}
	l.mu.Lock()
	d.market.deciding = false
	if err != nil {
		d.market.Stalled()
	}
	l.mu.Unlock()
	l.replica.wake()
}
