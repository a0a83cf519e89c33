package netlab

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"github.com/candor-grid/candor/deploy/embedded"
	"github.com/candor-grid/candor/deploy/identity"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/job"
	"github.com/candor-grid/candor/messages/market"
)

// configure writes two configuration files of the site: site.yaml for the hosts that run replicas (racks), and
// agents.yaml for the hosts that run only agents. They are equal, except that agents.yaml has no list of hosts.
func (s *Site) configure() error {
	c := s.configuration()
	c.Hosts = s.hosts()
	c.Replicas = 0
	c.Peers, c.Reserve = s.peers, s.reserve
	file := filepath.Join(s.dir, "site.yaml")
	if err := writeConfig(file, &c); err != nil {
		return err
	}
	for i, h := range s.Racks {
		h.arguments = []string{"up", "--config", file, "--host", s.Racks[i].Name, "--state", h.Dir(), "--clock", h.clockFile()}
	}
	return s.configureAgents()
}

func (s *Site) configureAgents() error {
	c := s.configuration()
	for i := 1; i < s.plan.Agents; i++ {
		c.Nodes = append(c.Nodes, s.node(i))
	}
	file := filepath.Join(s.dir, "agents.yaml")
	if err := writeConfig(file, &c); err != nil {
		return err
	}
	for _, h := range s.Agents {
		creds, err := embedded.WriteCredentials(s.dir, s.authority, identity.Node, h.Name)
		if err != nil {
			return err
		}
		h.arguments = []string{"nodeagent", "--config", file, "--node", h.Name, "--server", s.URL(), "--creds", creds, "--state", h.Dir()}
	}
	return nil
}

// configuration returns the configuration that racks and agents share.
func (s *Site) configuration() embedded.Config {
	c := embedded.Default()
	c.Site, c.State, c.Keys = s.Name, filepath.Join(s.dir, "state"), s.keys()
	if c.Plaintext = !s.plan.TLS; s.plan.TLS { // without TLS, on a network that the lab makes; see doc.go
		c.TLS = &embedded.TLS{Cert: filepath.Join(s.tls(), "{host}.pem"), Key: filepath.Join(s.tls(), "{host}.key"), CA: s.ca()}
	}
	c.Lease = messages.Duration(s.plan.Lease)
	c.Operators, c.Accounts, c.Nodes = []messages.Name{Operator}, nil, nil
	for _, u := range s.plan.Users {
		c.Accounts = append(c.Accounts, embedded.Account{Name: u, Grant: s.plan.Grant})
	}
	c.Markets = []market.Market{{Name: "main", Mechanism: "proportional", Classes: []messages.Name{"map"}}}
	c.Nodes = append(c.Nodes, s.node(0))
	if s.plan.Queue {
		c.Markets = append(c.Markets, market.Market{Name: QueueMarket, Mechanism: market.BatchQueue, Pricing: "pivot", Classes: []messages.Name{QueueMarket}})
		c.Nodes[0].Slots = append(c.Nodes[0].Slots, job.ClassSlots{Class: QueueMarket, Slots: 1})
	}
	return c
}

func (s *Site) node(i int) embedded.Node {
	return embedded.Node{Name: nodeName(i), Slots: embedded.Slots{{Class: "map", Slots: s.plan.Slots}}}
}

func (s *Site) hosts() (hosts []embedded.Host) {
	for _, h := range s.Racks {
		at := func(port int) string { return fmt.Sprintf("%s:%d", h.Address, port) }
		host := embedded.Host{Name: h.Name, Listen: at(natsPort), Cluster: at(clusterPort), Auctioneer: at(auctioneerPort), Bank: at(bankPort)}
		if len(s.peers) > 0 {
			host.Leaf = at(leafPort)
		}
		if h.Node != "" {
			host.Nodes = []messages.Name{h.Node}
		}
		hosts = append(hosts, host)
	}
	return hosts
}

// writeConfig writes a configuration as JSON, which is valid YAML.
func writeConfig(file string, c *embedded.Config) error {
	text, err := json.MarshalIndent(c, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(file, text, 0o600)
}
