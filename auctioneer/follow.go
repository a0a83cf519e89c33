package auctioneer

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/candor-grid/candor/auctioneer/book"
	"github.com/candor-grid/candor/messages"
)

// follow keeps what is known of the jobs at a peer up to date: it asks for what
// changed, and the peer answers when something has.
func (l *leader) follow(ctx context.Context, peer messages.Name) {
	var cursor messages.PeerJobsRequest
	var seen map[messages.JobID]bool // by a walk through all jobs that is under way
	var backoff time.Duration
	for ctx.Err() == nil {
		news := l.travel.news()
		if !l.travel.any(peer) {
			select {
			case <-ctx.Done():
			case <-news:
			}
			continue
		}
		cursor.Wait = newsWithin
		reply, err := peerAsk[messages.PeerJobsReply](ctx, l, peer, messages.VerbPeerJobs, cursor, newsWithin.Std()+peerWithin)
		if err == nil {
			if reply.Whole {
				seen = map[messages.JobID]bool{}
			}
			err = l.learn(ctx, peer, &reply, seen)
		}
		l.travel.blame(peer, err)
		if err != nil {
			backoff = min(max(2*backoff, firstBackoff), lastBackoff)
			sleep(ctx, backoff/2+rand.N(backoff))
			continue
		}
		backoff, cursor.Epoch, cursor.After = 0, reply.Epoch, reply.Next
		if !reply.More {
			seen = nil
		}
	}
}

// learn commits what a peer said of jobs. At the end of a walk through all of
// them, jobs that it did not speak of are asked for by name.
func (l *leader) learn(ctx context.Context, peer messages.Name, reply *messages.PeerJobsReply, seen map[messages.JobID]bool) error {
	t := &book.Travel{}
	l.replica.read(func(b *book.Book) {
		for i := range reply.Jobs {
			s := &reply.Jobs[i]
			if seen != nil {
				seen[s.Job] = true
			}
			if r := b.Roam(s.Job); r != nil && r.Peer == peer && (r.Phase == book.Sending || r.Phase == book.There) {
				t.Steps = append(t.Steps, book.Step{Job: s.Job, Status: heard(s, r)})
			}
		}
	})
	if seen != nil && !reply.More {
		for _, id := range l.travel.at(peer) {
			if !seen[id] {
				if err := l.seek(ctx, peer, id, t); err != nil {
					return err
				}
			}
		}
	}
	if len(t.Steps) == 0 {
		return nil
	}
	_, err := l.propose(ctx, &book.Command{Travel: t})
	return err
}

// seek asks for a job that a peer did not speak of. One that it has forgotten
// ended there long ago; the bank's books say what it cost.
func (l *leader) seek(ctx context.Context, peer messages.Name, id messages.JobID, t *book.Travel) error {
	detail, err := peerAsk[messages.JobDetail](ctx, l, peer, messages.VerbPeerJob, messages.JobRequest{Job: id}, peerWithin)
	r, ok := l.roam(id)
	switch {
	case !ok:
	case err == nil:
		t.Steps = append(t.Steps, book.Step{Job: id, Status: heard(&detail.JobSummary, &r)})
	case messages.KindOf(err) == messages.NotFound:
		last := r.Status
		last.State, last.Reason = messages.Failed, "ForgottenThere"
		t.Steps = append(t.Steps, book.Step{Job: id, Status: &last})
	case messages.Passing(err):
		return err
	}
	return nil
}

// heard is what another site said of a job, as far as it can be so: it is not
// trusted with more than the job.
func heard(said *messages.JobSummary, r *book.Roam) *messages.JobSummary {
	s := *said
	s.State = min(s.State, messages.Discarded)
	s.Charged = max(0, min(s.Charged, r.Spec.Budget))
	s.Tasks = r.Spec.TaskCount()
	s.Running, s.Done = max(0, min(s.Running, s.Tasks)), max(0, min(s.Done, s.Tasks))
	if !messages.ValidName(s.Market) {
		s.Market = ""
	}
	s.Name, s.Reason = "", messages.Clip(s.Reason, maxHeard)
	s.Started, s.Ended = max(0, s.Started), max(0, s.Ended)
	return &s
}

// maxHeard bounds a reason that another site gives, in bytes.
const maxHeard = 64
