package netlab

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/candor-grid/candor/deploy/netlab/delay"
)

// Lab is sites on one machine.
type Lab struct {
	Dir   string // everything that they keep
	Sites []*Site

	network  Network
	binary   string
	children []int // of this process, from before the lab
	links    []*delay.Link
}

// New makes a lab in a directory, of sites that run a binary, and starts nothing
// yet. The network becomes the lab's.
func New(dir, binary string, network Network, plans ...Plan) (*Lab, error) {
	if err := adopt(); err != nil {
		return nil, err
	}
	l := &Lab{Dir: dir, network: network, binary: binary, children: children()}
	for i, p := range plans {
		s, err := newSite(l, i+1, p)
		if err != nil {
			return nil, errors.Join(fmt.Errorf("site %s: %w", p.Name, err), l.Close())
		}
		l.Sites = append(l.Sites, s)
	}
	return l, nil
}

// Network says in a few words what hosts are here.
func (l *Lab) Network() string { return l.network.Kind() }

// Start starts all sites and returns when all of them can be used.
func (l *Lab) Start(ctx context.Context) error {
	failed := make([]error, len(l.Sites))
	var all sync.WaitGroup
	for i, s := range l.Sites {
		all.Go(func() { failed[i] = s.Start(ctx) })
	}
	all.Wait()
	return errors.Join(failed...)
}

// Link makes a link that hosts of one site reach at their border, under a port,
// and that leads to a host of another. Each direction takes oneWay.
func (l *Lab) Link(from *Site, port int, to *Host, toPort int, oneWay time.Duration) (*delay.Link, error) {
	link, err := delay.Listen(fmt.Sprintf("%s:%d", l.network.Border(from.number), port), fmt.Sprintf("%s:%d", to.Address, toPort), oneWay)
	if err == nil {
		l.links = append(l.links, link)
	}
	return link, err
}

// Border is the address at which hosts of a site find links to others.
func (l *Lab) Border(s *Site) string { return l.network.Border(s.number) }

// Memory is what all hosts' processes have in memory, in bytes.
func (l *Lab) Memory() (sum int64) {
	for _, s := range l.Sites {
		for _, h := range s.Hosts() {
			sum += h.Memory()
		}
	}
	return sum
}

// Close stops what runs, whatever it says to that, and ends what it leaves behind.
// The directory stays.
func (l *Lab) Close() error {
	var stopping sync.WaitGroup
	var mu sync.Mutex
	var failed []error
	for _, s := range l.Sites {
		for _, h := range s.Hosts() {
			if !h.Runs() {
				continue
			}
			stopping.Go(func() {
				if err := h.Stop(); err != nil {
					mu.Lock()
					failed = append(failed, err)
					mu.Unlock()
				}
			})
		}
	}
	stopping.Wait()
	for _, link := range l.links {
		failed = append(failed, link.Close())
	}
	endOrphans(l.children)
	return errors.Join(append(failed, l.network.Close())...)
}

// RemoveLater is how a directory for a lab is made: the function removes it.
func RemoveLater() (dir string, remove func() error, err error) {
	dir, err = os.MkdirTemp("", "netlab-")
	return dir, func() error { return os.RemoveAll(dir) }, err
}
