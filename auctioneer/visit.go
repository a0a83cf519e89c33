package auctioneer

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/candor-grid/candor/auctioneer/book"
	"github.com/candor-grid/candor/auctioneer/intake"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/bus"
)

// visit is what a submission has that comes from another site.
type visit struct {
	book.Visit
	authorisation messages.SignedAuthorisation
	refused       bool // the bank did not accept it
}

// siteServices are those that other sites ask, and those in which this one asks
// others: apart from all others, as they may have to wait.
func (l *leader) siteServices(at func(verb string, h bus.Handler) bus.Endpoint) []bus.Service {
	return []bus.Service{
		{Name: "candor-auctioneer-peers", Version: "1.0.0", Concurrency: 128, Endpoints: []bus.Endpoint{
			at(messages.VerbPeerSubmit, bus.Handle(messages.VerbPeerSubmit, l.peerSubmit)),
			at(messages.VerbPeerCancel, bus.Handle(messages.VerbPeerCancel, l.peerCancel)),
			at(messages.VerbPeerJob, bus.Handle(messages.VerbPeerJob, l.peerJob)),
			at(messages.VerbPeerTasks, bus.Handle(messages.VerbPeerTasks, l.peerTasks)),
			at(messages.VerbPeerWhy, bus.Handle(messages.VerbPeerWhy, l.peerWhy)),
			at(messages.VerbPeerQuote, bus.Handle(messages.VerbPeerQuote, l.peerQuote)),
		}},
		{Name: "candor-auctioneer-news", Version: "1.0.0", Concurrency: 512, Endpoints: []bus.Endpoint{
			at(messages.VerbPeerJobs, bus.Handle(messages.VerbPeerJobs, l.peerJobs)),
		}},
		{Name: "candor-auctioneer-output", Version: "1.0.0", Concurrency: 256, Endpoints: []bus.Endpoint{
			at(messages.VerbPeerLogs, bus.Handle(messages.VerbPeerLogs, l.peerLogs)),
			at(messages.VerbOutput, bus.Handle(messages.VerbOutput, l.output)),
			at(messages.VerbOffers, bus.Handle(messages.VerbOffers, l.offers)),
		}},
	}
}

// homeOf is the site whose auctioneer calls.
func homeOf(caller messages.Name) (messages.Name, error) {
	home, is := strings.CutPrefix(caller, "$")
	switch {
	case !is || !messages.ValidName(home), home == messages.Auctioneer, home == messages.Bank, home == messages.Estimator, home == messages.NodeAgent, home == messages.Depot:
		return "", messages.Errorf(messages.PermissionDenied, "caller %q: only the auctioneers of other sites may ask this; users ask that of their own", caller)
	}
	return home, nil
}

// closing is how long before its authorisation ends a job of another site is
// ended, so that there is time to charge: a tenth of what it had, at most ten
// minutes.
func closing(had messages.Duration) messages.Duration {
	return min(had/10, messages.Duration(10*time.Minute))
}

// lastCall is by when a job must have ended that came at a time, and whose
// authorisation ends at another.
func lastCall(came, until messages.Time) messages.Time {
	return until.Add(-closing(max(0, until.Sub(came))))
}

// peerSubmit takes a job of another site, which that site's bank vouches for. It
// is an ordinary job from then on, of an owner whom no user here can be.
func (l *leader) peerSubmit(ctx context.Context, caller messages.Name, r messages.PeerSubmitRequest) (reply messages.PeerSubmitReply, err error) {
	home, err := homeOf(caller)
	if err != nil {
		return reply, err
	}
	if err := r.Validate(); err != nil {
		return reply, err
	}
	v := messages.Visit{Home: home, Job: r.Job}
	if !l.travel.takes(v) {
		return reply, messages.Errorf(messages.Unavailable, "job %v: is being taken; ask again", v)
	}
	defer l.travel.took(v)
	if known, err := l.hosted(home, &r); known != nil || err != nil {
		return messages.PeerSubmitReply{Job: *cmp.Or(known, &messages.JobSummary{})}, err
	}
	s, err := l.welcome(home, &r)
	if err != nil {
		return reply, err
	}
	if _, err := l.submissions.enter(ctx, s, false); err != nil {
		l.decline(ctx, s, err)
		return reply, err
	}
	l.metrics.arrivals.Inc()
	l.replica.read(func(b *book.Book) {
		if j := b.Visitor(s.visit.Visit.Visit); j != nil {
			reply.Job = outward(j)
		}
	})
	return reply, nil
}

