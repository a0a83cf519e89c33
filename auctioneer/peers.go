package auctioneer

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/candor-grid/candor/auctioneer/federation"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/bus"
	"github.com/candor-grid/candor/messages/clearing"
	"github.com/candor-grid/candor/messages/job"
	"github.com/candor-grid/candor/messages/spelling"
	"github.com/candor-grid/candor/messages/wire"
)

// These limits are for requests to peers: how long an answer may take, how many users may wait, and how old the list of
// peers may be.
const (
	peerWithin   = 5 * time.Second        // time for an answer for which no user waits
	lookWithin   = 2 * time.Second        // time for an answer for which a user waits
	maxLooks     = 128                    // number of users who wait for peers at the same time
	maxLooksAt   = maxLooks / 8           // maximum for one peer, and for requests to all peers
	peersKnown   = 5 * time.Second        // longest age of the list of peers
	peersAtLeast = 100 * time.Millisecond // longest age of the list of peers if it lacks a site
)

// peers sends requests to the auctioneers of other sites, and knows which sites are peers.
type peers struct {
	site messages.Name
	bus  bus.Bus

	mu    sync.Mutex
	looks map[messages.Name]int                   // by peer: number of users who wait
	all   int                                     // sum of the numbers in looks
	list  []messages.Name                         // the peers that new jobs may be exchanged with
	other map[messages.Name]clearing.PeerStanding // standing of the other peers
	asked time.Time                               // when the list was requested last
}

// enter reserves a place for a user's request that waits for the peer `peer`, or for all peers if `peer` is "". The
// number of places is limited, so that other requests of the site do not wait. The number for one peer is smaller, so
// that a silent peer leaves places for requests to other peers.
func (p *peers) enter(peer messages.Name) (leave func(), err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.looks[peer] >= maxLooksAt || p.all >= maxLooks {
		return func() {}, messages.Errorf(messages.Exhausted, "%d requests wait for site %s, and %d for all sites together, which is the limit; try again", p.looks[peer], peer, p.all)
	}
	if p.looks == nil {
		p.looks = map[messages.Name]int{}
	}
	p.looks[peer]++
	p.all++
	return func() { p.left(peer) }, nil
}

func (p *peers) left(peer messages.Name) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.all--
	if p.looks[peer]--; p.looks[peer] == 0 {
		delete(p.looks, peer)
	}
}

// ask sends a request once to the auctioneer of a peer, in the name of this site. The argument `reply` is a pointer to
// the value into which the answer is decoded.
func (p *peers) ask(ctx context.Context, peer messages.Name, verb string, request, reply any) error {
	payload, err := wire.Marshal(request, wire.Msgpack)
	if err != nil {
		return err
	}
	data, err := p.bus.Request(ctx, messages.Subject(peer, messages.Auctioneer, verb, messages.ServiceIdentity(p.site)), payload)
	if err == nil {
		err = wire.UnmarshalReply(data, reply)
	}
	if err != nil {
		return job.Tamed(err)
	}
	federation.Tame(reply)
	return nil
}

// askActor sends a request to another actor of the site, in the auctioneer's name, until ctx ends.
func askActor[Reply any](ctx context.Context, p *peers, actor messages.Name, verb string, request any) (Reply, error) {
	return bus.Call[Reply](ctx, p.bus, messages.Subject(p.site, actor, verb, messages.ServiceIdentity(messages.Auctioneer)), request)
}

// peerAsk sends a request to a peer, and waits for the answer. It waits at most as long as the argument `within` says.
func peerAsk[Reply any](ctx context.Context, p *peers, peer messages.Name, verb string, request any, within time.Duration) (reply Reply, err error) {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	err = p.ask(ctx, peer, verb, request, &reply)
	return reply, err
}

// known returns the sites with which the bank starts new business. If the list is older than `age`, it asks the bank
// for a new one.
func (p *peers) known(ctx context.Context, age time.Duration) ([]messages.Name, error) {
	p.mu.Lock()
	known, fresh := p.list, !p.asked.IsZero() && time.Since(p.asked) < age
	p.mu.Unlock()
	if fresh {
		return known, nil
	}
	ctx, cancel := context.WithTimeout(ctx, lookWithin)
	defer cancel()
	reply, err := askActor[clearing.PeersReply](ctx, p, messages.Bank, clearing.VerbPeers, messages.Empty{})
	if err != nil {
		return nil, err
	}
	var list []messages.Name
	other := map[messages.Name]clearing.PeerStanding{}
	for i := range reply.Peers {
		switch peer := &reply.Peers[i]; {
		case peer.Standing != clearing.PeerOpen:
			other[peer.Peer] = peer.Standing
		default:
			list = append(list, peer.Peer)
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.list, p.other, p.asked = list, other, time.Now()
	return list, nil
}

func (p *peers) check(ctx context.Context, site messages.Name) error {
	list, err := p.known(ctx, peersKnown)
	if err == nil && !slices.Contains(list, site) { // a new peer may not be in the list yet
		list, err = p.known(ctx, peersAtLeast)
	}
	if err != nil {
		return err
	}
	p.mu.Lock()
	standing := p.other[site]
	p.mu.Unlock()
	switch {
	case standing == clearing.PeerSuspended:
		return messages.Errorf(messages.Unavailable, "site: %q is suspended, because its bank does not answer; submit the job later, or to another site", site)
	case standing != clearing.PeerOpen:
		return messages.Errorf(messages.PermissionDenied, "site: %q and %s have parted, or are about to part; submit the job elsewhere", site, p.site)
	case !slices.Contains(list, site):
		return messages.Errorf(messages.NotFound, "site: %q is not a peer of %s; its peers: %s", site, p.site, spelling.List(list))
	}
	return nil
}
