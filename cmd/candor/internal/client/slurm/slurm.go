package slurm

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/candor-grid/candor/cmd/candor/internal/client/cli"
	"github.com/candor-grid/candor/cmd/candor/internal/client/jobfile"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/market"
	"github.com/candor-grid/candor/nodeagent/runner/dumps"
)

// version is the version of Slurm whose output the commands imitate.
const version = "slurm 23.11.4"

type call struct {
	*cli.App
	name     string
	flags    *pflag.FlagSet
	clusters string                   // value of --clusters
	owners   map[messages.Name]string // what owner has returned
}

var commands = map[string]func(context.Context, *call, []string) error{
	"sbatch": sbatch, "srun": srun, "squeue": squeue, "sacct": sacct, "scancel": scancel,
	"scontrol": scontrol, "sinfo": sinfo, "sacctmgr": sacctmgr, "sshare": sshare,
	"salloc": salloc, "sprio": sprio, "sreport": sreport, "sstat": sstat, "seff": seff, "sbcast": sbcast, "qsub": qsub, "qdel": qdel, "qstat": qstat,
}

// Names returns the names of the commands.
func Names() (all []string) {
	for name := range commands {
		all = append(all, name)
	}
	slices.Sort(all)
	return all
}

// Main runs the Slurm command with the name of the process, and returns its exit code. The second result is false if
// there is no Slurm command with this name.
func Main(argv []string) (code int, known bool) {
	if len(argv) == 2 && argv[1] == ranksOfStep {
		return away(), true
	}
	name := filepath.Base(argv[0])
	if commands[name] == nil {
		return 0, false
	}
	return start(cli.New(), name, argv[1:]), true
}

// start makes the process interruptible, and runs one command. In a job, srun passes a hang-up on to its ranks instead.
func start(a *cli.App, name string, args []string) int {
	ctx, stop := cli.Interruptible(0, name != "srun" || a.Getenv("CANDOR_JOB") == "")
	defer stop()
	if err := dumps.Refuse(); err != nil {
		fmt.Fprintln(a.Err, name+": error:", err)
		return 1
	}
	return Run(ctx, a, name, args)
}

// Run runs one command, and returns its exit code.
func Run(ctx context.Context, a *cli.App, name string, args []string) int {
	a.ConnectionFlags(pflag.NewFlagSet(name, pflag.ContinueOnError)) // sets the default values of the flags
	c := &call{App: a, name: name, flags: pflag.NewFlagSet(name, pflag.ContinueOnError)}
	a.Interrupted = ctx
	lost := a.HeedOutput()
	err := commands[name](ctx, c, args)
	if err == nil {
		err = lost()
	}
	if err == nil {
		return 0
	}
	if status, ok := errors.AsType[cli.ExitStatus](err); ok {
		return int(status)
	}
	if ctx.Err() != nil && !cli.HasExitCode(err) {
		return cli.CodeInterrupted
	}
	a.Tell(name + ": error: " + cli.Sentence(err))
	return 1
}

// parse reads the options of a command, and returns the words that are no options. The result `done` is true if an
// option only asked about the command itself, such as --help.
func (c *call) parse(args []string) (words []string, done bool, err error) {
	help := c.flags.Bool("help", false, "")
	ask := c.flags.BoolP("version", "V", false, "")
	c.flags.Usage = func() {}
	cli.RefuseEmpty(c.flags)
	c.complete()
	if err := c.flags.Parse(args); err != nil {
		return nil, false, fmt.Errorf("%s; see candor help slurm", jobfile.Reword(err))
	}
	for _, form := range forms {
		if c.flags.Changed(form) {
			return nil, false, fmt.Errorf("--%s: this command writes text: `candor jobs`, `candor nodes` and `candor markets` write JSON with --json", form)
		}
	}
	switch {
	case *ask:
		fmt.Fprintln(c.Out, version)
	case *help:
		fmt.Fprintf(c.Out, "%s of Candor. It has most options of Slurm's %s.\nSee candor help slurm.\n", c.name, c.name)
	}
	return c.flags.Args(), *ask || *help, nil
}

// complete makes the command accept a shortened long option, as Slurm does. It changes how the options are matched, and
// not the words of the command line. Words after srun's own options belong to another program and must stay as they
// are.
func (c *call) complete() {
	var names []string
	c.flags.VisitAll(func(f *pflag.Flag) { names = append(names, f.Name) })
	c.flags.SetNormalizeFunc(func(_ *pflag.FlagSet, name string) pflag.NormalizedName {
		var found []string
		for _, n := range names {
			if n == name {
				return pflag.NormalizedName(name)
			}
			if strings.HasPrefix(n, name) {
				found = append(found, n)
			}
		}
		if len(found) == 1 {
			name = found[0]
		}
		return pflag.NormalizedName(name)
	})
}

// inputs sets options from environment variables. An option on the command line wins over its variable. If two
// variables set one option, the later one wins.
func (c *call) inputs(variables ...[2]string) error {
	typed := map[string]bool{}
	c.flags.Visit(func(f *pflag.Flag) { typed[f.Name] = true })
	for _, one := range variables {
		value, option := c.Getenv(one[0]), one[1]
		if value == "" || typed[option] {
			continue
		}
		if c.flags.Lookup(option).Value.Type() == "bool" {
			value = strconv.FormatBool(value != "0" && value != "no")
		}
		if err := c.flags.Set(option, value); err != nil {
			return fmt.Errorf("%s: %s", one[0], jobfile.Reword(err))
		}
	}
	return nil
}

