package serve

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/candor-grid/candor/deploy/identity/certificate"
	"github.com/candor-grid/candor/deploy/nats"
	"github.com/candor-grid/candor/messages"
)

func certifyCommand() *cobra.Command {
	var dir string
	cmd := &cobra.Command{
		Use:   "certify HOST [NAME|ADDRESS]...",
		Short: "issue the certificate of a host, or issue it again",
		Long: `Issues HOST.pem and HOST.key, in the directory of the site's authority, good for every
port of the host under its name and the DNS names and addresses that are given: that
of the hub, for one that peers connect to. One that is there is replaced. A host takes
a new certificate when it is started again; one is good for 825 days.`,
		Example: `  candor site certify rack4 10.0.0.4 --tls west/tls
  candor site certify rack1 10.0.0.1 hub.west.example --tls west/tls`,
		Args: cobra.MinimumNArgs(1),
		RunE: prepared(func(cmd *cobra.Command, args []string) error {
			authority, err := certificate.Open(dir)
			if errors.Is(err, fs.ErrNotExist) {
				return messages.Errorf(messages.NotFound, "%s: the authority and its key are not there (%v); name their directory with --tls", dir, err)
			}
			if err != nil {
				return err
			}
			if err := authority.Issue(args[0], args[1:], time.Now()); err != nil {
				return err
			}
			_, err = fmt.Fprintln(cmd.OutOrStdout(), filepath.Join(dir, args[0]+".pem"))
			return err
		}),
	}
	cmd.Flags().StringVar(&dir, "tls", tlsDir, "`directory` of the site's authority")
	return cmd
}

func natsCommand() *cobra.Command {
	l := &letters{}
	var peer string
	cmd := &cobra.Command{
		Use:   "nats",
		Short: "write the accounts for NATS servers that run on their own",
		Long: `Prints accounts.conf, for NATS servers that run on their own in place of those that
candor up brings along: the claims of the site's accounts, with one for each peer of the
configuration. It holds no secret. With --peer it prints the key of the account shared
with that peer, which a server that connects to it is to have as CANDOR_PEER.`,
		Example: `  candor site nats --config site.yaml > /etc/candor/nats/accounts.conf
  export CANDOR_PEER=$(candor site nats --config site.yaml --peer west)`,
		Args: cobra.NoArgs,
		RunE: prepared(func(cmd *cobra.Command, _ []string) error { return l.nats(cmd, peer) }),
	}
	cmd.Flags().StringVar(&l.settings.file, "config", siteFileName, "configuration `file` of this site")
	cmd.Flags().StringVar(&peer, "peer", "", "print the key of the account shared with this `site`")
	return cmd
}

func (l *letters) nats(cmd *cobra.Command, peer messages.Name) error {
	c, authority, err := l.open()
	if err != nil {
		return err
	}
	if peer != "" {
		key, err := authority.LinkAccount(peer)
		if err != nil {
			return err
		}
		_, err = fmt.Fprintln(cmd.OutOrStdout(), key)
		return err
	}
	var peers []messages.Name
	for _, p := range c.Peers {
		peers = append(peers, p.Name)
	}
	text, err := nats.Accounts(keysDir(&c), peers...)
	if err != nil {
		return err
	}
	_, err = cmd.OutOrStdout().Write(text)
	return err
}
