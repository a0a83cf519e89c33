package auctioneer

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/candor-grid/candor/auctioneer/book"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/bus"
)

// visit is what a submission has that comes from another site.
type visit struct {
	book.Visit
	authorisation messages.SignedAuthorisation
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
	if known, err := l.hosted(home, &r); known != nil || err != nil {
		return messages.PeerSubmitReply{Job: *cmp.Or(known, &messages.JobSummary{})}, err
	}
	s, err := l.welcome(home, &r)
	if err != nil {
		return reply, err
	}
	if _, err := l.take(ctx, s, false); err != nil {
		l.decline(ctx, s, err)
		return reply, err
	}
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
	digest, err := digestOf(&s)
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
	s, err := l.prepare(messages.VisitorName(r.Account, home), &messages.SubmitRequest{Key: r.Job.String(), Spec: r.Spec})
	if err != nil {
		return nil, err
	}
	s.visit, s.hold = v, ""
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
	if err := visitable(&l.market(s.spec.Market).Config); err != nil {
		return err
	}
	now := l.Clock()
	by := lastCall(now, s.visit.Until)
	switch {
	case now >= by:
		return messages.Errorf(messages.Expired, "authorisation: ends at %v, too soon for a job", s.visit.Until)
	case s.spec.Length > 0 && now.Add(s.spec.Length) > by:
		return messages.Errorf(messages.Invalid, "length: %v; a job of another site must end by %v, before its authorisation does", s.spec.Length, by)
	case s.mechanism == messages.DeadlineBid && s.spec.Deadline > by:
		return messages.Errorf(messages.Invalid, "deadline: %v is when it would be charged; a job of another site must end by %v, before its authorisation does", s.spec.Deadline, by)
	}
	return nil
}

// accept has this site's bank take the authorisation, for this job and no other.
func (l *leader) accept(ctx context.Context, v *visit) error {
	_, err := bankAsk[messages.ClearingReply](ctx, l, messages.VerbAccept, messages.AcceptRequest{
		Purpose: v.Visit.Visit.String(), Authorisation: v.authorisation, Firm: true})
	return err
}

