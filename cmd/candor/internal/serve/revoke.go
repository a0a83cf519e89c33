package serve

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/candor-grid/candor/deploy/embedded"
	"github.com/candor-grid/candor/deploy/identity"
	"github.com/candor-grid/candor/deploy/identity/connections"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/spelling"
)

type revoke struct {
	add
	keys   []string
	file   string
	server string
	force  bool
}

func revokeCommand() *cobra.Command {
	r := &revoke{}
	cmd := &cobra.Command{
		Use:   "revoke NAME",
		Short: "make the credentials of a name invalid",
		Long: `Makes all credentials of a name invalid, and closes the connections that use
them. When the command returns without an error, all NATS servers of the running
site refuse these credentials, and no connection uses them. A host that does not
run needs the file revoked.json of the keys directory before it starts.
Credentials that are issued later (candor user add) are valid. A running site
issues new credentials for the accounts of its configuration by itself.

--file revokes one credentials file that leaked. --key revokes the public key of
a node that joined with a token (candor node tokens shows the key).`,
		Example: `  candor user revoke dave
  candor user revoke node7 --node \
      --key UAJO53UP6SAESI4CZYQYATJ7SYKUAQ4MHXS6SSJAVVFCHLI5YNLAIWBI
  candor user revoke --file found-on-a-usb-stick.creds`,
		Args: func(cmd *cobra.Command, args []string) error {
			if r.file != "" {
				return cobra.NoArgs(cmd, args)
			}
			return cobra.ExactArgs(1)(cmd, args)
		},
		RunE: prepared(func(cmd *cobra.Command, args []string) error { return r.run(cmd, strings.Join(args, "")) }),
	}
	keysFlags(cmd, &r.settings)
	r.roleFlags(cmd)
	cmd.Flags().StringSliceVar(&r.keys, "key", nil, "also revoke this public `key` of the name")
	cmd.Flags().StringVar(&r.file, "file", "", "revoke only this credentials `file`")
	cmd.Flags().BoolVar(&r.force, "force", false, "revoke a name although it resembles one that is known here")
	cmd.Flags().StringVar(&r.server, "server", "", "`URL` of a server of the site (default: as the state directory says)")
	return cmd
}

func (r *revoke) run(cmd *cobra.Command, name messages.Name) error {
	c, authority, err := r.settings.authority()
	if err != nil {
		return err
	}
	before := authority.RevokedKeys()
	said, err := r.revoke(&c, authority, name)
	if err != nil {
		return err
	}
	keys := slices.DeleteFunc(authority.RevokedKeys(), func(key string) bool { return slices.Contains(before, key) })
	where, err := r.inForce(cmd.Context(), &c, authority, keys)
	if err != nil {
		return messages.Errorf(messages.KindOf(err), "%s, but some servers still accept the credentials: %s", said, messages.Detail(err))
	}
	return say(cmd.OutOrStdout(), "%s%s\n", said, where)
}

// revoke adds revocations to the site's keys, and returns a sentence about them.
func (r *revoke) revoke(c *embedded.Config, authority *identity.Authority, name messages.Name) (string, error) {
	if r.file != "" {
		key, err := keyIn(r.file)
		if err != nil {
			return "", messages.Errorf(messages.Invalid, "--file %s: %v", r.file, err)
		}
		return fmt.Sprintf("Key %s is revoked", key), authority.RevokeKey(key)
	}
	role, name := r.role(name)
	// Credentials from an earlier version have a key that was not derived from the name. If the file has such a key, it
	// must be revoked too.
	if key, err := keyIn(embedded.RoleCredsFile(c.State, role, name)); err == nil {
		r.keys = append(r.keys, key)
	}
	doubt, err := r.known(c, authority, role, name)
	if err != nil {
		return "", err
	}
	said := fmt.Sprintf("The credentials of %s %s are revoked%s", role, typed(role, name), doubt)
	if role == identity.User && slices.ContainsFunc(c.Accounts, func(a embedded.Account) bool { return a.Name == name }) {
		said += " (the running site makes new ones, because " + name + " is one of the accounts in its configuration)"
	}
	return said, authority.Revoke(role, name, r.keys...)
}

// known returns an error if a name never got credentials here but resembles a name that did: it is probably misspelt.
// For any other unknown name it returns a remark: doors and other hosts also issue credentials, and this host has no
// files of these credentials.
func (r *revoke) known(c *embedded.Config, authority *identity.Authority, role identity.Role, name messages.Name) (doubt string, err error) {
	if r.force || len(r.keys) > 0 || role == identity.Service || role == identity.Node && slices.ContainsFunc(c.Nodes, func(n embedded.Node) bool { return n.Name == name }) {
		return "", nil
	}
	all, err := holders(filepath.Join(c.State, "creds"), authority)
	if err != nil {
		return "", err
	}
	names := slices.Clone(c.Operators)
	for _, a := range c.Accounts {
		names = append(names, a.Name)
	}
	for _, h := range all {
		if h.Role == role {
			names = append(names, h.Name)
		}
	}
	if slices.Contains(names, name) {
		return "", nil
	}
	if near := spelling.Nearest(name, names); near != "" {
		return "", messages.Errorf(messages.NotFound, "this state directory has no credentials of %s %s; did you mean %q? --force revokes the name as it is, for credentials that another host or a door issued", role, typed(role, name), typed(role, near))
	}
	return " (this state directory has no credentials of that name: check the spelling)", nil
}

// A revocation waits for the reports of the servers, and then until all servers refuse the keys. These constants are
// the longest times of the two waits.
const (
	serversWithin = 3 * time.Second
	revokedWithin = 15 * time.Second
)

// inForce tells all hosts of the running site which keys were revoked. It waits until the servers of these hosts refuse
// the keys. It returns a sentence that says what happened.
func (r *revoke) inForce(ctx context.Context, c *embedded.Config, authority *identity.Authority, keys []string) (string, error) {
	system, err := systemOf(c, authority, r.server)
	if r.server == "" && (messages.KindOf(err) == messages.NotFound || messages.KindOf(err) == messages.Unavailable) {
		return fmt.Sprintf(", but only from the next start of the site on, because no site runs with the state directory %s. If the site runs with another state directory, name that directory with --state", tilde(c.State)), nil
	}
	if err != nil {
		return "", err
	}
	defer system.Close()
	text, err := authority.Revocations()
	if err != nil {
		return "", err
	}
	if err := system.Publish(connections.RevokedSubject, text); err != nil {
		return "", err
	}
	want := max(1, len(c.Hosts))
	wait, cancel := context.WithTimeout(ctx, serversWithin)
	servers, err := connections.Servers(wait, system, want)
	cancel()
	if err != nil {
		return "", err
	}
	wait, cancel = context.WithTimeout(ctx, revokedWithin)
	defer cancel()
	for _, server := range servers {
		if err := connections.AwaitRevoked(wait, system, server, authority.AccountKey(), keys); err != nil {
			return "", messages.Errorf(messages.Unavailable, "%v; if NATS servers run separately, write accounts.conf again (candor site nats) and reload the servers", err)
		}
	}
	if len(servers) < want {
		return "", messages.Errorf(messages.Unavailable, "%d of the site's %d hosts answer; copy revoked.json of the keys directory to each host that does not answer, before that host starts", len(servers), want)
	}
	return "", nil
}

func keyIn(file string) (string, error) {
	creds, err := os.ReadFile(file)
	if err != nil {
		return "", err
	}
	if letter, err := readLetter(file); err == nil { // an invitation contains credentials for the peer
		creds = []byte(letter.Creds)
	}
	return identity.KeyOf(creds)
}
