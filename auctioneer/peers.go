package auctioneer

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/candor-grid/candor/auctioneer/federation"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/bus"
	"github.com/candor-grid/candor/messages/spelling"
)

// Bounds on how long peers can make this site wait.
const (
	peerWithin   = 5 * time.Second        // an answer that nobody waits for
	lookWithin   = 2 * time.Second        // an answer that a user waits for
	maxLooks     = 128                    // users who wait for peers at once
	maxLooksAt   = maxLooks / 8           // looks for one peer, or for all peers
	peersKnown   = 5 * time.Second        // longest age of the list of peers
	peersAtLeast = 100 * time.Millisecond // longest age if a site is not in the list
)

// peers asks the auctioneers of other sites, and knows which other sites are peers.
type peers struct {
	site messages.Name
	bus  bus.Bus

	mu    sync.Mutex
	looks map[messages.Name]int                   // users who wait, by peer
	all   int                                     // sum of looks
	list  []messages.Name                         // peers with which new jobs may be exchanged
	other map[messages.Name]messages.PeerStanding // standing of the other peers
	asked time.Time                               // when the list was requested
}

// enter reserves one of the places for requests that wait for a peer, or for any, if a
// place is free. The places are few, so that such requests leave room for the site's own
// users, and each peer has few of them, so that one that is silent leaves room for the others.
func (p *peers) enter(peer messages.Name) (leave func(), err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.looks[peer] >= maxLooksAt || p.all >= maxLooks {
		return func() {}, messages.Errorf(messages.Exhausted, "%d requests wait for site %s, and %d for all other sites, as many as the limit; try again", p.looks[peer], peer, p.all)
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

// ask asks the auctioneer of a peer, in the name of this site, once: who asks says
// whether to ask again. The answer is read into what reply points to.
func (p *peers) ask(ctx context.Context, peer messages.Name, verb string, request, reply any) error {
	payload, err := messages.Marshal(request, messages.Msgpack)
	if err != nil {
		return err
	}
	data, err := p.bus.Request(ctx, messages.Subject(peer, messages.Auctioneer, verb, messages.ServiceIdentity(p.site)), payload)
	if err == nil {
		err = messages.Unmarshal(data, messages.Detect(data, ""), reply)
	}
	if err != nil {
		return messages.Tamed(err)
	}
	federation.Tame(reply)
	return nil
}

// askActor asks another actor of the site as the auctioneer, until ctx ends.
func askActor[Reply any](ctx context.Context, p *peers, actor messages.Name, verb string, request any) (Reply, error) {
	return bus.Call[Reply](ctx, p.bus, messages.Subject(p.site, actor, verb, messages.ServiceIdentity(messages.Auctioneer)), request)
}

// peerAsk asks a peer within a time.
func peerAsk[Reply any](ctx context.Context, p *peers, peer messages.Name, verb string, request any, within time.Duration) (reply Reply, err error) {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	err = p.ask(ctx, peer, verb, request, &reply)
	return reply, err
}

// known lists the sites with which the bank begins something new. An old list is asked for again.
func (p *peers) known(ctx context.Context, age time.Duration) ([]messages.Name, error) {
	p.mu.Lock()
	known, fresh := p.list, !p.asked.IsZero() && time.Since(p.asked) < age
	p.mu.Unlock()
	if fresh {
		return known, nil
	}
	ctx, cancel := context.WithTimeout(ctx, lookWithin)
	defer cancel()
	reply, err := askActor[messages.PeersReply](ctx, p, messages.Bank, messages.VerbPeers, messages.Empty{})
	if err != nil {
		return nil, err
	}
	var list []messages.Name
	other := map[messages.Name]messages.PeerStanding{}
	for i := range reply.Peers {
		switch peer := &reply.Peers[i]; {
		case peer.Standing != messages.PeerOpen:
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

// check refuses a site that is none of the peers.
func (p *peers) check(ctx context.Context, site messages.Name) error {
	list, err := p.known(ctx, peersKnown)
	if err == nil && !slices.Contains(list, site) { // it may be a new peer
		list, err = p.known(ctx, peersAtLeast)
	}
	if err != nil {
		return err
	}
	p.mu.Lock()
	standing := p.other[site]
	p.mu.Unlock()
	switch {
	case standing == messages.PeerSuspended:
		return messages.Errorf(messages.Unavailable, "site: %q is suspended, because its bank does not answer; submit the job later, or to another site", site)
	case standing != messages.PeerOpen:
		return messages.Errorf(messages.PermissionDenied, "site: %q and %s have parted, or are about to; submit the job elsewhere", site, p.site)
	case !slices.Contains(list, site):
		return messages.Errorf(messages.NotFound, "site: %q is not a peer of %s; its peers: %s", site, p.site, spelling.List(list))
	}
	return nil
}
