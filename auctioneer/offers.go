package auctioneer

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"github.com/candor-grid/candor/auctioneer/book"
	"github.com/candor-grid/candor/auctioneer/desk"
	"github.com/candor-grid/candor/auctioneer/intake"
	"github.com/candor-grid/candor/auctioneer/roaming"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/bus"
)

// offersWithin is how long offers of other sites are waited for where nobody says.
const offersWithin = messages.Duration(2 * time.Second)

// offers asks this site and its peers for what they make of a job, all at once,
// and answers when all have, or the time is over.
func (l *leader) offers(ctx context.Context, account messages.Name, r messages.OffersRequest) (reply messages.OffersReply, err error) {
	if !messages.ValidName(account) {
		return reply, messages.Errorf(messages.Invalid, "account %q is not a valid name", account)
	}
	if err := r.Validate(); err != nil {
		return reply, err
	}
	leave, ok := l.travel.enter()
	if !ok {
		return reply, messages.Errorf(messages.Exhausted, "%d requests wait for other sites, the most there may be; try again", maxLooks)
	}
	defer leave()
	return l.gather(ctx, account, &r)
}

// sites are those that a request for offers asks. One that is no peer makes no
// offer, and is told so with those that did not answer.
func (l *leader) sites(ctx context.Context, asked []messages.Name) (ask []messages.Name, silent []messages.Silent, err error) {
	if len(asked) == 1 && asked[0] == l.Site {
		return asked, nil, nil
	}
	peers, err := l.knownPeers(ctx, peersKnown)
	if len(asked) == 0 {
		if err != nil { // its own users are served without the bank
			return []messages.Name{l.Site}, []messages.Silent{{Error: messages.AsError("", err)}}, nil
		}
		return append([]messages.Name{l.Site}, peers...), nil, nil
	}
	if err != nil {
		return nil, nil, err
	}
	for _, site := range asked {
		if site != l.Site && !slices.Contains(peers, site) {
			if err := l.checkPeer(ctx, site); err != nil {
				return nil, nil, err
			}
		}
	}
	return asked, nil, nil
}

func (l *leader) gather(ctx context.Context, account messages.Name, r *messages.OffersRequest) (reply messages.OffersReply, err error) {
	sites, silent, err := l.sites(ctx, r.Sites)
	if err != nil {
		return reply, err
	}
	within := cmp.Or(r.Within, offersWithin)
	ctx, cancel := context.WithTimeout(ctx, within.Std())
	defer cancel()
	answers := make([][]messages.Offer, len(sites))
	errs := make([]error, len(sites))
	var asked sync.WaitGroup
	for i, site := range sites {
		asked.Go(func() { answers[i], errs[i] = l.offersOf(ctx, site, account, &r.Spec) })
	}
	asked.Wait()
	reply = messages.OffersReply{Offers: []messages.Offer{}, Silent: append([]messages.Silent{}, silent...)}
	for i, site := range sites {
		if errs[i] != nil {
			reply.Silent = append(reply.Silent, messages.Silent{Site: site, Error: late(within, errs[i])})
		}
		reply.Offers = append(reply.Offers, answers[i]...)
	}
	reply.Best, reply.Why = roaming.Choose(&r.Spec, l.Clock(), reply.Offers)
	return reply, nil
}

// late says of a site that was waited for in vain how long that was.
func late(within messages.Duration, err error) *messages.Error {
	if messages.Passing(err) {
		return messages.Errorf(messages.Unavailable, "did not answer within %v (%s)", within.Std(), messages.AsError("", err).Message)
	}
	return messages.AsError("", err)
}

func (l *leader) offersOf(ctx context.Context, site, account messages.Name, spec *messages.JobSpec) ([]messages.Offer, error) {
	own := *spec
	own.Stages = slices.Clone(spec.Stages) // whose defaults each site fills in
	if site == l.Site {
		return l.ownOffers(ctx, account, &own)
	}
	if err := roaming.Portable(&own); err != nil {
		return nil, err
	}
	own.Project = ""
	reply, err := bus.Call[messages.PeerQuoteReply](ctx, l.Bus,
		messages.Subject(site, messages.Auctioneer, messages.VerbPeerQuote, messages.ServiceIdentity(l.Site)), messages.PeerQuoteRequest{Account: account, Spec: own})
	if err != nil {
		return nil, err
	}
	return screened(site, reply.Offers), nil
}

// maxOffers bounds what one site can put into an answer.
const maxOffers = 256

