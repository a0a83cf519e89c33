package auctioneer

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"sync"

	"github.com/candor-grid/candor/auctioneer/book"
	"github.com/candor-grid/candor/auctioneer/federation"
	"github.com/candor-grid/candor/auctioneer/mechanism/registry"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/bus"
	"github.com/candor-grid/candor/messages/clearing"
	"github.com/candor-grid/candor/messages/job"
	"github.com/candor-grid/candor/messages/market"
)

// offers collects the offers of this site and its peers for a job.
type offers struct {
	peers  *peers
	clock  func() messages.Time
	intake *submissions
}

// answer asks this site and its peers for offers at the same time. It returns when all have answered or the time is
// over.
func (o *offers) answer(ctx context.Context, account messages.Name, r clearing.OffersRequest) (reply clearing.OffersReply, err error) {
	if !messages.ValidName(account) {
		return reply, messages.Errorf(messages.Invalid, "account %q is not a valid name", account)
	}
	if err := r.Validate(); err != nil {
		return reply, err
	}
	leave, err := o.peers.enter(clearing.AnySite)
	if err != nil {
		return reply, err
	}
	defer leave()
	return o.gather(ctx, account, &r)
}

// sites returns the sites to ask for offers. It returns an error if a requested site is not a peer.
func (o *offers) sites(ctx context.Context, asked []messages.Name) (ask []messages.Name, silent []clearing.Silent, err error) {
	if len(asked) == 1 && asked[0] == o.peers.site {
		return asked, nil, nil
	}
	peers, err := o.peers.known(ctx, peersKnown)
	if len(asked) == 0 {
		if err != nil { // if the bank does not answer, users still get this site's offers
			return []messages.Name{o.peers.site}, []clearing.Silent{{Error: messages.AsError("", err)}}, nil
		}
		return append([]messages.Name{o.peers.site}, peers...), nil, nil
	}
	if err != nil {
		return nil, nil, err
	}
	for _, site := range asked {
		if site != o.peers.site && !slices.Contains(peers, site) {
			if err := o.peers.check(ctx, site); err != nil {
				return nil, nil, err
			}
		}
	}
	return asked, nil, nil
}

func (o *offers) gather(ctx context.Context, account messages.Name, r *clearing.OffersRequest) (reply clearing.OffersReply, err error) {
	sites, silent, err := o.sites(ctx, r.Sites)
	if err != nil {
		return reply, err
	}
	within := r.Waits()
	ctx, cancel := context.WithTimeout(ctx, within.Std())
	defer cancel()
	answers := make([][]clearing.Offer, len(sites))
	errs := make([]error, len(sites))
	var asked sync.WaitGroup
	for i, site := range sites {
		asked.Go(func() { answers[i], errs[i] = o.of(ctx, site, account, &r.Spec) })
	}
	asked.Wait()
	reply = clearing.OffersReply{Offers: []clearing.Offer{}, Silent: append([]clearing.Silent{}, silent...)}
	for i, site := range sites {
		if errs[i] != nil {
			reply.Silent = append(reply.Silent, clearing.Silent{Site: site, Error: late(within, errs[i])})
		}
		reply.Offers = append(reply.Offers, answers[i]...)
	}
	reply.Best, reply.Why = federation.Choose(&r.Spec, o.clock(), reply.Offers)
	return reply, nil
}

// late returns the error for a site that did not answer in time.
func late(within messages.Duration, err error) *messages.Error {
	if messages.Passing(err) {
		return messages.Errorf(messages.Unavailable, "did not answer within %v (%s)", within.Std(), messages.Detail(err))
	}
	return messages.AsError("", err)
}

func (o *offers) of(ctx context.Context, site, account messages.Name, spec *job.JobSpec) ([]clearing.Offer, error) {
	own := *spec
	own.Stages = slices.Clone(spec.Stages) // copied, because each site fills in its own defaults
	if site == o.peers.site {
		return o.own(ctx, account, &own)
	}
	if err := federation.Portable(&own); err != nil {
		return nil, err
	}
	own.Project = ""
	reply, err := bus.Call[clearing.PeerQuoteReply](ctx, o.peers.bus,
		messages.Subject(site, messages.Auctioneer, clearing.VerbPeerQuote, messages.ServiceIdentity(o.peers.site)), clearing.PeerQuoteRequest{Account: account, Spec: own})
	if err != nil {
		return nil, job.Tamed(err)
	}
	return federation.Screened(site, reply.Offers, o.clock()), nil
}

