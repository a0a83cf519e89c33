package embedded

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"net"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/candor-grid/candor/auctioneer"
	"github.com/candor-grid/candor/deploy/identity"
	"github.com/candor-grid/candor/messages"
	agentmsg "github.com/candor-grid/candor/messages/agent"
	"github.com/candor-grid/candor/messages/clearing"
	jobmsg "github.com/candor-grid/candor/messages/job"
	"github.com/candor-grid/candor/messages/market"
	"github.com/candor-grid/candor/messages/spelling"
)

// These are the limits of a configuration. They are far above what one process can run, but low enough to find a
// mistyped number.
const (
	maxNodes    = 100_000
	maxSlots    = 100_000 // slots of one class on one node
	maxReplicas = 7
	minLease    = time.Second
	maxLease    = time.Hour
)

// Validate returns all errors in the configuration as [Problems], or nil.
func (c *Config) Validate() error {
	var ps Problems
	ps.name("site", c.Site)
	if c.State == "" {
		ps.addf("state", "is missing; name a directory for the state of the site")
	}
	if len(c.Hosts) == 0 {
		ps.address("listen", c.Listen, true)
	}
	if c.Metrics != "" {
		ps.address("metrics", c.Metrics, true)
	}
	c.checkReplicas(&ps)
	if d := c.RemoteFor; d != 0 && (d < clearing.MinInterval || d > clearing.MaxInterval) {
		ps.addf("roam_for", "%v is out of range; use %v to %v", d, clearing.MinInterval, clearing.MaxInterval)
	}
	if d := c.CredentialsFor.Std(); d != 0 && (d < identity.MinLife || d > identity.MaxLife) {
		ps.addf("credentials_for", "%v is out of range; use %v to %v", c.CredentialsFor, messages.Duration(identity.MinLife), messages.Duration(identity.MaxLife))
	}
	if d := c.Lease.Std(); d != 0 && (d < minLease || d > maxLease) {
		ps.addf("lease", "%v is out of range; use %v to %v", c.Lease, minLease, maxLease)
	}
	ps.field("limits", c.Limits.Validate())
	ps.field("notify", c.Notify.Validate())
	c.checkAccounts(&ps)
	c.checkMarkets(&ps)
	if err := c.Licenses.Validate("licenses"); err != nil {
		ps.addf("licenses", "%s", strings.TrimPrefix(messages.Detail(err), "licenses: "))
	}
	if f := c.SubmitFilter; f != "" && !filepath.IsAbs(f) {
		ps.addf("submit_filter", "%q must be the absolute path of a program, such as /etc/candor/submit-filter", f)
	}
	if c.Slurm != nil {
		ps.field("slurm", c.Slurm.Validate(c.Markets))
	}
	c.checkProfiles(&ps)
	c.checkNodes(&ps)
	c.checkTasks(&ps)
	c.checkFiles(&ps)
	c.checkGPUs(&ps)
	c.checkTLS(&ps)
	c.checkDoors(&ps)
	c.checkConsole(&ps)
	c.checkSignOn(&ps)
	c.checkPeers(&ps)
	c.checkHosts(&ps)
	if len(ps) == 0 {
		return nil
	}
	return ps
}

func (c *Config) checkReplicas(ps *Problems) {
	if len(c.Hosts) > 0 {
		return
	}
	if c.Replicas < 1 || c.Replicas > maxReplicas || c.Replicas%2 == 0 {
		ps.addf("replicas", "%d is not possible; use an odd number from 1 to %d (3 replicas survive the loss of 1, 5 replicas the loss of 2)", c.Replicas, maxReplicas)
	}
}

func (c *Config) checkAccounts(ps *Problems) {
	if len(c.Operators) == 0 {
		ps.addf("operators", "is empty; name at least one account that may grant credits")
	}
	known := map[messages.Name]bool{}
	for i, name := range c.Operators {
		path := at("operators", i)
		ps.name(path, name)
		ps.unique(path, name, known)
	}
	opened := map[messages.Name]bool{}
	for i, a := range c.Accounts {
		path := at("accounts", i)
		if len(a.Members) > 0 {
			ps.freeName(path+".name", a.Name)
		} else {
			ps.name(path+".name", a.Name)
		}
		ps.unique(path+".name", a.Name, opened)
		known[a.Name] = messages.ValidName(a.Name)
		if a.Grant < 0 {
			ps.addf(path+".grant", "%v is negative; a grant gives credits", a.Grant)
		}
		if a.Grant == 0 && len(a.Members) > 0 {
			ps.addf(path+".grant", "is missing: the first grant opens an account, so an account with members needs a grant")
		}
	}
	c.checkMembers(ps, known)
	if c.DefaultAccount != "" && !known[c.DefaultAccount] {
		ps.addf("default_account", "%q is neither among accounts nor among operators%s", clip(c.DefaultAccount), didYouMean(c.DefaultAccount, sorted(known)))
	}
}

