package auctioneer

import (
	"cmp"
	"context"
	"time"

	"go.uber.org/zap"

	"github.com/candor-grid/candor/auctioneer/book"
	"github.com/candor-grid/candor/auctioneer/federation"
	"github.com/candor-grid/candor/auctioneer/intake"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/agent"
	"github.com/candor-grid/candor/messages/bus"
	"github.com/candor-grid/candor/messages/clearing"
	"github.com/candor-grid/candor/messages/job"
	"github.com/candor-grid/candor/messages/market"
)

// visiting answers peers about visiting jobs. A visiting job is an ordinary job, with an owner whose name no local user
// can have.
type visiting struct {
	site      *site
	peers     *peers
	federated *federated
	intake    *submissions
	reader    *queries
	offers    *offers
}

// siteServices answer peers, and users whose requests need a peer. They are separate from all other services, because
// their requests may wait.
func siteServices(at func(verb string, h bus.Handler) bus.Endpoint, v *visiting, r *remote, o *offers) []bus.Service {
	return []bus.Service{
		{Name: "candor-auctioneer-peers", Version: "1.0.0", Concurrency: 128, Endpoints: []bus.Endpoint{
			at(clearing.VerbPeerSubmit, forPeers(v, clearing.VerbPeerSubmit, v.submit)),
			at(clearing.VerbPeerCancel, forPeers(v, clearing.VerbPeerCancel, v.cancel)),
			at(clearing.VerbPeerJob, forPeers(v, clearing.VerbPeerJob, v.job)),
			at(clearing.VerbPeerTasks, forPeers(v, clearing.VerbPeerTasks, v.tasks)),
			at(clearing.VerbPeerWhy, forPeers(v, clearing.VerbPeerWhy, v.why)),
			at(clearing.VerbPeerQuote, forPeers(v, clearing.VerbPeerQuote, v.quote)),
		}},
		{Name: "candor-auctioneer-news", Version: "1.0.0", Concurrency: 512, Endpoints: []bus.Endpoint{
			at(clearing.VerbPeerJobs, forPeers(v, clearing.VerbPeerJobs, v.jobs)),
		}},
		{Name: "candor-auctioneer-output", Version: "1.0.0", Concurrency: 256, Endpoints: []bus.Endpoint{
			at(clearing.VerbPeerLogs, forPeers(v, clearing.VerbPeerLogs, v.logs)),
			at(clearing.VerbOutput, bus.Handle(clearing.VerbOutput, r.output)),
			at(clearing.VerbOffers, bus.Handle(clearing.VerbOffers, o.answer)),
		}},
	}
}

// forPeers returns a handler that lets f answer the auctioneers of other sites. The argument `home` of f is the
// caller's site. The rate of each site is limited.
func forPeers[Request, Reply any](v *visiting, verb string, f func(ctx context.Context, home messages.Name, r Request) (Reply, error)) bus.Handler {
	return bus.Handle(verb, func(ctx context.Context, caller messages.Name, r Request) (reply Reply, err error) {
		home, err := federation.HomeOf(caller)
		if err == nil {
			err = v.intake.gate.paced(v.site.Clock(), home, verb)
		}
		if err != nil {
			return reply, err
		}
		return f(ctx, home, r)
	})
}

// submit accepts a visiting job, for which the bank of its home site guarantees the payment.
func (v *visiting) submit(ctx context.Context, home messages.Name, r clearing.PeerSubmitRequest) (reply clearing.PeerSubmitReply, err error) {
	if err := r.Validate(); err != nil {
		return reply, err
	}
	visit := job.Visit{Home: home, Job: r.Job}
	end, err := v.federated.begin(visit)
	if err != nil {
		return reply, err
	}
	defer end()
	digest, err := digestOf(&r) // the digest is computed before defaults are filled in
	if err != nil {
		return reply, err
	}
	if known, err := v.known(home, &r, digest); known != nil || err != nil {
		return clearing.PeerSubmitReply{Job: *cmp.Or(known, &job.JobSummary{})}, err
	}
	rules := v.intake.rules()
	s, err := v.prepare(rules, home, &r)
	if err == nil {
		_, err = v.intake.enter(ctx, s, false)
	}
	if err != nil && !messages.Passing(err) {
		// An earlier copy of the request may still be committed to the log. If it is, the job must not be refused, and
		// its authorisation stays.
		if err := cmp.Or(v.site.decided(ctx), v.intake.verify(ctx)); err != nil {
			return reply, err
		}
		if known, err := v.known(home, &r, digest); known != nil || err != nil {
			return clearing.PeerSubmitReply{Job: *cmp.Or(known, &job.JobSummary{})}, err
		}
		v.site.replica.read(func(b *book.Book) { err = rules.Judged(b, err) })
	}
	if err != nil {
		if s != nil {
			v.decline(ctx, s.visit, err)
		}
		return reply, err
	}
	v.site.metrics.arrivals.Inc()
	v.site.replica.read(func(b *book.Book) {
		if j := b.Visitor(visit); j != nil {
			reply.Job = federation.Outward(summary(j))
		}
	})
	return reply, nil
}

