package embedded

import (
	"cmp"
	"encoding/json"
	"path/filepath"
	"slices"
	"sort"
	"strconv"

	"github.com/candor-grid/candor/auctioneer/notify"
	"github.com/candor-grid/candor/auctioneer/quota"
	"github.com/candor-grid/candor/deploy/console/signon"
	"github.com/candor-grid/candor/messages"
	jobmsg "github.com/candor-grid/candor/messages/job"
	"github.com/candor-grid/candor/messages/market"
)

// Config describes a site. The tags are the names of the fields in a configuration file. [Default] gives the values
// of fields that a file leaves out.
type Config struct {
	// Site is the site's name, a token of every subject.
	Site messages.Name `json:"site"`
	// State is the directory for everything that the site keeps.
	State string `json:"state"`
	// Keys is the directory of the site's keys. The default is "keys" in State. Hosts of one site need the same keys.
	Keys string `json:"keys,omitempty"`
	// Listen is the address for NATS clients. Port 0 means any free port.
	Listen string `json:"listen"`
	// ListenLeaf is the address for the NATS servers of peers. Without it, no peer can connect.
	ListenLeaf string `json:"listen_leaf,omitempty"`
	// Metrics is the address that serves Prometheus metrics. Without it, no metrics are served.
	Metrics string `json:"metrics,omitempty"`
	// MetricsToken is a file with the bearer token that readers of the metrics must show. If the metrics are served
	// beyond loopback, a token needs TLS. If MetricsToken is empty, readers need no token.
	MetricsToken string `json:"metrics_token,omitempty"`
	// MetricsPublic lets everybody who can reach the port read the metrics beyond
	// loopback.
	MetricsPublic bool `json:"metrics_public,omitempty"`
	// MetricsAccounts is the number of accounts whose credits the metrics show. These are the accounts that were
	// granted the most credits. The default is 0, because people who are not operators may also read the metrics.
	MetricsAccounts int `json:"metrics_accounts,omitempty"`
	// Profile serves pprof at a socket in the state directory, for the owner of this directory only, because the memory
	// of a site has secrets.
	Profile bool `json:"profile,omitempty"`
	// Console is the address on which the site serves its console, the pages that show the site in a browser. Beyond
	// loopback, this address needs TLS. Without it, there is no console.
	Console string `json:"console,omitempty"`
	// WebSocket is the address on which the NATS server accepts connections from browsers. An address beyond loopback
	// needs TLS. The server accepts connections only from pages of the console. These are the pages at the site's own
	// console (see Console), or the pages that the command candor console serves on a user's machine. If Console is
	// set, the default is the port after the console's port. If neither WebSocket nor Console is set, no browser can
	// connect.
	WebSocket string `json:"websocket,omitempty"`
	// SignOn lets people sign in to the console at the site's own provider, over OIDC. Without it they
	// need a file of credentials.
	SignOn *signon.Rules `json:"sign_on,omitempty"`
	// Replicas is the number of replicas of the auctioneer and of the bank. It must be odd and at most 7. With Hosts,
	// leave it out: each host has one replica.
	Replicas int `json:"replicas,omitempty"`
	// Lease is how long an agent may run tasks without an answer of the leader. After this time, the agent ends its
	// tasks. After one and a half times this time, its node counts as lost, and the tasks run elsewhere. 0 means the
	// auctioneer's default.
	Lease messages.Duration `json:"lease,omitempty"`
	// RemoteFor is the longest time for a job at another site. The job's budget is authorised for this time. 0 means 7
	// days.
	RemoteFor messages.Duration `json:"roam_for,omitempty"`
	// CredentialsFor is how long credentials of users and operators are valid. Clients renew them before the end. 0
	// means 90 days.
	CredentialsFor messages.Duration `json:"credentials_for,omitempty"`
	// DefaultAccount is the account that the command line uses if the user names none. The default is the first of
	// Accounts.
	DefaultAccount messages.Name `json:"default_account,omitempty"`
	// Operators may grant credits, and see and cancel the jobs of all accounts.
	Operators []messages.Name `json:"operators"`
	// Accounts are the accounts that the site opens. It grants each account its credits once.
	Accounts []Account `json:"accounts"`
	// Markets are the markets of the site. A job that names no market goes to the first
	// one.
	Markets []market.Market `json:"markets"`
	// Licenses is how many licences of each name the site has, like {matlab: 4}. Running tasks can use at most this
	// number of licences at once.
	Licenses jobmsg.Licenses `json:"licenses,omitempty"`
	// Slurm says what the names of partitions, accounts and others mean in scripts that were written for Slurm. Without
	// it, a partition is the market of the same name, and an account is the project of the same name.
	Slurm *market.SlurmNames `json:"slurm,omitempty"`
	// SubmitFilter is a program of the site that may change or refuse each job, such as /etc/candor/submit-filter. Each
	// host with a replica must have it. Without it, every job is accepted unchanged.
	SubmitFilter string `json:"submit_filter,omitempty"`
	// Profiles are the classes of job profiles. The estimator learns the types of each class.
	Profiles []jobmsg.Profile `json:"profiles,omitempty"`
	// Nodes are the nodes whose agents run here; each node counts as a machine of its
	// own.
	Nodes []Node `json:"nodes"`
	// Tasks bounds every task of these nodes, if the machine can enforce the bounds.
	Tasks Tasks `json:"tasks,omitzero"`
	// Devices says how the GPUs of a machine are found, and which of them work.
	Devices GPUs `json:"gpus,omitzero"`
	// Peers are the sites with which this site exchanges jobs and credits.
	Peers []Peer `json:"peers,omitempty"`
	// Reserve is the most that all peers together may owe for settlements that are not yet paid outside the banks. 0
	// means the last setting of the bank. If the bank has no setting, 0 means the sum of the peers' shares.
	Reserve messages.Credits `json:"reserve,omitempty"`
	// LeastVisit is the smallest amount that another site may authorise for a job, and the smallest amount that is
	// remitted to another site. The default is 0.01 credits.
	LeastVisit messages.Credits `json:"least_visit,omitempty"`
	// SilentAfter is how long the bank of a peer may be silent before the peer is suspended: nothing new begins with it
	// until it answers. The default is an hour.
	SilentAfter messages.Duration `json:"silent_after,omitempty"`
	// Limits bounds the requests of each account.
	Limits quota.Rules `json:"limits,omitzero"`
	// Notify says how messages about jobs are sent, and to whom; without it the site
	// sends none.
	Notify notify.Rules `json:"notify,omitzero"`
	// Files bounds the files of jobs that the site keeps.
	Files Files `json:"files,omitzero"`
	// Archive bounds the records of ended jobs that each replica keeps on its disk.
	Archive Archive `json:"archive,omitzero"`
	// TLS secures the ports for clients, peers and metrics. It may be left out if these ports are on loopback. The
	// ports between hosts are always secured, by the site's keys.
	TLS *TLS `json:"tls,omitempty"`
	// Plaintext lets clients and peers connect beyond loopback without TLS. Set it only in a network that nobody else
	// can use.
	Plaintext bool `json:"plaintext,omitempty"`
	// Hosts spreads the site over several processes.
	Hosts []Host `json:"hosts,omitempty"`
}

