package auctioneer

import (
	"context"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/candor-grid/candor/auctioneer/book"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/bus"
)

// Bounds on what other sites can make this one wait for.
const (
	peerWithin    = 5 * time.Second          // an errand's answer
	lookWithin    = 2 * time.Second          // an answer that a user waits for
	maxLooks      = 64                       // users who wait for another site at once
	maxComing     = 32                       // jobs of one site that are being taken
	maxPolls      = 4                        // requests of one site that wait for news
	peersKnown    = 5 * time.Second          // how old the list of peers may be
	peersAtLeast  = 100 * time.Millisecond   // and where a site is not among them
	newsWithin    = messages.MaxPeerWait / 4 // that is asked to be waited for
	newsCoalesced = 25 * time.Millisecond    // news that come together go together
	newsAtOnce    = 256                      // jobs in one answer
)

// bankErrands is the destination of errands to this site's own bank.
const bankErrands messages.Name = ""

// travel is what a leader knows, besides the book, of jobs that cross between
// sites: indices of the book, and who did not answer.
type travel struct {
	over   <-chan struct{} // closed with the term: nobody is to wait longer
	epoch  uint64          // of the cursors that are given out in it
	places chan struct{}

	mu       sync.Mutex
	changed  chan struct{} // closed and replaced when there is news
	errands  map[messages.Name]map[messages.JobID]bool
	going    map[messages.JobID]messages.Name // whose errand a job of errands is
	there    map[messages.Name]map[messages.JobID]bool
	seq      uint64
	visits   map[messages.Name]map[messages.JobID]uint64 // by home: when a job changed last
	homes    map[messages.JobID]messages.Name
	coming   map[messages.Name]map[messages.JobID]bool // jobs of other sites that are being taken
	polls    map[messages.Name]int
	troubles map[messages.Name]string
	peers    []messages.Name
	asked    time.Time // for peers
}

func newTravel(over <-chan struct{}) *travel {
	return &travel{
		over: over, epoch: rand.Uint64() >> 1, places: make(chan struct{}, maxLooks), changed: make(chan struct{}),
		errands: map[messages.Name]map[messages.JobID]bool{}, going: map[messages.JobID]messages.Name{},
		there:  map[messages.Name]map[messages.JobID]bool{},
		visits: map[messages.Name]map[messages.JobID]uint64{}, homes: map[messages.JobID]messages.Name{},
		coming: map[messages.Name]map[messages.JobID]bool{},
		polls:  map[messages.Name]int{}, troubles: map[messages.Name]string{},
	}
}

// takes lets one request at a time take a job of another site: what one gives
// back, another may just have had accepted. No site has all the places of those
// that are taken at once.
func (t *travel) takes(v messages.Visit) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.coming[v.Home] == nil {
		t.coming[v.Home] = map[messages.JobID]bool{}
	}
	if t.coming[v.Home][v.Job] || len(t.coming[v.Home]) >= maxComing {
		return false
	}
	t.coming[v.Home][v.Job] = true
	return true
}

func (t *travel) took(v messages.Visit) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if delete(t.coming[v.Home], v.Job); len(t.coming[v.Home]) == 0 {
		delete(t.coming, v.Home)
	}
}

// note brings the indices up to date for jobs that were touched. The caller
// holds the replica's lock.
func (t *travel) note(b *book.Book, touched map[messages.JobID]bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	news := false
	for id := range touched {
		if r := b.Roam(id); r != nil {
			t.noteRoam(r)
			news = true
			continue
		}
		j := b.Job(id)
		if j == nil {
			t.forget(id)
			continue
		}
		if v := j.Visit; v != nil {
			t.seq++
			put(t.visits, v.Home, id, t.seq)
			t.homes[id] = v.Home
			news = true
		}
	}
	if news {
		t.tell()
	}
}

func put[V any](m map[messages.Name]map[messages.JobID]V, name messages.Name, id messages.JobID, v V) {
	if m[name] == nil {
		m[name] = map[messages.JobID]V{}
	}
	m[name][id] = v
}

func (t *travel) noteRoam(r *book.Roam) {
	if to, was := t.going[r.ID]; was {
		delete(t.errands[to], r.ID)
		delete(t.going, r.ID)
	}
	if to, is := errand(r); is {
		put(t.errands, to, r.ID, true)
		t.going[r.ID] = to
	}
	if r.Phase == book.There {
		put(t.there, r.Peer, r.ID, true)
	} else {
		delete(t.there[r.Peer], r.ID)
	}
}

// errand says whom something is to be asked about a job.
func errand(r *book.Roam) (to messages.Name, is bool) {
	switch r.Phase {
	case book.Authorising, book.Releasing:
		return bankErrands, true
	case book.Sending:
		return r.Peer, true
	case book.There:
		return r.Peer, r.Cancelled && !r.Told
	}
	return "", false
}

