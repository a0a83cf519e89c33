package trial

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/candor-grid/candor/cmd/lab/internal/netlab"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/bus"
	"github.com/candor-grid/candor/messages/clearing"
	"github.com/candor-grid/candor/messages/job"
)

// firstBidder is the number of the liar's first job in the batch queue.
const firstBidder = 500_000

// queues submits visiting jobs to a batch queue. The declared costs of waiting are far above the amounts that the jobs
// may be charged. Each job is cancelled ten times, and submitted again with other content, which must be refused. Each
// job must owe at most its authorisation, and only once. Nobody may be paid for it. A job of an honest user in the
// queue must cost at most its budget.
func (l *liar) queues(ctx context.Context) error {
	bid := func(value, delay messages.Credits, command ...string) *job.JobSpec {
		return &job.JobSpec{Name: "bid", Market: netlab.QueueMarket, Value: value, Delay: delay, Length: messages.Duration(5 * time.Second),
			Stages: []job.Stage{{Name: "main", Attempts: 3, Class: netlab.QueueMarket, Command: command}}}
	}
	const authorised = messages.Credit / 4
	if err := l.visitWith(ctx, firstBidder, authorised, bid(2*authorised, 0, "true")); messages.KindOf(err) != messages.Invalid {
		l.breaks("a visitor bid a value above its budget, and was not refused: %v", err)
	}
	const ghosts = 20
	for n := range ghosts {
		spec := bid(authorised, messages.MaxCredits/2, "true")
		if n == 0 {
			spec = bid(authorised, 0, "sleep", "1") // this job runs, so that the other jobs wait
		}
		if err := l.visitWith(ctx, firstBidder+1+n, authorised, spec); err != nil {
			return err
		}
	}
	client, err := l.victim.Connect(users[2])
	if err != nil {
		return err
	}
	defer client.Close()
	subject := func(verb string) string { return messages.Subject(l.victim.Name, messages.Auctioneer, verb, users[2]) }
	own := bid(messages.Credit, messages.Credit/100, "true")
	own.Budget = messages.Credit
	reply, err := bus.Call[job.SubmitReply](ctx, client, subject(messages.VerbSubmit), job.SubmitRequest{Key: "queued", Spec: *own})
	if err != nil {
		return err
	}
	for n := range ghosts { // ten times, each job is submitted again with another authorisation, and cancelled
		if err := l.visitWith(ctx, firstBidder+1+n, authorised, bid(authorised, 0, "true")); messages.KindOf(err) != messages.Conflict {
			l.breaks("another job with a number that was used before was not refused: %v", err)
		}
		for range 10 {
			_, _ = bus.Call[job.CancelReply](ctx, l.Bus, l.Subject(messages.Auctioneer, clearing.VerbPeerCancel), job.JobRequest{Job: messages.JobID(1_000_000 + firstBidder + 1 + n)})
		}
	}
	return within(ctx, patience, func(ctx context.Context) error {
		j, err := bus.Call[job.JobDetail](ctx, client, subject(messages.VerbJob), job.JobRequest{Job: reply.Job})
		if err != nil || !j.State.Final() {
			return fmt.Errorf("job %d in the queue of the liar's visitors: %v, %w", reply.Job, j.State, err)
		}
		if j.Charged > own.Budget {
			l.breaks("a job in the queue of the liar's visitors costs %v, but its budget is %v", j.Charged, own.Budget)
		}
		jobs, err := ask[job.JobsReply](ctx, l.victim, messages.Auctioneer, messages.VerbJobs, job.JobsRequest{All: true, Limit: 1000})
		if err != nil {
			return err
		}
		taken := 0
		for _, v := range jobs.Jobs {
			if v.Visit == nil || v.Visit.Job <= 1_000_000+firstBidder || v.Visit.Job > 1_000_000+firstBidder+ghosts {
				continue
			}
			if taken++; v.State == job.Settling || !v.State.Final() {
				return fmt.Errorf("visiting job %v is %v", v.Visit, v.State)
			}
			if v.Charged < 0 || v.Charged > authorised {
				l.breaks("visiting job %v of the queue is charged %v, but only %v is authorised", v.Visit, v.Charged, authorised)
			}
		}
		if taken != ghosts {
			l.breaks("the queue has only %d of the %d visiting jobs", taken, ghosts)
		}
		return nil
	})
}

// floodsQuotes sends the victim site 200 requests for offers at the same time, again and again. The victim's own users
// must get their answers almost as fast as before.
func (l *liar) floodsQuotes(ctx context.Context) error {
	const atOnce, samples, apart = 200, 60, 50 * time.Millisecond
	client, err := l.victim.Connect(users[2])
	if err != nil {
		return err
	}
	defer client.Close()
	submits := func(key string) (took []time.Duration, err error) {
		for n := range samples {
			r := quick(n)
			r.Key = fmt.Sprintf("%s/%d", key, n)
			began := time.Now()
			if _, err := bus.Call[job.SubmitReply](ctx, client, messages.Subject(l.victim.Name, messages.Auctioneer, messages.VerbSubmit, users[2]), r); err != nil {
				return nil, err
			}
			took = append(took, time.Since(began))
			if err := wait(ctx, apart); err != nil {
				return nil, err
			}
		}
		slices.Sort(took)
		return took, nil
	}
	before, err := submits("before quotes")
	if err != nil {
		return err
	}
	flood, stop := context.WithCancel(ctx)
	defer stop()
	var asked, answered atomic.Int64
	var all sync.WaitGroup
	for n := range atOnce {
		all.Go(func() {
			for flood.Err() == nil {
				once, cancel := context.WithTimeout(flood, answerWithin)
				spec := quick(n).Spec
				asked.Add(1)
				if _, err := bus.Call[clearing.PeerQuoteReply](once, l.Bus, l.Subject(messages.Auctioneer, clearing.VerbPeerQuote),
					clearing.PeerQuoteRequest{Account: fmt.Sprintf("v%d", n), Spec: spec}); err == nil {
					answered.Add(1)
				}
				cancel()
			}
		})
	}
	during, err := submits("beside quotes")
	stop()
	all.Wait()
	if err != nil {
		return err
	}
	l.count("quotes of the liar", int(asked.Load()))
	l.count("of these answered", int(answered.Load()))
	l.times("answer to a submission before these", before)
	l.times("answer to a submission beside these", during)
	if b, d := before[samples/2], during[samples/2]; d > 4*b && d > 200*time.Millisecond {
		l.breaks("submissions are answered in %v during the quotes of %s, but were answered in %v before", d, l.Name, b)
	}
	return nil
}
