package auctioneer

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/candor-grid/candor/auctioneer/book"
	"github.com/candor-grid/candor/messages"
)

// away finds a job that another site runs, if the caller may see it; nil if there
// is none of that number.
func (l *leader) away(caller messages.Name, id messages.JobID) (*book.Roam, error) {
	r, ok := l.roam(id)
	switch {
	case !ok:
		return nil, nil
	case r.Account != caller && !slices.Contains(l.Operators, caller):
		return nil, messages.Errorf(messages.PermissionDenied, "job %d belongs to another account", id)
	}
	return &r, nil
}

func (l *leader) summaryAway(r *book.Roam) messages.JobSummary {
	s := r.Summary()
	if r.Phase != book.Over {
		s.Away.Trouble = l.travel.trouble(r.Peer)
	}
	return s
}

// ask asks the other site about a job, for a user who waits. The error is why it
// could not be asked; a job that has not come there, or is over, is not asked about.
func askAbout[Reply any](ctx context.Context, l *leader, r *book.Roam, verb string, request any, within time.Duration) (reply Reply, err error) {
	if r.Phase != book.There && r.Phase != book.Over || r.Known == 0 {
		return reply, messages.Errorf(messages.NotFound, "job %d has not come to site %s: it is %v", r.ID, r.Peer, r.Phase)
	}
	leave, ok := l.travel.enter()
	if !ok {
		return reply, messages.Errorf(messages.Exhausted, "%d requests wait for other sites, the most there may be", maxLooks)
	}
	defer leave()
	return peerAsk[Reply](ctx, l, r.Peer, verb, request, within)
}

// jobAway is a job as the other site sees it, or what that said last.
func (l *leader) jobAway(ctx context.Context, r *book.Roam, err error) (reply messages.JobDetail, _ error) {
	if err == nil {
		err = l.verify(ctx)
	}
	if err != nil {
		return reply, err
	}
	there, err := askAbout[messages.JobDetail](ctx, l, r, messages.VerbPeerJob, messages.JobRequest{Job: r.ID}, lookWithin)
	now := *r
	if err == nil && now.Phase == book.There {
		now.Status, now.Known = *heard(&there.JobSummary, r), l.Clock()
		if news := now.Status.State; news != r.Status.State && !news.Final() {
			// What was shown is not taken back, should the other site fall silent; if it
			// cannot be kept now, it is asked for again later.
			_, _ = l.propose(ctx, &book.Command{Travel: &book.Travel{Steps: []book.Step{{Job: r.ID, Status: &now.Status}}}})
		}
	}
	reply = messages.JobDetail{JobSummary: l.summaryAway(&now), Spec: *r.Spec, Shares: there.Shares, Stages: there.Stages}
	if err != nil && r.Known != 0 && r.Phase == book.There {
		reply.Away.Trouble = messages.AsError("", err).Message
	}
	if len(reply.Stages) != len(r.Spec.Stages) {
		reply.Stages = expectedStages(r.Spec)
	}
	return reply, nil
}

// expectedStages are those of a job of which no more is known than what it is.
func expectedStages(spec *messages.JobSpec) []messages.StageStatus {
	out := make([]messages.StageStatus, len(spec.Stages))
	for i := range spec.Stages {
		s := &spec.Stages[i]
		out[i] = messages.StageStatus{Name: s.Name, Class: s.Class, Tasks: s.TaskCount()}
	}
	return out
}

func (l *leader) tasksAway(ctx context.Context, r *book.Roam, q messages.TasksRequest, err error) (reply messages.TasksReply, _ error) {
	if err != nil {
		return reply, err
	}
	if r.Known == 0 { // no task can have been claimed
		return messages.TasksReply{Account: r.Account}, l.verify(ctx)
	}
	reply, err = askAbout[messages.TasksReply](ctx, l, r, messages.VerbPeerTasks, q, lookWithin)
	reply.Account = r.Account
	return reply, silent(r, err)
}

// silent says of an error with which a site could not be asked what that means.
func silent(r *book.Roam, err error) error {
	if err == nil || !messages.Passing(err) {
		return err
	}
	return messages.Errorf(messages.Unavailable, "site %s, which runs job %d, does not answer: %s", r.Peer, r.ID, messages.AsError("", err).Message)
}

// output reads what a task at another site wrote.
func (l *leader) output(ctx context.Context, caller messages.Name, q messages.OutputRequest) (reply messages.LogsReply, err error) {
	if err := q.Validate(); err != nil {
		return reply, err
	}
	id := q.Logs.Attempt.Task.Job
	r, err := l.away(caller, id)
	if err != nil {
		return reply, err
	}
	if r == nil {
		return reply, messages.Errorf(messages.NotFound, "there is no job %d at another site; what jobs of this site wrote, their nodes have", id)
	}
	reply, err = askAbout[messages.LogsReply](ctx, l, r, messages.VerbPeerLogs, q, peerWithin)
	return reply, silent(r, err)
}

