package courier

import (
	"context"
	"strings"

	"github.com/candor-grid/candor/bank/clearing"
	"github.com/candor-grid/candor/messages"
	clearingmsg "github.com/candor-grid/candor/messages/clearing"
)

// net collects the positions of a cycle from the peers and nets all debts. The report omits peers that do not answer.
// It also omits sites that are not peers, because this bank does not know their keys.
func (c *Courier) net(ctx context.Context, caller messages.Name, r clearingmsg.CycleRequest) (clearingmsg.NettingReport, error) {
	if err := allow(caller, c.config.Operator, "see how cycles are settled"); err != nil {
		return clearingmsg.NettingReport{}, err
	}
	own, err := c.ownPosition(ctx, r.Cycle)
	if err != nil {
		return clearingmsg.NettingReport{}, err
	}
	positions, faults := c.peers.collect(ctx, own.Cycle)
	report := clearing.Net(own.Cycle, append(positions, *own))
	report.Faults = append(report.Faults, faults...)
	report.Balanced = report.Balanced && len(faults) == 0
	return report, nil
}

// ownPosition returns this site's position in a cycle; cycle 0 means the latest one.
func (c *Courier) ownPosition(ctx context.Context, cycle uint64) (own *clearingmsg.Position, err error) {
	if err := c.config.Host.Verify(ctx); err != nil {
		return nil, err
	}
	var refused *clearing.Rejected
	c.config.Host.Read(func(s *clearing.State) {
		if cycle == 0 {
			cycle = s.Cycle()
		}
		own, refused = s.Position(cycle)
	})
	if refused != nil {
		return nil, refused.Err
	}
	return own, nil
}

// position answers the bank of a peer that asks for this site's position in a cycle. A bank needs the positions of all
// sites for netting.
func (c *Courier) position(ctx context.Context, caller messages.Name, r clearingmsg.CycleRequest) (clearingmsg.SignedPosition, error) {
	site, isBank := strings.CutPrefix(caller, "$")
	known := false
	c.config.Host.Read(func(s *clearing.State) { known = isBank && s.Knows(site) })
	if !known {
		return clearingmsg.SignedPosition{}, messages.Errorf(messages.PermissionDenied, "account %q may not see positions: only the banks of peers may", caller)
	}
	if err := c.pace.count(site, paceOfPage, c.config.Clock()); err != nil {
		return clearingmsg.SignedPosition{}, err
	}
	own, err := c.ownPosition(ctx, r.Cycle)
	if err != nil {
		return clearingmsg.SignedPosition{}, err
	}
	return clearing.SignPosition(c.config.Signer, *own)
}

func (c *Courier) reconcile(ctx context.Context, caller messages.Name, r clearingmsg.ReconcileRequest) (clearingmsg.ReconcileReply, error) {
	if err := allow(caller, c.config.Operator, "have the books compared"); err != nil {
		return clearingmsg.ReconcileReply{}, err
	}
	if err := r.Validate(); err != nil {
		return clearingmsg.ReconcileReply{}, err
	}
	if err := c.config.Host.Verify(ctx); err != nil {
		return clearingmsg.ReconcileReply{}, err
	}
	reply, err := c.peers.reconcile(ctx, r.Peer)
	if err != nil {
		return reply, err
	}
	c.config.Host.Read(func(s *clearing.State) { reply.Totals, err = s.Totals(r.Peer) })
	return reply, err
}

// totals gives a peer's bank this bank's totals of the trade between the two sites.
func (c *Courier) totals(ctx context.Context, caller messages.Name, _ messages.Empty) (clearingmsg.SignedTotals, error) {
	site, isBank := strings.CutPrefix(caller, "$")
	if !isBank {
		return clearingmsg.SignedTotals{}, messages.Errorf(messages.PermissionDenied, "account %q may not see the books between banks: only the bank of the peer may", caller)
	}
	if err := c.pace.count(site, paceOfPage, c.config.Clock()); err != nil {
		return clearingmsg.SignedTotals{}, err
	}
	if err := c.config.Host.Verify(ctx); err != nil {
		return clearingmsg.SignedTotals{}, err
	}
	var t clearingmsg.Totals
	var err error
	c.config.Host.Read(func(s *clearing.State) { t, err = s.Totals(site) })
	if err != nil {
		return clearingmsg.SignedTotals{}, err
	}
	return clearing.SignTotals(c.config.Signer, t)
}