// digestOf returns a digest that is equal only for requests with the same job.
func digestOf(r *clearing.PeerSubmitRequest) ([]byte, error) {
	s := job.SubmitRequest{Spec: r.Spec}
	s.Spec.Project = ""
	return intake.DigestOf(&s)
}

// known returns the answer for a visiting job that was accepted before. The rules may have changed since then.
func (v *visiting) known(home messages.Name, r *clearing.PeerSubmitRequest, digest []byte) (known *job.JobSummary, err error) {
	v.site.replica.read(func(b *book.Book) {
		var j *book.Job
		if j, err = federation.Known(b, home, r, digest); j != nil {
			s := federation.Outward(summary(j))
			known = &s
		}
	})
	return known, err
}

func (v *visiting) prepare(rules *intake.Rules, home messages.Name, r *clearing.PeerSubmitRequest) (*submission, error) {
	a, err := federation.Arrive(v.site.Site, home, r)
	if err != nil {
		return nil, err
	}
	r.Spec.Project = ""
	s, err := rules.Prepare(messages.VisitorName(r.Account, home), &job.SubmitRequest{Key: r.Job.String(), Spec: r.Spec})
	if err != nil {
		return nil, err
	}
	s.Visiting(&a.Visit)
	if err := a.Timely(v.site.Clock(), s.Market, s.Spec); err != nil {
		return nil, err
	}
	return &submission{Submission: s, visit: a}, nil
}

// decline gives back the authorisation of a visiting job that was refused.
func (v *visiting) decline(ctx context.Context, a *federation.Arrival, why error) {
	var charge *clearing.ChargeRequest
	var due bool
	v.site.replica.read(func(b *book.Book) { charge, due = a.Decline(b, why) })
	if !due {
		return
	}
	if _, err := askActor[clearing.ClearingReply](ctx, v.peers, messages.Bank, clearing.VerbCharge, charge); err != nil {
		v.site.Log.Debug("authorisation not given back", zap.Stringer("job", a.Visit.Visit), zap.Error(err))
	}
}

// jobs returns the changes of a peer's visiting jobs. It waits for a change.
func (v *visiting) jobs(ctx context.Context, home messages.Name, r clearing.PeerJobsRequest) (reply clearing.PeerJobsReply, err error) {
	if err := r.Validate(); err != nil {
		return reply, err
	}
	end, err := v.federated.poll(home)
	if err != nil {
		return reply, err
	}
	defer end()
	ids, reply := v.federated.await(ctx, home, r)
	err = v.reader.look(ctx, func(b *book.Book) error {
		for _, id := range ids {
			if j := b.Job(id); j != nil && j.Visit != nil {
				reply.Jobs = append(reply.Jobs, federation.Outward(summary(j)))
			}
		}
		return nil
	})
	return reply, err
}

// visitor returns a finding about a visiting job, which runs at this site for the site `home`. At its home site, the
// job has the number `id`.
func visitor(home messages.Name, id messages.JobID) finding {
	in := func(b *book.Book) (*book.Job, error) {
		if j := b.Visitor(job.Visit{Home: home, Job: id}); j != nil {
			return j, nil
		}
		return nil, messages.Errorf(messages.NotFound, "there is no job %d of site %s here", id, home)
	}
	return finding{in: in, old: func(missing error) (book.Ended, error) { return book.Ended{}, missing }}
}

