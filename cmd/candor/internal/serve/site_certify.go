package serve

import (
	"cmp"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/candor-grid/candor/deploy/identity/certificate"
	"github.com/candor-grid/candor/deploy/nats"
	"github.com/candor-grid/candor/messages"
)

func certifyCommand() *cobra.Command {
	var dir string
	r := &replicaCertificate{}
	cmd := &cobra.Command{
		Use:   "certify HOST [NAME|ADDRESS]...",
		Short: "issue the certificate of a host, or issue it again",
		Long: `Issues HOST.pem and HOST.key in the directory of the site's authority. The
certificate is valid for every port of the host, under its name and the DNS
names and addresses that you give. If peers connect to the host, give the name
of the hub. An old certificate is replaced: give all its names and addresses
again. A host uses a new certificate after its next start. A certificate is
valid for 825 days. The certificate of localhost has the addresses and the name
of this machine too.

The servers and replicas of a site need no such files: each host makes their
certificates from the site's keys when it starts. Only a replica that runs alone
on a host without the keys needs a file. --replica writes the file to --output,
from the keys of --config or --keys. The file is valid only for the port at
which the replicas of this actor connect to one another.`,
		Example: `  candor site certify rack4 10.0.0.4 --tls west/tls
  candor site certify rack1 10.0.0.1 hub.west.example --tls west/tls
  candor site certify rack1 --replica bank --config site.yaml \
      --output rack1-bank.pem`,
		RunE: prepared(func(cmd *cobra.Command, args []string) error {
			if r.actor != "" {
				return r.write(cmd.OutOrStdout(), args)
			}
			authority, err := certificate.Open(dir)
			if errors.Is(err, fs.ErrNotExist) {
				return messages.Errorf(messages.NotFound, "%s: the authority's certificate or key is missing (%v); name the directory that has both with --tls", dir, err)
			}
			if err != nil {
				return err
			}
			file := filepath.Join(dir, args[0]+".pem")
			before, missing := namesIn(file)
			reached := args[1:]
			if args[0] == localHost { // clients on this host reach the site under these names
				reached = append(reachedLocally(""), reached...)
			}
			if err := authority.Issue(args[0], reached, time.Now()); err != nil {
				return err
			}
			if end := authority.Expires(); end.Before(time.Now().AddDate(0, 0, certificate.HostDays)) {
				_ = say(cmd.ErrOrStderr(), "The authority in %s expires on %s, and with it all its certificates: renew the authority before that.\n", dir, end.Format(time.DateOnly))
			}
			if missing == nil {
				after, err := namesIn(file)
				before = slices.DeleteFunc(before, func(name string) bool { return slices.Contains(after, name) })
				if err == nil && len(before) > 0 {
					_ = say(cmd.ErrOrStderr(), "The old certificate was also for %s. If anybody uses that, issue the certificate again with all names and addresses.\n", strings.Join(before, ", "))
				}
				return say(cmd.OutOrStdout(), "%s\nThe host uses the new certificate after its next start.\n", file)
			}
			return say(cmd.OutOrStdout(), "%s\nThe file is new. A host uses only the files that \"tls:\" of its configuration names:\nset cert and key there. To replace a certificate, give the name of its host.\n", file)
		}),
	}
	cmd.Flags().StringVar(&dir, "tls", tlsDir, "`directory` of the site's authority")
	r.flags(cmd)
	return cmd
}

// namesIn returns the names and addresses for which a certificate is valid.
func namesIn(file string) (names []string, err error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	block, _ := pem.Decode(text)
	if block == nil {
		return nil, nil
	}
	c, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return nil, nil // the file will be replaced, so it need not be valid
	}
	names = c.DNSNames
	for _, ip := range c.IPAddresses {
		names = append(names, ip.String())
	}
	return names, nil
}

// replicaCertificate is the command that issues a certificate for a replica that runs alone.
type replicaCertificate struct {
	settings      settings
	actor, output string
}

func (r *replicaCertificate) flags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&r.actor, "replica", "", "for the host's replica of this `actor`, auctioneer or bank")
	f.StringVar(&r.output, "output", "", "with --replica: `file` to write (default HOST-ACTOR.pem)")
	f.StringVar(&r.settings.file, "config", "", "with --replica: configuration `file`")
	f.StringVar(&r.settings.state, "state", "", "with --replica: state `directory`")
	f.StringVar(&r.settings.keys, "keys", "", "with --replica: `directory` of the site's keys (default: the directory keys in the state directory)")
}

func (r *replicaCertificate) write(w io.Writer, args []string) error {
	host := args[0]
	switch {
	case r.actor != messages.Auctioneer && r.actor != messages.Bank:
		return messages.Errorf(messages.Invalid, "--replica %q: only the auctioneer and the bank have replicas", r.actor)
	case len(args) > 1:
		return messages.Errorf(messages.Invalid, "--replica: the certificate of a replica has no other names or addresses: leave them out")
	}
	_, authority, err := r.settings.authority()
	if err != nil {
		return err
	}
	internal, err := authority.Internal()
	if err != nil {
		return err
	}
	file := cmp.Or(r.output, host+"-"+r.actor+".pem")
	if err := internal.WriteReplica(file, r.actor, host, time.Now()); err != nil {
		return err
	}
	return say(w, "%s\n", file)
}

func natsCommand() *cobra.Command {
	l := &letters{}
	var peer string
	cmd := &cobra.Command{
		Use:   "nats",
		Short: "write the accounts for NATS servers that run without \"candor up\"",
		Long: `Prints accounts.conf, for NATS servers that run without "candor up": the claims
of the site's accounts, and one account for each peer of the configuration. The
file has no secrets. With --peer the command prints the key of the account that
is shared with the peer. A server that connects to the peer needs this key in
the variable CANDOR_PEER.`,
		Example: `  candor site nats --config site.yaml > /etc/candor/nats/accounts.conf
  export CANDOR_PEER=$(candor site nats --config site.yaml --peer west)`,
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
		return say(cmd.OutOrStdout(), "%s\n", key)
	}
	var peers []messages.Name
	for _, p := range c.Peers {
		peers = append(peers, p.Name)
	}
	text, err := nats.Accounts(c.KeysDir(), peers...)
	if err != nil {
		return err
	}
	_, err = cmd.OutOrStdout().Write(text)
	return err
}
