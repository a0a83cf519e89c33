package submit

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/candor-grid/candor/cmd/candor/internal/client/cli"
	"github.com/candor-grid/candor/cmd/candor/internal/client/jobfile"
	"github.com/candor-grid/candor/cmd/candor/internal/terminal"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/clearing"
)

type offersQuery struct {
	sites  []string
	within time.Duration
}

// allSites stands for the user's site and all its peers in a list of sites.
const allSites = "all"

func quoteSites(ctx context.Context, a *cli.App, s *cli.Session, q *offersQuery, job *jobfile.Job) error {
	job.Assemble()
	request := clearing.OffersRequest{Spec: job.Spec, Sites: q.sites, Within: messages.Duration(q.within)}
	if slices.Contains(q.sites, allSites) || slices.Contains(q.sites, clearing.AnySite) {
		request.Sites = nil
	}
	if err := request.Validate(); err != nil {
		return refused(err, job, "")
	}
	patient := *s
	patient.Timeout = max(s.Timeout, 2*q.within)
	reply, err := cli.Call[clearing.OffersReply](ctx, &patient, messages.Auctioneer, clearing.VerbOffers, request)
	if err != nil {
		return refused(err, job, "")
	}
	own := len(q.sites) == 1 && q.sites[0] == s.Site
	if own && len(reply.Offers) == 0 && len(reply.Silent) == 1 {
		return refused(reply.Silent[0].Error, job, "")
	}
	if err := a.Show(reply, func(p *cli.Page) { writeOffers(p, reply, own) }); err != nil || len(reply.Offers) > 0 {
		return err
	}
	return noOffer(reply.Silent)
}

// noOffer returns an error that no site makes an offer. If a site refused, the error has the kind of that refusal. If
// no site answered, the kind is Unavailable.
func noOffer(silent []clearing.Silent) error {
	kind := messages.Unavailable
	for _, s := range silent {
		if k := s.Error.Kind; !k.Retriable() {
			kind = k
		}
	}
	return messages.Errorf(kind, "no site makes an offer")
}

// writeOffers writes offers. It marks the offer that a job would take if it named no site. If `own` is true, all offers
// are from the user's own site.
func writeOffers(p *cli.Page, r clearing.OffersReply, own bool) {
	t := terminal.NewTable("|~SITE|~MARKET|START|COMPLETION|>IN|>SLOTS|>PER HOUR|>PRICE (CREDITS)|>WORTH|CONTRACT|~BASIS").Spare("IN|BASIS|WORTH|SLOTS|START|PER HOUR")
	for i, o := range r.Offers {
		mark, worth := "", ""
		if i == r.Best && !own {
			mark = p.Bold("*")
		}
		if o.Value != 0 {
			worth = cli.Price(o.Value)
		}
		when, in := "not known", ""
		if o.Completion != 0 {
			when, in = p.At(o.Completion), p.Between(p.Now, o.Completion)
		}
		start, slots, hour := "", "", ""
		switch {
		case o.Start != 0 && o.Start <= p.Now:
			start = "now"
		case o.Start != 0:
			start = p.At(o.Start)
		}
		if o.Width > 0 {
			slots = strconv.Itoa(o.Width)
		}
		if o.SlotHour > 0 {
			hour = (o.SlotHour * messages.Credits(max(o.Width, 1))).String()
		}
		t.Row(mark, o.Site, o.Market, start, when, in, slots, hour, o.Price.String(), worth, o.Contract, p.Said(o.Basis))
	}
	if len(r.Offers) > 0 {
		p.Table(t, "")
	}
	for i := range r.Offers {
		writeCheapest(p, &r.Offers[i])
	}
	for _, s := range r.Silent {
		p.Printf("%s: %s\n", p.Yellow(cmp.Or(s.Site, "other sites")), p.Said(cli.Sentence(s.Error)))
	}
	switch {
	case own:
	case r.Best >= 0:
		p.Printf("* `candor submit --site auto` would choose this offer: %s\n", p.Said(r.Why))
	default:
		p.Printf("`candor submit --site auto` would choose no offer: %s\n", p.Said(r.Why))
	}
}

// writeCheapest writes the cost of a task's slots now, and in the cheapest hour of the last week.
func writeCheapest(p *cli.Page, o *clearing.Offer) {
	for _, c := range o.Cheapest {
		what, now := "an hour of", ""
		if c.Bids {
			what = "bids for"
		}
		if c.Now != nil {
			now = "now " + c.Now.Words() + "; "
		}
		cheapest := "no hour of the last week was cheaper"
		if c.Now == nil || c.Price < *c.Now {
			start := c.Start.Std().In(p.Zone)
			cheapest = fmt.Sprintf("cheapest in the last week: %s-%s, %s", start.Format("Monday 15:04"), start.Add(time.Hour).Format("15:04"), c.Price.Words())
		}
		p.Printf("%s: %s %s of %s: %s%s\n", terminal.Safe(o.Site+"/"+o.Market), what, terminal.Plural(c.Slots, "slot"), terminal.Safe(c.Class), now, cheapest)
	}
}
