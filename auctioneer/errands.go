package auctioneer

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/candor-grid/candor/auctioneer/book"
	"github.com/candor-grid/candor/auctioneer/federation"
	"github.com/candor-grid/candor/messages"
)

// changesTogether is how long changes of visiting jobs are gathered for one answer.
const changesTogether = 25 * time.Millisecond

// crossing is the shell around what package federation knows of jobs between sites: it
// asks what is to be asked, and commits what became known. It lasts for a term.
type crossing struct {
	site  *Auctioneer // whose log commands go into
	peers *peers
	over  <-chan struct{} // closed with the term: nobody is to wait longer
	began time.Time       // the zero of the errands' clock

	mu      sync.Mutex // guards what follows; taken after the replica's lock
	errands *federation.Errands
	visits  *federation.Visits
	news    chan struct{} // closed and replaced when something changed
}

func newCrossing(a *Auctioneer, over <-chan struct{}) *crossing {
	return &crossing{site: a, peers: newPeers(a), over: over, began: time.Now(), news: make(chan struct{}),
		errands: federation.NewErrands(a.RoamFor, rand.New(rand.NewPCG(rand.Uint64(), rand.Uint64()))), visits: federation.NewVisits(rand.Uint64() >> 1)}
}

func (c *crossing) now() messages.Duration { return messages.Duration(time.Since(c.began)) }

// changed takes jobs of the book that changed. The caller holds the replica's lock.
func (c *crossing) changed(b *book.Book, ids map[messages.JobID]bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	remote, visiting := c.errands.Changed(b, ids), c.visits.Changed(b, ids)
	if remote || visiting {
		c.tell()
	}
}

// tell wakes whoever waits for a change. The caller holds c.mu.
func (c *crossing) tell() {
	close(c.news)
	c.news = make(chan struct{})
}

// change is closed when something changes after the call.
func (c *crossing) change() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.news
}

// trouble is why a peer did not answer, "" if it did.
func (c *crossing) trouble(peer messages.Name) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.errands.Trouble(peer)
}

// run runs the errands until the term ends, and ends jobs whose authorisations do.
func (c *crossing) run(ctx context.Context) {
	var running sync.WaitGroup
	defer running.Wait()
	running.Go(func() { c.watch(ctx) })
	for ctx.Err() == nil {
		news := c.change()
		due, next := c.due()
		for i := range due {
			running.Go(func() { c.carryOut(ctx, &due[i]) })
		}
		timer := time.NewTimer(next)
		select {
		case <-ctx.Done():
		case <-news:
		case <-timer.C:
		}
		timer.Stop()
	}
}

// due returns what is to be asked now, and how long the next look can wait if nothing
// changes.
func (c *crossing) due() (out []federation.Request, next time.Duration) {
	c.site.replica.read(func(b *book.Book) {
		c.mu.Lock()
		defer c.mu.Unlock()
		now := c.now()
		out, next = c.errands.Due(now, b), time.Hour
		if at, known := c.errands.Wake(); known {
			next = max(0, (at - now).Std())
		}
	})
	return out, next
}

// carryOut asks one thing, and commits the answer.
func (c *crossing) carryOut(ctx context.Context, q *federation.Request) {
	within, cancel := context.WithTimeout(ctx, q.Within.Std())
	defer cancel()
	ask := c.peers.askBank
	if q.Peer != "" {
		ask = func(ctx context.Context, verb string, request, reply any) error {
			return c.peers.ask(ctx, q.Peer, verb, request, reply)
		}
	}
	err := ask(within, q.Verb, q.Body, q.Reply)
	if err != nil {
		c.site.Log.Debug("a remote job's request failed", zap.String("peer", q.Peer), zap.String("verb", q.Verb), zap.Error(err))
	}
	var command *book.Command
	c.with(func(b *book.Book) { command = c.errands.Answered(c.now(), b, q.ID, q.Reply, err) })
	if command != nil {
		_, err = c.site.propose(ctx, command)
		c.with(func(b *book.Book) { c.errands.Committed(c.now(), b, q.ID, err) })
	}
	if q.Job != 0 {
		outcome := "answered"
		if command == nil || err != nil {
			outcome = "again"
		}
		c.site.metrics.errands.WithLabelValues(outcome).Inc()
	}
}

