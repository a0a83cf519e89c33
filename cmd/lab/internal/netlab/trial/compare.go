package trial

import (
	"context"
	"errors"
	"fmt"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/clearing"
	"github.com/candor-grid/candor/messages/job"
	"github.com/candor-grid/candor/messages/money"
)

// compare checks all records of the sites of a federation. First it checks the jobs of each site. Then it waits until
// the banks' books agree with each other, and each user's statement agrees with the user's jobs. In the end it verifies
// the journals and the totals.
func (t *trial) compare(ctx context.Context, all []*member) error {
	for _, m := range all {
		t.log("asking %s for all that it acknowledged", m.Name)
		if err := m.checkWork(ctx); err != nil {
			return err
		}
		m.givenUp()
	}
	if err := t.settleCycle(ctx, all); err != nil {
		return err
	}
	for _, m := range all {
		if err := m.verify(ctx); err != nil {
			return err
		}
	}
	return t.checkTotals(ctx, all)
}

// agree waits until two things are true: the books of all banks agree with each other, and every user's statement
// agrees with the user's jobs.
func (t *trial) agree(ctx context.Context, all []*member) error {
	if err := t.awaitAgreement(ctx, all); err != nil {
		return err
	}
	for _, m := range all {
		if err := m.awaitStatements(ctx); err != nil {
			return err
		}
	}
	return nil
}

// awaitStatements waits until the statements of a site's users agree with their jobs. The cost of a remote job arrives
// with the other site's next report.
func (m *member) awaitStatements(ctx context.Context) error {
	var read statements
	err := within(ctx, patience, func(ctx context.Context) (err error) {
		if read, err = m.readStatements(ctx); err == nil && len(read.apart) > 0 {
			err = errors.New(read.apart[0])
		}
		return err
	})
	if len(read.apart) > 0 {
		m.trial.breaksEach(read.apart)
		return nil
	}
	m.trial.count("jobs of "+m.Name+" that ran elsewhere", read.away)
	m.trial.count("lines of statements of "+m.Name+" that agree", read.lines)
	return err
}

type statements struct {
	apart []string // differences from the jobs or from the accounts
	lines int
	away  int // number of jobs that ran at other sites
}

// readStatements adds up the statements of all users of a site. A statement must have each charge once, and sum to the
// user's balance.
func (m *member) readStatements(ctx context.Context) (read statements, err error) {
	jobs, err := m.jobs(ctx)
	if err != nil {
		return read, err
	}
	for _, user := range federated {
		if err := m.readStatement(ctx, user, jobs, &read); err != nil {
			return read, err
		}
	}
	return read, nil
}

func (m *member) readStatement(ctx context.Context, user messages.Name, jobs map[messages.JobID]job.JobSummary, read *statements) error {
	apart := func(format string, arguments ...any) {
		read.apart = append(read.apart, fmt.Sprintf(format, arguments...))
	}
	account, err := ask[money.AccountReply](ctx, m, messages.Bank, messages.VerbAccount, money.AccountRequest{Account: user})
	if err != nil {
		return err
	}
	entries, err := m.statement(ctx, user)
	if err != nil {
		return err
	}
	read.lines += len(entries)
	charged := map[messages.JobID]messages.Credits{}
	var sum messages.Credits
	for _, e := range entries {
		sum += e.Change
		if e.Job != 0 {
			charged[e.Job] -= e.Change
		}
	}
	if sum != account.Balance || account.Reserved != 0 {
		apart("the statement of %s of %s sums to %v, but the balance is %v, with %v held", user, m.Name, sum, account.Balance, account.Reserved)
	}
	for id, j := range jobs {
		if j.Account != user || j.Visit != nil {
			continue
		}
		if j.Away != nil {
			read.away++
		}
		if charged[id] != j.Charged {
			apart("job %d of %s of %s was charged %v, but the statement says %v", id, user, m.Name, j.Charged, charged[id])
		}
	}
	return nil
}

func (m *member) statement(ctx context.Context, user messages.Name) (all []money.Entry, err error) {
	r := money.StatementRequest{Account: user, Limit: 1000}
	for {
		reply, err := ask[money.StatementReply](ctx, m, messages.Bank, messages.VerbStatement, r)
		if err != nil {
			return nil, err
		}
		all = append(all, reply.Entries...)
		if !reply.More || len(reply.Entries) == 0 {
			return all, nil
		}
		r.After = reply.Entries[len(reply.Entries)-1].Number
	}
}

// awaitAgreement waits until nothing is in flight between any two banks, and their records about each other agree.
func (t *trial) awaitAgreement(ctx context.Context, all []*member) error {
	where := ""
	err := within(ctx, patience, func(ctx context.Context) (err error) {
		if where, err = disagreement(ctx, all); where != "" {
			err = errors.New(where)
		}
		return err
	})
	if where != "" {
		t.breaks("the books do not agree after %v: %s", patience, where)
		return nil
	}
	return err
}