func (c *Config) checkMembers(ps *Problems, known map[messages.Name]bool) {
	for i, a := range c.Accounts {
		members := map[messages.Name]bool{}
		for j, m := range a.Members {
			path := at(at("accounts", i)+".members", j)
			ps.unique(path, m, members)
			if !known[m] {
				ps.addf(path, "%q is neither among accounts nor among operators%s", clip(m), didYouMean(m, sorted(known)))
			}
		}
	}
}

func (c *Config) checkMarkets(ps *Problems) {
	if len(c.Markets) == 0 {
		ps.addf("markets", "is empty; a site needs at least one market")
	}
	offered := c.offered()
	nodes := c.nodeNames()
	names := map[messages.Name]bool{}
	meant := slices.Clone(c.Markets) // the same market, with the mechanism that was probably meant
	for i, m := range c.Markets {
		path := at("markets", i)
		ps.freeName(path+".name", m.Name)
		ps.unique(path+".name", m.Name, names)
		known := auctioneer.Mechanisms()
		if !slices.Contains(known, m.Mechanism) {
			ps.addf(path+".mechanism", "%q is no mechanism of this version; it has %s%s",
				clip(m.Mechanism), strings.Join(known, ", "), didYouMean(m.Mechanism, known))
		}
		c.checkClasses(ps, path+".classes", m.Classes, offered)
		for k, n := range m.Nodes {
			if !nodes[n] {
				ps.addf(at(path+".nodes", k), "%q is not among nodes%s", clip(n), didYouMean(n, sorted(nodes)))
			}
		}
		if meant[i].Mechanism = cmp.Or(spelling.Nearest(m.Mechanism, known), m.Mechanism); slices.Contains(known, meant[i].Mechanism) {
			ps.field(path, auctioneer.CheckMarket(meant, i))
		}
	}
}

// The method field records errors about the value of the configuration at `path`. Each message begins with the name of
// a field of this value. If this field already has an error, the new error is skipped.
func (ps *Problems) field(path string, err error) {
	if err == nil {
		return
	}
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		for _, one := range joined.Unwrap() {
			ps.field(path, one)
		}
		return
	}
	text := messages.Detail(err)
	if name, rest, ok := strings.Cut(text, ": "); ok && !strings.Contains(name, " ") {
		path, text = path+"."+name, rest
	}
	if !slices.ContainsFunc(*ps, func(p Problem) bool { return p.Path == path }) {
		ps.addf(path, "%s", text)
	}
}

func (c *Config) nodeNames() map[messages.Name]bool {
	names := map[messages.Name]bool{}
	for _, n := range c.Nodes {
		names[n.Name] = true
	}
	return names
}

// checkClasses refuses a class that looks like a misspelt class of a node. It accepts other unknown classes: the file
// of an agent has only its own nodes, and nodes may be added later.
func (c *Config) checkClasses(ps *Problems, path string, classes []messages.Name, offered map[messages.Name]bool) {
	if len(classes) == 0 {
		ps.addf(path, "is empty; name the classes of slots that the market allocates")
	}
	seen := map[messages.Name]bool{}
	for i, class := range classes {
		ps.unique(at(path, i), class, seen)
		if near := spelling.Nearest(class, sorted(offered)); !offered[class] && near != "" && !c.sells(near) {
			ps.addf(at(path, i), "no node offers class %q%s", clip(class), didYouMean(class, sorted(offered)))
		}
	}
}

func (c *Config) sells(class messages.Name) bool {
	return slices.ContainsFunc(c.Markets, func(m market.Market) bool { return slices.Contains(m.Classes, class) })
}

func (c *Config) offered() map[messages.Name]bool {
	offered := map[messages.Name]bool{}
	for _, n := range c.Nodes {
		for _, s := range n.offers(c.Markets) {
			offered[s.Class] = true
		}
	}
	return offered
}

