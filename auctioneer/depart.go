package auctioneer

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/candor-grid/candor/auctioneer/book"
	"github.com/candor-grid/candor/auctioneer/intake"
	"github.com/candor-grid/candor/auctioneer/roaming"
	"github.com/candor-grid/candor/messages"
)

// departWithin is how long a submission waits to be able to say what the other
// site says of it. The job is on its way whatever comes of the wait.
const departWithin = 3 * time.Second / 2

// submitAway takes a job that is to run at another site, or where it is best off.
// It has its number at once; the budget is authorised and the site asked by the
// escort, whoever leads then.
func (l *leader) submitAway(ctx context.Context, account messages.Name, r *messages.SubmitRequest) (reply messages.SubmitReply, err error) {
	leave, mayWait := l.travel.enter()
	if !mayWait && (r.Site == messages.AnySite || r.DryRun) {
		return reply, messages.Errorf(messages.Exhausted, "%d requests wait for other sites, the most there may be; try again", maxLooks)
	}
	defer leave()
	if err := r.Validate(); err != nil {
		return reply, err
	}
	d, err := departure(account, r)
	if err != nil {
		return reply, err
	}
	if known, err := l.departed(d); known != nil || err != nil {
		return l.answerAway(ctx, known, err, mayWait)
	}
	done, err := l.submissions.within(&submission{Submission: &intake.Submission{Account: account, Key: r.Key}})
	if err != nil {
		return reply, err
	}
	defer done()
	if r.Site == messages.AnySite {
		home, err := l.choose(ctx, d)
		if err != nil {
			return reply, err
		}
		if home {
			return l.stay(ctx, d, r)
		}
	}
	if err := l.sendable(ctx, d); err != nil {
		return reply, err
	}
	if r.DryRun {
		return l.rehearse(ctx, d)
	}
	l.travel.blame(d.Peer, nil) // what is known of it may be old
	result, err := l.propose(ctx, &book.Command{Depart: d})
	if err != nil {
		return reply, err
	}
	l.metrics.departures.Inc()
	passage := result.(book.Passage)
	return l.answerAway(ctx, &passage, nil, mayWait)
}

// stay takes a job of which the choice was that it runs here.
func (l *leader) stay(ctx context.Context, d *book.Depart, r *messages.SubmitRequest) (reply messages.SubmitReply, err error) {
	here := *r
	here.Spec.Contract = d.Spec.Contract
	prepared, err := l.submissions.rules.Prepare(d.Account, &here)
	if err != nil {
		return reply, err
	}
	prepared.Digest = d.Digest
	s := &submission{Submission: prepared, counted: true}
	reply, err = l.submissions.enter(ctx, s, r.DryRun)
	reply.Chosen = d.Chosen
	return reply, err
}

// departure makes the command of a submission, without the site where that is
// to be chosen.
func departure(account messages.Name, r *messages.SubmitRequest) (*book.Depart, error) {
	digest, err := intake.DigestOf(r)
	if err != nil {
		return nil, err
	}
	spec := r.Spec
	d := &book.Depart{Account: account, Key: r.Key, Digest: digest, Payer: cmp.Or(spec.Project, account), Spec: &spec}
	if r.Site != messages.AnySite {
		d.Peer = r.Site
	}
	spec.Project = ""
	return d, roaming.Portable(d.Spec)
}

// departed answers a submission that was committed before, here or to another site.
func (l *leader) departed(d *book.Depart) (known *book.Passage, err error) {
	l.replica.read(func(b *book.Book) {
		r, j := b.RoamByKey(d.Account, d.Key), b.ByKey(d.Account, d.Key)
		switch {
		case r != nil && slices.Equal(r.Digest, d.Digest):
			p := r.Passage()
			known = &p
		case j != nil && slices.Equal(j.Digest, d.Digest):
			p := j.Receipt()
			known = &book.Passage{Job: p.Job, Payer: p.Payer, Held: p.Held, Tasks: p.Tasks}
		case r != nil || j != nil:
			err = messages.Errorf(messages.Conflict, "key %q was used for another job; choose a new key for a new job", d.Key)
		}
	})
	return known, err
}

// sendable checks what would be refused later.
func (l *leader) sendable(ctx context.Context, d *book.Depart) error {
	if id := d.Spec.Contract; id != "" {
		site, own, foreign := strings.Cut(id, "/")
		if foreign && site != d.Peer {
			return messages.Errorf(messages.Invalid, "contract: %s is of site %s, and the job is for %s; submit it there", id, site, d.Peer)
		}
		if foreign {
			d.Spec.Contract = own
		}
	}
	if err := l.checkPeer(ctx, d.Peer); err != nil {
		return err
	}
	return l.submissions.affordable(ctx, &submission{Submission: &intake.Submission{Account: d.Account, Payer: d.Payer, Spec: d.Spec}})
}

// rehearse answers a dry run: the other site is asked for a quote, which it
// refuses where it would refuse the job.
func (l *leader) rehearse(ctx context.Context, d *book.Depart) (reply messages.SubmitReply, err error) {
	quoted := *d.Spec
	quoted.Contract = ""
	offers, err := peerAsk[messages.PeerQuoteReply](ctx, l, d.Peer, messages.VerbPeerQuote, messages.PeerQuoteRequest{Account: d.Account, Spec: quoted}, lookWithin)
	if err != nil {
		return reply, err
	}
	reply = messages.SubmitReply{Payer: d.Payer, Held: d.Spec.Budget, Tasks: d.Spec.TaskCount(), Site: d.Peer, Chosen: d.Chosen}
	if len(offers.Offers) > 0 {
		reply.Market = offers.Offers[0].Market
	}
	return reply, nil
}

// answerAway answers a job that was committed, at once, or if it may wait as soon
// as it is known what the other site says, or that it is silent.
func (l *leader) answerAway(ctx context.Context, p *book.Passage, err error, mayWait bool) (reply messages.SubmitReply, _ error) {
	if err != nil {
		return reply, err
	}
	reply = messages.SubmitReply{Job: p.Job, Payer: p.Payer, Held: p.Held, Tasks: p.Tasks, Site: p.Peer, Chosen: p.Chosen}
	if p.Peer == "" { // it is a job of this site
		return reply, nil
	}
	r := l.underway(ctx, p.Job, mayWait)
	reply.Market = r.Summary().Market
	if r.Refused != nil {
		return reply, messages.Errorf(r.Refused.Kind, "site %s does not run job %d: %s", r.Peer, r.ID, r.Refused.Message)
	}
	return reply, nil
}

// underway waits until a job has reached the other site, or will not, or the
// site does not answer.
func (l *leader) underway(ctx context.Context, id messages.JobID, mayWait bool) (r book.Roam) {
	ctx, cancel := context.WithTimeout(ctx, departWithin)
	defer cancel()
	for {
		news := l.travel.news()
		var ok bool
		if r, ok = l.roam(id); !ok {
			return book.Roam{Spec: &messages.JobSpec{}}
		}
		if !mayWait || r.Phase >= book.There || l.travel.trouble(r.Peer) != "" {
			return r
		}
		select {
		case <-ctx.Done():
			return r
		case <-l.over:
			return r
		case <-news:
		}
	}
}
