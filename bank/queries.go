package bank

import (
	"context"

	"github.com/candor-grid/candor/bank/ledger"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/bus"
)

// queries is what anybody may ask, each about what they may see.
func (b *Bank) queries() bus.Service {
	return bus.Service{
		Name: "candor-bank", Version: serviceVersion, Description: "Accounts of site " + b.config.Site, Discoverable: true,
		Endpoints: []bus.Endpoint{
			endpoint(b, messages.VerbAccount, b.account),
			endpoint(b, messages.VerbAccounts, b.accounts),
			endpoint(b, messages.VerbStatement, b.statement),
			endpoint(b, messages.VerbBooks, b.books),
			endpoint(b, messages.VerbStatus, b.status),
			endpoint(b, messages.VerbTrust, b.trust),
			endpoint(b, messages.VerbReplicas, b.replicas),
			endpoint(b, messages.VerbJournal, b.journal),
			endpoint(b, messages.VerbCheckpoints, b.listCheckpoints),
			endpoint(b, messages.VerbSegment, b.segment),
		},
	}
}

// seesAll reports whether a caller may see every account.
func (b *Bank) seesAll(caller messages.Name) bool { return b.operators[caller] || b.services[caller] }

// readAccount has f read an account if the caller may see it. Whoever may not
// is not told whether it exists.
func (b *Bank) readAccount(ctx context.Context, caller, name messages.Name, f func(*ledger.Ledger) error) error {
	if err := b.verify(ctx); err != nil {
		return err
	}
	var err error
	b.machine.read(func(l *ledger.Ledger) {
		if !b.seesAll(caller) && !l.MaySee(caller, name) {
			err = messages.Errorf(messages.PermissionDenied, "account %q may not see that account: it is neither its own nor one it is a member of", caller)
			return
		}
		err = f(l)
	})
	return err
}

// own puts the caller's own account for one that is not named.
func own(caller, name messages.Name) messages.Name {
	if name == "" {
		return caller
	}
	return name
}

func (b *Bank) account(ctx context.Context, caller messages.Name, r messages.AccountRequest) (reply messages.AccountReply, err error) {
	name := own(caller, r.Account)
	err = b.readAccount(ctx, caller, name, func(l *ledger.Ledger) (err error) {
		reply, err = l.Account(name)
		return err
	})
	return reply, err
}

func (b *Bank) statement(ctx context.Context, caller messages.Name, r messages.StatementRequest) (reply messages.StatementReply, err error) {
	r.Account = own(caller, r.Account)
	err = b.readAccount(ctx, caller, r.Account, func(l *ledger.Ledger) (err error) {
		reply, err = l.Statement(r)
		return err
	})
	return reply, err
}

func (b *Bank) accounts(ctx context.Context, caller messages.Name, r messages.AccountsRequest) (reply messages.AccountsReply, err error) {
	if err := b.verify(ctx); err != nil {
		return reply, err
	}
	b.machine.read(func(l *ledger.Ledger) {
		if b.seesAll(caller) {
			reply, err = l.AccountsPage(r)
		} else {
			reply, err = l.AccountsOf(caller, r)
		}
	})
	return reply, err
}

// books tells the running totals to anybody. To recompute them from the first
// record reads everything, so that is for operators.
func (b *Bank) books(ctx context.Context, caller messages.Name, r messages.BooksRequest) (reply messages.BooksReply, err error) {
	if r.Full {
		if err := b.operator(caller, "have the books recomputed"); err != nil {
			return messages.BooksReply{}, err
		}
	}
	if err := b.verify(ctx); err != nil {
		return messages.BooksReply{}, err
	}
	if r.Full {
		return b.auditor.audit(ctx, b.machine)
	}
	b.machine.read(func(l *ledger.Ledger) { reply = l.Books() })
	return reply, nil
}

func (b *Bank) status(ctx context.Context, _ messages.Name, _ messages.Empty) (messages.StatusReply, error) {
	if err := b.verify(ctx); err != nil {
		return messages.StatusReply{}, err
	}
	s := b.box.Status()
	return messages.StatusReply{
		Actor: messages.Bank, Site: b.config.Site, Replica: b.config.Replica,
		Leader: s.Leader, Term: s.Term, Applied: s.Applied, Replicas: s.Replicas,
	}, nil
}

// auditor recomputes the books, one caller at a time, and not again while
// they are as they were.
type auditor struct {
	turn    chan struct{} // holds one token while nobody audits
	records uint64
	reply   messages.BooksReply
}

func newAuditor() auditor {
	a := auditor{turn: make(chan struct{}, 1)}
	a.turn <- struct{}{}
	return a
}

// audit takes an image after its turn has come, so that the reply shows all
// that was committed when the caller asked.
func (a *auditor) audit(ctx context.Context, m *machine) (messages.BooksReply, error) {
	select {
	case <-a.turn:
		defer func() { a.turn <- struct{}{} }()
	case <-ctx.Done():
		return messages.BooksReply{}, messages.Errorf(messages.Unavailable, "the books are being recomputed for others; ask again")
	}
	var image *ledger.Image
	m.read(func(l *ledger.Ledger) { image = l.Capture() })
	if !a.reply.Balanced || image.Records() != a.records {
		a.records, a.reply = image.Records(), image.Audit()
	}
	return a.reply, nil
}