func (c *Config) checkNodes(ps *Problems) {
	if len(c.Nodes) == 0 {
		ps.addf("nodes", "is empty; a site needs at least one node")
	}
	if len(c.Nodes) > maxNodes {
		ps.addf("nodes", "%d is above the limit of %d", len(c.Nodes), maxNodes)
		return
	}
	names := map[messages.Name]bool{}
	for i, n := range c.Nodes {
		path := at("nodes", i)
		ps.name(path+".name", n.Name)
		ps.unique(path+".name", n.Name, names)
		if len(n.offers(c.Markets)) == 0 {
			ps.addf(path+".slots", "is empty, and no market of the node sells a class with a unit that fits into the node's resources; write how many slots of which class the node has, like {map: 2}")
		}
		if n.Suspended < 0 || n.Suspended > agentmsg.MaxSuspended {
			ps.addf(path+".suspended", "%d is out of range; use 1 to %d suspended tasks; the default is four suspended tasks per slot", n.Suspended, agentmsg.MaxSuspended)
		}
		if r := n.Resources; r != nil {
			if err := r.Validate(path + ".resources"); err != nil {
				where, what, _ := strings.Cut(messages.Detail(err), ": ")
				ps.addf(where, "%s", what)
			}
		}
		if n.Declared && n.Resources == nil {
			ps.addf(path+".declared", "is true, and no resources are declared; write resources, like {cpus: 64, memory: 512G}")
		}
		for j, l := range n.Labels {
			ps.freeName(at(path+".labels", j), l)
		}
		for _, s := range n.Slots {
			if !messages.ValidFreeName(s.Class) {
				ps.addf(path+".slots", "class %q: %s", clip(s.Class), freeNameRule)
			}
			if s.Slots < 1 || s.Slots > maxSlots {
				ps.addf(path+".slots."+s.Class, "%d is out of range; use 1 to %d", s.Slots, maxSlots)
			}
		}
	}
}

// These are the limits on the values in the sections Files and Archive of the configuration. There are two reasons for
// them: a file must be kept long enough for a task to find its inputs, and a bucket cannot count more than mostQuota.
const (
	leastRetention = messages.Duration(time.Minute)
	mostRetention  = messages.Duration(10 * 365 * 24 * time.Hour)
	leastQuota     = jobmsg.MaxJobFiles >> 20 // MiB
	mostQuota      = 1 << 40                  // MiB
	leastArchive   = 16                       // MiB
	mostArchive    = 1 << 20                  // MiB
)

func (c *Config) checkFiles(ps *Problems) {
	if r := c.Files.Retention; r != 0 && (r < leastRetention || r > mostRetention) {
		ps.addf("files.retention", "%v is out of range; use %v to ten years; the default is 14 days", r, leastRetention)
	}
	if r := c.Archive.Retention; r != 0 && (r < leastRetention || r > mostRetention) {
		ps.addf("archive.retention", "%v is out of range; use %v to ten years; the default is 90 days", r, leastRetention)
	}
	if m := c.Archive.MiB; m != 0 && (m < leastArchive || m > mostArchive) {
		ps.addf("archive.mib", "%d is out of range; use %d to %d; the default is 1024", m, leastArchive, mostArchive)
	}
	if q := c.Files.QuotaMiB; q != 0 && (q < leastQuota || q > mostQuota) {
		ps.addf("files.quota_mib", "%d is out of range; use %d (the largest size of the files of one job) to %d; the default is 4096", q, leastQuota, int64(mostQuota))
	}
}

func (c *Config) checkGPUs(ps *Problems) {
	for _, of := range []struct{ name, path string }{{"program", c.Devices.Program}, {"health", c.Devices.Health}} {
		if of.path != "" && !filepath.IsAbs(of.path) {
			ps.addf("gpus."+of.name, "%q must be the absolute path of a program", of.path)
		}
	}
	if e := c.Devices.Every; e < 0 || e > 0 && e < messages.Duration(time.Second) {
		ps.addf("gpus.every", "%v is out of range; use 1s or more; the default is 1m", e)
	}
}

func (c *Config) checkTLS(ps *Problems) {
	if c.TLS == nil {
		return
	}
	for _, f := range []struct{ name, file string }{{"cert", c.TLS.Cert}, {"key", c.TLS.Key}, {"ca", c.TLS.CA}} {
		if f.file == "" {
			ps.addf("tls."+f.name, "is missing; TLS needs cert, key and ca")
		}
	}
}

