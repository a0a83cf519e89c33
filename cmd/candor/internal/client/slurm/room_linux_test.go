package slurm_test

import (
	"slices"
	"testing"

	"github.com/candor-grid/candor/cmd/candor/internal/client/slurm"
	"github.com/candor-grid/candor/nodeagent/runner/room"
)

// A script in a room (the namespaces in which tasks run) must find all Slurm commands that users have outside of
// jobs.
func TestARoomHasAllCommands(t *testing.T) {
	if has := slices.Sorted(slices.Values(room.CommandNames)); !slices.Equal(has, slurm.Names()) {
		t.Errorf("a room has %q, want %q", has, slurm.Names())
	}
}
