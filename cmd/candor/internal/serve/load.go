package serve

import (
	"errors"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"github.com/candor-grid/candor/cmd/candor/internal/client/cli"
	"github.com/candor-grid/candor/deploy/embedded"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/job"
	"github.com/candor-grid/candor/messages/yamlfile"
	"github.com/candor-grid/candor/nodeagent/runner/machine"
)

// settings are a site's settings from the environment and the command line. The zero value sets nothing.
type settings struct {
	file     string
	state    string
	keys     string
	listen   string
	metrics  string
	console  string
	host     string
	nodes    int
	replicas int
	profile  bool
}

func (s *settings) fileFlags(f *pflag.FlagSet) {
	f.StringVar(&s.file, "config", "", "configuration `file`; see config show")
	f.StringVar(&s.state, "state", "", "state `directory` (default "+tilde(defaultState())+")")
	f.StringVar(&s.host, "host", "", "`name` of this host in the configuration")
}

func (s *settings) keysFlag(f *pflag.FlagSet) {
	f.StringVar(&s.keys, "keys", "", "`directory` of the site's keys (default: the directory keys in the state directory)")
}

func (s *settings) runFlags(f *pflag.FlagSet) {
	f.StringVar(&s.metrics, "metrics", "", "`address` that serves Prometheus metrics, /healthz and /readyz (default none)")
	f.BoolVar(&s.profile, "profile", false, "serve pprof at a socket in the state directory")
}

func (s *settings) siteFlags(f *pflag.FlagSet) {
	s.fileFlags(f)
	s.keysFlag(f)
	s.runFlags(f)
	f.StringVar(&s.listen, "listen", "", "`address` for NATS clients; port 0 takes a free one (default 127.0.0.1:4222)")
	f.StringVar(&s.console, "console", "", "`address` that serves the console, for browsers, such as 127.0.0.1:8470; pages connect at the next port (default none)")
	f.Var((*howMany)(&s.nodes), "nodes", "`number` of nodes, all like the first (default 1: this machine; with more, each is like this machine)")
	f.Var((*howMany)(&s.replicas), "replicas", "`number` of replicas of the auctioneer and of the bank (default 3)")
}

// howMany is the value of a flag for a number of at least 1. 0 means that the flag was not given.
type howMany int

func (c *howMany) String() string { return strconv.Itoa(int(*c)) }
func (c *howMany) Type() string   { return "int" }

func (c *howMany) Set(text string) error {
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		return errors.New("give a number from 1 on")
	}
	*c = howMany(n)
	return nil
}

// environment sets flags from variables that begin with CANDOR_, unless the command line gives the flags.
func environment(f *pflag.FlagSet, lookup func(string) (string, bool)) error {
	var failed []error
	f.VisitAll(func(flag *pflag.Flag) {
		name := "CANDOR_" + strings.ToUpper(strings.ReplaceAll(flag.Name, "-", "_"))
		if value, ok := lookup(name); ok && value != "" && !flag.Changed {
			if err := f.Set(flag.Name, value); err != nil {
				failed = append(failed, messages.Errorf(messages.Invalid, "environment variable %s: %q is not possible: %v", name, value, err))
			}
		}
	})
	return errors.Join(failed...)
}

// load returns the effective configuration: the defaults, changed by the file, and then by the settings.
func (s *settings) load() (embedded.Config, error) {
	c, d, err := s.read()
	if err != nil {
		return c, err
	}
	s.override(&c)
	return c, s.check(&c, d)
}

// changed returns a function that reads the configuration again. This function returns nil if the file is the same as
// when it was last read. If the configuration has no file, changed returns nil instead of a function.
func (s *settings) changed() func() (*embedded.Config, error) {
	if s.file == "" {
		return nil
	}
	before, _ := os.Stat(s.file) // the file was read just before, so it exists
	return func() (*embedded.Config, error) {
		now, err := os.Stat(s.file)
		if err != nil {
			return nil, nil // another program is replacing the file now
		}
		if before != nil && os.SameFile(before, now) && before.ModTime().Equal(now.ModTime()) && before.Size() == now.Size() {
			return nil, nil
		}
		c, err := s.load()
		if err == nil {
			before = now
		}
		return &c, err
	}
}

// read returns the defaults, changed by the named configuration file.
func (s *settings) read() (c embedded.Config, d *document, err error) {
	if s.file == "" {
		c, d = defaults(), &document{yamlfile.Reader{File: &yamlfile.File{}}}
		if m, err := machine.Discover(""); err == nil && len(m.GPUs) > 0 && s.nodes <= 1 { // several nodes would each sell the same GPUs
			c.SellMachine(m)
		}
	} else {
		text, err := os.ReadFile(s.file)
		if err != nil {
			return c, nil, messages.Errorf(messages.Invalid, "the configuration cannot be read: %v", err)
		}
		if c, d, err = decoded(s.file, text); d == nil {
			return c, nil, err
		}
	}
	if _, given := d.Find("accounts"); !given && c.DefaultAccount == "" {
		addOwnAccount(&c)
	}
	return c, d, nil
}

