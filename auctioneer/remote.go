package auctioneer

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/candor-grid/candor/auctioneer/book"
	"github.com/candor-grid/candor/auctioneer/federation"
	"github.com/candor-grid/candor/auctioneer/intake"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/agent"
	"github.com/candor-grid/candor/messages/clearing"
	"github.com/candor-grid/candor/messages/job"
	"github.com/candor-grid/candor/messages/market"
)

// answerWithin is how long a submission waits for the peer's answer. The job is sent to the peer in any case.
const answerWithin = 3 * time.Second / 2

// remote submits jobs to other sites, and answers users' requests about these jobs. It asks the other site, but waits
// for the answer only for a limited time. Then it answers with the latest report of the other site.
type remote struct {
	site      *site
	peers     *peers
	federated *federated
	intake    *submissions
	offers    *offers
}

// submit commits a remote job, which gets its number at once. Then Errands makes the leader's further requests about
// the job.
func (r *remote) submit(ctx context.Context, account messages.Name, q *job.SubmitRequest) (reply job.SubmitReply, err error) {
	leave, full := r.peers.enter(q.Site)
	if full != nil && (q.Site == clearing.AnySite || q.DryRun) {
		return reply, full
	}
	defer leave()
	if q.Spec.Budget == 0 {
		return reply, messages.Errorf(messages.Invalid, "budget: is missing: name the most that the job may cost, as with --budget 10; jobs for other sites have no default budget")
	}
	if err := q.Validate(); err != nil {
		return reply, err
	}
	c, err := departure(account, q)
	if err != nil {
		return reply, err
	}
	known, err := r.known(c)
	switch {
	case err != nil:
		return reply, err
	case known != nil:
		return r.answer(ctx, known, full == nil)
	}
	rules := r.intake.rules()
	if reply, err = r.enter(ctx, c, q, full == nil); err == nil || q.DryRun || messages.Waits(err) {
		return reply, err
	}
	// An earlier try of this request may still enter the job, so the request must not be refused yet.
	// [submissions.refused] does the same for jobs that run at this site.
	if r.intake.gate.underWay(account, q.Key) {
		return reply, tried(q.Key)
	}
	if err := r.site.decided(ctx); err != nil {
		return reply, err
	}
	if known, _ := r.known(c); known != nil {
		return r.answer(ctx, known, full == nil)
	}
	r.site.replica.read(func(b *book.Book) { err = rules.Judged(b, err) })
	return reply, err
}

// The method `known` returns the answer to a submission that was committed before.
func (r *remote) known(c *book.EnterRemote) (known *book.RemoteReceipt, err error) {
	r.site.replica.read(func(b *book.Book) { known, err = b.KnownRemote(c) })
	return known, err
}

// enter checks and commits a submission for another site, or for the best of all sites.
func (r *remote) enter(ctx context.Context, c *book.EnterRemote, q *job.SubmitRequest, mayWait bool) (reply job.SubmitReply, err error) {
	if err := r.intake.reruns(c.Account, c.Spec); err != nil {
		return reply, err
	}
	done, err := r.intake.within(&submission{Submission: &intake.Submission{Account: c.Account, Key: q.Key}})
	if err != nil {
		return reply, err
	}
	defer done()
	if q.Site == clearing.AnySite {
		home, err := r.offers.choose(ctx, c)
		if err != nil {
			return reply, err
		}
		if home {
			return r.stay(ctx, c, q)
		}
	}
	if err := r.sendable(ctx, c); err != nil {
		return reply, err
	}
	if err := r.room(c.Peer); err != nil {
		return reply, err
	}
	if q.DryRun {
		return r.rehearse(ctx, c)
	}
	if err := r.site.inTerm(r.intake.number); err != nil {
		return reply, err
	}
	r.federated.forgive(c.Peer)
	receipt, err := propose[book.RemoteReceipt](ctx, r.site, &book.Command{EnterRemote: c})
	if err != nil {
		return reply, err
	}
	r.site.metrics.departures.Inc()
	return r.answer(ctx, &receipt, mayWait)
}

