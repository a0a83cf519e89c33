package bank

import (
	"context"

	"github.com/candor-grid/candor/bank/clearing"
	"github.com/candor-grid/candor/bank/ledger"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/bus"
	"github.com/candor-grid/candor/messages/mailbox"
	"github.com/candor-grid/candor/messages/proof"
)

// group is the replicated state, with the methods that the leader and the queries use.
type group struct {
	machine *machine
	box     mailbox.Mailbox
	alarm   *alarm
	late    lateness
}

// The method `now` returns the time for the next command. The second result reports whether this time is earlier than
// the clock; see [lateness].
func (g *group) now() (messages.Time, bool) {
	var reached, due messages.Time
	g.machine.read(func(l *ledger.Ledger) { reached, due = l.Now(), l.NextExpiry() })
	return g.late.now(reached, due)
}

func (g *group) propose(ctx context.Context, c *ledger.Command) (ledger.Result, error) {
	if err := c.Check(); err != nil {
		return ledger.Result{}, err
	}
	if err := guard(c); err != nil {
		return ledger.Result{}, err
	}
	if err := g.prove(ctx, c); err != nil {
		return ledger.Result{}, err
	}
	if err := g.alarm.refusal(); err != nil && c.Verb != ledger.Keys {
		return ledger.Result{}, err
	}
	c.At, _ = g.now()
	result, err := mailbox.ProposeAs[ledger.Result](ctx, g.box, messages.Bank, c.Encode())
	if err == nil && result.Error != nil {
		return ledger.Result{}, result.Error
	}
	return result, err
}

// verify waits until the ledger contains every change that the bank has reported in an answer before this call. Every
// read after verify then shows these changes.
func (g *group) verify(ctx context.Context) error {
	err := g.box.Verify(ctx)
	if ctx.Err() != nil {
		return messages.Errorf(messages.Unavailable, "the bank's replicas did not agree in time; ask again")
	}
	if err != nil {
		return mailbox.Wire(messages.Bank, err)
	}
	return nil
}

// provenFrom returns the number of a record: this record and all later records are proven by signatures. It returns 0
// if there is no such record.
func (g *group) provenFrom() uint64 { return read(g.machine, (*ledger.Ledger).Proven) }

// prove adds the request's signature to a command, if the books require signatures.
func (g *group) prove(ctx context.Context, c *ledger.Command) *messages.Error {
	switch {
	case c.Verb == ledger.Expire || c.Verb == ledger.Keys:
		return nil
	case g.provenFrom() == 0:
		c.Asked, c.Proof = nil, nil
		return nil
	case c.Verb == ledger.Transfers && c.Proof != nil:
		return nil
	case c.Verb == ledger.Transfers:
		return unmarked()
	}
	if c.Asked = bus.Asked(ctx); c.Asked == nil {
		return messages.Errorf(messages.Unproven, "nothing proves who asked: use the command candor, or send the header %s, which \"candor bank sign\" makes from your credentials", proof.Header)
	}
	return nil
}

func unmarked() *messages.Error {
	return messages.Errorf(messages.Unproven, "proof: the transfers have no marks of a session: open a session first, as candor's own clients do")
}

type host struct{ *group }

// Propose implements [courier.Host].
func (h host) Propose(ctx context.Context, c clearing.Command) (clearing.Result, error) {
	if err := h.alarm.refusal(); err != nil {
		return clearing.Result{}, err
	}
	at, late := h.now()
	switch {
	case late && c.Incarnation == 0:
		return clearing.Result{}, messages.Errorf(messages.NotLeader, "the site did not run for a while, and first extends the holds of its jobs; ask again")
	case late:
		c.At = at
	}
	data, err := c.Encode()
	if err != nil {
		return clearing.Result{}, err
	}
	return mailbox.ProposeAs[clearing.Result](ctx, h.box, messages.Bank, data)
}

// Read implements [courier.Host].
func (h host) Read(f func(*clearing.State)) { h.machine.readClearing(f) }

// Verify implements [courier.Host].
func (h host) Verify(ctx context.Context) error { return h.verify(ctx) }
