package door

import (
	"fmt"
	"os"

	"github.com/nats-io/jwt/v2"
	"github.com/spf13/cobra"

	"github.com/candor-grid/candor/cmd/candor/internal/client/cli"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/bus"
)

// Socket is the default path of a door's socket.
const Socket = "/run/candor/door.sock"

// Command returns the command candor door.
func Command(a *cli.App) *cobra.Command {
	var socket string
	var least uint32
	cmd := &cobra.Command{
		Use:   "door",
		Short: "give the users of this machine their credentials",
		Long: `Give each user of this machine the credentials of the account with the user's
name, so that nobody needs a file. The door listens on a socket, and the kernel
tells it which user asks. Credentials are valid for an hour; commands get new
ones by themselves. Commands of this machine ask the door if this file names it:

  /etc/candor/client.yaml     door: /run/candor/door.sock

The door needs credentials of its own, from candor user add --door. Whoever has
these credentials can act as every user of the site, but not as an operator.
candor user revoke --door makes the credentials invalid.`,
		Example: `  candor user add --door login1 --config site.yaml
  candor door --creds login1.creds --site west --server nats://hub:4222`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			t, err := a.ResolveDoor()
			if err != nil {
				return err
			}
			p, err := bus.ReadPrincipal(t.Creds)
			if err != nil {
				return err
			}
			claims, err := jwt.DecodeUserClaims(p.Token)
			if err != nil {
				return messages.Errorf(messages.Invalid, "--creds: %v", err)
			}
			t.Account = claims.Name
			d := &door{name: claims.Name, site: t.Site, server: t.Server, least: least, now: a.Now, say: a.Tell, lines: lines{connect: a.Connect}}
			if d.ca, err = t.Authority(); err != nil {
				return err
			}
			if d.bus, err = a.Connect(t); err != nil {
				return err
			}
			defer d.bus.Close()
			l, err := listen(socket)
			if err != nil {
				return err
			}
			defer os.Remove(socket)
			fmt.Fprintf(a.Out, "The users of this machine get credentials of site %s at %s\n", t.Site, socket)
			return d.serve(cmd.Context(), l)
		},
	}
	cmd.Flags().StringVar(&socket, "socket", Socket, "`path` of the socket")
	cmd.Flags().Uint32Var(&least, "least-user", leastUser, "refuse users with a smaller `number`")
	return cmd
}
