package serve

import (
	"cmp"
	"time"

	"github.com/spf13/cobra"

	"github.com/candor-grid/candor/deploy/embedded"
)

func backupCommand() *cobra.Command {
	var state string
	cmd := &cobra.Command{
		Use:   "backup DIR",
		Short: "back up the running site of this host",
		Long: `Writes a backup of the site into DIR while the site serves: the states of the
auctioneer and of the bank, the bank's journal, the files of jobs, the
estimates, and the keys. Everything that the site answered before the backup
began is in the backup.

Run the command on a host of the site, as the user that runs the site. The
backup of one host is enough for all hosts. DIR must be empty or not exist. DIR
appears only when the backup is whole. To check its files, run in DIR:
sha256sum -c SHA256SUMS

A person who can read the backup can act as the site: keep the backup as safe as
the keys. Your configuration and your certificates are not in the backup.`,
		Example: `  candor backup /backup/west-monday
  candor backup --state /var/lib/candor /backup/west-monday`,
		Args: cobra.ExactArgs(1),
		RunE: prepared(func(cmd *cobra.Command, args []string) error {
			about, err := embedded.ReceiveBackup(cmd.Context(), cmp.Or(state, defaultState()), args[0])
			if err != nil {
				return err
			}
			return say(cmd.OutOrStdout(), "%s has the backup of site %s, with everything until %s\n", args[0], about.Site, about.Began.Local().Format(time.DateTime))
		}),
	}
	cmd.Flags().StringVar(&state, "state", "", "state `directory` of the running site (default "+tilde(defaultState())+")")
	return cmd
}

// restored returns the flags for the command that starts a restored site, without the flag for the state directory.
func restored(host, keys string) (flags string) {
	if host != "" { // the site has several hosts, and the command must name one of them
		flags = " --config FILE --host " + host
	}
	if keys != "" {
		flags += " --keys " + keys
	}
	return flags
}

func restoreCommand() *cobra.Command {
	var state, keys, host string
	cmd := &cobra.Command{
		Use:   "restore DIR",
		Short: "make a state directory from a backup",
		Long: `Makes a state directory from the backup in DIR. Every file of the backup is
checked first. The state directory must be empty or not exist. It appears only
when it is whole. Then start the site with this state directory and the site's
configuration.

All changes after the backup are lost. Tasks that ran at that time run again.
New jobs get numbers that are more than a million higher. Compare the books with
those of the peers: see candor peer reconcile. The files of jobs are kept for
their full time again.

If the site has several hosts, restore all hosts from the same backup, each with
its --host, before you start one of them. No host may keep its old state.`,
		Example: `  candor restore /backup/west-monday
  candor restore /backup/west-monday --state /var/lib/candor \
      --host rack1 --keys /etc/candor/keys`,
		Args: cobra.ExactArgs(1),
		RunE: prepared(func(cmd *cobra.Command, args []string) error {
			to := cmp.Or(state, defaultState())
			about, err := embedded.Restore(args[0], to, keys, host)
			if err != nil {
				return err
			}
			return say(cmd.OutOrStdout(), "%s has site %s as it was at %s; start the site with: candor up%s --state %s\n", tilde(to), about.Site, about.Began.Local().Format(time.DateTime), restored(host, keys), to)
		}),
	}
	f := cmd.Flags()
	f.StringVar(&state, "state", "", "state `directory` to make (default "+tilde(defaultState())+")")
	f.StringVar(&keys, "keys", "", "`directory` for the site's keys; keys that are in it already stay (default: the directory keys in the state directory)")
	f.StringVar(&host, "host", "", "`name` of the host to restore, if the site has several hosts")
	return cmd
}