// checkHosts requires an odd number of hosts. Each address must be used once, and each node must be on exactly one
// host.
func (c *Config) checkHosts(ps *Problems) {
	if len(c.Hosts) == 0 {
		return
	}
	if n := len(c.Hosts); n%2 == 0 || n > maxReplicas {
		ps.addf("hosts", "there are %d; a site has one replica on each host, so use an odd number up to %d", n, maxReplicas)
	}
	if !slices.ContainsFunc(c.Hosts, func(h Host) bool { return !h.Joins }) {
		ps.addf("hosts", "every host has joins: true, so no host begins the site; leave the field joins out for the hosts that begin the site")
	}
	names, addresses, placed := map[messages.Name]bool{}, map[messages.Name]bool{}, map[messages.Name]bool{}
	nodes := map[messages.Name]bool{}
	for _, n := range c.Nodes {
		nodes[n.Name] = true
	}
	for i, h := range c.Hosts {
		path := at("hosts", i)
		ps.name(path+".name", h.Name)
		ps.unique(path+".name", h.Name, names)
		h.checkAddresses(ps, path, addresses)
		for j, n := range h.Nodes {
			ps.unique(at(path+".nodes", j), n, placed)
			if !nodes[n] {
				ps.addf(at(path+".nodes", j), "%q is not among nodes%s", clip(n), didYouMean(n, sorted(nodes)))
			}
		}
	}
	for i, n := range c.Nodes {
		if !placed[n.Name] {
			ps.addf(at("nodes", i), "%q is on no host; add it to the nodes of one host", clip(n.Name))
		}
	}
}

func (h *Host) checkAddresses(ps *Problems, path string, seen map[string]bool) {
	for _, a := range []struct{ field, address string }{
		{"listen", h.Listen}, {"cluster", h.Cluster}, {"auctioneer", h.Auctioneer}, {"bank", h.Bank},
	} {
		ps.address(path+"."+a.field, a.address, false)
		ps.unique(path+"."+a.field, a.address, seen)
	}
	if h.Leaf != "" {
		ps.address(path+".leaf", h.Leaf, true)
		ps.unique(path+".leaf", h.Leaf, seen)
	}
	if h.Metrics != "" {
		ps.address(path+".metrics", h.Metrics, true)
		ps.unique(path+".metrics", h.Metrics, seen)
	}
}

const nameRule = "write a lower-case letter, then at most 62 lower-case letters, digits, '-' or '_'"

func (ps *Problems) name(path string, n messages.Name) {
	switch {
	case n == "":
		ps.addf(path, "is missing; %s", nameRule)
	case !messages.ValidName(n):
		ps.addf(path, "%q is not a name; %s", clip(n), nameRule)
	}
}

const freeNameRule = "write a letter or digit, then at most 62 letters, digits, '.', '-' or '_'"

func (ps *Problems) freeName(path string, n messages.Name) {
	switch {
	case n == "":
		ps.addf(path, "is missing; %s", freeNameRule)
	case !messages.ValidFreeName(n):
		ps.addf(path, "%q is not a name; %s", clip(n), freeNameRule)
	}
}

func (ps *Problems) unique(path, value string, seen map[string]bool) {
	if seen[value] && value != "" {
		ps.addf(path, "%q is listed twice", clip(value))
	}
	seen[value] = true
}

// address checks an address of the form host:port. Port 0 means that the system chooses a free port. It is allowed only
// if the argument `free` is true, for addresses whose chosen port is published.
func (ps *Problems) address(path, address string, free bool) {
	if address == "" {
		ps.addf(path, "is missing; write an address like 127.0.0.1:4222")
		return
	}
	host, port, err := net.SplitHostPort(address)
	n, perr := strconv.Atoi(port)
	if err != nil || host == "" || perr != nil || n < 0 || n > math.MaxUint16 || n == 0 && !free {
		ps.addf(path, "%q is not an address; write host:port like 127.0.0.1:4222", clip(address))
	}
}

func at(path string, i int) string { return fmt.Sprintf("%s[%d]", path, i) }

func sorted(set map[string]bool) []string { return slices.Sorted(maps.Keys(set)) }

func clip(s string) string { return messages.Short(s, 64) }
