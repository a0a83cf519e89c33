package trial

import (
	"context"
	"fmt"
	"time"

	"github.com/candor-grid/candor/cmd/lab/internal/netlab"
	"github.com/candor-grid/candor/cmd/lab/internal/netlab/load"
	"github.com/candor-grid/candor/messages"
)

// stormyPlan returns a site of a federation that is hit by faults.
func stormyPlan(name messages.Name) netlab.Plan {
	p := plan(name, true)
	p.Agents, p.Slots, p.Disk = 2, chaosSlots, chaosDisk
	return p
}

// storms cuts the network between two sites again and again, while faults happen to the hosts of both sites. All books
// must agree afterwards.
func storms(ctx context.Context, t *trial, all []*member) error {
	var of []*storm
	for i, m := range all {
		if err := m.begin(ctx, load.Config{Users: federated, Job: roamingTo([]messages.Name{all[1-i].Name}), Every: cutEvery, Prefix: "storms"}); err != nil {
			return err
		}
		s := newStorm(m)
		s.served = func(ctx context.Context) error {
			return s.await(ctx, func(ctx context.Context) error { return m.load.AwaitMore(ctx, servedBetween) })
		}
		of = append(of, s)
	}
	cuts, err := t.weather(ctx, of)
	for _, m := range all {
		m.result = m.load.Stop()
	}
	t.count("cuts between the sites", cuts)
	for _, s := range of {
		s.reportFaults()
	}
	if err != nil {
		return err
	}
	return t.checkAfterStorms(ctx, all)
}

// weather causes one fault after another at the sites in `of`. During about half of the faults, the sites are cut off
// from each other. It returns the number of such cuts.
func (t *trial) weather(ctx context.Context, of []*storm) (cuts int, err error) {
	rng, possible := of[0].rng, of[0].possible()
	for begun := time.Now(); time.Since(begun) < t.duration() && err == nil; {
		s := of[rng.IntN(len(of))]
		if err := s.served(ctx); err != nil {
			return cuts, fmt.Errorf("%s, before the next fault: %w", s.Name, err)
		}
		if rng.IntN(2) == 0 {
			cuts++
			t.log("%s is cut off", s.Name)
			t.Lab.Cut(s.Site)
		}
		f := s.draw(possible)
		if err = s.well(ctx); err == nil {
			err = s.strike(ctx, &f, s.target(&f), possible)
		}
		if err != nil {
			err = fmt.Errorf("%s: %s: %w", s.Name, f.name, err)
		}
		t.Lab.Heal(s.Site)
	}
	return cuts, err
}

func (t *trial) checkAfterStorms(ctx context.Context, all []*member) error {
	healed := time.Now()
	if err := everyone(all, func(m *member) error { return m.settle(ctx) }); err != nil {
		return err
	}
	if err := t.agree(ctx, all); err != nil {
		return err
	}
	t.time("from the last fault until all books and statements agree", time.Since(healed))
	return t.compare(ctx, all)
}
