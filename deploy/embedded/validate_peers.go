package embedded

import (
	"net/url"
	"slices"
	"strings"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/clearing"
)

// checkPeers requires that each peer is named once, that the bank accepts its terms, and that one of the two sites can
// connect to the other.
func (c *Config) checkPeers(ps *Problems) {
	if c.ListenLeaf != "" {
		ps.address("listen_leaf", c.ListenLeaf, true)
	}
	if c.Reserve < 0 {
		ps.addf("reserve", "%v is negative; the reserve is the most that the other sites may owe", c.Reserve)
	}
	if c.LeastVisit < 0 {
		ps.addf("least_visit", "%v is negative; give the smallest amount that another site may authorise for a job", c.LeastVisit)
	}
	if c.SilentAfter < 0 {
		ps.addf("silent_after", "%v is negative; give the time after which a silent peer is suspended", c.SilentAfter)
	}
	names := map[messages.Name]bool{c.Site: true}
	for i, p := range c.Peers {
		path := at("peers", i)
		ps.name(path+".name", p.Name)
		if p.Name == c.Site {
			ps.addf(path+".name", "%q is this site; name another site", p.Name)
		} else {
			ps.unique(path+".name", p.Name, names)
		}
		p.checkWay(ps, path, c)
		r := clearing.PeerRequest{Peer: p.Name, Keys: p.Keys, Limit: p.Limit, Share: p.Share}
		if messages.ValidName(p.Name) {
			if err := r.Validate(); err != nil {
				p.refused(ps, path, err)
			}
		}
	}
}

// refused reports an error for a peer that the bank would refuse. If the bank's error is about the field "peer",
// refused reports it for the field "name", which this configuration has instead.
func (p *Peer) refused(ps *Problems, path string, err error) {
	if rest, ok := strings.CutPrefix(messages.Detail(err), "peer: "); ok {
		ps.addf(path+".name", "%s", rest)
		return
	}
	ps.field(path, err)
}

func (p *Peer) checkWay(ps *Problems, path string, c *Config) {
	for i, u := range p.URLs {
		parsed, err := url.Parse(u)
		if err != nil || !slices.Contains([]string{"nats", "tls", "nats-leaf"}, parsed.Scheme) || parsed.Port() == "" || parsed.Hostname() == "" {
			ps.addf(at(path+".urls", i), "%q is no address of a hub; write one like tls://hub.east.example:7422", clip(u))
		}
	}
	switch {
	case len(p.URLs) > 0 && p.Creds == "":
		ps.addf(path+".creds", "is missing; name the file of credentials that the peer issued for this site")
	case len(p.URLs) == 0 && p.Creds != "":
		ps.addf(path+".urls", "is missing; name the address at which the peer accepts these credentials")
	case len(p.URLs) == 0 && !c.listensForPeers():
		ps.addf(path+".urls", "is missing, and no peer can connect to this site; name the peer's address, or an address of this site in listen_leaf")
	}
	if c.TLS != nil && p.CA == "" {
		ps.addf(path+".ca", "is missing; with tls, name the file with the certificate of the peer's authority")
	}
}

func (c *Config) listensForPeers() bool {
	return c.ListenLeaf != "" && len(c.Hosts) == 0 || slices.ContainsFunc(c.Hosts, func(h Host) bool { return h.Leaf != "" })
}
