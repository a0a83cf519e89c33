package client

import (
	"fmt"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/candor-grid/candor/cmd/candor/internal/audit"
	"github.com/candor-grid/candor/cmd/candor/internal/client/cli"
	"github.com/candor-grid/candor/cmd/candor/internal/client/clienttest"
	"github.com/candor-grid/candor/cmd/candor/internal/demo"
	"github.com/candor-grid/candor/cmd/candor/internal/serve"
	"github.com/candor-grid/candor/cmd/candor/internal/simulate"
	"github.com/candor-grid/candor/cmd/candor/internal/solve"
)

// The file testdata/tree.txt has all commands with their flags and defaults, so that they do not change by accident.
func TestTree(t *testing.T) {
	t.Setenv("HOME", t.TempDir()) // defaults are shown as paths in the home directory
	t.Setenv("XDG_STATE_HOME", "")
	var text strings.Builder
	walk(whole(), func(c *cobra.Command) {
		fmt.Fprintf(&text, "%s: %s\n%s", c.UseLine(), c.Short, c.LocalFlags().FlagUsages())
	})
	clienttest.Golden(t, "tree.txt", text.String())
}

// The help must fit a terminal of 80 columns. A short text begins with a small letter; a long text has whole sentences.
func TestHelp(t *testing.T) {
	t.Setenv("HOME", "/home/ada")
	t.Setenv("XDG_STATE_HOME", "")
	walk(whole(), func(c *cobra.Command) {
		for line := range strings.Lines(c.Long + "\n" + c.UsageString()) {
			line = strings.TrimSuffix(line, "\n")
			if n := utf8.RuneCountInString(line); n > 80 {
				t.Errorf("%s --help: %d columns: %s", c.CommandPath(), n, line)
			}
		}
		if first, _ := utf8.DecodeRuneInString(c.Short); !unicode.IsLower(first) || strings.HasSuffix(c.Short, ".") {
			t.Errorf("%s: %q begins with a small letter and has no full stop at its end", c.CommandPath(), c.Short)
		}
		if last := strings.TrimSpace(c.Long); last != "" && !strings.HasSuffix(last, ".") && strings.Count(last, "\n") == 0 {
			t.Errorf("%s: %q is to be whole sentences", c.CommandPath(), last)
		}
	})
}

// To start fast, the program need not build the whole tree of commands: it can build only the command that the command
// line names. This command must have the same name and help as in the whole tree.
func TestOneCommandIsMadeAlone(t *testing.T) {
	further := func() []Group { return []Group{{"Run a site:", serve.Commands()}} }
	for _, c := range treeFor(cli.New(), nil, further).Commands() {
		one := treeFor(cli.New(), []string{c.Name()}, further)
		found, _, err := one.Find([]string{c.Name()})
		if err != nil || found.UsageString() != c.UsageString() {
			t.Errorf("candor %s: %v, %s", c.Name(), err, found.UsageString())
		}
		own := c.GroupID != "" && !strings.HasPrefix(c.GroupID, "further")
		if alone := len(one.Commands()) == 1; alone != own {
			t.Errorf("candor %s: made alone is %v, want %v", c.Name(), alone, own)
		}
	}
}

// The help of a name that is neither a command nor a topic must be an error.
func TestHelpOfNothing(t *testing.T) {
	s := newSite(t)
	s.Run("help", "vanish").Expect(t, cli.CodeUsage, "", `unknown command "vanish"`)
	s.Run("help", "submt").Expect(t, cli.CodeUsage, "", "did you mean submit?")
	s.Run("help", "slurm").Expect(t, cli.CodeOK, "#SBATCH", "")
}

func whole() *cobra.Command { return wholeFor(cli.New()) }

func wholeFor(a *cli.App) *cobra.Command { return root(a, allFurther()) }

// A program that is only a client lacks some of Candor's commands. allFurther returns these commands.
func allFurther() []Group {
	study := []*cobra.Command{demo.Command(), solve.Command(), simulate.Command(), audit.Command()}
	return []Group{{"Run a site:", serve.Commands()}, {"Study:", study}}
}

func newSite(t *testing.T) *clienttest.Site {
	s := clienttest.New(t)
	s.Tree = func(a *cli.App) *cobra.Command { return root(a, nil) }
	return s
}
