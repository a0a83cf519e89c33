package serve

import (
	"cmp"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/candor-grid/candor/deploy/identity"
	"github.com/candor-grid/candor/deploy/identity/certificate"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/clearing"
	"github.com/candor-grid/candor/messages/durable"
	"github.com/candor-grid/candor/nodeagent/runner/machine"
)

// These are the names of files in the directory that "candor site init NAME" makes.
const (
	siteFileName = "site.yaml"
	tlsDir       = "tls"
	keysDirName  = "keys"
)

// initial makes a new site, or the keys of a configured site.
type initial struct {
	settings settings
	dir      string
	hosts    []string
	plain    bool
}

func initCommand() *cobra.Command {
	i := &initial{}
	cmd := &cobra.Command{
		Use:   "init [NAME]",
		Short: "make a site: its keys, certificates and configuration",
		Long: `Makes the directory of a new site: its keys, its authority, certificates for the
ports of clients and peers, and a first configuration. Then the command prints
the next steps. With --hosts the site has several hosts, an odd number. Each
host needs a copy of the directory without tls/ca.key. That key issues
certificates: keep it in another place. If root makes a site of several hosts,
the tasks of an account run as the user of the same name.

Without a name, the command makes only the keys of a configured site. A site of
one process makes its keys at its first start.`,
		Example: `  candor site init west
  candor site init west --hosts rack1=10.0.0.1,rack2=10.0.0.2,rack3=10.0.0.3
  candor site init --config site.yaml --keys ./keys`,
		RunE: func(cmd *cobra.Command, args []string) error {
			// Only flags are refused here. The environment variables with the same meaning are allowed, because they
			// may be meant for another site.
			if f := cmd.Flags(); len(args) > 0 && (f.Changed("config") || f.Changed("keys") || f.Changed("state")) {
				return messages.Errorf(messages.Invalid, "--config, --keys and --state are only for the command without the name of a site; a new site has all its files in --dir")
			}
			if f := cmd.Flags(); f.Changed("hosts") && f.Changed("listen") {
				return messages.Errorf(messages.Invalid, "--listen: is only for a site of one process; with --hosts each host listens at its own address, on port 4222: leave --listen out, and change the configuration for other ports")
			}
			if err := prepare(cmd); err != nil {
				return err
			}
			if len(args) == 0 {
				return i.keysOnly(cmd.OutOrStdout())
			}
			return i.whole(cmd.OutOrStdout(), args[0])
		},
	}
	f := cmd.Flags()
	f.StringVar(&i.dir, "dir", "", "`directory` to make (default the site's name)")
	f.StringVar(&i.settings.listen, "listen", "127.0.0.1:4222", "`address` for clients; servers of peers connect at a port that is 3200 higher")
	f.StringSliceVar(&i.hosts, "hosts", nil, "the hosts of the site, each as `NAME=ADDRESS`")
	f.BoolVar(&i.plain, "plain", false, "make no certificates: only for sites on loopback")
	f.StringVar(&i.settings.file, "config", "", "without a name: configuration `file`")
	f.StringVar(&i.settings.state, "state", "", "without a name: state `directory`")
	f.StringVar(&i.settings.keys, "keys", "", "without a name: `directory` to make (default: the directory keys in the state directory)")
	return cmd
}

func (i *initial) keysOnly(w io.Writer) error {
	i.settings.listen = "" // the flag's default applies only to new configurations
	c, err := i.settings.load()
	if err != nil {
		return err
	}
	if _, err := identity.Create(c.KeysDir(), c.Site); err != nil {
		return err
	}
	return say(w, "%s\n", c.KeysDir())
}

// This method makes all files of a new site. After an error, it leaves none of them. The directory may exist already,
// for example because a package has made it. But it must not have any of these files.
func (i *initial) whole(w io.Writer, site messages.Name) error {
	plan, err := i.plan(site)
	if err != nil {
		return err
	}
	made := []string{plan.Dir}
	if _, err := os.Stat(plan.Dir); err == nil {
		made = nil
		for _, name := range []string{siteFileName, keysDirName, tlsDir} {
			path := filepath.Join(plan.Dir, name)
			if _, err := os.Lstat(path); err == nil {
				return messages.Errorf(messages.Conflict, "%s: exists already, and is not replaced; name another directory with --dir", path)
			}
			made = append(made, path)
		}
	}
	if err := plan.make(time.Now()); err != nil {
		for _, path := range made {
			if left := os.RemoveAll(path); left != nil {
				err = fmt.Errorf("%w (and what was made could not be removed: %v)", err, left)
			}
		}
		return err
	}
	return plan.explain(w)
}

type plan struct {
	Site   messages.Name
	Dir    string // an absolute path
	Listen string
	Leaf   string
	Plain  bool
	Hosts  []plannedHost
	CPUs   int  // number of processors of this machine
	GPUs   int  // number of GPUs of this machine
	Users  bool // tasks run as the users with the names of accounts

	memory int64 // bytes of this machine; 0 if unknown
}

// CPUsOfGPU returns how many processors a slot with a GPU has.
func (p *plan) CPUsOfGPU() int { return max(1, p.CPUs/p.GPUs) }

