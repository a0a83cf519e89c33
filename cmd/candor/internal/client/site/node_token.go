package site

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/candor-grid/candor/cmd/candor/internal/client/cli"
	"github.com/candor-grid/candor/cmd/candor/internal/terminal"
	"github.com/candor-grid/candor/messages"
)

func nodeTokenCommand(a *cli.App) *cobra.Command {
	var expires, revoke, output string
	cmd := &cobra.Command{
		Use:   "token NODE",
		Short: "make a token with which a new node can join (operators)",
		Long: `Make a token for the agent of a new node. With the token one agent gets the
credentials of the node, once, until the token expires. --output writes the
token to a new file that nobody else can read. Without --output the token is
printed. Bring the token to the node as a secret: whoever has the token can act
as the node. The key of the node's credentials is made on the node and stays
there.

--revoke makes a token worthless. If the token was used before, also revoke the
credentials with candor user revoke NODE --node --key KEY. candor node tokens
shows the key.`,
		Example: `  candor node token node7 --expires 1h --output node7.token
  candor nodeagent --join-file node7.token --config agents.yaml
  candor node token --revoke join-3xq5m2kcw7pn4d6y`,
		Args: func(cmd *cobra.Command, args []string) error {
			if revoke != "" {
				return cobra.NoArgs(cmd, args)
			}
			return cobra.ExactArgs(1)(cmd, args)
		},
		RunE: a.Operating(func(ctx context.Context, s *cli.Session, args []string) error {
			if revoke != "" {
				return revokeToken(ctx, a, s, revoke)
			}
			return makeToken(ctx, a, s, args[0], expires, output)
		}),
	}
	cmd.Flags().StringVar(&expires, "expires", "1h", "`time` for which the token is valid")
	cmd.Flags().StringVarP(&output, "output", "o", "", "write the token to a new `file` that nobody else can read")
	cmd.Flags().StringVar(&revoke, "revoke", "", "revoke the token of this `identifier` instead")
	return cmd
}

func makeToken(ctx context.Context, a *cli.App, s *cli.Session, node messages.Name, expires, output string) (err error) {
	r := messages.TokenRequest{Node: node}
	if r.Expires, err = messages.ParseDuration(expires); err != nil {
		return cli.Usagef("--expires: %v", err)
	}
	write := func(string) error { return nil }
	if output != "" { // create the file first: if this failed later, the new token would be lost
		if write, err = newSecret(output); err != nil {
			return cli.Usagef("--output: %v", err)
		}
	}
	reply, err := cli.Call[messages.TokenReply](ctx, s, messages.Admission, messages.VerbToken, r)
	if err != nil {
		if output != "" {
			err = errors.Join(err, os.Remove(output))
		}
		return err
	}
	if err := write(reply.Token); err != nil {
		return err
	}
	if !a.Flags.JSON {
		p := a.Page(a.Err)
		a.Tell(fmt.Sprintf("With token %s one agent can join as node %s, once, until %s", reply.State.ID, node, p.At(reply.State.Expires)))
	}
	if output != "" {
		return nil
	}
	if !terminal.IsTerminal(a.Out) {
		a.Tell("The token is a secret. Use --output to write the token to a file that nobody else can read.")
	}
	return a.Show(reply, func(p *cli.Page) { p.Printf("%s\n", reply.Token) })
}

// newSecret creates a file that only its owner can read. The returned function writes a line to the file.
func newSecret(name string) (write func(string) error, err error) {
	f, err := os.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, cli.NotMade(name, err)
	}
	return func(text string) error {
		_, err := f.WriteString(text + "\n")
		return errors.Join(err, f.Close())
	}, nil
}

func revokeToken(ctx context.Context, a *cli.App, s *cli.Session, id string) error {
	state, err := cli.Call[messages.TokenState](ctx, s, messages.Admission, messages.VerbForget, messages.TokenUse{ID: id})
	if err != nil {
		return err
	}
	return a.Show(state, func(p *cli.Page) {
		p.Printf("Token %s of node %s is revoked\n", state.ID, state.Node)
		if state.Used != 0 {
			p.Printf("The token was used at %s. Also revoke the credentials, on a host with the site's keys: candor user revoke %s --node --key %s\n", p.At(state.Used), state.Node, state.Key)
		}
	})
}

func nodeTokensCommand(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use:     "tokens",
		Short:   "list the tokens for new nodes, and which were used (operators)",
		Example: "  candor node tokens\n  candor node tokens --json | jq '.tokens[] | select(.used == null)'",
		RunE:    cli.Asking(a, a.Operating, messages.Admission, messages.VerbTokens, writeTokens),
	}
}

func writeTokens(p *cli.Page, r messages.TokensReply) {
	if len(r.Tokens) == 0 {
		p.Printf("No tokens.\n")
		return
	}
	t := terminal.NewTable("TOKEN|~NODE|STATE|EXPIRES|~BY|~KEY").Spare("KEY")
	for _, e := range r.Tokens {
		t.Row(e.ID, e.Node, tokenState(p, &e), p.At(e.Expires), e.By, e.Key)
	}
	p.Table(t, "")
}

// tokenState returns Open, Used, Expired, Revoked, or Revoked and used.
func tokenState(p *cli.Page, t *messages.TokenState) string {
	switch {
	case t.Revoked && t.Used != 0:
		return "Revoked, used"
	case t.Revoked:
		return "Revoked"
	case t.Used != 0:
		return "Used"
	case t.Expires <= p.Now:
		return "Expired"
	}
	return "Open"
}
