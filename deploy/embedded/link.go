package embedded

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net/url"
	"os"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"github.com/candor-grid/candor/deploy/identity"
	"github.com/candor-grid/candor/messages"
)

// Peer is another site. It may have another owner.
type Peer struct {
	// Name is the name of the site; the keys of the site must be for this name.
	Name messages.Name `json:"name"`
	// URLs are the addresses at which the peer accepts servers of other sites. Without them, the peer connects to this
	// site.
	URLs []string `json:"urls,omitempty"`
	// Creds is the file of credentials that the peer issued for this site. It is used with URLs.
	Creds string `json:"creds,omitempty"`
	// CA is a PEM file of the authority that signed the certificates of the peer's servers, if this
	// site has certificates.
	CA string `json:"ca,omitempty"`
	// Keys are the public keys of the peer's bank.
	Keys []string `json:"keys"`
	// Limit is the most that the peer may owe.
	Limit messages.Credits `json:"limit"`
	// Share is the peer's share of the reserve: the most that it may owe for settlements that are not yet paid outside
	// the banks. The default is Limit.
	Share *messages.Credits `json:"share,omitempty"`
	// SameOwner says that both sites have one owner. A job that names no site, and that can run at any site, then goes
	// to the site with the best offer, as with "candor submit --site auto".
	SameOwner bool `json:"same_owner,omitempty"`
}

// These are the times of links between sites. A cut is noticed after at most linkPing·(1+linkPings). A link is restored
// within linkRetry when the connection is possible again.
const (
	linkPing  = 2 * time.Second
	linkPings = 2
	linkRetry = time.Second
	// linkTLS is the longest time for a TLS handshake between sites, which may be far apart, in seconds.
	linkTLS = 5
)

// link configures the server's links to peers. If the configuration has an address for peers, the server accepts them
// there. If a peer has URLs, the server connects to it.
func link(o *server.Options, c *Config, self *Host, authority *identity.Authority) error {
	if len(c.Peers) > 0 {
		// A broken link to a peer must be noticed soon, so the server pings often. It has only one interval for pings,
		// so it also pings clients as often.
		o.PingInterval, o.MaxPingsOut = linkPing, linkPings
	}
	o.LeafNode.ReconnectInterval = linkRetry
	if err := listenLeaf(o, c, self); err != nil {
		return err
	}
	for i := range c.Peers {
		if err := connectLeaf(o, c.TLS, &c.Peers[i], authority); err != nil {
			return fmt.Errorf("peer %s: %w", c.Peers[i].Name, err)
		}
	}
	return nil
}

func listenLeaf(o *server.Options, c *Config, self *Host) (err error) {
	listen := c.ListenLeaf
	if self != nil {
		listen = self.Leaf
	}
	if listen == "" {
		return nil
	}
	// A server must not tell its peers further addresses of this site: a peer connects only to the addresses in its
	// configuration.
	o.LeafNode.NoAdvertise = true
	o.LeafNode.AuthTimeout = authTimeout
	if o.LeafNode.Host, o.LeafNode.Port, err = split(listen); err != nil || c.TLS == nil {
		return err
	}
	o.LeafNode.TLSTimeout = linkTLS
	o.LeafNode.TLSConfig, err = leafTLS(c)
	return err
}

// leafTLS returns the TLS configuration for links. It requires certificates that the authority of a peer has signed.
func leafTLS(c *Config) (*tls.Config, error) {
	both, err := c.TLS.load()
	if err != nil {
		return nil, err
	}
	both.ClientCAs = x509.NewCertPool()
	for _, p := range c.Peers {
		if err := trust(both.ClientCAs, p.CA); err != nil {
			return nil, err
		}
	}
	return both, nil
}

func connectLeaf(o *server.Options, t *TLS, p *Peer, authority *identity.Authority) error {
	if len(p.URLs) == 0 {
		return nil
	}
	account, err := authority.LinkAccount(p.Name)
	if err != nil {
		return err
	}
	remote := &server.RemoteLeafOpts{LocalAccount: account, Credentials: p.Creds, DialTimeout: linkTLS * time.Second}
	for _, u := range p.URLs {
		parsed, err := url.Parse(u)
		if err != nil {
			return err
		}
		remote.URLs = append(remote.URLs, parsed)
	}
	if t != nil {
		if remote.TLSConfig, err = clientOf(t, p); err != nil {
			return err
		}
		remote.TLS, remote.TLSTimeout = true, linkTLS
	}
	o.LeafNode.Remotes = append(o.LeafNode.Remotes, remote)
	return nil
}

// clientOf returns the TLS configuration of a client. The client shows the site's certificate, and accepts a server
// only if the peer's authority has signed the server's certificate.
func clientOf(t *TLS, p *Peer) (*tls.Config, error) {
	both, err := t.load()
	if err != nil {
		return nil, err
	}
	both.RootCAs = x509.NewCertPool()
	return both, trust(both.RootCAs, p.CA)
}

func trust(pool *x509.CertPool, file string) error {
	pem, err := os.ReadFile(file)
	if err != nil {
		return fmt.Errorf("tls: %w", err)
	}
	if !pool.AppendCertsFromPEM(pem) {
		return fmt.Errorf("tls: %s holds no certificate", file)
	}
	return nil
}

func (c *Config) peerNames() (names []messages.Name) { return namesOf(c.Peers) }

func namesOf(peers []Peer) (names []messages.Name) {
	for _, p := range peers {
		names = append(names, p.Name)
	}
	return names
}
