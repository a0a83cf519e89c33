package embedded

import (
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/candor-grid/candor/auctioneer"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/bus"
	"github.com/candor-grid/candor/messages/clearing"
	jobmsg "github.com/candor-grid/candor/messages/job"
	"github.com/candor-grid/candor/messages/mailbox"
	"github.com/candor-grid/candor/messages/market"
)

func valid() Config {
	c := Default()
	c.State = "state"
	return c
}

func TestDefaultIsValid(t *testing.T) {
	c := valid()
	if err := c.Validate(); err != nil {
		t.Fatal(err)
	}
}

// TestValidatePaths makes one field at a time wrong. There must be one problem, with the path of this field.
func TestValidatePaths(t *testing.T) {
	nan := math.NaN()
	cases := map[string]func(*Config){
		"site":                   func(c *Config) { c.Site = "" },
		"state":                  func(c *Config) { c.State = "" },
		"listen":                 func(c *Config) { c.Listen = "127.0.0.1:70000" },
		"metrics":                func(c *Config) { c.Metrics = ":9090" },
		"listen_leaf":            func(c *Config) { c.ListenLeaf = "10.0.0.1:7422" },
		"metrics_accounts":       func(c *Config) { c.MetricsAccounts = 1001 },
		"metrics_public":         func(c *Config) { c.MetricsPublic, c.MetricsToken = true, "token" },
		"hosts[1].listen":        func(c *Config) { c.Hosts = three(); c.Hosts[1].Listen = "10.0.0.1:4222" },
		"hosts[1].leaf":          func(c *Config) { c.Hosts = three(); c.Hosts[1].Leaf = "rack2:7422" },
		"hosts[1].metrics":       func(c *Config) { c.Hosts = three(); c.Hosts[1].Metrics = "0.0.0.0:9090" },
		"replicas":               func(c *Config) { c.Replicas = 2 },
		"lease":                  func(c *Config) { c.Lease = -1 },
		"roam_for":               func(c *Config) { c.RemoteFor = clearing.MaxInterval + 1 },
		"operators":              func(c *Config) { c.Operators = nil },
		"operators[1]":           func(c *Config) { c.Operators = []messages.Name{"a", "a"} },
		"accounts[3].name":       func(c *Config) { c.Accounts = append(c.Accounts, Account{Name: "$issuer", Grant: 1}) },
		"accounts[0].grant":      func(c *Config) { c.Accounts[0].Grant = -1 },
		"accounts[0].members[0]": func(c *Config) { c.Accounts[0].Members = []messages.Name{"nobody"} },
		"default_account":        func(c *Config) { c.DefaultAccount = "nobody" },
		"markets":                func(c *Config) { c.Markets = nil },
		"markets[0].name":        func(c *Config) { c.Markets[0].Name = ">" },
		"markets[0].mechanism":   func(c *Config) { c.Markets[0].Mechanism = "lottery" },
		"markets[0].classes[0]":  func(c *Config) { c.Markets[0].Classes[0] = "mapp" },
		"markets[0].time_limit":  func(c *Config) { c.Markets[0].TimeLimit = -1 },
		"markets[0].alpha":       func(c *Config) { c.Markets[0].Alpha = &nan },
		"nodes[0].name":          func(c *Config) { c.Nodes[0].Name = "*" },
		"nodes[1].name":          func(c *Config) { c.Nodes[1].Name = "node1" },
		"nodes[1].slots":         func(c *Config) { c.Nodes[1].Slots = nil },
		"nodes[1].slots.reduce":  func(c *Config) { c.Nodes[1].Slots[1].Slots = 10_000_000 },
		"nodes[0].suspended":     func(c *Config) { c.Nodes[0].Suspended = -1 },
		"files.retention":        func(c *Config) { c.Files.Retention = 1 },
		"files.quota_mib":        func(c *Config) { c.Files.QuotaMiB = 1 },
		"markets[0].weights":     func(c *Config) { c.Markets[0].Weights = jobmsg.Weights{{Class: "alice", Weight: 1}} },
		"markets[0].prior_jobs":  func(c *Config) { c.Markets[0].PriorJobs = make([]market.QueuedType, 1) },
		"tls.key":                func(c *Config) { c.TLS = &TLS{Cert: "a", CA: "b"} },
		"hosts":                  func(c *Config) { c.Hosts = three()[:2] },
		"hosts[1].name":          func(c *Config) { c.Hosts = three(); c.Hosts[1].Name = "a" },
		"hosts[2].cluster":       func(c *Config) { c.Hosts = three(); c.Hosts[2].Cluster = c.Hosts[0].Bank },
		"hosts[2].bank":          func(c *Config) { c.Hosts = three(); c.Hosts[2].Bank = "127.0.0.1:0" },
		"hosts[0].nodes[1]":      func(c *Config) { c.Hosts = three(); c.Hosts[0].Nodes = append(c.Hosts[0].Nodes, "node9") },
		"nodes[0]":               func(c *Config) { c.Hosts = three(); c.Hosts[0].Nodes = nil },
	}
	for path, change := range cases {
		t.Run(path, func(t *testing.T) {
			c := valid()
			change(&c)
			var problems Problems
			if err := c.Validate(); !errors.As(err, &problems) {
				t.Fatalf("Validate: %v, want problems", err)
			}
			if len(problems) != 1 || problems[0].Path != path {
				t.Errorf("problems %v, want one of %s", problems, path)
			}
		})
	}
}

func three() []Host {
	return []Host{
		{Name: "a", Listen: "127.0.0.1:1", Cluster: "127.0.0.1:2", Auctioneer: "127.0.0.1:3", Bank: "127.0.0.1:4", Nodes: []messages.Name{"node1"}},
		{Name: "b", Listen: "127.0.0.1:5", Cluster: "127.0.0.1:6", Auctioneer: "127.0.0.1:7", Bank: "127.0.0.1:8", Nodes: []messages.Name{"node2"}},
		{Name: "c", Listen: "127.0.0.1:9", Cluster: "127.0.0.1:10", Auctioneer: "127.0.0.1:11", Bank: "127.0.0.1:12"},
	}
}

func TestHostsAreValid(t *testing.T) {
	c := valid()
	c.Hosts = three()
	if err := c.Validate(); err != nil {
		t.Fatal(err)
	}
}

// The auctioneer must accept every mechanism that a configuration may name, and no other known name.
func TestMechanismsAreTheAuctioneers(t *testing.T) {
	known := auctioneer.Mechanisms()
	for _, name := range []string{"proportional", "highest-bid", "deadline", "batch-queue", "reservation", "contract", "fifo", "fairshare", "backfill"} {
		c := auctioneer.Config{
			Site: "west", Replica: "1", Bus: bus.NewMemory().Connect("$auctioneer"),
			Open:    func(mailbox.Machine) (mailbox.Mailbox, error) { return nil, errors.New("not opened") },
			Markets: []market.Market{{Name: "main", Mechanism: name, Classes: []messages.Name{"map"}}},
		}
		if name == market.BatchQueue {
			c.Markets[0].Pricing = "pivot"
		}
		takes, listed := c.Validate() == nil, strings.Contains(" "+strings.Join(known, " ")+" ", " "+name+" ")
		if takes != listed {
			t.Errorf("mechanism %s: the auctioneer takes it: %v; Mechanisms lists it: %v", name, takes, listed)
		}
	}
}
