package embedded

import (
	"crypto/tls"
	"fmt"
	"net"
	"os"
	"strings"

	"github.com/candor-grid/candor/messages"
)

// Ports that other machines can reach may not use plaintext, unless the configuration allows it. The ports between
// hosts always use TLS, so they need no check.
func (c *Config) checkDoors(ps *Problems) {
	if len(c.Hosts) == 0 {
		c.checkClients(ps, "listen", c.Listen)
		c.checkClients(ps, "listen_leaf", c.ListenLeaf)
	}
	c.checkMetrics(ps, "metrics", c.Metrics)
	for i, h := range c.Hosts {
		path := at("hosts", i)
		c.checkClients(ps, path+".listen", h.Listen)
		c.checkClients(ps, path+".leaf", h.Leaf)
		c.checkMetrics(ps, path+".metrics", h.Metrics)
	}
	if c.MetricsAccounts < 0 || c.MetricsAccounts > mostAccountsTold {
		ps.addf("metrics_accounts", "is %d; it must be a number of accounts from 0 to %d", c.MetricsAccounts, mostAccountsTold)
	}
	if c.MetricsPublic && c.MetricsToken != "" {
		ps.addf("metrics_public", "cannot be combined with metrics_token; leave one of the two out")
	}
}

func (c *Config) checkClients(ps *Problems, path, address string) {
	if beyondLoopback(address) && c.TLS == nil && !c.Plaintext {
		ps.addf(path, "%q is not on loopback, so others could read and change requests; set tls (candor site init makes certificates), or plaintext: true if only the site's own machines are on the network", clip(address))
	}
}

func (c *Config) checkMetrics(ps *Problems, path, address string) {
	switch {
	case !beyondLoopback(address) || c.MetricsPublic:
	case c.MetricsToken == "":
		ps.addf(path, "%q is not on loopback, so anybody could read the metrics; set tls and metrics_token (a file with the bearer token of Prometheus), or metrics_public: true if everybody may read them", clip(address))
	case c.TLS == nil:
		ps.addf(path, "%q is not on loopback, so others could read the token; set tls, or metrics_public: true instead of the token", clip(address))
	}
}

// beyondLoopback reports whether other machines may reach an address. A name other than localhost
// may stand for any address.
func beyondLoopback(address string) bool {
	host, _, err := net.SplitHostPort(address)
	if err != nil || host == "" || host == "localhost" {
		return false // an invalid address is reported elsewhere
	}
	ip := net.ParseIP(host)
	return ip == nil || !ip.IsLoopback()
}

// MetricsDoor is the address at which a process serves its metrics, with the rules for readers.
type MetricsDoor struct {
	Address string      // "" if the metrics are not served
	Token   string      // token that readers must send; "" if they need none
	TLS     *tls.Config // nil for plaintext
}

// mostAccountsTold is the largest number of accounts whose credits the metrics can show.
const mostAccountsTold = 1000

// minToken is the smallest length of a token for metrics, in bytes: 96 random bits in hex.
const minToken = 24

// MetricsDoor returns the address and the protection of the metrics of a host. The argument `host` is empty if the site
// has no Hosts.
func (c *Config) MetricsDoor(host messages.Name) (d MetricsDoor, err error) {
	d.Address = c.Metrics
	if h := c.host(host); h != nil && h.Metrics != "" {
		d.Address = h.Metrics
	}
	if d.Address == "" {
		return d, nil
	}
	if c.MetricsToken != "" {
		if d.Token, err = readToken(c.MetricsToken); err != nil {
			return d, err
		}
	}
	if beyondLoopback(d.Address) && !c.MetricsPublic && c.TLS != nil {
		if d.TLS, err = c.TLS.of(host).load(); err != nil {
			return d, err
		}
		d.TLS.ClientAuth = tls.NoClientCert
	}
	return d, nil
}

func readToken(file string) (string, error) {
	info, err := os.Stat(file)
	if err != nil {
		return "", messages.Errorf(messages.Invalid, "metrics_token: %v", err)
	}
	if info.Mode().Perm()&0o007 != 0 {
		return "", messages.Errorf(messages.PermissionDenied, "metrics_token: everybody may read %s (mode %04o); set its mode to 600 with chmod, and write a new token into the file", file, info.Mode().Perm())
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return "", fmt.Errorf("metrics_token: %w", err)
	}
	token := strings.TrimSpace(string(text))
	if len(token) < minToken || strings.ContainsAny(token, " \t\r\n") {
		return "", messages.Errorf(messages.Invalid, "metrics_token: %s must hold one word of at least %d characters; to make one, run: openssl rand -hex 24", file, minToken)
	}
	return token, nil
}