// decline gives back the authorisation of a job that is refused for good, if it
// was accepted; if not, there is nothing to give back, and the bank says so.
func (l *leader) decline(ctx context.Context, s *submission, why error) {
	if passing(why) {
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

// outward is a job of another site as that site is told of it.
func outward(j *book.Job) messages.JobSummary {
	s := summary(j)
	s.Job, s.Visit = j.Visit.Job, nil
	s.Account, _, _ = strings.Cut(j.Account, "@")
	s.Payer = s.Account
	return s
}

// visitor finds the job that another site asks about by its number there.
func (l *leader) visitor(caller messages.Name, id messages.JobID) (finding, error) {
	home, err := homeOf(caller)
	if err != nil {
		return nil, err
	}
	return func(b *book.Book) (*book.Job, error) {
		if j := b.Visitor(messages.Visit{Home: home, Job: id}); j != nil {
			return j, nil
		}
		return nil, messages.Errorf(messages.NotFound, "there is no job %d of site %s here", id, home)
	}, nil
}

func (l *leader) peerJob(ctx context.Context, caller messages.Name, r messages.JobRequest) (reply messages.JobDetail, err error) {
	find, err := l.visitor(caller, r.Job)
	if err != nil {
		return reply, err
	}
	reply, err = l.detail(ctx, find)
	if err == nil {
		reply.Job, reply.Visit = r.Job, nil
		reply.Account, _, _ = strings.Cut(reply.Account, "@")
		reply.Payer = reply.Account
	}
	return reply, err
}

func (l *leader) peerTasks(ctx context.Context, caller messages.Name, r messages.TasksRequest) (reply messages.TasksReply, err error) {
	find, err := l.visitor(caller, r.Job)
	if err != nil {
		return reply, err
	}
	reply, err = l.tasksOf(ctx, find, r)
	for i := range reply.Tasks {
		reply.Tasks[i].Task.Job = r.Job
	}
	reply.Account, _, _ = strings.Cut(reply.Account, "@")
	return reply, err
}

func (l *leader) peerWhy(ctx context.Context, caller messages.Name, r messages.JobRequest) (reply messages.WhyReply, err error) {
	find, err := l.visitor(caller, r.Job)
	if err != nil {
		return reply, err
	}
	reply, err = l.reasons(ctx, find)
	reply.Job = r.Job
	return reply, err
}

func (l *leader) peerCancel(ctx context.Context, caller messages.Name, r messages.JobRequest) (reply messages.CancelReply, err error) {
	find, err := l.visitor(caller, r.Job)
	if err != nil {
		return reply, err
	}
	var c book.Cancel
	err = l.look(ctx, func(b *book.Book) error {
		j, err := find(b)
		if err == nil {
			c = book.Cancel{Job: j.ID, By: j.Account}
		}
		return err
	})
	if err != nil {
		return reply, err
	}
	was, err := l.propose(ctx, &book.Command{Cancel: &c})
	if err != nil {
		return reply, err
	}
	return messages.CancelReply{Job: r.Job, State: was.(messages.State)}, nil
}

// peerLogs reads the output of a task as the job's owner, whom the node lets: no
// user here can speak under that name, and the auctioneer may under any.
func (l *leader) peerLogs(ctx context.Context, caller messages.Name, r messages.OutputRequest) (reply messages.LogsReply, err error) {
	if err := r.Validate(); err != nil {
		return reply, err
	}
	find, err := l.visitor(caller, r.Logs.Attempt.Task.Job)
	if err != nil {
		return reply, err
	}
	var owner messages.Name
	err = l.look(ctx, func(b *book.Book) error {
		j, err := find(b)
		if err != nil {
			return err
		}
		if b.Node(r.Node) == nil {
			return messages.Errorf(messages.NotFound, "node: site %s has no node %q", l.Site, r.Node)
		}
		owner, r.Logs.Attempt.Task.Job = j.Account, j.ID
		return nil
	})
	if err != nil {
		return reply, err
	}
	ctx, cancel := context.WithTimeout(ctx, peerWithin-time.Second)
	defer cancel()
	return bus.Call[messages.LogsReply](ctx, l.Bus, messages.LogsSubject(l.Site, r.Node, owner), r.Logs)
}

// peerJobs answers with what has changed of a site's jobs, as soon as anything has.
func (l *leader) peerJobs(ctx context.Context, caller messages.Name, r messages.PeerJobsRequest) (reply messages.PeerJobsReply, err error) {
	home, err := homeOf(caller)
	if err != nil {
		return reply, err
	}
	if err := r.Validate(); err != nil {
		return reply, err
	}
	leave, err := l.travel.poll(home)
	if err != nil {
		return reply, err
	}
	defer leave()
	reply.Epoch, reply.Whole = l.travel.epoch, r.Epoch != l.travel.epoch
	if reply.Whole {
		r.After = 0
	}
	var ids []messages.JobID
	ids, reply.Next, reply.More = l.travel.await(ctx, home, r.After, r.Wait.Std(), reply.Whole)
	err = l.look(ctx, func(b *book.Book) error {
		for _, id := range ids {
			if j := b.Job(id); j != nil && j.Visit != nil {
				reply.Jobs = append(reply.Jobs, outward(j))
			}
		}
		return nil
	})
	return reply, err
}

// poll counts a request of a site that waits for news.
func (t *travel) poll(home messages.Name) (leave func(), err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.polls[home] >= maxPolls {
		return nil, messages.Errorf(messages.Exhausted, "%d requests of site %s wait for news, the most there may be", maxPolls, home)
	}
	t.polls[home]++
	return func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		if t.polls[home]--; t.polls[home] == 0 {
			delete(t.polls, home)
		}
	}, nil
}

// await waits until a job of a site has changed after a number, and returns those
// that have, in the order in which they did, and the number after them.
func (t *travel) await(ctx context.Context, home messages.Name, after uint64, wait time.Duration, atOnce bool) (ids []messages.JobID, next uint64, more bool) {
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	for {
		news := t.news()
		if ids, next, more = t.since(home, after); len(ids) > 0 || atOnce {
			return ids, next, more
		}
		select {
		case <-ctx.Done():
			return nil, after, false
		case <-t.over:
			return nil, after, false
		case <-news:
			sleep(ctx, newsCoalesced)
		}
	}
}

func (t *travel) since(home messages.Name, after uint64) (ids []messages.JobID, next uint64, more bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	changed := t.visits[home]
	for id, seq := range changed {
		if seq > after {
			ids = append(ids, id)
		}
	}
	slices.SortFunc(ids, func(a, b messages.JobID) int { return int(int64(changed[a]) - int64(changed[b])) })
	if more = len(ids) > newsAtOnce; more {
		ids = ids[:newsAtOnce]
	}
	next = after
	if len(ids) > 0 {
		next = changed[ids[len(ids)-1]]
	}
	return ids, next, more
}

// watchVisits ends jobs of other sites whose authorisations are about to end.
func (l *leader) watchVisits(ctx context.Context) {
	for sleep(ctx, time.Second) {
		now := l.Clock()
		late := map[messages.Name][]book.Discarding{}
		l.replica.read(func(b *book.Book) {
			for _, id := range l.travel.guests() {
				j := b.Job(id)
				if j == nil || !j.Active() || now < lastCall(j.Submitted, j.Visit.Until) {
					continue
				}
				late[j.Spec.Market] = append(late[j.Spec.Market], book.Discarding{Job: id, Reason: "AuthorisationEnds",
					Message: "what its home site authorised for it cannot be charged much longer: it ends at " + j.Visit.Until.String(),
					Change:  []string{"smaller jobs, or a home site that authorises for longer"}})
			}
		})
		for market, jobs := range late {
			if _, err := l.propose(ctx, &book.Command{Decide: &book.Decide{Market: market, Discard: jobs}}); err != nil {
				l.Log.Warn("jobs of other sites not ended", zap.Int("jobs", len(jobs)), zap.Error(err))
			}
		}
	}
}

// guests lists the jobs of other sites.
func (t *travel) guests() []messages.JobID {
	t.mu.Lock()
	defer t.mu.Unlock()
	ids := make([]messages.JobID, 0, len(t.homes))
	for id := range t.homes {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	return ids
}
