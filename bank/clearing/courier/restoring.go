package courier

import (
	"context"
	"strings"

	"go.uber.org/zap"

	"github.com/candor-grid/candor/bank/clearing"
	"github.com/candor-grid/candor/messages"
)

// Reincarnate gives the site a new incarnation if the state was restored from a backup,
// before anything is sent to a peer or carried out for one. Of several replicas from one
// backup the first leader does so.
func (c *Courier) Reincarnate(ctx context.Context) error {
	var known uint64
	c.config.Host.Read(func(s *clearing.State) { known = s.Incarnation() })
	if c.config.Restored == 0 || known > uint64(c.config.Restored) {
		return nil
	}
	c.config.Log.Warn("a backup was restored: the books are compared with each peer before the site trades with it", zap.Time("backup", c.config.Restored.Std()))
	ctx, cancel := context.WithTimeout(ctx, c.config.Attempt.Std())
	defer cancel()
	_, err := c.proposer.submit(ctx, clearing.Command{Incarnation: uint64(max(c.config.Clock(), c.config.Restored+1))})
	return err
}

// statements fetches what a peer has of what this bank lost, and makes the plan by which
// it is entered again; bearer stands in for users.
func (p *peers) statements(ctx context.Context, peer, bearer messages.Name) (*messages.Statements, messages.RepairPlan, error) {
	var r messages.StatementsRequest
	p.config.Host.Read(func(s *clearing.State) { r = s.Ends(peer) })
	st, plan := &messages.Statements{}, messages.RepairPlan{}
	ctx, cancel := context.WithTimeout(ctx, p.config.Attempt.Std())
	defer cancel()
	if err := p.ask(ctx, peer, messages.VerbStatements, &r, st); err != nil {
		return nil, plan, err
	}
	keys, err := p.ownKeys()
	if err != nil {
		return nil, plan, err
	}
	err = p.proposer.check(func(s *clearing.State) (refused *clearing.Rejected) {
		if refused = s.ScreenStatements(st, peer, keys); refused == nil {
			plan, refused = s.Plan(bearer, st)
		}
		return refused
	})
	return st, plan, err
}

// ownKeys are those that this site signs, or signed, with.
func (p *peers) ownKeys() ([]string, error) {
	key, err := p.config.Signer.PublicKey()
	if account, is := p.config.Signer.(interface {
		AccountKey() string
		Succession() []messages.Succession
	}); is && len(account.Succession()) == 0 { // a key that was replaced proves nothing
		return []string{key, account.AccountKey()}, err
	}
	return []string{key}, err
}

// empty reports whether a plan enters nothing, and leaves nothing out.
func empty(r *messages.RepairPlan) bool {
	return r.Numbers == 0 && len(r.Changes) == 0 && len(r.Unproven) == 0
}

// compare finds whether this bank lost anything of its books with a peer. If not, the
// two trade on; if so, an operator decides.
func (p *peers) compare(ctx context.Context, peer messages.Name) error {
	_, plan, err := p.statements(ctx, peer, "")
	if err == nil && !empty(&plan) {
		return lost(peer)
	}
	books, failed := p.reconcile(ctx, peer) // a peer of an earlier release has no statements
	if failed != nil {
		return failed
	}
	for i := range books.Books {
		if b := &books.Books[i]; len(b.LostHere) > 0 || b.Difference != nil {
			return lost(peer)
		}
	}
	_, err = p.proposer.submit(ctx, clearing.Command{Compared: peer})
	return err
}

func lost(peer messages.Name) error {
	return messages.Errorf(messages.Conflict, "this site was restored from a backup, and lost what it agreed with %s: see candor peer reconcile %s", peer, peer)
}

// repair enters again what an operator saw in the plan.
func (c *Courier) repair(ctx context.Context, caller messages.Name, r messages.RepairRequest) (reply messages.RepairReply, err error) {
	if err := allow(caller, c.config.Operator, "enter again what was lost"); err != nil {
		return reply, err
	}
	if err := r.Validate(); err != nil {
		return reply, err
	}
	st, _, err := c.peers.statements(ctx, r.Peer, caller)
	if err != nil {
		return reply, err
	}
	result, err := c.proposer.submit(ctx, clearing.Command{By: caller, Repair: &r, Statements: st})
	if err != nil {
		return reply, err
	}
	return *result.Repaired, nil
}

// statements shows a peer's bank what this bank kept of what that one lost.
func (c *Courier) statements(ctx context.Context, caller messages.Name, r messages.StatementsRequest) (st messages.Statements, err error) {
	site, isBank := strings.CutPrefix(caller, "$")
	if !isBank {
		return st, messages.Errorf(messages.PermissionDenied, "account %q may not see the books between banks: only the bank of the peer may", caller)
	}
	if err := c.pace.count(site, paceOfPage, c.config.Clock()); err != nil {
		return st, err
	}
	if err := c.config.Host.Verify(ctx); err != nil {
		return st, err
	}
	c.config.Host.Read(func(s *clearing.State) { st, err = s.Statements(site, r) })
	return st, err
}
