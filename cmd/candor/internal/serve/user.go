package serve

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/candor-grid/candor/deploy/embedded"
	"github.com/candor-grid/candor/deploy/identity"
	"github.com/candor-grid/candor/messages"
)

func userCommand() *cobra.Command {
	return group("user", "issue, list and revoke credentials",
		addCommand(), listCommand(), revokeCommand(), secretCommand())
}

// add is the command that issues credentials with the keys of a site on this machine.
type add struct {
	settings                            settings
	operator, node, service, peer, door bool
}

func addCommand() *cobra.Command {
	a := &add{}
	cmd := &cobra.Command{
		Use:   "add NAME",
		Short: "issue credentials for a name",
		Long: `Writes a credentials file for a user, with the site's keys in the state
directory, and prints its path. Whoever has the file can act as that name, and
as no other name. The first grant opens the account.

The name of an operator must be among the operators of the site's configuration.
Files for nodes and services are for actors that run alone. The file for a peer
is for the bank of another site. The file for a door is for candor door, which
gives the users of a machine their credentials.`,
		Example: `  candor user add dave && candor grant dave 100 --account operator
  candor user add --service auctioneer
  candor user add --peer east
  candor user add --door login1`,
		RunE: prepared(func(cmd *cobra.Command, args []string) error { return a.run(cmd, args[0]) }),
	}
	keysFlags(cmd, &a.settings)
	a.roleFlags(cmd)
	return cmd
}

func (a *add) run(cmd *cobra.Command, name messages.Name) error {
	c, authority, err := a.settings.authority()
	if err != nil {
		return err
	}
	role, name := a.role(name)
	file, err := embedded.WriteCredentials(c.State, authority, role, name)
	if err != nil {
		return err
	}
	return say(cmd.OutOrStdout(), "%s\n", file)
}

func (a *add) roleFlags(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&a.operator, "operator", false, "for an operator")
	cmd.Flags().BoolVar(&a.node, "node", false, "for the agent of a node")
	cmd.Flags().BoolVar(&a.service, "service", false, "for an actor: auctioneer, bank or estimator")
	cmd.Flags().BoolVar(&a.peer, "peer", false, "for the bank of another site")
	cmd.Flags().BoolVar(&a.door, "door", false, "for the door of a machine (candor door)")
	cmd.MarkFlagsMutuallyExclusive("operator", "node", "service", "peer", "door")
}

func (a *add) role(name messages.Name) (identity.Role, messages.Name) {
	switch {
	case a.operator:
		return identity.Operator, name
	case a.node:
		return identity.Node, name
	case a.service:
		return identity.Service, messages.ServiceIdentity(name)
	case a.peer:
		return identity.Peer, messages.ServiceIdentity(name)
	case a.door:
		return identity.Door, messages.ServiceIdentity(messages.DoorPrefix + name)
	}
	return identity.User, name
}

// typed returns a name of a role as the commands "candor user" take it: login1 for the door $door-login1.
func typed(role identity.Role, name messages.Name) string {
	name = strings.TrimPrefix(name, messages.ServiceIdentity(""))
	if role == identity.Door {
		name = strings.TrimPrefix(name, messages.DoorPrefix)
	}
	return name
}

func siteCommand() *cobra.Command {
	return group("site", "make a site, join it to other sites, and show its links",
		initCommand(), certifyCommand(), inviteCommand(), joinSiteCommand(), natsCommand(), rotateCommand(), dropCommand())
}