func defaults() embedded.Config {
	c := embedded.Default()
	c.State = defaultState()
	c.SellMachine(machine.Machine{CPUs: machine.Processors(), Memory: machine.Memory()})
	return c
}

// decoded returns the default configuration, changed by the text of a configuration file. It also returns the document
// that it read, with a list of the parts that it could not read.
func decoded(file string, text []byte) (embedded.Config, *document, error) {
	c := defaults()
	d, err := parse(file, text)
	if err != nil {
		return c, nil, err
	}
	d.Decode(&c)
	return c, d, d.Err()
}

// The map `since` lists, for each part of a configuration, the parts that define the things that it names. Example:
// markets name classes, and nodes define them.
var since = map[string][]string{
	"markets": {"nodes"}, "hosts": {"nodes"}, "profiles": {"markets"}, "accounts": {"operators"}, "default_account": {"accounts", "operators"},
}

// readable returns the given problems without those about parts of the file that could not be read completely. It also
// leaves out problems in a part that refers to such a part.
func (d *document) readable(problems embedded.Problems) embedded.Problems {
	unread := map[string]bool{}
	for _, text := range d.Findings() {
		part, _, _ := strings.Cut(text, ":")
		unread[partOf(part)] = true
	}
	return slices.DeleteFunc(problems, func(p embedded.Problem) bool {
		part := partOf(p.Path)
		return unread[part] || slices.ContainsFunc(since[part], func(other string) bool { return unread[other] })
	})
}

// partOf returns the first name in a path: "nodes" for "nodes[0].slots".
func partOf(path string) string {
	if i := strings.IndexAny(path, ".["); i >= 0 {
		return path[:i]
	}
	return path
}

// override puts the settings of this process in place of the values of the file. If the configuration has hosts, the
// settings for this host's addresses and metrics count too.
func (s *settings) override(c *embedded.Config) {
	set(&c.State, s.state)
	set(&c.Keys, s.keys)
	set(&c.Listen, s.listen)
	set(&c.Metrics, s.metrics)
	set(&c.Console, s.console)
	set(&c.Replicas, s.replicas)
	set(&c.Profile, s.profile)
	if s.nodes != 0 && len(c.Nodes) > 0 {
		first := c.Nodes[0]
		if s.nodes > 1 && first.Resources == nil && len(first.Slots) == 0 { // each of the nodes gets the resources of this machine
			first.Resources, first.Declared = &job.Resources{CPUs: len(machine.Processors()), Memory: machine.Memory()}, true
		}
		c.Nodes = first.Times(s.nodes)
	}
	for i := range c.Hosts {
		if h := &c.Hosts[i]; h.Name == s.host {
			set(&h.Listen, s.listen)
			set(&h.Metrics, s.metrics)
		}
	}
	if path, err := filepath.Abs(c.State); err == nil && c.State != "" {
		c.State = path // the path is made absolute, because other processes use it from other directories
	}
}

func set[T comparable](field *T, value T) {
	var zero T
	if value != zero {
		*field = value
	}
}

// check returns an error with every problem of a configuration. If a line of the file causes a problem, the error names
// this line.
func (s *settings) check(c *embedded.Config, d *document) error {
	var problems embedded.Problems
	err := c.Validate()
	if err != nil && !errors.As(err, &problems) {
		return err
	}
	if s.file == "" {
		if len(problems) == 0 {
			return nil
		}
		return messages.Errorf(messages.Invalid, "%v", problems)
	}
	d.note(d.readable(problems))
	return d.Err()
}

// addOwnAccount adds an account with the user's name to a default site. The name root is not the name of a person, and
// gets no account.
func addOwnAccount(c *embedded.Config) {
	u, err := user.Current()
	if err != nil || u.Username == "root" || !messages.ValidName(u.Username) {
		return
	}
	c.DefaultAccount = u.Username
	if !slices.ContainsFunc(c.Accounts, func(a embedded.Account) bool { return a.Name == u.Username }) {
		c.Accounts = append(c.Accounts, embedded.Account{Name: u.Username, Grant: 1000 * messages.Credit})
	}
}

func defaultState() string { return cli.DefaultState(os.Getenv) }

// tilde makes a path easier to read: the home directory at its beginning becomes "~".
func tilde(path string) string {
	if home, err := os.UserHomeDir(); err == nil && strings.HasPrefix(path, home+"/") {
		return "~" + strings.TrimPrefix(path, home)
	}
	return path
}
