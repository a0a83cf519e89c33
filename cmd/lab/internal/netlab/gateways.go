package netlab

import (
	"fmt"
	"net"
	"net/url"
	"strconv"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"github.com/candor-grid/candor/cmd/lab/internal/netlab/delay"
	"github.com/candor-grid/candor/deploy/embedded"
	"github.com/candor-grid/candor/messages"
)

const gatewayPort = 7222

// The servers notice that a gateway is cut after at most roadPing·(1+roadPings).
const (
	roadPing  = 2 * time.Second
	roadPings = 2
	roadStart = 30 * time.Second
)

// JoinByGateways makes two sites peers before they are started. Each site has a NATS server at its border, which is a
// cluster of its own. Gateways join the two clusters, with the delay oneWay in each direction.
func (l *Lab) JoinByGateways(oneWay time.Duration, limit messages.Credits) error {
	if len(l.Sites) != 2 {
		return messages.Errorf(messages.Invalid, "gateways can connect only two sites here, but the lab has %d", len(l.Sites))
	}
	for i, from := range l.Sites {
		to := l.Sites[1-i]
		at := func(port int) string { return fmt.Sprintf("%s:%d", l.network.Border(from.number), port) }
		road, err := delay.Listen(at(gatewayPort+1), fmt.Sprintf("%s:%d", l.network.Border(to.number), gatewayPort), oneWay)
		if err != nil {
			return err
		}
		l.links = append(l.links, link{road, from, to})
		key, err := to.authority.PublicKey()
		if err != nil {
			return err
		}
		creds, err := from.linkCreds(to)
		if err != nil {
			return err
		}
		from.reserve = limit
		from.peers = []embedded.Peer{{Name: to.Name, Keys: []string{key}, Limit: limit, URLs: []string{"nats://" + at(leafPort)}, Creds: creds}}
	}
	for i, s := range l.Sites {
		if err := l.startRoad(s, l.Sites[1-i]); err != nil {
			return err
		}
	}
	return nil
}

// Each site has a NATS server at its border, which connects it to the other site. roadOf returns the name of this
// server. NATS refuses a link between clusters with equal names. So each of these servers is a cluster of its own, with
// the server's name.
func roadOf(s *Site) string { return "road-of-" + s.Name }

// startRoad starts the server at a site's border. It knows the other site's server only by the address of the link.
func (l *Lab) startRoad(s, to *Site) error {
	const system, between = "SYSTEM", "BETWEEN" // without the account SYSTEM, a server has no leaf nodes and gateways
	border := l.network.Border(s.number)
	o := &server.Options{ServerName: roadOf(s), Host: border, Port: server.RANDOM_PORT, NoSigs: true, NoLog: true,
		MaxPayload: 8 << 20, PingInterval: roadPing, MaxPingsOut: roadPings}
	o.SystemAccount, o.Accounts = system, []*server.Account{server.NewAccount(system), server.NewAccount(between)}
	o.LeafNode.Host, o.LeafNode.Port, o.LeafNode.NoAdvertise, o.LeafNode.Account = border, leafPort, true, between
	o.Gateway.Name, o.Gateway.Host, o.Gateway.Port = roadOf(s), border, gatewayPort
	o.Gateway.Advertise = net.JoinHostPort(l.network.Border(to.number), strconv.Itoa(gatewayPort+1))
	o.Gateway.RejectUnknown = true
	other := &url.URL{Scheme: "nats", Host: net.JoinHostPort(border, strconv.Itoa(gatewayPort+1))}
	o.Gateway.Gateways = []*server.RemoteGatewayOpts{{Name: roadOf(to), URLs: []*url.URL{other}}}
	road, err := server.NewServer(o)
	if err != nil {
		return err
	}
	l.roads = append(l.roads, road)
	go road.Start()
	if !road.ReadyForConnections(roadStart) {
		return messages.Errorf(messages.Unavailable, "the server of %s for connections of other sites does not listen", s.Name)
	}
	return nil
}
