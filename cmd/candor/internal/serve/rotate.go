package serve

import (
	"errors"
	"io/fs"
	"os"

	"github.com/spf13/cobra"

	"github.com/candor-grid/candor/deploy/embedded"
	"github.com/candor-grid/candor/deploy/identity"
	"github.com/candor-grid/candor/messages"
)

// rotate replaces a key of a site by a new one. For some time, both keys are valid.
type rotate struct {
	settings settings
	finish   bool
}

func rotateCommand() *cobra.Command {
	r := &rotate{}
	cmd := &cobra.Command{
		Use:   "rotate KEY",
		Short: "replace a key of the site",
		Long: `Replaces a key of the site in two steps. Between the steps the old key and the
new key are both valid. After each step, copy the keys directory to all hosts.
Running sites use the new keys within seconds; only for the operator's key each
host must be started again.

  user-role, operator-role,  These keys sign credentials. The first step makes a
  node-role, service-role,   new key. Then issue credentials again (candor user
  peer-role, joiner-role,    add; running sites do so for their own). --finish
  front-role                 makes the old credentials invalid.
  operator                   This key signs the accounts. Start all hosts again
                             before --finish.
  bank                       This key signs checkpoints and messages to other
                             banks. The first step prints the new key. Ask the
                             operators of the peers to trust it (candor peer key
                             SITE NEW). After --finish the bank signs with the
                             new key.
  account                    This key signs the list of the site's other keys.
                             Rotate bank once before this key. Credentials stay
                             valid, and peers need to do nothing. After --finish
                             the old key is erased, and its signatures are no
                             longer valid.`,
		Example: `  candor site rotate user-role
  candor site rotate user-role --finish`,
		ValidArgs: identity.Rotatable(),
		RunE:      prepared(func(cmd *cobra.Command, args []string) error { return r.run(cmd, args[0]) }),
	}
	keysFlags(cmd, &r.settings)
	cmd.Flags().BoolVar(&r.finish, "finish", false, "end the rotation: only the new key is valid")
	return cmd
}

func keysFlags(cmd *cobra.Command, s *settings) {
	s.fileFlags(cmd.Flags())
	s.keysFlag(cmd.Flags())
}

func (r *rotate) run(cmd *cobra.Command, key string) error {
	_, authority, err := r.settings.authority()
	if err != nil {
		return err
	}
	if r.finish {
		if err := authority.Finish(key); err != nil {
			return err
		}
		return say(cmd.OutOrStdout(), "The rotation of key %s has ended\n", key)
	}
	public, err := authority.Rotate(key)
	if err != nil {
		return err
	}
	return say(cmd.OutOrStdout(), "%s\n", public)
}

// authority opens the keys of the configured site. They must exist.
func (s *settings) authority() (embedded.Config, *identity.Authority, error) {
	return s.authorityElse("name their directory with --keys, or make them with candor site init or candor up")
}

// authorityElse opens the keys of the configured site. If the site has no keys, it returns an error that ends with
// `advice`. But if a user called sudo without naming a directory, the error ends with advice about that.
func (s *settings) authorityElse(advice string) (embedded.Config, *identity.Authority, error) {
	c, err := s.load()
	if err != nil {
		return c, nil, err
	}
	authority, err := identity.Open(c.KeysDir())
	if errors.Is(err, fs.ErrNotExist) {
		if who := os.Getenv("SUDO_USER"); who != "" && s.state == "" && s.keys == "" {
			advice = "this directory belongs to root; for the site of " + who + ", name its directory with --state, as in --state ~" + who + "/.local/state/candor"
		}
		return c, nil, messages.Errorf(messages.NotFound, "%s: no site has keys there; %s", c.KeysDir(), advice)
	}
	if err == nil {
		authority.SetLife(c.CredentialsFor.Std())
	}
	return c, authority, err
}
