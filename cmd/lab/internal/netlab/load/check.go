package load

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/bus"
	"github.com/candor-grid/candor/messages/job"
)

// askAtOnce is the largest number of requests that a check sends at the same time.
const askAtOnce = 16

// Losses has the submissions that a site acknowledged, but then lost or knows with another job number.
type Losses struct {
	Asked int
	Lost  []string // one sentence for each loss
}

// Repeat sends every acknowledged submission again with its key, over new connections. Each answer must have the
// acknowledged job number.
func (l *Load) Repeat(ctx context.Context, acks []Ack) (Losses, error) {
	losses := Losses{Asked: len(acks)}
	buses := map[messages.Name]bus.Bus{}
	for _, user := range l.config.Users {
		b, err := l.config.Connect(user)
		if err != nil {
			return losses, err
		}
		defer b.Close()
		buses[user] = b
	}
	var mu sync.Mutex
	err := eachOf(acks, func(a *Ack) error {
		reply, err := Submit(ctx, buses[a.User], l.config.Site, a.User, l.request(a.User, a.N))
		if err == nil && reply.Job == a.Job {
			return nil
		}
		if messages.KindOf(err).Retriable() {
			return err // the error is not an answer of the site
		}
		mu.Lock()
		defer mu.Unlock()
		losses.Lost = append(losses.Lost, fmt.Sprintf("submission %s was acknowledged as job %d and is now job %d, %v", a.Key, a.Job, reply.Job, err))
		return nil
	})
	return losses, err
}

// eachOf calls `do` for each acknowledgement, several at the same time.
func eachOf(acks []Ack, do func(*Ack) error) error {
	failed := make([]error, len(acks))
	turns := make(chan struct{}, askAtOnce)
	var all sync.WaitGroup
	for i := range acks {
		turns <- struct{}{}
		all.Go(func() {
			failed[i] = do(&acks[i])
			<-turns
		})
	}
	all.Wait()
	return errors.Join(failed...)
}

// Jobs lists all jobs of a site, page by page.
func Jobs(ctx context.Context, operator bus.Bus, site, name messages.Name) (map[messages.JobID]job.JobSummary, error) {
	all := map[messages.JobID]job.JobSummary{}
	r := job.JobsRequest{All: true, Limit: 1000}
	for {
		reply, err := bus.Call[job.JobsReply](ctx, operator, messages.Subject(site, messages.Auctioneer, messages.VerbJobs, name), r)
		if err != nil {
			return nil, err
		}
		for _, j := range reply.Jobs {
			all[j.Job] = j
		}
		if !reply.More || len(reply.Jobs) == 0 {
			return all, nil
		}
		r.Before = reply.Jobs[len(reply.Jobs)-1].Job
	}
}