// stay submits a job to this site, because this site was chosen.
func (r *remote) stay(ctx context.Context, c *book.EnterRemote, q *job.SubmitRequest) (reply job.SubmitReply, err error) {
	here := *q
	here.Spec.Contract = c.Spec.Contract
	s, err := r.intake.rules().Prepare(c.Account, &here)
	if err != nil {
		return reply, err
	}
	s.Digest = c.Digest
	reply, err = r.intake.enter(ctx, &submission{Submission: s, counted: true}, q.DryRun)
	reply.Chosen = c.Chosen
	return reply, err
}

// departure returns the command that enters a submission for another site. If the submission leaves the choice of the
// site open, the command's Peer is empty.
func departure(account messages.Name, r *job.SubmitRequest) (*book.EnterRemote, error) {
	digest, err := intake.DigestOf(r)
	if err != nil {
		return nil, err
	}
	spec := r.Spec
	c := &book.EnterRemote{Account: account, Key: r.Key, Digest: digest, Payer: cmp.Or(spec.Project, account), Spec: &spec}
	if r.Site != clearing.AnySite {
		c.Peer = r.Site
	}
	spec.Project = ""
	return c, federation.Portable(c.Spec)
}

// departedPerSite is the maximum number of this site's active jobs at one other site. If that site does not answer, its
// jobs do not end, and stay in the book. The maximum ensures that there is room in the book for jobs at other sites.
const departedPerSite = book.MaxRemoteJobs / 8

// room returns an error if the peer already has as many jobs as it may have.
func (r *remote) room(peer messages.Name) (err error) {
	r.site.replica.read(func(b *book.Book) {
		if n := b.Departed(peer); n >= departedPerSite {
			err = messages.Errorf(messages.Exhausted, "%d jobs at site %s have not ended, which is the limit; submit again when some have ended, or submit to another site", n, peer)
		}
	})
	return err
}

// sendable returns an error for a job that the bank or the other site would refuse after its submission.
func (r *remote) sendable(ctx context.Context, c *book.EnterRemote) error {
	if err := federation.OwnContract(c.Spec, c.Peer); err != nil {
		return err
	}
	if err := r.peers.check(ctx, c.Peer); err != nil {
		return err
	}
	return r.intake.affordable(ctx, &submission{Submission: &intake.Submission{Account: c.Account, Payer: c.Payer, Spec: c.Spec}})
}

// rehearse answers a dry run with a quote of the peer. It refuses what the peer would refuse.
func (r *remote) rehearse(ctx context.Context, c *book.EnterRemote) (reply job.SubmitReply, err error) {
	quoted := *c.Spec
	quoted.Contract = ""
	found, err := peerAsk[clearing.PeerQuoteReply](ctx, r.peers, c.Peer, clearing.VerbPeerQuote, clearing.PeerQuoteRequest{Account: c.Account, Spec: quoted}, lookWithin)
	if err != nil {
		return reply, err
	}
	reply = job.SubmitReply{Payer: c.Payer, Held: c.Spec.Budget, Tasks: c.Spec.TaskCount(), Site: c.Peer, Chosen: c.Chosen}
	if len(found.Offers) > 0 {
		reply.Market = found.Offers[0].Market
	}
	return reply, nil
}

// answer returns the answer for a committed job. If mayWait is true, it first waits until the peer has answered or
// failed.
func (r *remote) answer(ctx context.Context, p *book.RemoteReceipt, mayWait bool) (job.SubmitReply, error) {
	reply := job.SubmitReply{Job: p.Job, Payer: p.Payer, Held: p.Held, Tasks: p.Tasks, Site: p.Peer, Chosen: p.Chosen}
	if p.Peer == "" { // the job runs at this site
		return reply, nil
	}
	j, known := r.federated.until(ctx, p.Job, answerWithin, func(j *book.RemoteJob) bool { return !mayWait || j.Phase >= book.There })
	if !known {
		return reply, nil
	}
	reply.Market = j.Summary().Market
	if j.Refused != nil {
		return reply, messages.Errorf(j.Refused.Kind, "site %s does not run job %d: %s", j.Peer, j.ID, j.Refused.Message)
	}
	return reply, nil
}