// disagreement returns a sentence about something on which the banks do not agree yet, or "" if they agree on
// everything.
func disagreement(ctx context.Context, all []*member) (string, error) {
	var replies []clearing.PeersReply
	for _, m := range all {
		reply, err := ask[clearing.PeersReply](ctx, m, messages.Bank, clearing.VerbPeers, messages.Empty{})
		if err != nil {
			return "", err
		}
		replies = append(replies, reply)
	}
	return apart(replies), nil
}

// The function `apart` returns a sentence that says where banks disagree about their debts, or "".
func apart(replies []clearing.PeersReply) string {
	owed := map[[2]messages.Name]messages.Credits{}
	for _, r := range replies {
		if r.Fault != "" {
			return fmt.Sprintf("%s has a fault: %s", r.Site, r.Fault)
		}
		for _, p := range r.Peers {
			if p.Outstanding > 0 || p.Dispute != "" {
				return fmt.Sprintf("site %s waits for %d answers of site %s; dispute: %q", r.Site, p.Outstanding, p.Peer, p.Dispute)
			}
			owed[[2]messages.Name{r.Site, p.Peer}] = p.Owed
		}
	}
	for _, r := range replies {
		for _, p := range r.Peers {
			if back := owed[[2]messages.Name{p.Peer, r.Site}]; p.Owed != -back {
				return fmt.Sprintf("site %s owes site %s %v according to its own books, but %v according to the books of the peer", r.Site, p.Peer, p.Owed, -back)
			}
		}
	}
	return ""
}

// settleCycle closes a cycle at every bank. The payments must sum to zero. For each pair of banks, the two books must
// agree line by line.
func (t *trial) settleCycle(ctx context.Context, all []*member) error {
	const cycle = 1
	for _, m := range all {
		if _, err := ask[clearing.SignedPosition](ctx, m, messages.Bank, clearing.VerbClose, clearing.CloseRequest{Cycle: cycle}); err != nil {
			return err
		}
	}
	if err := t.awaitAgreement(ctx, all); err != nil {
		return err
	}
	report, err := ask[clearing.NettingReport](ctx, all[0], messages.Bank, clearing.VerbNet, clearing.CycleRequest{Cycle: cycle})
	if err != nil {
		return err
	}
	var net messages.Credits
	for _, p := range report.Positions {
		net += p.Net
	}
	t.add("charged between sites", report.Volume.Float(), "credits")
	t.add("paid between sites after netting", report.Multilateral.Float(), "credits")
	t.add("sum of the net positions", net.Float(), "credits")
	if !report.Balanced || net != 0 || len(report.Positions) != len(all) {
		t.breaks("the settlement does not net to zero: %+v", report)
	}
	return t.reconcile(ctx, all)
}

func (t *trial) reconcile(ctx context.Context, all []*member) error {
	instructions := 0
	for _, m := range all {
		for _, other := range all {
			if other == m {
				continue
			}
			reply, err := ask[clearing.ReconcileReply](ctx, m, messages.Bank, clearing.VerbReconcile, clearing.ReconcileRequest{Peer: other.Name})
			if err != nil {
				return err
			}
			for _, b := range reply.Books {
				if b.Difference != nil || b.Ours != b.Theirs {
					t.breaks("the books of %s and %s differ: %+v", m.Name, other.Name, b)
				}
				instructions += int(b.Ours)
			}
		}
	}
	t.count("instructions between banks, the same in all books", instructions/2) // each pair was counted twice
	return nil
}

// checkTotals checks that no credits appeared or were lost. The balances of all accounts of all sites, without debts
// between sites, must sum to the granted credits.
func (t *trial) checkTotals(ctx context.Context, all []*member) error {
	var balances, between, granted messages.Credits
	for _, m := range all {
		books, err := ask[money.BooksReply](ctx, m, messages.Bank, messages.VerbBooks, money.BooksRequest{})
		if err != nil {
			return err
		}
		peers, err := ask[clearing.PeersReply](ctx, m, messages.Bank, clearing.VerbPeers, messages.Empty{})
		if err != nil {
			return err
		}
		if !books.Balanced || books.Holds != 0 {
			t.breaks("the books of %s do not balance, or have holds: %+v", m.Name, books)
		}
		balances += books.Balances
		granted += startingGrant * messages.Credits(len(federated))
		for _, p := range peers.Peers {
			between += p.Owed
		}
		between += peers.Settled
	}
	t.add("credits on all accounts of all sites", balances.Float(), "credits")
	if balances != granted || between != 0 {
		t.breaks("all accounts sum to %v, but %v was granted; the debts between sites must sum to 0, but sum to %v", balances, granted, between)
	}
	return nil
}
