package client

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/candor-grid/candor/cmd/candor/internal/client/cli"
	"github.com/candor-grid/candor/cmd/candor/internal/client/clienttest"
)

// The client program has the commands of users and operators, with the same help. For every other command, it must say
// which program has the command.
func TestClientRefusesWhatItLacks(t *testing.T) {
	s := newSite(t)
	run := func(args ...string) clienttest.Result {
		var out, errs bytes.Buffer
		a := s.App(&out, &errs)
		return clienttest.Result{Code: cli.Run(t.Context(), a, args, treeFor(a, args, nil)), Out: out.String(), Err: errs.String()}
	}
	walk(whole(), func(c *cobra.Command) {
		path := strings.Fields(c.CommandPath())[1:]
		if c.Hidden || len(path) == 0 {
			return
		}
		found, rest, err := treeFor(cli.New(), path, nil).Find(path)
		if err != nil {
			t.Errorf("%s: %v", c.CommandPath(), err)
			return
		}
		if len(rest) == 0 && !found.Hidden {
			if !slices.Contains([]string{"candor bank", "candor site"}, c.CommandPath()) && found.UsageString() != c.UsageString() {
				t.Errorf("%s has another help", c.CommandPath())
			}
			return
		}
		run(path...).Expect(t, cli.CodeUsage, "", "only the whole program has this command")
		run(append(path, "--config", "x")...).Expect(t, cli.CodeUsage, "", "only the whole program has this command")
	})
	run("bank").Expect(t, cli.CodeUsage, "", "only the whole program has this command")
	run("bank", "--server", "nats://127.0.0.1:1", "--config", "x").Expect(t, cli.CodeUsage, "", "only the whole program has this command")
	run("bank", "exprt").Expect(t, cli.CodeUsage, "", `unknown command "exprt"`)
	run("help", "up").Expect(t, cli.CodeOK, "only the whole program has this command", "")
	run("--help").Expect(t, cli.CodeOK, "This program is the client", "")
	if got := run("__complete", "help", ""); strings.Contains(got.Out, "\nup\t") || strings.Contains(got.Out, "\nup\n") || !strings.Contains(got.Out, "\njob-file\t") {
		t.Errorf("help completes what is not there, or no topic: %s", got.Out)
	}
	run("upp").Expect(t, cli.CodeUsage, "", `unknown command "upp"`)
}