// Account is an account that the site opens at its first start.
type Account struct {
	Name messages.Name `json:"name"` // name of the user or project
	// Grant is the number of credits that the site grants when it opens the account.
	// Later changes of Grant have no effect. Without Grant, the first grant of an
	// operator opens the account.
	Grant messages.Credits `json:"grant,omitempty"`
	// Members may spend from the account. An account with members is a project.
	Members []messages.Name `json:"members,omitempty"`
}

// Node is a node and what it offers.
type Node struct {
	Name messages.Name `json:"name"` // name that candor nodes shows
	// Slots is the number of slots of each class, like {map: 2, reduce: 1}. If left out, each class with a unit gets as
	// many slots as the node has resources for.
	Slots Slots `json:"slots,omitempty"`
	// Suspended bounds the number of suspended tasks on the node. If there are more, the site ends suspended tasks,
	// first the ones that have run for the shortest time. It runs them again later from their beginning. 0 means four
	// for each slot.
	Suspended int `json:"suspended,omitempty"`
	// Resources is all that the node has, like {cpus: 64, memory: 512G, gpus: 8, gpu_type: a100}. Each task of a class
	// with a unit takes a part of it. Resources cannot be more than the machine has. If neither resources nor slots are
	// given, the node has everything that the machine has.
	Resources *jobmsg.Resources `json:"resources,omitempty"`
	// Declared says that the node may have more resources than the machine, to try a large site on a small machine:
	// tasks are then not limited to processors and GPUs.
	Declared bool `json:"declared,omitempty"`
	// Labels are words that jobs use to choose nodes, like infiniband.
	Labels []messages.Name `json:"labels,omitempty"`
}