// hosted answers a job that was taken before, whatever has changed since.
func (l *leader) hosted(home messages.Name, r *messages.PeerSubmitRequest) (known *messages.JobSummary, err error) {
	s := messages.SubmitRequest{Spec: r.Spec}
	s.Spec.Project = ""
	digest, err := intake.DigestOf(&s)
	if err != nil {
		return nil, err
	}
	v := messages.Visit{Home: home, Job: r.Job}
	l.replica.read(func(b *book.Book) {
		switch j := b.Visitor(v); {
		case j == nil:
		case j.Account != messages.VisitorName(r.Account, home) || !slices.Equal(j.Digest, digest):
			err = messages.Errorf(messages.Conflict, "job: %v is another job here", v)
		default:
			s := outward(j)
			known = &s
		}
	})
	return known, err
}

// welcome prepares a job of another site.
func (l *leader) welcome(home messages.Name, r *messages.PeerSubmitRequest) (*submission, error) {
	a := &r.Authorisation.Authorisation
	if a.Issuer != home || a.Peer != l.Site {
		return nil, messages.Errorf(messages.PermissionDenied, "authorisation: is of site %q for site %q; it must be of %q for %q", a.Issuer, a.Peer, home, l.Site)
	}
	v := &visit{authorisation: r.Authorisation, Visit: book.Visit{
		Visit: messages.Visit{Home: home, Job: r.Job}, Authorisation: a.ID, Until: a.Ends()}}
	r.Spec.Project = ""
	prepared, err := l.submissions.rules.Prepare(messages.VisitorName(r.Account, home), &messages.SubmitRequest{Key: r.Job.String(), Spec: r.Spec})
	if err != nil {
		return nil, err
	}
	prepared.Visiting(&v.Visit)
	s := &submission{Submission: prepared, visit: v}
	return s, l.timely(s)
}

// visitable refuses jobs of other sites a market in which jobs pay one another on
// the way: an authorisation is charged once, at the end.
func visitable(m *messages.Market) error {
	if m.Mechanism != messages.BatchQueue {
		return nil
	}
	return messages.Errorf(messages.Invalid, "market: %s moves credits between the jobs that wait, which only accounts of its site can pay; name another market", m.Name)
}

// timely refuses a job that cannot have ended when it must.
func (l *leader) timely(s *submission) error {
	if err := visitable(s.Market); err != nil {
		return err
	}
	now := l.Clock()
	by := lastCall(now, s.visit.Until)
	switch {
	case now >= by:
		return messages.Errorf(messages.Expired, "authorisation: ends at %v, too soon for a job", s.visit.Until)
	case s.Spec.Length > 0 && now.Add(s.Spec.Length) > by:
		return messages.Errorf(messages.Invalid, "length: %v; a job of another site must end by %v, before its authorisation does", s.Spec.Length, by)
	case s.Market.Mechanism == messages.DeadlineBid && s.Spec.Deadline > by:
		return messages.Errorf(messages.Invalid, "deadline: %v is when it would be charged; a job of another site must end by %v, before its authorisation does", s.Spec.Deadline, by)
	}
	return nil
}

// accept has this site's bank take the authorisation, for this job and no other.
func (l *leader) accept(ctx context.Context, v *visit) error {
	_, err := bankAsk[messages.ClearingReply](ctx, l, messages.VerbAccept, messages.AcceptRequest{
		Purpose: v.Visit.Visit.String(), Authorisation: v.authorisation, Firm: true})
	v.refused = err != nil && !messages.Passing(err)
	return err
}

// decline gives back the authorisation of a job that is refused for good, which
// an earlier try may have had accepted. Where the bank itself refused it there is
// nothing to give back, and there must be no word on the way that meets a later
// try, which it may not refuse.
func (l *leader) decline(ctx context.Context, s *submission, why error) {
	if messages.Passing(why) || s.visit.refused {
		return
	}
	var known *book.Job
	l.replica.read(func(b *book.Book) { known = b.Visitor(s.visit.Visit.Visit) })
	if known != nil {
		return
	}
	r := messages.ChargeRequest{Issuer: s.visit.Home, ID: s.visit.Authorisation, Reason: "the job was refused"}
	if _, err := bankAsk[messages.ClearingReply](ctx, l, messages.VerbCharge, r); err != nil {
		l.Log.Debug("authorisation not given back", zap.Stringer("job", s.visit.Visit.Visit), zap.Error(err))
	}
}