// Memory returns the part of the memory that belongs to a number of processors, or "" if it is unknown. The part is
// rounded down, because the kernels of equal machines leave different amounts of memory.
func (p *plan) Memory(cpus int) string {
	part, step := p.memory/int64(p.CPUs)*int64(cpus), int64(64<<20)
	if part >= 2<<30 {
		step = 1 << 30
	}
	switch part = part / step * step; { // SizeText is not used, because it rounds up
	case part == 0:
		return ""
	case part%(1<<30) == 0:
		return fmt.Sprintf("%dG", part>>30)
	}
	return fmt.Sprintf("%dM", part>>20)
}

// Monthly returns the credits for all slots of the site for 30 days, at one credit an hour.
func (p *plan) Monthly() int { return max(1, len(p.Hosts)) * p.CPUs * 30 * 24 }

// plannedHost is a host of the site, and the address on which it listens.
type plannedHost struct{ Name, Address string }

// At returns the address of a port of the host.
func (h plannedHost) At(port int) string { return net.JoinHostPort(h.Address, fmt.Sprint(port)) }

// localHost is the name of the host if the site has only one.
const localHost = "localhost"

func (i *initial) plan(site messages.Name) (*plan, error) {
	if !messages.ValidName(site) || len(site) > clearing.MaxPeerName {
		return nil, messages.Errorf(messages.Invalid, "site %q: write a lower-case letter, then lower-case letters, digits, '-' or '_'; at most %d in all", site, clearing.MaxPeerName)
	}
	p := &plan{Site: site, Listen: i.settings.listen, Plain: i.plain, CPUs: max(1, len(machine.Processors())), memory: machine.Memory()}
	if m, err := machine.Discover(""); err == nil {
		p.GPUs = len(m.GPUs)
	}
	p.Users = len(i.hosts) > 0 && os.Geteuid() == 0 // only root can run tasks as other users
	var err error
	if p.Dir, err = filepath.Abs(cmp.Or(i.dir, site)); err != nil {
		return nil, err
	}
	if p.Leaf, err = portAfter(p.Listen, leafPort); err != nil {
		return nil, err
	}
	for _, text := range i.hosts {
		name, address, ok := strings.Cut(text, "=")
		if !ok || !messages.ValidName(name) || address == "" || name == localHost {
			return nil, messages.Errorf(messages.Invalid, "--hosts %q: write a name and an address, like rack1=10.0.0.1", text)
		}
		p.Hosts = append(p.Hosts, plannedHost{name, address})
	}
	return p, nil
}

// leafPort is the default difference between two ports of a NATS server: 7422 for servers of peers, 4222 for clients.
const leafPort = 3200

func (p *plan) make(now time.Time) error {
	if _, err := identity.Create(filepath.Join(p.Dir, keysDirName), p.Site); err != nil {
		return err
	}
	if !p.Plain {
		if err := p.certify(now); err != nil {
			return err
		}
	}
	text, err := p.config()
	if err != nil {
		return err
	}
	file := filepath.Join(p.Dir, siteFileName)
	if err := durable.WriteFile(file, text, 0o644); err != nil {
		return err
	}
	_, err = (&settings{file: file}).load()
	return err
}

func (p *plan) certify(now time.Time) error {
	authority, err := certificate.Create(filepath.Join(p.Dir, tlsDir), p.Site, now)
	if err != nil {
		return err
	}
	if len(p.Hosts) == 0 {
		return authority.Issue(localHost, reachedLocally(p.Listen), now)
	}
	for _, h := range p.Hosts {
		if err := authority.Issue(h.Name, []string{h.Address}, now); err != nil {
			return err
		}
	}
	return nil
}

// reachedLocally lists the names and addresses under which clients on this machine reach a site.
func reachedLocally(listen string) []string {
	names := []string{"127.0.0.1", "::1"}
	if name, err := os.Hostname(); err == nil {
		names = append(names, name)
	}
	if host, _, err := net.SplitHostPort(listen); err == nil && !slices.Contains(names, host) && host != localHost {
		names = append(names, host)
	}
	return names
}

func (p *plan) explain(w io.Writer) error {
	file := filepath.Join(p.Dir, siteFileName)
	var text strings.Builder
	fmt.Fprintf(&text, "%s\n  %-12s the configuration: edit the file, then run candor config check\n  %-12s the keys of the site: keep them secret\n",
		p.Dir, siteFileName, keysDirName+"/")
	if !p.Plain {
		fmt.Fprintf(&text, "  %-12s certificates; keep %s away from the hosts\n", tlsDir+"/", certificate.CAKeyFile)
	}
	if p.Users {
		fmt.Fprintf(&text, "Tasks of alice run as the user alice of the node. If accounts are not users of the nodes, remove the line \"tasks:\" from %s\n", siteFileName)
	}
	if len(p.Hosts) == 0 {
		fmt.Fprintf(&text, "Start the site:     candor up --config %s\n", file)
	}
	if len(p.Hosts) > 1 {
		fmt.Fprintf(&text, "The slots in %s have the size that suits this machine. If other hosts have less memory for each processor, make the unit smaller\n", siteFileName)
	}
	for _, h := range p.Hosts {
		fmt.Fprintf(&text, "Start host %s:   candor up --config %s --host %s\n", h.Name, file, h.Name)
	}
	fmt.Fprintf(&text, "Join another site:  candor site invite NAME --config %s\n", file)
	return say(w, "%s", text.String())
}
