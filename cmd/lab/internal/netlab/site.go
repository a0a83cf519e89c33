package netlab

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/candor-grid/candor/deploy/embedded"
	"github.com/candor-grid/candor/deploy/identity"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/bus"
	"github.com/candor-grid/candor/messages/market"
)

// Plan says how many hosts and nodes a site of the lab has, and how the site is configured.
type Plan struct {
	Name   messages.Name
	Racks  int // number of hosts with a NATS server, an auctioneer and a bank; an odd number, or 0 if only an [Impostor] acts for the site
	Agents int // nodes; the first one is on the first rack, each other one on a host of its own
	Slots  int // slots of class "map" on each node
	Users  []messages.Name
	// Grant is the number of credits that each user gets at the beginning.
	Grant messages.Credits
	// Lease is how long an agent may run tasks without an answer of the leader.
	Lease time.Duration
	// Disk is the size in bytes of the disk that each rack gets for itself. With 0, the racks get no such disks. The
	// machine may not allow them (see Host.HasDisk).
	Disk int64
	// TLS makes clients and peers use TLS. The site's own authority signs their certificates.
	TLS bool
	// Queue adds a second market to the site: a batch queue of one slot on the first node.
	Queue bool
}

// QueueMarket is the name of the market that Plan.Queue adds, and of this market's class.
const QueueMarket messages.Name = "queue"

// Operator is the operator of every site.
const Operator messages.Name = "operator"

const (
	natsPort       = 4222
	clusterPort    = 6222
	leafPort       = 7422
	auctioneerPort = 7001
	bankPort       = 7002
)

// Site is one site of a lab, with its hosts and their processes.
type Site struct {
	Name   messages.Name
	Racks  []*Host
	Agents []*Host // the hosts of agents, without the racks

	lab       *Lab
	number    int // number of the site, from 1
	dir       string
	plan      Plan
	authority *identity.Authority
	peers     []embedded.Peer
	reserve   messages.Credits
}

// Hosts returns all hosts of the site.
func (s *Site) Hosts() []*Host { return slices.Concat(s.Racks, s.Agents) }

func newSite(l *Lab, number int, p Plan) (*Site, error) {
	s := &Site{Name: p.Name, lab: l, number: number, dir: filepath.Join(l.Dir, p.Name), plan: p}
	if err := os.MkdirAll(s.dir, 0o700); err != nil {
		return nil, err
	}
	var err error
	if s.authority, err = identity.Create(s.keys(), p.Name); err != nil {
		return nil, err
	}
	for i := range p.Racks {
		if err := s.addHost(&s.Racks, fmt.Sprintf("rack%d", i+1)); err != nil {
			return nil, err
		}
	}
	if err := s.certify(); err != nil {
		return nil, err
	}
	for _, h := range s.Racks {
		if p.Disk > 0 {
			if err := h.giveDisk(p.Disk); err != nil && messages.KindOf(err) != messages.Unavailable {
				return nil, err
			}
		}
	}
	if p.Racks == 0 {
		return s, l.network.Add(number, 1) // a host at the border of the site's network, from which the impostor acts
	}
	s.Racks[0].Node = nodeName(0)
	for i := 1; i < p.Agents; i++ {
		if err := s.addHost(&s.Agents, nodeName(i)); err != nil {
			return nil, err
		}
		s.Agents[len(s.Agents)-1].Node = nodeName(i)
	}
	return s, nil
}

func nodeName(i int) messages.Name { return fmt.Sprintf("node%d", i+1) }

func (s *Site) keys() string { return filepath.Join(s.dir, "keys") }

func (s *Site) addHost(to *[]*Host, name string) error {
	number := len(s.Racks) + len(s.Agents) + 1
	if err := s.lab.network.Add(s.number, number); err != nil {
		return err
	}
	*to = append(*to, &Host{Name: name, Address: s.lab.network.Address(s.number, number), site: s, number: number, binary: s.lab.binary})
	return nil
}

// URL returns the addresses of all NATS servers of the site.
func (s *Site) URL() string {
	var urls []string
	for _, h := range s.Racks {
		urls = append(urls, s.urlOf(h))
	}
	return strings.Join(urls, ",")
}

func (s *Site) urlOf(h *Host) string {
	return fmt.Sprintf("%s://%s:%d", s.scheme(), h.Address, natsPort)
}

// Markets returns the initial markets of the site.
func (s *Site) Markets() []market.Market { return s.configuration().Markets }

// Start starts every host. It returns when all hosts serve and every node is up.
func (s *Site) Start(ctx context.Context) error {
	if len(s.Racks) == 0 {
		return nil
	}
	if err := s.configure(); err != nil {
		return err
	}
	for _, h := range s.Hosts() {
		if err := h.Start(); err != nil {
			return err
		}
	}
	for _, h := range s.Hosts() {
		if err := h.Await(ctx); err != nil {
			return err
		}
	}
	operator, err := s.Connect(Operator)
	if err != nil {
		return err
	}
	defer operator.Close()
	return s.AwaitNodes(ctx, operator)
}