// GPUs says how the GPUs of a machine are found, and which of them work. The programs named in Program and Health run
// as the user who runs the site. Each may take 30 s.
type GPUs struct {
	// Program is a command that prints the GPUs of the machine, as a JSON list like [{"index": 0, "uuid": "GPU-1f2e",
	// "type": "a100", "files": ["/dev/nvidia0"]}], with "amd": true for GPUs of AMD. Without Program, the site asks
	// nvidia-smi and rocm-smi.
	Program string `json:"program,omitempty"`
	// Health runs for each GPU, with the index and the UUID of the GPU as arguments. A GPU is not sold while the
	// program ends with another code than 0; the first line that it prints goes to the log. If the set of working GPUs
	// has changed, the node takes no tasks until its running tasks have ended. Then it sells the GPUs that work.
	Health string `json:"health,omitempty"`
	// Every is the time between two runs of Health. The default is a minute.
	Every messages.Duration `json:"every,omitempty"`
}

// Tasks is how tasks run.
type Tasks struct {
	// MemoryMiB bounds the memory of a task whose stage names no limit, in MiB. 0 means the value of MaxMemoryMiB.
	MemoryMiB int64 `json:"memory_mib,omitempty"`
	// MaxMemoryMiB is the highest memory limit that a stage may name. A job with a higher limit is refused. 0 means the
	// value of MemoryMiB. If both are 0, there is no bound.
	MaxMemoryMiB int64 `json:"max_memory_mib,omitempty"`
	// Classes has the bounds of single classes. For such a class they replace MemoryMiB and MaxMemoryMiB.
	Classes map[messages.Name]TaskMemory `json:"classes,omitempty"`
	// Processes bounds the processes and threads of a task. 0 means 4,096.
	Processes int64 `json:"processes,omitempty"`
	// CPU is the number of processors that a task may use. 0 means no bound.
	CPU float64 `json:"cpu,omitempty"`
	// OutputMiB bounds each output of a task, in MiB. 0 means 64. If an output is longer, the site keeps its beginning
	// and its end, half of the limit each.
	OutputMiB int64 `json:"output_mib,omitempty"`
	// OutputKeep says which part of a long output is kept. "ends" means its beginning and its end, half of the limit
	// each; this is the default. "tail" means only its end.
	OutputKeep string `json:"output_keep,omitempty"`
	// User is the user for tasks: every task runs as this user. There are four forms. The name of a user means this
	// user. "account" means the user with the name of the job's account. A range of user numbers, such as
	// "100000-165535", has one number for each account. "self" means the user that runs the site; then tasks can read
	// and change this user's files. If root starts the site, the default is a free range. Otherwise the default is the
	// best protection that the machine offers an ordinary user.
	User string `json:"user,omitempty"`
	// Private leaves every task without a network. The site refuses to start if the machine cannot keep tasks apart by
	// namespaces.
	Private bool `json:"private,omitempty"`
	// Namespaces is "allow" to let tasks make user namespaces, and in them namespaces of mounts, processes and host
	// names, as bubblewrap and Apptainer do. Tasks can then reach more of the kernel; see the page on security. The
	// default is "refuse".
	Namespaces string `json:"namespaces,omitempty"`
	// DiskMiB bounds the files in a task's own working directory, and the files of an account in temporary directories,
	// in MiB. 0 means 10,240.
	DiskMiB int64 `json:"disk_mib,omitempty"`
	// KeptMiB bounds what the ended tasks of an account keep on a node, in MiB: their directories and outputs. If they
	// take more, the oldest files are removed. 0 means a tenth of the disk, but at least 256.
	KeptMiB int64 `json:"kept_mib,omitempty"`
	// FreeMiB is the reserve of a node's disk for the site's own files, in MiB. The value 0 means a twentieth of the
	// disk, but at least 512 and at most 8,192. If less than the reserve is free, the node removes files of ended
	// tasks, first the files of the account whose files take the most space. Below three quarters of the reserve, the
	// node takes no tasks. Below five eighths of the reserve, it ends the tasks that use the most space. A free inode
	// counts as its share of the disk. A replica has a limit of its own: it refuses requests while less than 256 MiB
	// are free.
	FreeMiB int64 `json:"free_mib,omitempty"`
	// Prolog is a program of the site that runs before the first task of a job on a node, such as /etc/candor/prolog.
	// If it fails, the node is put in quarantine, and the task runs elsewhere.
	Prolog string `json:"prolog,omitempty"`
	// Epilog is a program of the site that runs when a node has had no task of a job for 30 seconds.
	Epilog string `json:"epilog,omitempty"`
}

