package client

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/candor-grid/candor/cmd/candor/internal/client/cli"
)

// TestClientRefusesWhatItLacks checks the client program. It must have the commands of users and operators, with the
// same help. For every other command, it must say which program has it.
func TestClientRefusesWhatItLacks(t *testing.T) {
	s := newSite(t)
	run := func(args ...string) result {
		var out, errs bytes.Buffer
		a := s.app(&out, &errs)
		return result{run(t.Context(), a, args, treeFor(a, args, nil)), out.String(), errs.String()}
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
		run(path...).expect(t, cli.CodeUsage, "", "only the whole program has this command")
		run(append(path, "--config", "x")...).expect(t, cli.CodeUsage, "", "only the whole program has this command")
	})
	run("bank").expect(t, cli.CodeUsage, "", "only the whole program has this command")
	run("bank", "--server", "nats://127.0.0.1:1", "--config", "x").expect(t, cli.CodeUsage, "", "only the whole program has this command")
	run("bank", "exprt").expect(t, cli.CodeUsage, "", `unknown command "exprt"`)
	run("help", "up").expect(t, cli.CodeOK, "only the whole program has this command", "")
	run("--help").expect(t, cli.CodeOK, "This program is the client", "")
	if got := run("__complete", "help", ""); strings.Contains(got.out, "\nup\t") || strings.Contains(got.out, "\nup\n") || !strings.Contains(got.out, "\njob-file\t") {
		t.Errorf("help completes what is not there, or no topic: %s", got.out)
	}
	run("upp").expect(t, cli.CodeUsage, "", `unknown command "upp"`)
}