// forms are options that ask for forms of output that the commands do not have.
var forms = []string{"json", "yaml"}

// The options in the list `forms` (json and yaml) ask for an output that is not text. textOnly declares them. So parse
// knows them, and can refuse them with a clear error.
func (c *call) textOnly() {
	for _, form := range forms {
		c.flags.String(form, "", "")
		c.flags.Lookup(form).NoOptDefVal = form
	}
}

// optional is the value of an option that needs no value, such as "--x". If the option has a value, it is written after
// "=", as in "--x=v".
type optional struct {
	text string
	is   *bool // true if the option is given, unless its value says no; may be nil
}

func (o *optional) String() string { return o.text }

func (o *optional) Type() string { return "optional" }

func (o *optional) Set(text string) error {
	if o.text = text; o.is != nil {
		*o.is = !slices.Contains([]string{"0", "no", "off", "false"}, strings.ToLower(text))
	}
	return nil
}

func optionalFlag(f *pflag.FlagSet, is *bool, name, short string) {
	f.VarPF(&optional{is: is}, name, short, "").NoOptDefVal = "true"
}

// ignore declares options that the command accepts, but that have no effect here. The options in the list `values` take
// a value, and the options in the list `alone` take none, or one after "=".
func (c *call) ignore(values []string, alone []string) {
	for _, f := range values {
		name, short := split(f)
		c.flags.StringP(name, short, "", "")
	}
	for _, f := range alone {
		name, short := split(f)
		optionalFlag(c.flags, nil, name, short)
	}
}

func split(f string) (name, short string) {
	if i := len(f) - 2; i > 0 && f[i] == '/' {
		return f[:i], f[i+1:]
	}
	return f, ""
}

// dial connects to the site. It fails if the option --clusters names only other sites.
func (c *call) dial() (*cli.Session, error) {
	s, err := c.Dial(false)
	if err != nil || c.clusters == "" || c.clusters == "all" {
		return s, err
	}
	reply, err := ask[market.MarketsReply](c.Interrupted, s, messages.VerbMarkets, messages.Empty{})
	if err == nil && !slices.ContainsFunc(fields(c.clusters), func(name string) bool {
		value, _, ok := slurmNames(&reply).Clusters.Lookup(name)
		return name == s.Site || ok && (value == "" || value == s.Site)
	}) {
		err = fmt.Errorf("--clusters %s: this is site %s: leave the option out, or set CANDOR_SITE to another site", c.clusters, s.Site)
	}
	if err != nil {
		s.Bus.Close()
		return nil, err
	}
	return s, nil
}

// slurmNames returns what the site says about Slurm's names.
func slurmNames(reply *market.MarketsReply) *market.SlurmNames {
	return cmp.Or(reply.Slurm, &market.SlurmNames{})
}

// clusterFlags declares the options that name a site.
func (c *call) clusterFlags() {
	c.flags.StringVarP(&c.clusters, "clusters", "M", "", "")
	c.flags.StringVar(&c.clusters, "cluster", "", "")
}

func ask[Reply any](ctx context.Context, s *cli.Session, verb string, request any) (Reply, error) {
	return cli.Call[Reply](ctx, s, messages.Auctioneer, verb, request)
}

// Command returns "candor slurm", which makes links with Slurm's names to the binary.
func Command(a *cli.App, long string) *cobra.Command {
	link := &cobra.Command{
		Use:   "link DIRECTORY",
		Short: "make Slurm's commands in a directory",
		Long: `Make Slurm's commands in a directory: sbatch, srun, salloc, squeue, sacct,
scancel, scontrol, sinfo, sacctmgr, sshare, seff, sstat, sbcast, and sprio and
sreport, which only say what to use instead; and qsub, qdel and qstat of PBS and
Grid Engine. They are links to this program. Programs that call these commands
then use Candor, if the directory comes first in PATH. If another file has one
of these names, this command fails and leaves the file alone. After

  export PATH=~/slurm:$PATH

"sbatch --wrap hostname" submits a job, and squeue lists it.

The commands connect as candor does (see candor help environment). A job of
sbatch has the budget of the script (#CANDOR --budget), or of CANDOR_BUDGET, or
else the default of the market, or what its slots cost for its time limit.`,
		Example: "  candor slurm link ~/slurm",
		Args:    cobra.ExactArgs(1),
		RunE:    func(_ *cobra.Command, args []string) error { return makeLinks(a, args[0]) },
	}
	return cli.Group(&cobra.Command{
		Use:     "slurm",
		Short:   "use Candor with the commands of Slurm",
		Long:    long,
		Example: "  candor slurm link ~/slurm",
	}, link)
}

// makeLinks makes a link to this program for each name, or none if one of the names is taken.
func makeLinks(a *cli.App, dir string) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	if dir, err = filepath.Abs(dir); err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return cli.Usagef("%v", err)
	}
	var missing []string
	for _, name := range Names() {
		path := filepath.Join(dir, name)
		target, err := os.Readlink(path)
		switch {
		case err == nil && target == self:
		case errors.Is(err, os.ErrNotExist):
			missing = append(missing, path)
		default:
			return cli.Usagef("%s exists already and is not a link to %s: remove the file, or name another directory", path, self)
		}
	}
	for _, path := range missing {
		if err := os.Symlink(self, path); err != nil {
			return err
		}
	}
	fmt.Fprintf(a.Out, "%s has %d commands of Slurm. Put this directory first in PATH:\n  export PATH=%s:$PATH\n", dir, len(commands), dir)
	return nil
}