func (t *travel) forget(id messages.JobID) {
	if home, known := t.homes[id]; known {
		delete(t.visits[home], id)
		delete(t.homes, id)
	}
}

// news is closed when something changes after the call.
func (t *travel) news() <-chan struct{} {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.changed
}

// todo returns up to n jobs with an errand to a destination.
func (t *travel) todo(to messages.Name, n int) []messages.JobID {
	t.mu.Lock()
	defer t.mu.Unlock()
	var ids []messages.JobID
	for id := range t.errands[to] {
		if len(ids) == n {
			break
		}
		ids = append(ids, id)
	}
	return ids
}

// destinations are all peers that there ever was an errand to.
func (t *travel) destinations() []messages.Name {
	t.mu.Lock()
	defer t.mu.Unlock()
	all := maps.Clone(t.there)
	for to := range t.errands {
		all[to] = nil
	}
	delete(all, bankErrands)
	return slices.Sorted(maps.Keys(all))
}

// at lists the jobs that are at a peer.
func (t *travel) at(peer messages.Name) []messages.JobID {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Sorted(maps.Keys(t.there[peer]))
}

// any says whether a job is at a peer.
func (t *travel) any(peer messages.Name) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.there[peer]) > 0
}

// blame notes why a peer did not answer; nil: it did.
func (t *travel) blame(peer messages.Name, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	was := t.troubles[peer]
	delete(t.troubles, peer)
	if err != nil {
		t.troubles[peer] = messages.AsError("", err).Message
	}
	if (was == "") != (err == nil) {
		t.tell()
	}
}

// tell wakes whoever waits for news. The caller holds t.mu.
func (t *travel) tell() {
	close(t.changed)
	t.changed = make(chan struct{})
}

func (t *travel) trouble(peer messages.Name) string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.troubles[peer]
}

// enter takes a place of those who may wait for other sites, if there is one:
// such waits are not to keep the site's own users from being served.
func (t *travel) enter() (leave func(), ok bool) {
	select {
	case t.places <- struct{}{}:
		return func() { <-t.places }, true
	default:
		return func() {}, false
	}
}

// bankAsk asks the site's own bank as the auctioneer, until ctx ends.
func bankAsk[Reply any](ctx context.Context, l *leader, verb string, request any) (Reply, error) {
	return bus.Call[Reply](ctx, l.Bus, messages.Subject(l.Site, messages.Bank, verb, messages.ServiceIdentity(messages.Auctioneer)), request)
}

// peerAsk asks the auctioneer of another site, in the name of this one, once: who
// asks says whether to ask again.
func peerAsk[Reply any](ctx context.Context, l *leader, peer messages.Name, verb string, request any, within time.Duration) (reply Reply, err error) {
	payload, err := messages.Marshal(request, messages.Msgpack)
	if err != nil {
		return reply, err
	}
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	data, err := l.Bus.Request(ctx, messages.Subject(peer, messages.Auctioneer, verb, messages.ServiceIdentity(l.Site)), payload)
	if err != nil {
		return reply, err
	}
	return reply, messages.Unmarshal(data, messages.Detect(data, ""), &reply)
}

// knownPeers lists the sites that the bank settles with. They are asked for again
// where what is known is older than a time.
func (l *leader) knownPeers(ctx context.Context, age time.Duration) ([]messages.Name, error) {
	t := l.travel
	t.mu.Lock()
	known, fresh := t.peers, !t.asked.IsZero() && time.Since(t.asked) < age
	t.mu.Unlock()
	if fresh {
		return known, nil
	}
	ctx, cancel := context.WithTimeout(ctx, lookWithin)
	defer cancel()
	reply, err := bankAsk[messages.PeersReply](ctx, l, messages.VerbPeers, messages.Empty{})
	if err != nil {
		return nil, err
	}
	peers := make([]messages.Name, len(reply.Peers))
	for i := range reply.Peers {
		peers[i] = reply.Peers[i].Peer
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.peers, t.asked = peers, time.Now()
	return peers, nil
}

// checkPeer refuses a site that is none of the peers.
func (l *leader) checkPeer(ctx context.Context, site messages.Name) error {
	peers, err := l.knownPeers(ctx, peersKnown)
	if err == nil && !slices.Contains(peers, site) { // it may be a new one
		peers, err = l.knownPeers(ctx, peersAtLeast)
	}
	if err != nil {
		return err
	}
	if !slices.Contains(peers, site) {
		return messages.Errorf(messages.NotFound, "site: %q is no peer of %s, which has %v; `candor peer list` shows them", site, l.Site, peers)
	}
	return nil
}