// screened is what another site offers, as far as it can be an offer. Its
// contracts are named as that site's.
func screened(site messages.Name, offers []messages.Offer) []messages.Offer {
	offers = slices.DeleteFunc(offers[:min(len(offers), maxOffers)], func(o messages.Offer) bool {
		return !messages.ValidName(o.Market) || o.Price < 0 || o.Budget < 0 || o.Completion < 0
	})
	for i := range offers {
		o := &offers[i]
		o.Site, o.Value, o.Basis = site, 0, messages.Clip(o.Basis, 4*maxHeard)
		if o.Contract != "" {
			o.Contract = site + "/" + messages.Clip(o.Contract, maxHeard)
		}
	}
	return offers
}

// ownOffers are this site's, to an account of its own or to a visitor.
func (l *leader) ownOffers(ctx context.Context, owner messages.Name, spec *messages.JobSpec) ([]messages.Offer, error) {
	if err := l.submissions.rules.Complete(spec); err != nil {
		return nil, err
	}
	m := l.Find(spec.Market)
	if m.Mechanism == messages.ContractMenu {
		return l.contracts(ctx, owner, spec)
	}
	s := &submission{Submission: &intake.Submission{Account: owner, Spec: spec, Market: m}}
	if err := l.submissions.admit(s); err != nil {
		return nil, err
	}
	state := roaming.State{Site: l.Site, Market: m, Now: l.Clock(), Estimate: l.estimate(ctx, owner, spec)}
	charged := false
	l.with(func(d *desk.Desk) {
		live := d.Market(m.Name)
		state.Prices, charged = live.Prices(), len(live.Orders().Tariffs) > 0
	})
	if charged {
		l.replica.read(func(b *book.Book) { state.Tariffs = tariffs(b, m.Name) })
	}
	return []messages.Offer{roaming.Expect(spec, &state)}, nil
}

// contracts are the menu of a market that sells completion times.
func (l *leader) contracts(ctx context.Context, owner messages.Name, spec *messages.JobSpec) (offers []messages.Offer, err error) {
	menu, err := l.submissions.quoteTo(ctx, owner, spec)
	for _, c := range menu.Contracts {
		offers = append(offers, messages.Offer{Site: l.Site, Market: menu.Market, Mechanism: messages.ContractMenu, Completion: c.Completion,
			Price: c.Price, Budget: c.Budget, Contract: c.ID, Basis: "a contract, which holds until " + menu.Expires.String()})
	}
	return offers, err
}

// estimate is what the estimator expects of a job; nil if it does not say in time.
func (l *leader) estimate(ctx context.Context, owner messages.Name, spec *messages.JobSpec) *messages.EstimateReply {
	ctx, cancel := context.WithTimeout(ctx, lookWithin/4)
	defer cancel()
	asked := *spec
	asked.Project = ""
	if asked.Budget == 0 {
		asked.Budget = messages.Credit
	}
	reply, err := bus.Call[messages.EstimateReply](ctx, l.Bus,
		messages.Subject(l.Site, messages.Estimator, messages.VerbEstimate, messages.ServiceIdentity(messages.Auctioneer)), messages.EstimateRequest{Account: owner, Spec: asked})
	if err != nil {
		return nil
	}
	return &reply
}

// peerQuote makes offers to a user of another site.
func (l *leader) peerQuote(ctx context.Context, caller messages.Name, r messages.PeerQuoteRequest) (reply messages.PeerQuoteReply, err error) {
	home, err := homeOf(caller)
	if err != nil {
		return reply, err
	}
	if err := r.Validate(); err != nil {
		return reply, err
	}
	if err := l.checkPeer(ctx, home); err != nil {
		return reply, messages.Errorf(messages.PermissionDenied, "%s", messages.AsError("", err).Message)
	}
	if err := l.submissions.rules.Complete(&r.Spec); err != nil {
		return reply, err
	}
	if err := visitable(l.Find(r.Spec.Market)); err != nil {
		return reply, err
	}
	reply.Offers, err = l.ownOffers(ctx, messages.VisitorName(r.Account, home), &r.Spec)
	return reply, err
}

// choose decides where a job goes that may go anywhere: to this site, or to the
// peer that it notes in the departure.
func (l *leader) choose(ctx context.Context, d *book.Depart) (home bool, err error) {
	asked := *d.Spec
	asked.Contract = ""
	found, err := l.gather(ctx, d.Account, &messages.OffersRequest{Spec: asked})
	if err != nil {
		return false, err
	}
	if found.Best < 0 {
		return false, messages.Errorf(messages.NotFound, "site: %s; name a site to submit it nevertheless", found.Why)
	}
	o := &found.Offers[found.Best]
	d.Peer, d.Chosen, d.Spec.Contract = o.Site, found.Why, o.Contract
	return o.Site == l.Site, nil
}