// find returns a remote job, or nil if there is none that the caller may see.
func (r *remote) find(caller messages.Name, id messages.JobID) *book.RemoteJob {
	found, ok := r.federated.remote(id)
	if !ok || found.Account != caller && !slices.Contains(r.site.Operators, caller) {
		return nil
	}
	return &found
}

func (r *remote) summary(j *book.RemoteJob) job.JobSummary {
	s := j.Summary()
	if j.Phase != book.Over {
		s.Away.Trouble = r.federated.trouble(j.Peer)
	}
	return s
}

// askAbout asks the peer about a job, for a user who waits. It returns an error if the peer could not be asked, or has
// never reported the job.
func askAbout[Reply any](ctx context.Context, p *peers, j *book.RemoteJob, verb string, request any, within time.Duration) (reply Reply, err error) {
	if j.Known == 0 {
		return reply, messages.Errorf(messages.NotFound, "job %d has not reached site %s: it is %v", j.ID, j.Peer, j.Phase)
	}
	leave, err := p.enter(j.Peer)
	if err != nil {
		return reply, err
	}
	defer leave()
	return peerAsk[Reply](ctx, p, j.Peer, verb, request, within)
}

// job returns a remote job as the peer reports it now. If the peer does not answer, it returns the job as the peer last
// reported it.
func (r *remote) job(ctx context.Context, j *book.RemoteJob) (reply job.JobDetail, err error) {
	if err := r.site.verify(ctx); err != nil {
		return reply, err
	}
	there, err := askAbout[job.JobDetail](ctx, r.peers, j, clearing.VerbPeerJob, job.JobRequest{Job: j.ID}, lookWithin)
	now := *j
	if err == nil && now.Phase == book.There {
		now.Status, now.Known = *federation.Heard(&there.JobSummary, j), r.site.Clock()
		if state := now.Status.State; state != j.Status.State && !state.Final() {
			// Commit what the user sees, so that the job's state does not go back if the peer stops answering.
			_, _ = r.site.propose(ctx, &book.Command{Advance: &book.Advance{Steps: []book.Step{{Job: j.ID, Status: &now.Status}}}})
		}
	}
	reply = job.JobDetail{JobSummary: r.summary(&now), Spec: *j.Spec, Shares: there.Shares, Stages: there.Stages, Kept: there.Kept}
	if err != nil && j.Known != 0 && j.Phase == book.There {
		reply.Away.Trouble = messages.Detail(err)
	}
	if len(reply.Stages) != len(j.Spec.Stages) {
		reply.Stages = federation.Expected(j.Spec)
	}
	return reply, nil
}

func (r *remote) tasks(ctx context.Context, j *book.RemoteJob, q job.TasksRequest) (job.TasksReply, error) {
	if j.Known == 0 { // no task was claimed yet
		return job.TasksReply{Account: j.Account}, r.site.verify(ctx)
	}
	reply, err := askAbout[job.TasksReply](ctx, r.peers, j, clearing.VerbPeerTasks, q, lookWithin)
	reply.Account = j.Account
	return reply, silent(j, err)
}

// silent turns an error about a peer that did not answer into a sentence for the user. It does not change other errors.
func silent(j *book.RemoteJob, err error) error {
	if err == nil || !messages.Passing(err) {
		return err
	}
	return messages.Errorf(messages.Unavailable, "site %s, which runs job %d, does not answer: %s", j.Peer, j.ID, messages.Detail(err))
}

// output returns the output of a task at a peer. If the output is a stream, it returns the name of this stream.
func (r *remote) output(ctx context.Context, caller messages.Name, q clearing.OutputRequest) (reply agent.LogsReply, err error) {
	if err := q.Validate(); err != nil {
		return reply, err
	}
	id := q.Task().Job
	j := r.find(caller, id)
	if j == nil {
		return reply, messages.Errorf(messages.NotFound, "there is no job %d at another site; the nodes of this site have the output of its own jobs", id)
	}
	reply, err = askAbout[agent.LogsReply](ctx, r.peers, j, clearing.VerbPeerLogs, q, peerWithin)
	return reply, silent(j, err)
}

