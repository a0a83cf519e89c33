package bank

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nkeys"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/bus"
	"github.com/candor-grid/candor/messages/clearing"
	"github.com/candor-grid/candor/messages/mailbox"
	"github.com/candor-grid/candor/messages/money"
	"github.com/candor-grid/candor/messages/wire"
)

// settler is the bank of one of two sites, with three durable replicas. If cut is true, its connection to the other
// site is broken.
type settler struct {
	*cluster
	keys nkeys.KeyPair
	cut  atomic.Bool
}

// road is the bus of a site. While `cut` is true, the site cannot reach other sites on it.
type road struct {
	bus.Bus
	site messages.Name
	cut  *atomic.Bool
}

func (r road) Request(ctx context.Context, subject string, payload []byte) ([]byte, error) {
	if r.cut.Load() && !strings.HasPrefix(subject, "candor."+r.site+".") {
		return nil, messages.Errorf(messages.Unavailable, "the road is cut")
	}
	return r.Bus.Request(ctx, subject, payload)
}

func newKeys(t testing.TB) (nkeys.KeyPair, string) {
	t.Helper()
	keys, err := nkeys.CreateAccount()
	if err != nil {
		t.Fatal(err)
	}
	public, err := keys.PublicKey()
	if err != nil {
		t.Fatal(err)
	}
	return keys, public
}

func newSettler(t testing.TB, network *bus.Network, site messages.Name) *settler {
	s := &settler{}
	s.keys, _ = newKeys(t)
	s.cluster = startSite(t, network, site, func(_ string, c *Config, _ *mailbox.Config) {
		c.Bus, c.Signer = road{c.Bus, site, &s.cut}, s.keys
		c.FirstBackoff, c.LastBackoff = messages.Duration(time.Millisecond), messages.Duration(20*time.Millisecond)
	})
	return s
}

// twoSites returns two sites that are peers with a limit of 100 credits. At each of them, ada has 100 credits.
func twoSites(t testing.TB) (east, west *settler) {
	network := bus.NewMemory()
	east, west = newSettler(t, network, "east"), newSettler(t, network, "west")
	for _, pair := range [][2]*settler{{east, west}, {west, east}} {
		s, peer := pair[0], pair[1]
		key := send[clearing.PeersReply](peer.cluster, "ops", clearing.VerbPeers, messages.Empty{}).Key
		send[clearing.PeerReply](s.cluster, "ops", clearing.VerbPeer, clearing.PeerRequest{Peer: peer.site, Keys: []string{key}, Limit: 100 * c})
		send[money.AccountReply](s.cluster, "ops", clearing.VerbReserve, clearing.ReserveRequest{Limit: 100 * c})
		s.grant("ada", 100*c)
	}
	return east, west
}

// work lets ada authorise 3 credits for a job at another site. The other site charges 2 of these credits. The two sites
// need no connection for this.
func (s *settler) work(at *settler, job int) clearing.SignedAuthorisation {
	s.Helper()
	a := send[clearing.SignedAuthorisation](s.cluster, "ada", clearing.VerbAuthorise, clearing.AuthoriseRequest{
		Key: fmt.Sprint(job), Peer: at.site, Amount: 3 * c, Interval: messages.Duration(time.Hour)})
	send[clearing.ClearingReply](at.cluster, "$auctioneer", clearing.VerbAccept, clearing.AcceptRequest{Purpose: fmt.Sprint(job), Authorisation: a})
	send[clearing.ClearingReply](at.cluster, "$auctioneer", clearing.VerbCharge, clearing.ChargeRequest{
		Issuer: s.site, ID: a.Authorisation.ID, Amount: 2 * c, Job: messages.JobID(job)})
	return a
}

func (s *settler) account(name messages.Name) money.AccountReply {
	s.Helper()
	return send[money.AccountReply](s.cluster, "ops", messages.VerbAccount, money.AccountRequest{Account: name})
}

func (s *settler) peer() clearing.PeerReply {
	s.Helper()
	return send[clearing.PeersReply](s.cluster, "ops", clearing.VerbPeers, messages.Empty{}).Peers[0]
}

func (s *settler) refusals() map[string]uint64 {
	s.Helper()
	counts := map[string]uint64{}
	for _, r := range send[clearing.PeersReply](s.cluster, "ops", clearing.VerbPeers, messages.Empty{}).Refused {
		counts[r.Reason] = r.Count
	}
	return counts
}

func (s *settler) refuses(kind messages.Kind, caller messages.Name, verb string, request any) {
	s.Helper()
	s.leader() // wait until a leader answers
	payload, err := wire.Marshal(request, wire.Msgpack)
	if err != nil {
		s.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	_, err = s.client.Request(ctx, messages.Subject(s.site, messages.Bank, verb, caller), payload)
	if err == nil || messages.KindOf(err) != kind {
		s.Errorf("%s: %s by %s: %v; want a refusal of kind %v", s.site, verb, caller, err, kind)
	}
}
