package client

import (
	"fmt"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/candor-grid/candor/cmd/candor/internal/audit"
	"github.com/candor-grid/candor/cmd/candor/internal/bench"
	"github.com/candor-grid/candor/cmd/candor/internal/client/cli"
	"github.com/candor-grid/candor/cmd/candor/internal/demo"
	"github.com/candor-grid/candor/cmd/candor/internal/serve"
	"github.com/candor-grid/candor/cmd/candor/internal/simulate"
	"github.com/candor-grid/candor/cmd/candor/internal/solve"
)

// TestTree holds every command of the binary, with its flags and their defaults, to
// testdata/tree.txt: what users type does not change by accident.
func TestTree(t *testing.T) {
	t.Setenv("HOME", t.TempDir()) // defaults are shown below the home directory
	t.Setenv("XDG_STATE_HOME", "")
	var text strings.Builder
	study := []*cobra.Command{demo.Command(), bench.Command(), solve.Command(), simulate.Command(), audit.Command()}
	walk(root(cli.New(), []Group{{"Run a site:", serve.Commands()}, {"Study:", study}}), func(c *cobra.Command) {
		fmt.Fprintf(&text, "%s: %s\n%s", c.UseLine(), c.Short, c.LocalFlags().FlagUsages())
	})
	golden(t, "tree.txt", text.String())
}
