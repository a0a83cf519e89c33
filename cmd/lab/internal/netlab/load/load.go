package load

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/bus"
	"github.com/candor-grid/candor/messages/job"
)

// Config says who submits which jobs, and how often.
type Config struct {
	Site  messages.Name
	Users []messages.Name // each user is one client
	// Connect connects a user; the load closes the connection.
	Connect func(user messages.Name) (bus.Bus, error)
	// Job returns a client's n-th submission, counted from 0. The load sets its key.
	Job func(n int) job.SubmitRequest
	// Every is the time between two submissions of the same client. In this time, all other clients submit once too,
	// one after another.
	Every time.Duration
	// Jobs is the number of jobs of each client. 0 means that clients submit until the load is stopped.
	Jobs int
	// Patience is a maximum time. A client repeats a request for at most this time, and waits for its unanswered
	// requests for at most this time.
	Patience time.Duration
	// Prefix begins the keys of submissions. Loads of the same site need different prefixes.
	Prefix string
}

// outstanding is how many unanswered requests a client may have at the same time.
const outstanding = 256

// Ack is an acknowledged submission.
type Ack struct {
	User  messages.Name
	Key   string
	N     int // number of the submission, counted for each client
	Job   messages.JobID
	Site  messages.Name // the site that it was submitted for; "" means the one that was asked
	Sent  time.Time
	Acked time.Time
}

// Waited returns how long the user waited for the answer.
func (a *Ack) Waited() time.Duration { return a.Acked.Sub(a.Sent) }

// Load is a group of clients that submit.
type Load struct {
	config  Config
	stop    chan struct{}
	clients sync.WaitGroup
	buses   []bus.Bus

	mu     sync.Mutex
	more   chan struct{} // closed and replaced after each answer to a client
	acks   []Ack
	failed []error
	sent   int
	open   map[string]time.Time // open requests: their keys, and when they were sent
}

// Start connects the clients and starts them.
func Start(ctx context.Context, c Config) (*Load, error) {
	l := &Load{config: c, stop: make(chan struct{}), more: make(chan struct{}), open: map[string]time.Time{}}
	for _, user := range c.Users {
		b, err := c.Connect(user)
		if err != nil {
			l.close()
			return nil, err
		}
		l.buses = append(l.buses, b)
	}
	for i, user := range c.Users {
		turn := c.Every * time.Duration(i) / time.Duration(len(c.Users))
		l.clients.Go(func() { l.run(ctx, user, l.buses[i], turn) })
	}
	return l, nil
}

// run simulates one client, which sends its first request after a delay.
func (l *Load) run(ctx context.Context, user messages.Name, b bus.Bus, after time.Duration) {
	select {
	case <-time.After(after):
	case <-l.stop:
		return
	}
	every := time.NewTicker(l.config.Every)
	defer every.Stop()
	turns := make(chan struct{}, outstanding)
	var requests sync.WaitGroup
	defer requests.Wait()
	for n := 0; l.config.Jobs == 0 || n < l.config.Jobs; n++ {
		select {
		case <-every.C:
		case <-l.stop:
			return
		case <-ctx.Done():
			return
		}
		turns <- struct{}{}
		requests.Go(func() {
			l.submit(ctx, user, b, n)
			<-turns
		})
	}
}

func (l *Load) submit(ctx context.Context, user messages.Name, b bus.Bus, n int) {
	ctx, cancel := context.WithTimeout(ctx, l.config.Patience)
	defer cancel()
	r := l.request(user, n)
	a := Ack{User: user, Key: r.Key, N: n, Site: r.Site, Sent: time.Now()}
	l.mu.Lock()
	l.sent++
	l.open[a.Key] = a.Sent
	l.mu.Unlock()
	reply, err := Submit(ctx, b, l.config.Site, user, r)
	a.Job, a.Acked = reply.Job, time.Now()
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.open, a.Key)
	if err != nil {
		l.failed = append(l.failed, fmt.Errorf("submission %s, after %v: %w", a.Key, a.Waited().Round(time.Millisecond), err))
	} else {
		l.acks = append(l.acks, a)
	}
	close(l.more)
	l.more = make(chan struct{})
}

