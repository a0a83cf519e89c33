package auctioneer

import (
	"context"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/candor-grid/candor/auctioneer/book"
	"github.com/candor-grid/candor/auctioneer/desk"
	"github.com/candor-grid/candor/auctioneer/federation"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/clearing"
	"github.com/candor-grid/candor/messages/job"
)

// changesTogether is how long changes of visiting jobs are collected for one answer.
const changesTogether = 25 * time.Millisecond

// federated is the leader's part for jobs between sites. It has the requests that wait for news of these jobs. Each
// term has a new one.
type federated struct {
	site  *site // the site, whose book has the jobs
	peers *peers
	over  <-chan struct{} // closed at the end of the term, so that all waits end

	mu       sync.Mutex // guards the fields below; lock it after the replica's lock
	visits   *federation.Visits
	troubles map[messages.Name]string // by peer: why the peer did not answer
	news     chan struct{}            // closed and replaced when something changed
}

func newFederated(a *site, over <-chan struct{}) *federated {
	return &federated{site: a, peers: &peers{site: a.Site, bus: a.Bus}, over: over, news: make(chan struct{}),
		visits: federation.NewVisits(rand.Uint64() >> 1), troubles: map[messages.Name]string{}}
}

// changed is called after jobs have changed. If one of these jobs is a visiting or a remote job, it wakes the requests
// that wait for a change. The caller holds the replica's lock.
func (c *federated) changed(b *book.Book, ids []messages.JobID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	news := c.visits.Changed(b, ids)
	if news || slices.ContainsFunc(ids, func(id messages.JobID) bool { return b.Remote(id) != nil }) {
		c.tell()
	}
}

// tell wakes all requests that wait for a change. The caller holds c.mu.
func (c *federated) tell() {
	close(c.news)
	c.news = make(chan struct{})
}

// change returns a channel that is closed at the next change in the data about jobs of other sites.
func (c *federated) change() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.news
}

func (c *federated) ran(e *desk.Ran) {
	if e.Job != 0 {
		outcome := "again"
		if e.Done {
			outcome = "answered"
		}
		c.site.metrics.errands.WithLabelValues(outcome).Inc()
	}
	if e.Err != nil {
		c.site.Log.Debug("a remote job waits", zap.Stringer("job", e.Job), zap.String("peer", e.Peer), zap.Error(e.Err))
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.troubles[e.Peer] != e.Trouble {
		c.troubles[e.Peer] = e.Trouble
		c.tell()
	}
}

// trouble returns why a peer did not answer its last request, or "".
func (c *federated) trouble(peer messages.Name) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.troubles[peer]
}

func (c *federated) remote(id messages.JobID) (r book.RemoteJob, ok bool) {
	c.site.replica.read(func(b *book.Book) {
		if found := b.Remote(id); found != nil {
			r, ok = *found, true
		}
	})
	return r, ok
}

// The method `until` waits for a remote job, and then returns it. The wait ends when `enough` returns true for the job,
// when the peer does not answer, or after the time `within`. The result `ok` is false if the book has forgotten the
// job.
func (c *federated) until(ctx context.Context, id messages.JobID, within time.Duration, enough func(*book.RemoteJob) bool) (r book.RemoteJob, ok bool) {
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

// If a peer does not answer a request, the auctioneer notes this. forgive removes the note. It is called when a job for
// this peer is entered, because the note may be old.
func (c *federated) forgive(peer messages.Name) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.troubles, peer)
}

// accept asks this site's bank to accept the authorisation of a visiting job.
func (c *federated) accept(ctx context.Context, a *federation.Arrival) error {
	_, err := askActor[clearing.ClearingReply](ctx, c.peers, messages.Bank, clearing.VerbAccept, a.Accept())
	a.Accepted(err)
	return err
}

// begin reserves a visiting job for one request. No other request can enter it into the book until the caller calls
// end.
func (c *federated) begin(visit job.Visit) (end func(), err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.locked(func() { c.visits.End(visit) }), c.visits.Begin(visit)
}

// entering returns an error while the site is still deciding whether to take a visiting job. A request about the job
// then asks again later. Without the error, the request would be told that the job does not exist.
func (c *federated) entering(visit job.Visit) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.visits.Entering(visit) {
		return messages.Errorf(messages.Unavailable, "job %v: is being accepted; ask again", visit)
	}
	return nil
}

// poll counts a request of a peer that waits for a change. The caller calls end when the request has been answered.
func (c *federated) poll(home messages.Name) (end func(), err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.locked(func() { c.visits.Polled(home) }), c.visits.Poll(home)
}

func (c *federated) locked(f func()) func() {
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		f()
	}
}

// await waits until a visiting job of the peer has changed since the position (cursor) that the peer's request names.
func (c *federated) await(ctx context.Context, home messages.Name, r clearing.PeerJobsRequest) ([]messages.JobID, clearing.PeerJobsReply) {
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