// cancel commits the cancellation of a remote job, and waits until the peer knows it. A silent peer is told later.
func (r *remote) cancel(ctx context.Context, caller messages.Name, j *book.RemoteJob) (reply job.CancelReply, err error) {
	was, err := propose[job.State](ctx, r.site, &book.Command{Advance: &book.Advance{Steps: []book.Step{{Job: j.ID, Cancel: caller}}}})
	if err != nil {
		return reply, r.uncharged(ctx, j, err)
	}
	now, known := r.federated.until(ctx, j.ID, lookWithin, func(j *book.RemoteJob) bool { return j.Told || j.Phase >= book.Releasing })
	if !known {
		return reply, messages.Errorf(messages.NotFound, "there is no job %d", j.ID)
	}
	s := r.summary(&now)
	if !now.Told && now.Phase != book.Over && now.Phase != book.Releasing && s.Away.Trouble == "" {
		s.Away.Trouble = fmt.Sprintf("site %s has not answered yet", j.Peer)
	}
	return job.CancelReply{Job: j.ID, State: was, Away: s.Away}, nil
}

// uncharged is called when a job cannot be cancelled because it has ended. If the other site has not charged the job
// yet, uncharged asks the bank of that site to release the credits, and adds this to the error. That bank refuses the
// request if it still has to charge for the job's work. So nobody can avoid the payment in this way.
func (r *remote) uncharged(ctx context.Context, j *book.RemoteJob, why error) error {
	if messages.KindOf(why) != messages.Ended || j.Authorisation == nil || j.Phase == book.Releasing {
		return why
	}
	ctx, cancel := context.WithTimeout(ctx, lookWithin)
	defer cancel()
	_, err := askActor[clearing.ClearingReply](ctx, r.peers, messages.Bank, clearing.VerbRevoke, clearing.RevokeRequest{ID: clearing.RemoteJobAuthorisation(j.ID)})
	if err != nil { // the job was charged, or the bank does not know whether it was
		return why
	}
	return messages.Errorf(messages.Ended, "%s, and site %s has not charged for the job; that site was asked to release the credits. If it does not, the credits are free a day after the job ended (`candor account` says when)",
		messages.Detail(why), j.Peer)
}

// cancelJobs commits the cancellation of remote jobs, and writes each outcome to its position in the reply. It does not
// wait for peers.
func (r *remote) cancelJobs(ctx context.Context, caller messages.Name, ids []messages.JobID, out []job.CancelOutcome) error {
	for i := range out {
		c := &out[i]
		if !slices.Contains(ids, c.Job) {
			continue
		}
		was, err := propose[job.State](ctx, r.site, &book.Command{Advance: &book.Advance{Steps: []book.Step{{Job: c.Job, Cancel: caller}}}})
		if c.State = was; err != nil {
			if ctx.Err() != nil {
				return err
			}
			c.Error = messages.AsError(messages.VerbCancel, err)
			if away := r.find(caller, c.Job); away != nil {
				c.Error = messages.AsError(messages.VerbCancel, r.uncharged(ctx, away, err))
			}
			continue
		}
		if now := r.find(caller, c.Job); now != nil {
			c.Away = r.summary(now).Away
		}
	}
	return nil
}

// The method `why` explains a remote job with the peer's answer, and says how its site was chosen.
func (r *remote) why(ctx context.Context, j *book.RemoteJob) (reply market.WhyReply, err error) {
	if err := r.site.verify(ctx); err != nil {
		return reply, err
	}
	s := r.summary(j)
	there, err := askAbout[market.WhyReply](ctx, r.peers, j, clearing.VerbPeerWhy, job.JobRequest{Job: j.ID}, lookWithin)
	if err == nil {
		there.Job, there.Away = j.ID, s.Away
		there.State = min(there.State, job.Discarded)
		there.Message = fmt.Sprintf("at site %s: %s%s", j.Peer, there.Message, federation.Chosen(j))
		return there, nil
	}
	reply = market.WhyReply{Job: j.ID, State: s.State, Reason: s.Reason, Away: s.Away}
	federation.Explain(&reply, j, r.site.Clock(), err)
	reply.Message += federation.Chosen(j)
	return reply, nil
}