// TaskMemory has the limits of a class for the memory of a task and for the kept output. They replace the limits for
// all classes in [Tasks].
type TaskMemory struct {
	MemoryMiB    int64 `json:"memory_mib,omitempty"`     // see the field of the same name for all classes
	MaxMemoryMiB int64 `json:"max_memory_mib,omitempty"` // see the field of the same name for all classes
	OutputMiB    int64 `json:"output_mib,omitempty"`     // see the field of the same name for all classes
}

// Files says how long the site keeps the files of jobs, and how much space they may take. A change applies to an
// account's files when one of them is next used.
type Files struct {
	// Retention is how long a file is kept. 0 means 14 days.
	Retention messages.Duration `json:"retention,omitempty"`
	// QuotaMiB bounds the files of each account, in MiB. 0 means 4,096.
	QuotaMiB int64 `json:"quota_mib,omitempty"`
}

// Archive says how long a replica of the auctioneer keeps ended jobs, and how much space they may take.
type Archive struct {
	// Retention is how long a job is kept after its end. 0 means 90 days.
	Retention messages.Duration `json:"retention,omitempty"`
	// MiB bounds the size of all files with ended jobs together. The oldest files are removed first. 0 means 1,024.
	MiB int64 `json:"mib,omitempty"`
}

// Slots is how many slots of each class a node has, in the order of the class names. In a configuration file, it is a
// mapping from class to number.
type Slots []jobmsg.ClassSlots

// TLS names PEM files: a certificate for this host that is valid for server and client, its key,
// and the authority that signed the certificates of all hosts. "{host}" in a name stands for the
// host's name.
type TLS struct {
	Cert string `json:"cert"` // PEM file of this host's certificate; {host} in a name stands for the host's name
	Key  string `json:"key"`  // PEM file of its key
	CA   string `json:"ca"`   // PEM file of the authority that signed the certificates of all hosts
}

// Host is one process's share of a site: a NATS server, a replica of the
// auctioneer and of the bank, an estimator, and the agents of some nodes.
type Host struct {
	Name       messages.Name   `json:"name"`            // name for candor up --host
	Listen     string          `json:"listen"`          // address for NATS clients
	Cluster    string          `json:"cluster"`         // address for the NATS servers of the other hosts
	Auctioneer string          `json:"auctioneer"`      // Raft port of the auctioneer's replica
	Bank       string          `json:"bank"`            // Raft port of the bank's replica
	Nodes      []messages.Name `json:"nodes,omitempty"` // nodes whose agents run on this host
	// Joins says that the host's replicas are added to existing groups (candor replica add), and do
	// not begin their own.
	Joins bool `json:"joins,omitempty"`
	// Leaf is the address at which this host listens for leaf nodes. If it is set, the host uses it instead of the
	// site's ListenLeaf.
	Leaf string `json:"leaf,omitempty"`
	// Metrics replaces the site's Metrics for this host.
	Metrics string `json:"metrics,omitempty"`
}

