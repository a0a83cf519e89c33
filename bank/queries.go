package bank

import (
	"cmp"
	"context"

	"github.com/candor-grid/candor/bank/clearing"
	"github.com/candor-grid/candor/bank/ledger"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/bus"
	"github.com/candor-grid/candor/messages/mailbox"
	"github.com/candor-grid/candor/messages/money"
)

type queries struct {
	config  *Config
	metrics *metrics
	machine *machine
	archive *archive
	callers *callers
	group   *group
	keys    *keys
	auditor auditor
	alarm   *alarm
}

func (q *queries) service() bus.Service {
	return bus.Service{
		Name: "candor-bank", Version: serviceVersion, Description: "Accounts of site " + q.config.Site, Discoverable: true, Pace: bus.UserPace,
		Endpoints: []bus.Endpoint{
			endpoint(q.config, q.metrics, messages.VerbAccount, q.account),
			endpoint(q.config, q.metrics, messages.VerbAccounts, q.accounts),
			endpoint(q.config, q.metrics, messages.VerbStatement, q.statement),
			endpoint(q.config, q.metrics, messages.VerbBooks, q.books),
			endpoint(q.config, q.metrics, messages.VerbStatus, q.status),
			endpoint(q.config, q.metrics, messages.VerbTrust, q.trust),
			endpoint(q.config, q.metrics, messages.VerbReplicas, q.replicas),
			endpoint(q.config, q.metrics, money.VerbJournal, q.journal),
			endpoint(q.config, q.metrics, money.VerbCheckpoints, q.checkpoints),
			endpoint(q.config, q.metrics, money.VerbSegment, q.segment),
		},
	}
}

// readAccount calls f with the ledger if the caller may see an account. Other callers do not
// learn whether it exists.
func (q *queries) readAccount(ctx context.Context, caller, name messages.Name, f func(*ledger.Ledger) error) error {
	if err := q.group.verify(ctx); err != nil {
		return err
	}
	var err error
	q.machine.read(func(l *ledger.Ledger) {
		if !q.callers.seesAll(caller) && !l.MaySee(caller, name) {
			err = messages.Errorf(messages.PermissionDenied, "account %q may not see this account: only its owner and its members may", caller)
			return
		}
		err = f(l)
	})
	return err
}

// own returns `name`, or the caller's own name if `name` is empty.
func own(caller, name messages.Name) messages.Name {
	if name == "" {
		return caller
	}
	return name
}

func (q *queries) account(ctx context.Context, caller messages.Name, r money.AccountRequest) (reply money.AccountReply, err error) {
	name := own(caller, r.Account)
	err = q.readAccount(ctx, caller, name, func(l *ledger.Ledger) (err error) {
		reply, err = l.Account(name)
		if r.Holds {
			reply.Pending = l.Holds(name)
		}
		return err
	})
	q.machine.readClearing(func(s *clearing.State) {
		for i := range reply.Pending {
			h := &reply.Pending[i]
			h.Expires = cmp.Or(s.Freed(h.ID), h.Expires)
		}
	})
	return reply, err
}

func (q *queries) statement(ctx context.Context, caller messages.Name, r money.StatementRequest) (reply money.StatementReply, err error) {
	r.Account = own(caller, r.Account)
	err = q.readAccount(ctx, caller, r.Account, func(l *ledger.Ledger) (err error) {
		reply, err = l.Statement(r)
		return err
	})
	return reply, err
}

func (q *queries) accounts(ctx context.Context, caller messages.Name, r money.AccountsRequest) (reply money.AccountsReply, err error) {
	if err := q.group.verify(ctx); err != nil {
		return reply, err
	}
	q.machine.read(func(l *ledger.Ledger) {
		if q.callers.seesAll(caller) {
			reply, err = l.AccountsPage(r)
		} else {
			reply, err = l.AccountsOf(caller, r)
		}
	})
	return reply, err
}

// books returns the running totals to every caller, without the held amount: its increase when a job arrives would
// disclose the job's bid. Only operators can have the totals recomputed, which reads all records.
func (q *queries) books(ctx context.Context, caller messages.Name, r money.BooksRequest) (reply money.BooksReply, err error) {
	if r.Full {
		if err := q.callers.operator(caller, "have the books recomputed"); err != nil {
			return money.BooksReply{}, err
		}
	}
	if err := q.group.verify(ctx); err != nil {
		return money.BooksReply{}, err
	}
	if r.Full {
		return q.auditor.audit(ctx, q.machine)
	}
	reply = read(q.machine, (*ledger.Ledger).Books)
	if !q.callers.seesAll(caller) {
		reply.Held, reply.Holds = 0, 0
	}
	return reply, nil
}

func (q *queries) status(ctx context.Context, _ messages.Name, _ messages.Empty) (messages.StatusReply, error) {
	if err := q.group.verify(ctx); err != nil {
		return messages.StatusReply{}, err
	}
	s := q.group.box.Status()
	return messages.StatusReply{
		Actor: messages.Bank, Site: q.config.Site, Replica: q.config.Replica,
		Leader: s.Leader, Term: s.Term, Applied: s.Applied, Replicas: s.Replicas,
	}, nil
}

// auditor recomputes the books for one caller at a time, and only if they have changed.
type auditor struct {
	turn    chan struct{} // has one token; an audit holds it while it runs
	records uint64
	reply   money.BooksReply
}

// audit waits until no other audit runs, and only then takes an image. So the reply shows everything that was committed
// when the caller asked.
func (a *auditor) audit(ctx context.Context, m *machine) (money.BooksReply, error) {
	select {
	case a.turn <- struct{}{}:
		defer func() { <-a.turn }()
	case <-ctx.Done():
		return money.BooksReply{}, messages.Errorf(messages.Unavailable, "the books are being recomputed for another request; ask again")
	}
	image := read(m, (*ledger.Ledger).Capture)
	if !a.reply.Balanced || image.Records() != a.records {
		a.records, a.reply = image.Records(), image.Audit()
	}
	return a.reply, nil
}

// trust returns whether the bank requires signed requests. It also returns the bank's exchange key, and keys with which
// a client can check that the exchange key belongs to the bank.
func (q *queries) trust(ctx context.Context, _ messages.Name, _ messages.Empty) (messages.TrustReply, error) {
	if err := q.group.verify(ctx); err != nil {
		return messages.TrustReply{}, err
	}
	return q.keys.trusted()
}

func (q *queries) replicas(ctx context.Context, caller messages.Name, _ messages.Empty) (messages.ReplicasReply, error) {
	if err := q.callers.operator(caller, "list the replicas"); err != nil {
		return messages.ReplicasReply{}, err
	}
	return mailbox.Regroup(ctx, messages.Bank, q.group.box, nil)
}