// Submit repeats a submission until it is answered or ctx ends. A refusal because of a full disk is no answer: there
// may be room later, or another leader.
func Submit(ctx context.Context, b bus.Bus, site, user messages.Name, r job.SubmitRequest) (job.SubmitReply, error) {
	for {
		reply, err := bus.Call[job.SubmitReply](ctx, b, messages.Subject(site, messages.Auctioneer, messages.VerbSubmit, user), r)
		if messages.KindOf(err) != messages.Exhausted {
			return reply, err
		}
		select {
		case <-ctx.Done():
			return reply, err
		case <-time.After(againAfter):
		}
	}
}

// againAfter is how long a client waits after a refusal because of a full disk.
const againAfter = 50 * time.Millisecond

func (l *Load) request(user messages.Name, n int) job.SubmitRequest {
	r := l.config.Job(n)
	r.Key = fmt.Sprintf("%s-%s-%d", l.config.Prefix, user, n)
	return r
}

// AwaitServed waits until each client has sent a request after a given instant, and has got the answer. It returns, for
// each client, the time from this instant to the first such answer.
func (l *Load) AwaitServed(ctx context.Context, after time.Time) (waits []time.Duration, err error) {
	err = l.await(ctx, func() error {
		first := l.firstServed(after)
		if len(first) < len(l.config.Users) {
			return messages.Errorf(messages.Unavailable, "%d of %d clients are served", len(first), len(l.config.Users))
		}
		for _, user := range l.config.Users {
			waits = append(waits, first[user].Sub(after))
		}
		return nil
	})
	return waits, err
}

// AwaitMore waits for n further acknowledgements.
func (l *Load) AwaitMore(ctx context.Context, n int) error {
	l.mu.Lock()
	goal := len(l.acks) + n
	l.mu.Unlock()
	return l.await(ctx, func() error {
		if len(l.acks) < goal {
			return messages.Errorf(messages.Unavailable, "%d of %d submissions are acknowledged", len(l.acks), goal)
		}
		return nil
	})
}

// AwaitAnswered waits until all requests that were sent before a given instant are answered.
func (l *Load) AwaitAnswered(ctx context.Context, before time.Time) error {
	return l.await(ctx, func() error {
		for key, sent := range l.open {
			if sent.Before(before) {
				return messages.Errorf(messages.Unavailable, "submission %s has no answer since %v", key, time.Since(sent).Round(time.Millisecond))
			}
		}
		return nil
	})
}

// await calls the function `missing` after each answer to a client, until the function returns nil. If ctx ends first,
// or the load's patience is over, await returns the function's last error.
func (l *Load) await(ctx context.Context, missing func() error) error {
	ctx, cancel := context.WithTimeout(ctx, l.config.Patience)
	defer cancel()
	for {
		l.mu.Lock()
		err, more := missing(), l.more
		l.mu.Unlock()
		if err == nil {
			return nil
		}
		select {
		case <-more:
		case <-ctx.Done():
			return err
		}
	}
}

// firstServed returns, for each client, the time at which the client got its first answer to a request that was sent
// after the given instant. It is called for each new answer, so it must be fast. It starts at the newest answer, and
// stops at the first answer that came before the instant.
func (l *Load) firstServed(after time.Time) map[messages.Name]time.Time {
	first := map[messages.Name]time.Time{}
	for i := len(l.acks) - 1; i >= 0 && l.acks[i].Acked.After(after); i-- {
		a := &l.acks[i]
		if t, ok := first[a.User]; a.Sent.After(after) && (!ok || a.Acked.Before(t)) {
			first[a.User] = a.Acked
		}
	}
	return first
}

// Result has what the clients of a load sent, and what was acknowledged.
type Result struct {
	Sent   int
	Acks   []Ack
	Failed []error // requests that were given up
}

// Stop ends the load, waits for the remaining answers, and returns the result.
func (l *Load) Stop() Result {
	close(l.stop)
	return l.Wait()
}

// Wait waits until every client has submitted its jobs, and returns the result.
func (l *Load) Wait() Result {
	l.clients.Wait()
	l.close()
	return Result{Sent: l.sent, Acks: l.acks, Failed: l.failed}
}

func (l *Load) close() {
	for _, b := range l.buses {
		_ = b.Close()
	}
}
