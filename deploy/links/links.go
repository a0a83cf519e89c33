package links

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"net"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/bus"
	"github.com/candor-grid/candor/messages/clearing"
	"github.com/candor-grid/candor/messages/job"
	"github.com/candor-grid/candor/messages/wire"
)

// Config configures the service of one process.
type Config struct {
	Site messages.Name
	// Bus is the connection of the links service to the bus. It can also send requests to the peers.
	Bus bus.Bus
	// Server is the NATS server in this process.
	Server interface {
		Leafz(*server.LeafzOptions) (*server.Leafz, error)
	}
	// Host is this process's name in Hosts; "" without hosts.
	Host  messages.Name
	Hosts []messages.Name
	// Peers returns the site's current peers. The key of the map is the public key of the account that the site shares
	// with the peer.
	Peers     func() map[string]messages.Name
	Operators []messages.Name // accounts that may send requests
	// Within is how long a request waits for the answers of hosts and peers. The default is 1.5 s.
	Within time.Duration
}

// Validate returns an error for the first field that is wrong or missing.
func (c *Config) Validate() error {
	switch {
	case !messages.ValidName(c.Site):
		return fmt.Errorf("links: Site %q is not a valid name", c.Site)
	case c.Bus == nil || c.Server == nil || c.Peers == nil:
		return fmt.Errorf("links: Bus, Server and Peers must be set")
	case c.Host != "" && !slices.Contains(c.Hosts, c.Host):
		return fmt.Errorf("links: Host %q is not among Hosts", c.Host)
	case c.Within < 0:
		return fmt.Errorf("links: Within %v is negative", c.Within)
	}
	return nil
}

// defaultWithin is shorter than the time that [bus.Call] waits for one answer.
const defaultWithin = 1500 * time.Millisecond

// Links is the service that tells clients the state of the links of one process.
type Links struct {
	c       Config
	service bus.Subscription
}

// Start makes a Links and begins to serve requests.
func Start(c Config) (*Links, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	if c.Within == 0 {
		c.Within = defaultWithin
	}
	l := &Links{c: c}
	endpoints := []bus.Endpoint{{
		Name: messages.VerbStatus, Subject: messages.Subject(c.Site, messages.Links, messages.VerbStatus, "*"), Handle: bus.Handle(messages.VerbStatus, l.status),
	}}
	if c.Host != "" {
		verb := messages.HostPrefix + c.Host
		endpoints = append(endpoints, bus.Endpoint{Name: verb, Subject: messages.Subject(c.Site, messages.Links, verb, "*"), Handle: bus.Handle(verb, l.own)})
	}
	var err error
	l.service, err = c.Bus.Serve(bus.Service{
		Name: "candor-links", Version: "1.0.0", Description: "How site " + c.Site + " is linked to other sites", Discoverable: true, Endpoints: endpoints,
	})
	if err != nil {
		return nil, fmt.Errorf("links: %w", err)
	}
	return l, nil
}

// Close ends the service.
func (l *Links) Close() error { return l.service.Stop() }

func (l *Links) status(ctx context.Context, caller messages.Name, _ messages.Empty) (clearing.LinksReply, error) {
	if !slices.Contains(l.c.Operators, caller) {
		return clearing.LinksReply{}, messages.Errorf(messages.PermissionDenied, "account %q may not see how the site is linked: ask an operator of the site", caller)
	}
	ctx, cancel := context.WithTimeout(ctx, l.c.Within)
	defer cancel()
	reply := clearing.LinksReply{Site: l.c.Site, At: messages.TimeOf(time.Now())}
	var trips []clearing.PeerTrip
	var wg sync.WaitGroup
	wg.Go(func() { trips = l.trips(ctx) })
	err := l.gather(ctx, &reply)
	wg.Wait()
	reply.Trips = trips
	return reply, err
}

func (l *Links) own(_ context.Context, caller messages.Name, _ messages.Empty) (clearing.LinksReply, error) {
	if caller != messages.ServiceIdentity(messages.Links) {
		return clearing.LinksReply{}, messages.Errorf(messages.PermissionDenied, "account %q may not send requests to one host: send requests to the site", caller)
	}
	links, err := l.connections()
	return clearing.LinksReply{Site: l.c.Site, Links: links, At: messages.TimeOf(time.Now())}, err
}

func (l *Links) gather(ctx context.Context, reply *clearing.LinksReply) error {
	here, err := l.connections()
	if err != nil {
		return err
	}
	reply.Links = here
	var mu sync.Mutex
	var wg sync.WaitGroup
	for _, host := range l.c.Hosts {
		if host == l.c.Host {
			continue
		}
		wg.Go(func() {
			subject := messages.Subject(l.c.Site, messages.Links, messages.HostPrefix+host, messages.ServiceIdentity(messages.Links))
			there, err := bus.Call[clearing.LinksReply](ctx, l.c.Bus, subject, messages.Empty{})
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				reply.Missing = append(reply.Missing, host)
			}
			reply.Links = append(reply.Links, there.Links...)
		})
	}
	wg.Wait()
	slices.Sort(reply.Missing)
	slices.SortStableFunc(reply.Links, func(a, b clearing.Link) int {
		return cmp.Or(cmp.Compare(a.Peer, b.Peer), cmp.Compare(a.Host, b.Host))
	})
	return nil
}

func (l *Links) connections() ([]clearing.Link, error) {
	all, err := l.c.Server.Leafz(nil)
	if err != nil {
		return nil, messages.Errorf(messages.Internal, "links: %v", err)
	}
	var links []clearing.Link
	peers := l.c.Peers()
	for _, leaf := range all.Leafs {
		rtt, _ := time.ParseDuration(leaf.RTT) // 0 if it has not been measured yet
		links = append(links, clearing.Link{
			Peer: peers[leaf.Account], Host: l.c.Host, Server: job.Printable(leaf.Name, job.MaxForeignText), Address: net.JoinHostPort(leaf.IP, strconv.Itoa(leaf.Port)),
			Outgoing: leaf.IsSpoke, RTT: messages.Duration(rtt), In: leaf.InMsgs, Out: leaf.OutMsgs,
		})
	}
	slices.SortStableFunc(links, func(a, b clearing.Link) int { return cmp.Compare(a.Peer, b.Peer) })
	return links, nil
}

func (l *Links) trips(ctx context.Context) []clearing.PeerTrip {
	names := slices.Sorted(maps.Values(l.c.Peers()))
	trips := make([]clearing.PeerTrip, len(names))
	var wg sync.WaitGroup
	for i, name := range names {
		wg.Go(func() { trips[i] = l.trip(ctx, name) })
	}
	wg.Wait()
	return trips
}

// trip measures the time of one small request to a peer's bank. The request asks about a settlement cycle. There may be
// none yet, so a refusal also counts as an answer.
func (l *Links) trip(ctx context.Context, peer messages.Name) clearing.PeerTrip {
	payload, err := wire.Marshal(&clearing.CycleRequest{}, wire.Msgpack)
	if err != nil {
		return clearing.PeerTrip{Peer: peer, Failure: err.Error()}
	}
	verb := clearing.PeerVerb{Actor: messages.Bank, Verb: clearing.VerbPosition}
	began := time.Now()
	_, err = l.c.Bus.Request(ctx, verb.Subject(l.c.Site, peer), payload)
	took := messages.Duration(time.Since(began))
	if err != nil && messages.KindOf(err).Retriable() {
		return clearing.PeerTrip{Peer: peer, Failure: messages.Detail(job.Tamed(err))}
	}
	return clearing.PeerTrip{Peer: peer, Took: took}
}
