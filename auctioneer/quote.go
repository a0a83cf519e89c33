package auctioneer

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/candor-grid/candor/auctioneer/book"
	"github.com/candor-grid/candor/auctioneer/desk"
	"github.com/candor-grid/candor/auctioneer/federation"
	"github.com/candor-grid/candor/auctioneer/intake"
	"github.com/candor-grid/candor/auctioneer/market"
	"github.com/candor-grid/candor/auctioneer/mechanism"
	"github.com/candor-grid/candor/auctioneer/mechanism/registry"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/job"
	marketmsg "github.com/candor-grid/candor/messages/market"
)

// quote computes a menu of contracts and commits it, so that it survives a change of the leader.
func (l *submissions) quote(ctx context.Context, account messages.Name, r marketmsg.QuoteRequest) (reply marketmsg.QuoteReply, err error) {
	if !messages.ValidName(account) {
		return reply, messages.Errorf(messages.Invalid, "account %q is not a valid name", account)
	}
	if err := r.Validate(); err != nil {
		return reply, err
	}
	rules := l.rules()
	if err := rules.Complete(account, &r.Spec); err != nil {
		return reply, err
	}
	m := rules.Find(r.Spec.Market)
	if registry.Of(m).Plans {
		if err := intake.Heeds(&r.Spec, m, rules.Markets); err != nil {
			return reply, err
		}
	}
	return l.quoteTo(ctx, account, m, &r.Spec)
}

// quoteTo makes the quote for a job. The caller must have set the job's default values.
func (l *submissions) quoteTo(ctx context.Context, account messages.Name, m *marketmsg.Market, spec *job.JobSpec) (reply marketmsg.QuoteReply, err error) {
	if err := l.quotable(account); err != nil {
		return reply, err
	}
	if err := l.place(account, spec, m); err != nil {
		return reply, err
	}
	q, err := l.menu(ctx, m, account, spec)
	if err != nil {
		return reply, err
	}
	kept := &book.Quote{Account: account, Market: spec.Market, Work: intake.WorkOf(spec), Contracts: q.Contracts,
		Expires: l.Clock().Add(cmp.Or(m.Quote, intake.DefaultQuote))}
	id, err := l.propose(ctx, &book.Command{Quote: kept})
	if err != nil {
		return reply, err
	}
	reply = marketmsg.QuoteReply{Quote: fmt.Sprintf("q%d", id), Market: kept.Market, Expires: kept.Expires}
	for i, c := range q.Contracts {
		reply.Contracts = append(reply.Contracts, marketmsg.QuotedContract{
			ID: fmt.Sprintf("q%d-%d", id, i+1), Completion: c.Completion, Price: c.Price, Budget: q.Most[i],
			Promised: c.Promised, Declared: i == q.Declared, Free: i == q.Free,
		})
	}
	return reply, nil
}

// quotable returns an error if the account belongs to another site whose users already have many valid quotes. This
// leaves room for other sites.
func (l *submissions) quotable(account messages.Name) error {
	_, home, visits := strings.Cut(account, "@")
	if !visits {
		return nil
	}
	var held int
	now := l.Clock()
	l.replica.read(func(b *book.Book) { held = b.QuotesOf(home, now) })
	if held >= book.MaxSiteQuotes {
		return messages.Errorf(messages.Exhausted, "users of site %s have %d valid quotes, the limit; wait until some quotes expire", home, held)
	}
	return nil
}

func (l *submissions) menu(ctx context.Context, m *marketmsg.Market, account messages.Name, spec *job.JobSpec) (q *mechanism.Quote, err error) {
	var seen *mechanism.Runtimes
	asked := make(chan struct{})
	go func() {
		defer close(asked)
		if registry.Of(m).Plans {
			seen = l.runtimes(ctx, account, spec)
		}
	}()
	now := l.Clock()
	seed := l.menus.Seed(m, spec, now)
	class := l.types(ctx, m, spec, seed)
	<-asked
	err = l.withMarket(m.Name, func(live *market.Market) (err error) {
		bid := live.Bid(0, account, now, spec, nil)
		bid.Runtimes = seen
		q, err = live.Quote(now, bid, class, seed)
		return err
	})
	return q, err
}

// runtimes asks the estimator for the run times of a job's tasks. It returns nil if one of them is not known.
func (l *submissions) runtimes(ctx context.Context, account messages.Name, spec *job.JobSpec) *mechanism.Runtimes {
	r := desk.RuntimesOf(account, spec)
	ctx, cancel := context.WithTimeout(ctx, desk.LearnWithin.Std())
	defer cancel()
	reply, err := askActor[marketmsg.RuntimeReply](ctx, l.federated.peers, messages.Estimator, marketmsg.VerbRuntime, r)
	if err != nil {
		l.Log.Debug("the estimator gave no run times", zap.Error(err))
		return nil
	}
	return desk.Together(r.Stages, reply.Stages)
}

// place returns an error for a job that no node of its market can run.
func (l *submissions) place(account messages.Name, spec *job.JobSpec, m *marketmsg.Market) (err error) {
	l.replica.read(func(b *book.Book) { err = l.rules().Place(b, account, spec, m) })
	return err
}