// Default returns a site to try out, on loopback: three users and an operator, two nodes, one market. Each node has an
// executor, so few large nodes cost less than many small nodes.
func Default() Config {
	return Config{
		Site:      "west",
		Listen:    "127.0.0.1:4222",
		Replicas:  3,
		Operators: []messages.Name{"operator"},
		Accounts: []Account{
			{Name: "alice", Grant: 1000 * messages.Credit},
			{Name: "bob", Grant: 1000 * messages.Credit},
			{Name: "carol", Grant: 1000 * messages.Credit},
		},
		Markets: []market.Market{{Name: "main", Mechanism: "proportional", Classes: []messages.Name{"map", "reduce"}}},
		Nodes:   NodesAlike(2, Slots{{Class: "map", Slots: 4}, {Class: "reduce", Slots: 2}}),
	}
}

// NodesAlike returns n nodes with the names node1, node2, … and the same slots.
func NodesAlike(n int, slots Slots) []Node { return Node{Slots: slots}.Times(n) }

// Times returns count copies of this node, with the names node1, node2, ….
func (n Node) Times(count int) []Node {
	nodes := make([]Node, count)
	for i := range nodes {
		nodes[i] = n
		nodes[i].Name, nodes[i].Slots = "node"+strconv.Itoa(i+1), slices.Clone(n.Slots)
	}
	return nodes
}

// Without a configured default account, defaultAccount chooses the first account or operator.
func (c *Config) defaultAccount() messages.Name {
	if c.DefaultAccount != "" {
		return c.DefaultAccount
	}
	for _, a := range c.Accounts {
		if messages.ValidName(a.Name) {
			return a.Name
		}
	}
	return c.Operators[0]
}

// replicaIDs returns the names of the replicas in each group. If the site has hosts in its configuration, these are the
// names of the hosts. Otherwise they are the numbers from 1.
func (c *Config) replicaIDs() (ids []string) {
	for i := range c.Hosts {
		ids = append(ids, c.Hosts[i].Name)
	}
	if len(c.Hosts) == 0 {
		for i := range c.Replicas {
			ids = append(ids, strconv.Itoa(i+1))
		}
	}
	return ids
}

// KeysDir returns the directory of the site's keys.
func (c *Config) KeysDir() string { return cmp.Or(c.Keys, filepath.Join(c.State, "keys")) }

func (c *Config) host(name messages.Name) *Host {
	for i := range c.Hosts {
		if c.Hosts[i].Name == name {
			return &c.Hosts[i]
		}
	}
	return nil
}

// MarshalJSON writes an object with the number of slots of each class.
func (s Slots) MarshalJSON() ([]byte, error) {
	counts := map[messages.Name]int{}
	for _, cs := range s {
		counts[cs.Class] = cs.Slots
	}
	return json.Marshal(counts)
}

// Described implements [yamlfile.Described].
func (Slots) Described() (must string, whole bool) {
	return "must map classes to numbers of slots, like {map: 2, reduce: 1}", true
}

// UnmarshalYAML reads a mapping from classes to numbers of slots.
func (s *Slots) UnmarshalYAML(decode func(any) error) error {
	counts := map[messages.Name]int{}
	if err := decode(&counts); err != nil {
		return err
	}
	*s = (*s)[:0]
	for class, n := range counts {
		*s = append(*s, jobmsg.ClassSlots{Class: class, Slots: n})
	}
	sort.Slice(*s, func(i, j int) bool { return (*s)[i].Class < (*s)[j].Class })
	return nil
}
