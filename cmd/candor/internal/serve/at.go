package serve

import (
	"cmp"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/candor-grid/candor/deploy/embedded"
	"github.com/candor-grid/candor/messages"
)

// applyAt has --at, which all commands inherit, name a site of this machine to
// those that work on its state directory: the flag that says which is set.
func applyAt(cmd *cobra.Command) error {
	at := cmd.InheritedFlags().Lookup("at")
	if at == nil || !at.Changed {
		return nil
	}
	name, state := at.Value.String(), cmd.Flags().Lookup("state")
	if state == nil || cmd.Flags().Changed("config") {
		return messages.Errorf(messages.Invalid, "--at: %s works on what its own flags name, not on a site that runs", cmd.CommandPath())
	}
	base := cmp.Or(state.Value.String(), defaultState())
	for _, dir := range []string{base, filepath.Join(base, sitesDir, name)} {
		if info, err := embedded.ReadInfo(dir); err == nil && info.Site == name {
			return cmd.Flags().Set("state", dir)
		}
	}
	return messages.Errorf(messages.NotFound, "--at: no site %q is known in %s; start it with candor up --sites", name, base)
}