// with changes the errands by the book.
func (c *crossing) with(f func(*book.Book)) {
	c.site.replica.read(func(b *book.Book) {
		c.mu.Lock()
		defer c.mu.Unlock()
		f(b)
		c.tell()
	})
}

// watch ends, once a second, visiting jobs whose authorisations are about to end, and
// remote jobs whose authorisations have ended.
func (c *crossing) watch(ctx context.Context) {
	for sleep(ctx, time.Second) {
		var commands []*book.Command
		c.site.replica.read(func(b *book.Book) {
			c.mu.Lock()
			defer c.mu.Unlock()
			now := c.site.Clock()
			commands = c.visits.Ending(now, b)
			if unheard := federation.Unheard(now, b); unheard != nil {
				commands = append(commands, unheard)
			}
		})
		for _, command := range commands {
			if _, err := c.site.propose(ctx, command); err != nil {
				c.site.Log.Warn("jobs between sites not ended", zap.Error(err))
			}
		}
	}
}

// remote copies a remote job out of the book.
func (c *crossing) remote(id messages.JobID) (r book.Roam, ok bool) {
	c.site.replica.read(func(b *book.Book) {
		if found := b.Roam(id); found != nil {
			r, ok = *found, true
		}
	})
	return r, ok
}

// until waits, at most for a time, until enough is known of a remote job, or its peer
// does not answer. It returns the job as it is then; false: it is forgotten.
func (c *crossing) until(ctx context.Context, id messages.JobID, within time.Duration, enough func(*book.Roam) bool) (r book.Roam, ok bool) {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	for {
		news := c.change()
		if r, ok = c.remote(id); !ok || enough(&r) || c.trouble(r.Peer) != "" {
			return r, ok
		}
		select {
		case <-ctx.Done():
			return r, true
		case <-c.over:
			return r, true
		case <-news:
		}
	}
}

// forgive forgets that a peer did not answer: that may be long ago.
func (c *crossing) forgive(peer messages.Name) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.errands.Forgive(peer)
}

// accept has this site's bank take the authorisation of a visiting job.
func (c *crossing) accept(ctx context.Context, a *federation.Arrival) error {
	err := c.peers.askBank(ctx, messages.VerbAccept, a.Accept(), &messages.ClearingReply{})
	a.Accepted(err)
	return err
}

// begin begins to take a visiting job, which no other request takes until the end.
func (c *crossing) begin(visit messages.Visit) (end func(), err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.locked(func() { c.visits.Taken(visit) }), c.visits.Take(visit)
}

// poll counts a request of a peer that waits for a change, until its end.
func (c *crossing) poll(home messages.Name) (end func(), err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.locked(func() { c.visits.Polled(home) }), c.visits.Poll(home)
}

func (c *crossing) locked(f func()) func() {
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		f()
	}
}

// await waits until a visiting job of a peer has changed after the peer's cursor.
func (c *crossing) await(ctx context.Context, home messages.Name, r messages.PeerJobsRequest) ([]messages.JobID, messages.PeerJobsReply) {
	ctx, cancel := context.WithTimeout(ctx, r.Wait.Std())
	defer cancel()
	for {
		c.mu.Lock()
		ids, reply, ready := c.visits.Since(home, r)
		news := c.news
		c.mu.Unlock()
		if ready {
			return ids, reply
		}
		select {
		case <-ctx.Done():
			return nil, reply
		case <-c.over:
			return nil, reply
		case <-news:
			sleep(ctx, changesTogether)
		}
	}
}