func (v *visiting) job(ctx context.Context, home messages.Name, r job.JobRequest) (reply job.JobDetail, err error) {
	if reply, err = v.reader.detail(ctx, visitor(home, r.Job)); err == nil {
		reply.JobSummary = federation.Outward(reply.JobSummary)
	}
	return reply, err
}

func (v *visiting) tasks(ctx context.Context, home messages.Name, r job.TasksRequest) (reply job.TasksReply, err error) {
	reply, err = v.reader.tasksOf(ctx, visitor(home, r.Job), r)
	for i := range reply.Tasks {
		reply.Tasks[i].Task.Job = r.Job
	}
	reply.Account = federation.Owner(reply.Account)
	return reply, err
}

func (v *visiting) why(ctx context.Context, home messages.Name, r job.JobRequest) (reply market.WhyReply, err error) {
	reply, err = v.reader.reasons(ctx, visitor(home, r.Job), false)
	reply.Job = r.Job
	return reply, err
}

func (v *visiting) cancel(ctx context.Context, home messages.Name, r job.JobRequest) (reply job.CancelReply, err error) {
	entering := v.federated.entering(job.Visit{Home: home, Job: r.Job})
	if err := v.site.decided(ctx); err != nil { // the job may be on its way in the log
		return reply, err
	}
	var c book.Cancel
	err = v.reader.look(ctx, func(b *book.Book) error {
		j, err := visitor(home, r.Job).in(b)
		if err != nil {
			return err
		}
		if !j.Active() { // a repeated request adds nothing to the log
			return messages.Errorf(messages.Ended, "job %v is %v already", j.Visit.Visit, j.Outcome)
		}
		c = book.Cancel{Job: j.ID, By: j.Account}
		return nil
	})
	if messages.KindOf(err) == messages.NotFound {
		err = cmp.Or(entering, err)
	}
	if err != nil {
		return reply, err
	}
	was, err := propose[job.State](ctx, v.site, &book.Command{Cancel: &c})
	return job.CancelReply{Job: r.Job, State: was}, err
}

// logs returns the output of a task, or the name of its stream. It asks the node in the name of the job's owner, such
// as alice@west. The node accepts any name from the auctioneer.
func (v *visiting) logs(ctx context.Context, home messages.Name, r clearing.OutputRequest) (reply agent.LogsReply, err error) {
	if err := r.Validate(); err != nil {
		return reply, err
	}
	var owner messages.Name
	err = v.reader.look(ctx, func(b *book.Book) error {
		j, err := visitor(home, r.Task().Job).in(b)
		if err != nil {
			return err
		}
		if b.Node(r.Node) == nil {
			return messages.Errorf(messages.NotFound, "node: site %s has no node %q", v.site.Site, r.Node)
		}
		owner, r.Task().Job = j.Account, j.ID
		return nil
	})
	if err != nil {
		return reply, err
	}
	ctx, cancel := context.WithTimeout(ctx, peerWithin-time.Second)
	defer cancel()
	if r.Stream != nil {
		answer, err := bus.Call[agent.StreamReply](ctx, v.site.Bus, agent.StreamSubject(v.site.Site, r.Node, owner), r.Stream)
		return agent.LogsReply{Stream: &answer}, err
	}
	return bus.Call[agent.LogsReply](ctx, v.site.Bus, messages.LogsSubject(v.site.Site, r.Node, owner), r.Logs)
}

// quote returns offers for a user of a peer.
func (v *visiting) quote(ctx context.Context, home messages.Name, r clearing.PeerQuoteRequest) (reply clearing.PeerQuoteReply, err error) {
	if err := r.Validate(); err != nil {
		return reply, err
	}
	done, err := v.intake.gate.quoting(ctx, home)
	if err != nil {
		return reply, err
	}
	defer done()
	if err := v.peers.check(ctx, home); err != nil {
		return reply, messages.Errorf(messages.PermissionDenied, "%s", messages.Detail(err))
	}
	if err := v.intake.rules().Complete(messages.VisitorName(r.Account, home), &r.Spec); err != nil {
		return reply, err
	}
	reply.Offers, err = v.offers.own(ctx, messages.VisitorName(r.Account, home), &r.Spec)
	for i := range reply.Offers {
		reply.Offers[i].Budget = max(reply.Offers[i].Budget, v.site.LeastVisit)
	}
	return reply, err
}
