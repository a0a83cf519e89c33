package slurm_test

import (
	"slices"
	"testing"

	"github.com/candor-grid/candor/cmd/candor/internal/client/slurm"
	"github.com/candor-grid/candor/nodeagent/runner/room"
)

// A script in a room must find every command that a user finds outside of jobs.
func TestARoomHasAllCommands(t *testing.T) {
	if has := slices.Sorted(slices.Values(room.CommandNames)); !slices.Equal(has, slurm.Names()) {
		t.Errorf("a room has %q, want %q", has, slurm.Names())
	}
}