// Connect connects a user or the operator to any server of the site that answers.
func (s *Site) Connect(name messages.Name) (bus.Bus, error) { return s.connect(name, s.URL()) }

// ConnectAt connects a user or the operator to the server of a rack. The server tells the client the addresses of the
// servers of the other racks.
func (s *Site) ConnectAt(name messages.Name, h *Host) (bus.Bus, error) {
	return s.connect(name, s.urlOf(h))
}

func (s *Site) connect(name messages.Name, url string) (bus.Bus, error) {
	file, err := s.creds(name)
	if err != nil {
		return nil, err
	}
	c := bus.Config{URL: url, Name: name, CredsFile: file}
	if s.plan.TLS {
		if c.TLS, err = s.trusts(); err != nil {
			return nil, err
		}
	}
	return bus.Connect(c)
}

func (s *Site) creds(name messages.Name) (string, error) {
	role := identity.User
	if name == Operator {
		role = identity.Operator
	}
	return embedded.WriteCredentials(s.dir, s.authority, role, name)
}

// Candor runs a command of the candor binary as a user or the operator, and returns its output.
func (s *Site) Candor(ctx context.Context, as messages.Name, arguments ...string) ([]byte, error) {
	creds, err := s.creds(as)
	if err != nil {
		return nil, err
	}
	arguments = append(arguments, "--server", s.URL(), "--account", as, "--creds", creds)
	if s.plan.TLS {
		arguments = append(arguments, "--ca", s.ca())
	}
	c := exec.CommandContext(ctx, s.lab.binary, arguments...)
	c.Env = append(os.Environ(), "NO_COLOR=1", "CANDOR_SITE="+s.Name) // in a submission, --site has another meaning
	output, err := c.CombinedOutput()
	if err != nil {
		return output, fmt.Errorf("candor %s: %w: %s", strings.Join(arguments, " "), err, output)
	}
	return output, nil
}

// Leader asks the replicas of an actor for their leader, and returns its rack.
func (s *Site) Leader(ctx context.Context, operator bus.Bus, actor string) (*Host, error) {
	var led *Host
	err := Until(ctx, func(ctx context.Context) error {
		reply, err := bus.Call[messages.StatusReply](ctx, operator, messages.Subject(s.Name, actor, messages.VerbStatus, Operator), messages.Empty{})
		if err != nil {
			return err
		}
		for _, h := range s.Racks {
			if h.Name == reply.Leader && h.Runs() {
				led = h
				return nil
			}
		}
		return messages.Errorf(messages.Unavailable, "the %s of %s is led by %q", actor, s.Name, reply.Leader)
	})
	return led, err
}

// AwaitNodes returns when every node of the site is up.
func (s *Site) AwaitNodes(ctx context.Context, operator bus.Bus) error {
	return s.awaitNodes(ctx, operator, func(up map[messages.Name]messages.Time) error {
		if len(up) != s.plan.Agents {
			return messages.Errorf(messages.Unavailable, "%d of %d nodes of %s are up", len(up), s.plan.Agents, s.Name)
		}
		return nil
	})
}

// AwaitBack waits until the node of a host, if it has one, has registered after a given instant.
func (s *Site) AwaitBack(ctx context.Context, operator bus.Bus, h *Host, since time.Time) error {
	if h.Node == "" {
		return nil
	}
	return s.awaitNodes(ctx, operator, func(up map[messages.Name]messages.Time) error {
		if registered, ok := up[h.Node]; !ok || registered < messages.TimeOf(since) {
			return messages.Errorf(messages.Unavailable, "node %s of %s has not come back", h.Node, s.Name)
		}
		return nil
	})
}

// awaitNodes calls `enough` with the time since which each node has been up. It reads these times again and again,
// until `enough` returns nil.
func (s *Site) awaitNodes(ctx context.Context, operator bus.Bus, enough func(map[messages.Name]messages.Time) error) error {
	return Until(ctx, func(ctx context.Context) error {
		reply, err := bus.Call[market.NodesReply](ctx, operator, messages.Subject(s.Name, messages.Auctioneer, messages.VerbNodes, Operator), messages.Empty{})
		if err != nil {
			return err
		}
		up := map[messages.Name]messages.Time{}
		for _, n := range reply.Nodes {
			if n.State == "Up" {
				up[n.Node] = n.Since
			}
		}
		return enough(up)
	})
}

// Until calls its function `look` again and again. betweenLooks is the pause between two calls.
const betweenLooks = 20 * time.Millisecond

// Until calls `look` again and again, until it returns no error. If ctx ends first, Until returns the last error of
// `look`.
func Until(ctx context.Context, look func(context.Context) error) error {
	for {
		err := look(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(betweenLooks):
		}
	}
}
