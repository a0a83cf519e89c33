package trial

import (
	"context"
	"fmt"
	"time"

	"github.com/candor-grid/candor/cmd/lab/internal/netlab"
	"github.com/candor-grid/candor/cmd/lab/internal/netlab/load"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/money"
)

// In trials of two sites, these users pay users of the other site. They submit no jobs.
var (
	remitter   = federated[len(federated)-1]
	submitters = federated[:len(federated)-1]
)

func securePlan(name messages.Name) netlab.Plan {
	p := duoPlan(name)
	p.TLS = true
	return p
}

// byGateways makes the sites of a lab peers that are connected by gateways.
func byGateways(l *netlab.Lab) error { return l.JoinByGateways(oneWay, peerLimit) }

// roads lets the users of two sites submit jobs and pay each other before, during and after a cut of the network. Each
// job and each payment must arrive once, and the books of the two sites must agree. At the end, the debts of one
// settlement cycle must be settled.
func roads(ctx context.Context, t *trial, all []*member) error {
	if err := t.beginBoth(ctx, all, submitters, "roads"); err != nil {
		return err
	}
	p := either(t, phases{before: 10 * time.Second, cut: 30 * time.Second}, phases{before: 2 * time.Second, cut: 8 * time.Second})
	steps := []func() error{
		func() error { return t.remit(ctx, all) },
		func() error { return wait(ctx, p.before) },
		func() error { t.Lab.Cut(all[0].Site); t.log("the sites are cut off"); return t.remit(ctx, all) },
		func() error { return wait(ctx, p.cut) },
		func() error { t.Lab.Heal(all[0].Site); t.log("healed"); return t.remit(ctx, all) },
	}
	return t.endBoth(ctx, all, steps, len(remitted)+1)
}

// beginBoth lets users of two sites submit jobs. Each site's users submit one job in three to the other site.
func (t *trial) beginBoth(ctx context.Context, all []*member, users []messages.Name, prefix string) error {
	for i, m := range all {
		if err := m.begin(ctx, load.Config{Users: users, Job: roamingTo([]messages.Name{all[1-i].Name}), Every: cutEvery, Prefix: prefix}); err != nil {
			return err
		}
	}
	return nil
}

// endBoth carries out the steps, and then stops the loads. In the steps, users pay each other at other sites as often
// as `remittances` says. Afterwards nothing may be left unfinished, and all records must agree.
func (t *trial) endBoth(ctx context.Context, all []*member, steps []func() error, remittances int) (err error) {
	for i := 0; i < len(steps) && err == nil; i++ {
		err = steps[i]()
	}
	for _, m := range all {
		m.result = m.load.Stop()
	}
	if err != nil {
		return err
	}
	if err := t.catchUp(ctx, all, time.Now()); err != nil {
		return err
	}
	if err := t.arrived(ctx, all, remittances); err != nil {
		return err
	}
	return t.compare(ctx, all)
}

func (t *trial) remit(ctx context.Context, all []*member) error {
	for i, m := range all {
		if _, err := m.Candor(ctx, remitter, "remit", remitter+"@"+all[1-i].Name, remitted[i].String()); err != nil {
			return err
		}
	}
	return nil
}

// arrived compares the balances of the members with the balances that they should have. They are equal only if each
// payment was made once and received once.
func (t *trial) arrived(ctx context.Context, all []*member, times int) error {
	for i, m := range all {
		account, err := ask[money.AccountReply](ctx, m, messages.Bank, messages.VerbAccount, money.AccountRequest{Account: remitter})
		if err != nil {
			return err
		}
		want := startingGrant + messages.Credits(times)*(remitted[1-i]-remitted[i])
		if account.Balance != want || account.Reserved != 0 {
			t.breaks("after remittances in both directions, %s of %s has %v, with %v held (%d remittances each way), but must have %v", remitter, m.Name, account.Balance, account.Reserved, times, want)
		}
	}
	t.count("remittances, each paid and received once", 2*times)
	return nil
}

// changes is the number of times that the trial "leaders" kills the leaders. A short trial uses changesShort instead.
const (
	changes      = 20
	changesShort = 3
)

// leaders kills leaders of two sites at the same moment, again and again, under load. Nothing may be lost or done
// twice.
func leaders(ctx context.Context, t *trial, all []*member) error {
	if err := t.beginBoth(ctx, all, submitters, "leaders"); err != nil {
		return err
	}
	n := either(t, changes, changesShort)
	var steps []func() error
	var waits []time.Duration
	for i := range n {
		steps = append(steps, func() error {
			of, err := t.changeLeaders(ctx, all, i)
			waits = append(waits, of...)
			return err
		})
	}
	err := t.endBoth(ctx, all, steps, n)
	t.count("leaders killed in pairs", 2*n)
	t.times("until clients are served again", waits)
	return err
}

// changeLeaders lets users of both sites pay each other. Then it kills one leader at each site at the same moment. The
// argument `turn` decides which leaders these are: both banks' leaders, both auctioneers' leaders, or the bank's leader
// at one site and the auctioneer's leader at the other. It returns how long each service was missing.
func (t *trial) changeLeaders(ctx context.Context, all []*member, turn int) (waits []time.Duration, err error) {
	var victims []*netlab.Host
	for i, m := range all {
		if err := m.load.AwaitMore(ctx, acksBetweenBlows); err != nil {
			return nil, err
		}
		actor := []string{messages.Bank, messages.Auctioneer}[(turn+i*(turn/2))%2]
		h, err := m.leads(ctx, actor)
		if err != nil {
			return nil, err
		}
		victims = append(victims, h)
	}
	if err := t.remit(ctx, all); err != nil {
		return nil, err
	}
	began := time.Now()
	for _, h := range victims {
		h.Kill()
	}
	t.log("%2d: %s of %s and %s of %s are killed", turn+1, victims[0].Name, all[0].Name, victims[1].Name, all[1].Name)
	for i, m := range all {
		of, err := m.load.AwaitServed(ctx, began)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", m.Name, err)
		}
		waits = append(waits, of...)
		if err := revive(ctx, victims[i]); err != nil {
			return nil, err
		}
	}
	for _, m := range all {
		if err := m.calm(ctx); err != nil {
			return nil, err
		}
	}
	return waits, nil
}
