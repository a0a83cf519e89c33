package main

import (
	"io"
	"testing"

	"github.com/candor-grid/candor/nodeagent/runner/executor"
)

// Some commands must exist: the commands that the Makefile runs, and the command that a measured site starts. Unknown
// commands must be refused.
func TestCommands(t *testing.T) {
	for _, line := range [][]string{{"bench", "processes"}, {"bench", "load"}, {"faults"}, {"net"}, {"study"}, {executor.Argument}} {
		if c, rest, err := root().Find(line); err != nil || len(rest) > 0 || c.RunE == nil {
			t.Errorf("lab %v: %v, %v", line, rest, err)
		}
	}
	for _, line := range [][]string{{"nope"}, {"bench", "nope"}, {"net", "nope"}, {"faults"}} {
		c := root()
		c.SetArgs(line)
		c.SetOut(io.Discard)
		if err := c.Execute(); err == nil {
			t.Errorf("lab %v is not refused", line)
		}
	}
}
