package auctioneer

import (
	"context"
	"slices"
	"time"

	"go.uber.org/zap"

	"github.com/candor-grid/candor/auctioneer/book"
	"github.com/candor-grid/candor/messages"
)

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

// endUnheard ends jobs at other sites that will not speak of them any more.
func (l *leader) endUnheard(ctx context.Context, now messages.Time) {
	var steps []book.Step
	l.replica.read(func(b *book.Book) { steps = b.Unheard(now) })
	if len(steps) == 0 {
		return
	}
	if _, err := l.propose(ctx, &book.Command{Travel: &book.Travel{Steps: steps}}); err != nil {
		l.Log.Warn("jobs at sites that are gone not ended", zap.Int("jobs", len(steps)), zap.Error(err))
	}
}

// watchVisits ends jobs of other sites whose authorisations are about to end, and of
// this one at others whose have ended.
func (l *leader) watchVisits(ctx context.Context) {
	for sleep(ctx, time.Second) {
		now := l.Clock()
		l.endUnheard(ctx, now)
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
