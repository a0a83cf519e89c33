package courier

import (
	"context"
	"slices"

	"go.uber.org/zap"

	"github.com/candor-grid/candor/bank/clearing"
	"github.com/candor-grid/candor/messages"
	clearingmsg "github.com/candor-grid/candor/messages/clearing"
)

// Reincarnate gives the site a new incarnation if its state was restored from a backup. Call it before anything is sent
// to a peer or carried out for a peer. Only the first leader after a restore changes anything.
func (c *Courier) Reincarnate(ctx context.Context) error {
	var last uint64
	var backup messages.Time
	c.config.Host.Read(func(s *clearing.State) { last, backup = s.Incarnation() })
	if c.config.Restored == 0 || backup == c.config.Restored {
		return nil
	}
	c.config.Log.Warn("a backup was restored: the books are compared with each peer before the site trades with it", zap.Time("backup", c.config.Restored.Std()))
	ctx, cancel := context.WithTimeout(ctx, c.config.Attempt.Std())
	defer cancel()
	_, err := c.proposer.submit(ctx, clearing.Command{Incarnation: max(uint64(max(c.config.Clock(), 0)), last+1), Since: c.config.Restored})
	return err
}

// compare checks whether this bank lost a part of its books with a peer. If nothing was lost, the two banks trade
// again. Otherwise an operator must decide.
func (p *peers) compare(ctx context.Context, peer messages.Name) error {
	books, err := p.reconcile(ctx, peer)
	if err != nil {
		return err
	}
	lost := func(b clearingmsg.ReconciledBook) bool { return b.Difference != nil || b.LostHere > 0 }
	if books.Adoption != nil || slices.ContainsFunc(books.Books, lost) {
		return messages.Errorf(messages.Conflict, "this site was restored from a backup, and lost what it agreed with %s: see candor peer reconcile %s", peer, peer)
	}
	_, err = p.proposer.submit(ctx, clearing.Command{Compared: peer, Known: books.Theirs.Totals.Incarnation})
	return err
}
