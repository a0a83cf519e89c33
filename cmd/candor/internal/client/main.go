package client

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/candor-grid/candor/cmd/candor/internal/client/accounts"
	"github.com/candor-grid/candor/cmd/candor/internal/client/books"
	"github.com/candor-grid/candor/cmd/candor/internal/client/cli"
	"github.com/candor-grid/candor/cmd/candor/internal/client/door"
	"github.com/candor-grid/candor/cmd/candor/internal/client/jobs"
	"github.com/candor-grid/candor/cmd/candor/internal/client/peers"
	"github.com/candor-grid/candor/cmd/candor/internal/client/site"
	"github.com/candor-grid/candor/cmd/candor/internal/client/slurm"
	"github.com/candor-grid/candor/cmd/candor/internal/client/submit"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/nodeagent/runner/dumps"
)

// Group is a group of further commands, with its title in the help.
type Group struct {
	Title    string
	Commands []*cobra.Command
}

// heedAfter is the age of a process at which it begins to handle interrupts.
var heedAfter = 20 * time.Millisecond

// Main runs candor with the arguments of the process, and returns the exit code. A process with the name of a Slurm
// command runs that command. `further` returns the commands that only the whole program has; it may be nil. The exit
// code for their errors comes from the error's messages.Kind, or from its method ExitCode() int.
func Main(argv []string, further func() []Group) int {
	if code, known := slurm.Main(argv); known {
		return code
	}
	args := argv[1:]
	ctx, stop := cli.Interruptible(heedAfter, true)
	defer stop()
	a := cli.New()
	tree := treeFor(a, args, further)
	if err := protect(tree, args); err != nil {
		fmt.Fprintln(a.Err, "candor:", err)
		return cli.ExitCode(err)
	}
	return cli.Run(ctx, a, args, tree)
}

func treeFor(a *cli.App, args []string, further func() []Group) *cobra.Command {
	if len(args) > 0 && args[0] != "" {
		a.Only = args[0]
		if tree := root(a, nil); tree.HasSubCommands() {
			return tree
		}
		a.Only = ""
	}
	if further == nil {
		return alone(a)
	}
	return root(a, further())
}

// protect hides the memory of a command, which holds keys, from other processes of the user and from core files. It
// does so before the command reads anything. Commands marked [dumps.StartsTasks] protect themselves later, because a
// protected process cannot make namespaces.
func protect(root *cobra.Command, args []string) error {
	if cmd, _, err := root.Find(args); err == nil && !isProtected(cmd) {
		return nil
	}
	return dumps.Refuse()
}

func isProtected(cmd *cobra.Command) bool {
	for ; cmd != nil; cmd = cmd.Parent() {
		if _, starts := cmd.Annotations[dumps.StartsTasks]; starts {
			return false
		}
	}
	return true
}

// Root returns the tree of commands, for generated documentation.
func Root(groups ...Group) *cobra.Command { return root(cli.New(), groups) }

func root(a *cli.App, groups []Group) *cobra.Command {
	var version bool
	root := cli.Root(a)
	root.Long = `Candor runs the jobs of many people on shared nodes. You say what your job is
worth to you. An auction decides whose tasks run first, and a bank charges each
account in credits.

Start a site on this machine with "candor up", then submit to it.`
	root.Example = `  candor up                                   # a whole site in one process
  candor submit --budget 10 --wait sort.sh    # in another terminal
  candor jobs
  candor why 1`
	root.RunE = func(cmd *cobra.Command, args []string) error {
		if len(args) > 0 {
			return cli.UnknownCommand(cmd, args[0])
		}
		if version {
			return showVersion(a)
		}
		return cmd.Help()
	}
	root.Flags().BoolVar(&version, "version", false, "print the version")
	addGroups(a, root, groups)
	if a.Only == "" {
		root.AddCommand(topics()...)
	}
	root.CompletionOptions.DisableDefaultCmd = a.Only != ""
	root.SetHelpCommand(helpCommand(root))
	root.SetHelpCommandGroupID("other")
	root.SetCompletionCommandGroupID("other")
	cli.UsageErrors(root)
	return root
}

func helpCommand(root *cobra.Command) *cobra.Command {
	return &cobra.Command{
		Use:     "help [COMMAND]",
		Short:   "show the help of a command or a topic",
		Example: "  candor help submit\n  candor help job-file",
		ValidArgsFunction: func(_ *cobra.Command, args []string, _ string) (names []string, _ cobra.ShellCompDirective) {
			if found, rest, err := root.Find(args); err == nil && len(rest) == 0 {
				for _, c := range found.Commands() {
					if !c.Hidden {
						names = append(names, cobra.CompletionWithDesc(c.Name(), c.Short))
					}
				}
			}
			return names, cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(_ *cobra.Command, args []string) error {
			found, rest, err := root.Find(args)
			if err != nil {
				return err
			}
			if len(rest) > 0 {
				return cli.UnknownCommand(found, rest[0])
			}
			found.InitDefaultHelpFlag()
			return found.Help()
		},
	}
}

func addGroups(a *cli.App, root *cobra.Command, further []Group) {
	own := []Group{
		{"Work:", slices.Concat(jobs.Commands(a), submit.Commands(a))},
		{"Site:", slices.Concat(site.Commands(a), a.Make(cli.Makers{"door": door.Command}))},
		{"Money:", slices.Concat(accounts.Commands(a, submit.PredictCommand), peers.Commands(a), a.Make(cli.Makers{"books": books.Command}))},
	}
	slurmCommand := func(a *cli.App) *cobra.Command { return slurm.Command(a, slurmTopic()) }
	other := Group{"Other:", a.Make(cli.Makers{"slurm": slurmCommand, "schema": schemaCommand, "version": versionCommand})}
	for i, g := range own {
		addGroup(root, fmt.Sprintf("own%d", i), g)
	}
	for i, g := range further {
		addGroup(root, fmt.Sprintf("further%d", i), g)
		for _, c := range g.Commands {
			// These commands do not connect as a client, so their help leaves out the flags of the root command.
			usual := c.UsageTemplate()
			c.SetUsageTemplate(strings.Replace(usual, "{{if .HasAvailableInheritedFlags}}", "{{if false}}", 1))
			switch c.Name() {
			case messages.Bank:
				books.AddCommands(a, c, usual)
			case "site":
				peers.AddStatus(a, c, usual)
			}
		}
	}
	addGroup(root, "other", other)
}

func addGroup(root *cobra.Command, id string, g Group) {
	root.AddGroup(&cobra.Group{ID: id, Title: g.Title})
	for _, c := range g.Commands {
		c.GroupID = id
		root.AddCommand(c)
	}
}