// cancelAway notes that a job is to end, and tells the other site. Where that is
// silent it is told as soon as it answers.
func (l *leader) cancelAway(ctx context.Context, caller messages.Name, r *book.Roam, err error) (reply messages.CancelReply, _ error) {
	if err != nil {
		return reply, err
	}
	was, err := l.propose(ctx, &book.Command{Travel: &book.Travel{Steps: []book.Step{{Job: r.ID, Cancel: caller}}}})
	if err != nil {
		return reply, err
	}
	now := l.untilTold(ctx, r)
	s := l.summaryAway(&now)
	if !now.Told && now.Phase != book.Over && now.Phase != book.Releasing && s.Away.Trouble == "" {
		s.Away.Trouble = fmt.Sprintf("site %s has not answered yet", r.Peer)
	}
	return messages.CancelReply{Job: r.ID, State: was.(messages.State), Away: s.Away}, nil
}

// untilTold waits until the other site knows that a job is to end, or does not answer.
func (l *leader) untilTold(ctx context.Context, r *book.Roam) book.Roam {
	ctx, cancel := context.WithTimeout(ctx, lookWithin)
	defer cancel()
	for {
		news := l.travel.news()
		now, ok := l.roam(r.ID)
		if !ok || now.Told || now.Phase >= book.Releasing || l.travel.trouble(r.Peer) != "" {
			return now
		}
		select {
		case <-ctx.Done():
			return now
		case <-l.over:
			return now
		case <-news:
		}
	}
}

// whyAway explains a job by what the other site says, and by how it came there.
func (l *leader) whyAway(ctx context.Context, r *book.Roam, err error) (reply messages.WhyReply, _ error) {
	if err == nil {
		err = l.verify(ctx)
	}
	if err != nil {
		return reply, err
	}
	s := l.summaryAway(r)
	there, err := askAbout[messages.WhyReply](ctx, l, r, messages.VerbPeerWhy, messages.JobRequest{Job: r.ID}, lookWithin)
	if err == nil {
		there.Job, there.Away = r.ID, s.Away
		there.State = min(there.State, messages.Discarded)
		there.Message = fmt.Sprintf("at site %s: %s%s", r.Peer, there.Message, chosen(r))
		return there, nil
	}
	reply = messages.WhyReply{Job: r.ID, State: s.State, Reason: s.Reason, Away: s.Away}
	l.journey(&reply, r, err)
	reply.Message += chosen(r)
	return reply, nil
}

func chosen(r *book.Roam) string {
	if r.Chosen == "" {
		return ""
	}
	return "; it is there because " + r.Chosen
}

// answered says what a site that could not be asked about a job said instead.
func answered(peer messages.Name, err error) string {
	text := messages.AsError("", err).Message
	if messages.Passing(err) {
		return fmt.Sprintf("%s does not answer (%s)", peer, text)
	}
	return fmt.Sprintf("%s says: %s", peer, text)
}

// journey explains a job without the other site's help.
func (l *leader) journey(reply *messages.WhyReply, r *book.Roam, err error) {
	switch {
	case r.Refused != nil && r.Status.Reason == "RefusedByBank":
		reply.Message = "this site's bank did not set its budget aside: " + r.Refused.Message
	case r.Refused != nil:
		reply.Message = fmt.Sprintf("site %s does not run it: %s", r.Peer, r.Refused.Message)
		reply.Change = []string{"what the other site asks for, or another site, in a new submission"}
	case r.Phase == book.Authorising:
		reply.Message = fmt.Sprintf("this site's bank is asked to authorise %v credits for site %s", r.Spec.Budget, r.Peer)
	case r.Phase == book.Sending:
		reply.Message = fmt.Sprintf("site %s is asked to run it", r.Peer)
		if trouble := reply.Away.Trouble; trouble != "" {
			reply.Reason = "SiteSilent"
			reply.Message += ", and does not answer: " + trouble
			reply.Change = []string{"the site answering; it is asked again and again"}
		}
	case r.Known == 0:
		reply.Message = "it was cancelled before it was sent to site " + r.Peer
	default:
		reply.Message = fmt.Sprintf("site %s; %v ago it was %v: %s, with %d of %d tasks done and %d running", answered(r.Peer, err), l.Clock().Sub(r.Known).Std().Round(time.Second), r.Status.State, r.Status.Reason, r.Status.Done, r.Status.Tasks, r.Status.Running)
		if r.Phase == book.There {
			reply.Reason = "SiteSilent"
			reply.Change = []string{"the site answering; its jobs go on there meanwhile, and are charged when they end"}
		}
	}
}