// places returns, for each stage, how many tasks of a job could start now. Each task needs enough idle slots on one
// node, and free licences. The bounds of the account and of the project must also permit it.
func places(b *book.Book, owner messages.Name, spec *job.JobSpec, m *marketmsg.Market) []int {
	out := make([]int, len(spec.Stages))
	for i := range spec.Stages {
		s := &spec.Stages[i]
		for _, n := range b.Nodes() {
			if n.Up && n.Drain == 0 && desk.Serves(m, n.Name) && n.Suits(s) && n.Admits(s, b.Now()) {
				out[i] += n.Idle(s.Class) / s.Slots()
			}
		}
		for _, of := range s.Licenses {
			out[i] = min(out[i], b.FreeLicenses(of.Name)/of.Count)
		}
		if room := b.Room(owner, spec, i); !s.Gang || room == 0 {
			out[i] = min(out[i], room)
		}
	}
	return out
}

// outlook returns the present state of a job's market, for an offer.
func (l *submissions) outlook(owner messages.Name, m *marketmsg.Market, spec *job.JobSpec) (*federation.Outlook, error) {
	if err := l.admit(&submission{Submission: &intake.Submission{Account: owner, Spec: spec, Market: m}}); err != nil {
		return nil, err
	}
	outlook, charged := &federation.Outlook{Market: m}, false
	err := l.withMarket(m.Name, func(live *market.Market) error {
		seen := live.SeenBy(owner, l.operates(owner))
		outlook.Prices, charged = seen.Prices(), len(seen.Orders().Tariffs) > 0
		return nil
	})
	l.replica.read(func(b *book.Book) { outlook.Places = places(b, owner, spec, m) })
	if charged {
		l.replica.read(func(b *book.Book) { outlook.Tariffs = market.SealTariffs(tariffs(b, m.Name), outlook.Prices) })
	}
	return outlook, err
}

// types returns likely job types of the class that the job declares. The estimator draws them from a job profile of
// this class. If the estimator does not answer, the function `likely` makes them from the declared valuation.
func (l *submissions) types(ctx context.Context, m *marketmsg.Market, spec *job.JobSpec, seed uint64) []job.Valuation {
	if spec.Valuation == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	drawn, err := l.drawTypes(ctx, spec.Valuation, seed)
	if err != nil || len(drawn) == 0 {
		l.Log.Debug("the estimator gave no types of jobs", zap.String("market", m.Name), zap.Error(err))
		return likely(m, spec.Valuation)
	}
	return drawn
}

func (l *submissions) drawTypes(ctx context.Context, declared *job.Valuation, seed uint64) ([]job.Valuation, error) {
	known, err := askActor[marketmsg.ClassesReply](ctx, l.federated.peers, messages.Estimator, marketmsg.VerbClasses, messages.Empty{})
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(known.Classes, func(c marketmsg.ClassEstimate) bool { return c.Profile.Class == declared.Class })
	if i < 0 {
		return nil, nil
	}
	r := marketmsg.SamplesRequest{Class: known.Classes[i].Profile.Name, Draws: desk.DrawnTypes, Seed: seed}
	reply, err := askActor[marketmsg.SamplesReply](ctx, l.federated.peers, messages.Estimator, marketmsg.VerbSamples, r)
	return slices.DeleteFunc(reply.Valuations, func(v job.Valuation) bool {
		return v.Class != declared.Class || v.Validate() != nil
	}), err
}

// likely returns the types that are assumed if nothing is known about a class of valuations: values from 1 to 100
// credits and times from ten seconds to a day, all equally likely. It returns nil if the market's configuration has
// prior types of this class.
func likely(m *marketmsg.Market, declared *job.Valuation) (out []job.Valuation) {
	if slices.ContainsFunc(m.Prior, func(v job.Valuation) bool { return v.Class == declared.Class }) {
		return nil
	}
	for _, worth := range []float64{1, 2, 5, 10, 20, 50, 100} {
		for _, seconds := range []float64{10, 30, 100, 300, 1000, 3600, 10_000, 30_000, 86_400} {
			v := job.Valuation{Class: declared.Class, Max: worth}
			switch declared.Class {
			case job.Sigmoidal, job.LinearDecay:
				v.Mu, v.Delta = seconds, seconds
			case job.Hard:
				v.Deadline = seconds
			case job.Recurrent:
				v.Workload, v.SecondsPerUnit = seconds, 1
			case job.Custom:
				v.Points = []job.ValuationPoint{{At: seconds, Part: 1}, {At: 2 * seconds, Part: 0}}
			}
			out = append(out, v)
		}
	}
	return out
}

func tariffs(b *book.Book, market messages.Name) (out []marketmsg.SlotTariff) {
	for _, t := range b.Tariffs(market) {
		if t.Contention {
			out = append(out, marketmsg.SlotTariff{Class: t.Class, Contention: new(t.Price.Float())})
			continue
		}
		out = append(out, marketmsg.SlotTariff{Class: t.Class, Price: t.Price, OwnBid: t.OwnBid, Length: t.Length})
	}
	return out
}