// The method `own` returns this site's offers to a user of any site.
func (o *offers) own(ctx context.Context, owner messages.Name, spec *job.JobSpec) ([]clearing.Offer, error) {
	rules := o.intake.rules()
	if err := rules.Complete(owner, spec); err != nil {
		return nil, err
	}
	m := rules.Find(spec.Market)
	if registry.Of(m).Plans {
		return o.contracts(ctx, owner, m, spec)
	}
	if err := o.intake.place(owner, spec, m); err != nil {
		return nil, err
	}
	if spec.Budget == 0 {
		if _, err := rules.Assume(spec); err != nil {
			return nil, err
		}
	}
	outlook, err := o.intake.outlook(owner, m, spec)
	if err != nil {
		return nil, err
	}
	outlook.Site, outlook.Now, outlook.Estimate = o.peers.site, o.clock(), o.estimate(ctx, owner, spec)
	offer := federation.Expect(spec, outlook)
	offer.Cheapest = o.intake.cheapest(owner, m, spec, outlook.Prices)
	return []clearing.Offer{offer}, nil
}

// contracts returns the menu of a market that sells contracts.
func (o *offers) contracts(ctx context.Context, owner messages.Name, m *market.Market, spec *job.JobSpec) (out []clearing.Offer, err error) {
	menu, err := o.intake.quoteTo(ctx, owner, m, spec)
	for _, c := range menu.Contracts {
		out = append(out, clearing.Offer{Site: o.peers.site, Market: menu.Market, Mechanism: m.Mechanism, Completion: c.Completion,
			Price: c.Price, Budget: c.Budget, Contract: c.ID, Basis: "a contract, which holds until " + menu.Expires.String()})
	}
	return out, err
}

// estimate asks the estimator about a job. It returns the estimator's answer, or nil if no answer comes in time.
func (o *offers) estimate(ctx context.Context, owner messages.Name, spec *job.JobSpec) *market.EstimateReply {
	ctx, cancel := context.WithTimeout(ctx, lookWithin/4)
	defer cancel()
	asked := *spec
	asked.Project = ""
	asked.Budget = cmp.Or(asked.Budget, messages.Credit)
	r := market.EstimateRequest{Account: owner, Spec: asked}
	reply, err := askActor[market.EstimateReply](ctx, o.peers, messages.Estimator, market.VerbEstimate, r)
	if err != nil {
		return nil
	}
	return &reply
}

// choose decides at which site a job runs. If it chooses a peer, the result `home` is false, and choose writes the peer
// into the command.
func (o *offers) choose(ctx context.Context, c *book.EnterRemote) (home bool, err error) {
	asked := *c.Spec
	asked.Contract = ""
	found, err := o.gather(ctx, c.Account, &clearing.OffersRequest{Spec: asked})
	if err != nil {
		return false, err
	}
	switch {
	case found.Best < 0 && len(found.Offers) == 0 && len(found.Silent) > 0:
		return false, messages.Errorf(messages.NotFound, "site: no site offers to run the job: %s", reasons(found.Silent))
	case found.Best < 0:
		return false, messages.Errorf(messages.NotFound, "site: %s; to submit the job nevertheless, name a site", found.Why)
	}
	best := &found.Offers[found.Best]
	c.Peer, c.Chosen, c.Spec.Contract = best.Site, found.Why, best.Contract
	return best.Site == o.peers.site, nil
}

// reasons lists why sites made no offers, such as "west: stages[0].licenses: the site has no licences".
func reasons(of []clearing.Silent) string {
	all := make([]string, len(of))
	for i := range of {
		all[i] = messages.Detail(of[i].Error)
		if of[i].Site != "" {
			all[i] = of[i].Site + ": " + all[i]
		}
	}
	return strings.Join(all, "; ")
}
