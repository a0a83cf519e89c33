package trial

import (
	"context"
	"fmt"
	"path/filepath"

	"github.com/candor-grid/candor/cmd/lab/internal/netlab"
	"github.com/candor-grid/candor/cmd/lab/internal/netlab/load"
	"github.com/candor-grid/candor/deploy/embedded"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/clearing"
)

// acksOfPhase is the number of submissions that each site acknowledges before the backup, and again after it.
const acksOfPhase = 30

// duoPlan returns the plan of one of two sites, for trials in which one of the two sites loses data.
func duoPlan(name messages.Name) netlab.Plan {
	p := plan(name, true)
	p.Agents = 2
	return p
}

// restore damages one replica of a bank while the two sites are cut off from each other. All books must agree
// afterwards. Then the site gets the state of an older backup, and the banks must count every lost instruction.
func restore(ctx context.Context, t *trial, all []*member) error {
	if err := t.phase(ctx, all, "before", func() error { return nil }); err != nil {
		return err
	}
	west, east := all[0], all[1]
	before := *west
	backup := filepath.Join(t.Lab.Dir, "backup")
	if err := west.Racks[0].Backup(backup); err != nil {
		return err
	}
	t.log("%s is backed up", west.Name)
	old, err := west.books(ctx, east)
	if err != nil {
		return err
	}
	if err := t.phase(ctx, all, "after", func() error { return t.damageOneBank(ctx, west) }); err != nil {
		return err
	}
	if err := t.reconcile(ctx, all); err != nil {
		return err
	}
	last, err := west.books(ctx, east)
	if err != nil {
		return err
	}
	if err := t.putBackup(ctx, west, backup); err != nil {
		return err
	}
	if err := t.checkLost(ctx, west, east, old, last); err != nil {
		return err
	}
	before.trial = t
	// check what west acknowledged before its backup, and everything that east acknowledged
	for _, m := range []*member{&before, east} {
		if err := m.checkWork(ctx); err != nil {
			return err
		}
		if err := m.verify(ctx); err != nil {
			return err
		}
	}
	return nil
}

// phase lets the users of both sites submit jobs, a third of them to the other site, and calls the function `meanwhile`
// at the same time. Then it waits until all books agree.
func (t *trial) phase(ctx context.Context, all []*member, name string, meanwhile func() error) error {
	for i, m := range all {
		if err := m.begin(ctx, load.Config{Users: federated, Job: roamingTo([]messages.Name{all[1-i].Name}), Every: cutEvery, Prefix: name}); err != nil {
			return err
		}
	}
	err := meanwhile()
	for _, m := range all {
		if err == nil {
			err = m.load.AwaitMore(ctx, acksOfPhase)
		}
		m.result = m.load.Stop()
	}
	if err != nil {
		return err
	}
	t.log("all books have to agree")
	if err := everyone(all, func(m *member) error { return m.settle(ctx) }); err != nil {
		return err
	}
	return t.agree(ctx, all)
}

func (t *trial) damageOneBank(ctx context.Context, m *member) error {
	s := newStorm(m)
	h := m.Racks[1]
	t.log("%s is cut off, and the bank's files at %s are damaged", m.Name, h.Name)
	t.Lab.Cut(m.Site)
	defer t.Lab.Heal(m.Site)
	if err := s.well(ctx); err != nil {
		return err
	}
	if err := spoil(s, h, messages.Bank); err != nil {
		return err
	}
	if err := m.load.AwaitMore(ctx, acksOfPhase/2); err != nil {
		return err
	}
	return healed(false)(ctx, s, h)
}

// putBackup replaces the state of all racks of a site by a backup, while all processes of the site are stopped.
func (t *trial) putBackup(ctx context.Context, m *member, backup string) error {
	t.log("%s gets the state of its backup", m.Name)
	if err := embedded.Each(m.Hosts(), func(h *netlab.Host) error { h.Kill(); return nil }); err != nil {
		return err
	}
	for _, h := range m.Racks {
		if err := h.Restore(backup); err != nil {
			return err
		}
	}
	if err := embedded.Each(m.Hosts(), (*netlab.Host).Start); err != nil {
		return err
	}
	return embedded.Each(m.Hosts(), func(h *netlab.Host) error {
		ctx, cancel := context.WithTimeout(ctx, startWithin)
		defer cancel()
		return h.Await(ctx)
	})
}

// The method books compares this site's books about instructions with the books of a peer. The result has one
// comparison for the instructions of each sender.
func (m *member) books(ctx context.Context, peer *member) (map[messages.Name]clearing.ReconciledBook, error) {
	reply, err := ask[clearing.ReconcileReply](ctx, m, messages.Bank, clearing.VerbReconcile, clearing.ReconcileRequest{Peer: peer.Name})
	books := map[messages.Name]clearing.ReconciledBook{}
	for _, b := range reply.Books {
		books[b.Sender] = b
	}
	return books, err
}

// checkLost checks that both banks count each instruction that the restored site lost, in both directions. The command
// candor peer reconcile must fail.
func (t *trial) checkLost(ctx context.Context, restored, peer *member, old, last map[messages.Name]clearing.ReconciledBook) error {
	here, err := restored.books(ctx, peer)
	if err != nil {
		return err
	}
	there, err := peer.books(ctx, restored)
	if err != nil {
		return err
	}
	lost := 0
	for sender, now := range here {
		want := last[sender].Ours - old[sender].Ours
		lost += int(want)
		if now.Ours != old[sender].Ours || now.LostHere != want || there[sender].LostThere != want {
			t.breaks("the backup has %[2]d of the %[3]d instructions of %[1]s; the books name %[4]d as lost at %[5]s, and %[6]d at %[7]s", sender, old[sender].Ours, last[sender].Ours,
				now.LostHere, restored.Name, there[sender].LostThere, peer.Name)
		}
	}
	t.count("instructions that the backup lacks, counted by both banks", lost)
	if lost == 0 {
		return fmt.Errorf("the backup of %s lacks nothing", restored.Name)
	}
	for _, m := range []*member{restored, peer} {
		other := restored.Name
		if m == restored {
			other = peer.Name
		}
		if output, err := m.Candor(ctx, netlab.Operator, "peer", "reconcile", other); err == nil {
			t.breaks("candor peer reconcile %s at %s finds nothing lost: %s", other, m.Name, output)
		}
	}
	return nil
}
