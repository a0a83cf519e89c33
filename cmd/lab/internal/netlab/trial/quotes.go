package trial

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/candor-grid/candor/cmd/lab/internal/netlab/load"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/bus"
	"github.com/candor-grid/candor/messages/clearing"
)

// These are the limits that the trial checks for quotes, and the numbers of quotes that it asks for.
const (
	quoteBeyond = 20 * time.Millisecond  // a round trip to the farthest site
	silentLimit = 500 * time.Millisecond // longest wait for a site that does not answer
	quotesAsked = 100
	quotesShort = 20
)

// quotes asks three sites for offers, first while all answer, and then while one does not.
func quotes(ctx context.Context, t *trial, all []*member) error {
	home := all[0]
	alice, err := home.Connect("alice")
	if err != nil {
		return err
	}
	defer alice.Close()
	if err := everyone(all, func(m *member) error { return m.practise(ctx) }); err != nil {
		return err
	}
	n := either(t, quotesAsked, quotesShort)
	q := &asker{t, alice, home.Name}
	if err := q.answered(ctx, n); err != nil {
		return err
	}
	t.Lab.Cut(all[2].Site)
	defer t.Lab.Heal(all[2].Site)
	return q.silent(ctx, n/5, all[2].Name)
}

// practise runs some jobs, so that the estimator can learn from them.
func (m *member) practise(ctx context.Context) error {
	if err := m.begin(ctx, load.Config{Users: users[:1], Job: quick, Every: 20 * time.Millisecond, Jobs: 20, Prefix: "practice"}); err != nil {
		return err
	}
	m.load.Wait()
	return m.settle(ctx)
}

type asker struct {
	*trial
	bus  bus.Bus
	home messages.Name
}

func (q *asker) ask(ctx context.Context, within time.Duration) (clearing.OffersReply, time.Duration, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	began := time.Now()
	reply, err := bus.Call[clearing.OffersReply](ctx, q.bus, messages.Subject(q.home, messages.Auctioneer, clearing.VerbOffers, "alice"),
		clearing.OffersRequest{Spec: quick(0).Spec, Within: messages.Duration(within)})
	return reply, time.Since(began), err
}

func (q *asker) answered(ctx context.Context, n int) error {
	var took []time.Duration
	for range n {
		reply, d, err := q.ask(ctx, 2*time.Second)
		if err != nil {
			return err
		}
		if sites := offering(&reply); len(sites) != len(siteNames) {
			q.breaks("three sites can be reached, but only %v made offers; silent: %v", sites, named(&reply))
		}
		took = append(took, d)
	}
	q.count("quotes of three sites", n)
	q.time("round trip to the farthest", 2*oneWay)
	q.times("a quote of three sites", took)
	if middle := quantile(slices.Sorted(slices.Values(took)), 0.5); middle > 2*oneWay+quoteBeyond {
		q.breaks("a quote of three sites takes %v, which is more than a round trip plus %v", middle, quoteBeyond)
	}
	return nil
}

// silent asks n times for offers while one site does not answer. At first the other sites do not know that this site is
// silent.
func (q *asker) silent(ctx context.Context, n int, site messages.Name) error {
	var took []time.Duration
	for range n {
		reply, d, err := q.ask(ctx, silentLimit)
		if err != nil {
			return fmt.Errorf("a quote with a site that does not answer: %w", err)
		}
		if sites := offering(&reply); len(sites) != len(siteNames)-1 || !slices.Contains(named(&reply), site) {
			q.breaks("while %s was silent, the sites %v made offers, and the sites %v are named as silent", site, sites, named(&reply))
		}
		took = append(took, d)
	}
	q.time("limit for an answer", silentLimit)
	q.times("a quote of which one site does not answer", took)
	if longest := slices.Max(took); longest > silentLimit+slack {
		q.breaks("a quote with a silent site takes %v, which is more than the limit of %v", longest, silentLimit)
	}
	return nil
}

// slack is an additional time for answers, because the machine may be busy.
const slack = 100 * time.Millisecond

func offering(reply *clearing.OffersReply) (sites []messages.Name) {
	for _, o := range reply.Offers {
		sites = append(sites, o.Site)
	}
	slices.Sort(sites)
	return slices.Compact(sites)
}

// This function returns the sites that a reply lists as sites that did not answer.
func named(reply *clearing.OffersReply) (sites []messages.Name) {
	for _, s := range reply.Silent {
		sites = append(sites, s.Site)
	}
	return sites
}
