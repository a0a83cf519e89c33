package netlab

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"github.com/candor-grid/candor/cmd/lab/internal/netlab/delay"
	"github.com/candor-grid/candor/deploy/embedded"
	"github.com/candor-grid/candor/messages"
)

// Lab is a group of sites on one machine.
type Lab struct {
	Dir   string // directory for all files of the sites
	Sites []*Site

	network  Network
	binary   string
	children []int // children that this process had before the lab
	links    []link
	planned  int              // number of sites
	roads    []*server.Server // see JoinByGateways
	images   bool             // the disk images are in memory
}

// link is the network link over which one site reaches a host of another site.
type link struct {
	*delay.Link
	from, to *Site
}

// New makes a lab in a directory, with a site for each plan. It starts nothing. The hosts will run the program in the
// file `binary`. [Lab.Close] also closes the network.
func New(dir, binary string, network Network, plans ...Plan) (*Lab, error) {
	if err := adopt(); err != nil {
		return nil, err
	}
	l := &Lab{Dir: dir, network: network, binary: binary, children: children(), planned: len(plans)}
	for i, p := range plans {
		s, err := newSite(l, i+1, p)
		if err != nil {
			return nil, errors.Join(fmt.Errorf("site %s: %w", p.Name, err), l.Close())
		}
		l.Sites = append(l.Sites, s)
	}
	return l, nil
}

// Start starts all sites and returns when all of them can be used.
func (l *Lab) Start(ctx context.Context) error {
	return embedded.Each(l.Sites, func(s *Site) error { return s.Start(ctx) })
}

// Join makes the sites peers before they are started. Each site's servers connect to the servers of earlier sites, with
// a delay of `oneWay` in each direction. A site may owe each other site at most `limit` credits.
func (l *Lab) Join(oneWay time.Duration, limit messages.Credits) error {
	for _, from := range l.Sites {
		from.reserve = limit
		for _, to := range l.Sites {
			if from == to {
				continue
			}
			p, err := l.peer(from, to, oneWay)
			if err != nil {
				return fmt.Errorf("%s, peer of %s: %w", to.Name, from.Name, err)
			}
			p.Limit = limit
			from.peers = append(from.peers, p)
		}
	}
	return nil
}

// peer returns an entry for the list of peers in the configuration of the site `from`. The entry describes the site
// `to`.
func (l *Lab) peer(from, to *Site, oneWay time.Duration) (embedded.Peer, error) {
	key, err := to.authority.PublicKey()
	p := embedded.Peer{Name: to.Name, Keys: []string{key}}
	if to.plan.TLS {
		p.CA = to.ca()
	}
	if err != nil || to.number > from.number {
		return p, err
	}
	if p.Creds, err = from.linkCreds(to); err != nil {
		return p, err
	}
	for _, h := range to.Racks {
		made, err := delay.Listen(fmt.Sprintf("%s:%d", l.network.Border(from.number), linkPort(to, h)), fmt.Sprintf("%s:%d", h.Address, leafPort), oneWay)
		if err != nil {
			return p, err
		}
		l.links = append(l.links, link{made, from, to})
		p.URLs = append(p.URLs, to.scheme()+"://"+made.Address())
	}
	return p, nil
}

// linkCreds makes a file with credentials for this site's servers, issued by the other site, and returns its path.
func (s *Site) linkCreds(to *Site) (string, error) {
	creds, err := to.authority.IssueLink(s.Name)
	if err != nil {
		return "", err
	}
	file := filepath.Join(s.dir, "link-"+to.Name+".creds")
	return file, os.WriteFile(file, creds, 0o600)
}

// A site connects to a host of another site through a proxy of the lab. linkPort returns the port of this proxy in the
// network of the connecting site.
func linkPort(to *Site, h *Host) int { return 20_000 + to.number*(maxHosts+1) + h.number }

// Cut disconnects a site from all others: its links carry nothing until Heal is called.
func (l *Lab) Cut(s *Site) { l.eachLink(s, (*delay.Link).Cut) }

// Heal connects a site again.
func (l *Lab) Heal(s *Site) { l.eachLink(s, (*delay.Link).Heal) }

func (l *Lab) eachLink(s *Site, do func(*delay.Link)) {
	for _, k := range l.links {
		if k.from == s || k.to == s {
			do(k.Link)
		}
	}
}

// Memory returns the memory of all hosts' processes, in bytes.
func (l *Lab) Memory() (sum int64) {
	for _, s := range l.Sites {
		for _, h := range s.Hosts() {
			sum += h.Memory()
		}
	}
	return sum
}

// Close stops all hosts and ends their remaining processes. The directory stays. Hosts that stop at the same time
// cannot hand over their leadership. This alone does not make Close fail.
func (l *Lab) Close() error {
	var running []*Host
	for _, s := range l.Sites {
		running = append(running, slices.DeleteFunc(s.Hosts(), func(h *Host) bool { return !h.Runs() })...)
	}
	failed := []error{embedded.Each(running, func(h *Host) error { return h.process.end() })}
	for _, link := range l.links {
		failed = append(failed, link.Close())
	}
	for _, road := range l.roads {
		road.Shutdown()
		road.WaitForShutdown()
	}
	endOrphans(l.children)
	return errors.Join(append(failed, l.network.Close())...)
}
