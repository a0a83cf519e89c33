// Command candor is the whole of Candor in one binary: the actors, the site that runs them all in one process, and the
// commands of users and operators.
package main

import (
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/candor-grid/candor/cmd/candor/internal/audit"
	"github.com/candor-grid/candor/cmd/candor/internal/client"
	"github.com/candor-grid/candor/cmd/candor/internal/demo"
	"github.com/candor-grid/candor/cmd/candor/internal/serve"
	"github.com/candor-grid/candor/cmd/candor/internal/simulate"
	"github.com/candor-grid/candor/cmd/candor/internal/single"
	"github.com/candor-grid/candor/cmd/candor/internal/solve"
)

func main() {
	time.AfterFunc(single.For, single.End)
	os.Exit(client.Main(os.Args, func() []client.Group {
		return []client.Group{
			{Title: "Run a site:", Commands: serve.Commands()},
			{Title: "Study:", Commands: []*cobra.Command{demo.Command(), solve.Command(), simulate.Command(), audit.Command()}},
		}
	}))
}
