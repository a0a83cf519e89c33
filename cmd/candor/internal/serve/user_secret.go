package serve

import (
	"github.com/spf13/cobra"

	"github.com/candor-grid/candor/auctioneer/notify"
	"github.com/candor-grid/candor/messages"
)

func secretCommand() *cobra.Command {
	s := &settings{}
	cmd := &cobra.Command{
		Use:   "secret NAME",
		Short: "print the secret of an account's webhooks",
		Long: `Prints the secret that signs the webhooks of an account's jobs. The site
computes this secret from the name of the account and the site's own secret, a
file that notify.secret_file in the configuration names. Give the secret to the
holder of the account: whoever has it can forge webhooks about jobs of that
account, but of no other account.`,
		Example: `  candor user secret dave --config site.yaml`,
		RunE: prepared(func(cmd *cobra.Command, args []string) error {
			c, err := s.load()
			if err != nil {
				return err
			}
			if !messages.ValidName(args[0]) {
				return messages.Errorf(messages.Invalid, "name %q: is not the name of an account", args[0])
			}
			if c.Notify.SecretFile == "" {
				return messages.Errorf(messages.NotFound, "this site calls no webhooks: its configuration has no notify.secret_file; name the configuration with --config")
			}
			secret, err := notify.ReadSecret(c.Notify.SecretFile)
			if err != nil {
				return err
			}
			return say(cmd.OutOrStdout(), "%s\n", secret.Of(args[0]))
		}),
	}
	s.fileFlags(cmd.Flags())
	return cmd
}
