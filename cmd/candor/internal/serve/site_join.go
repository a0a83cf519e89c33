package serve

import (
	"cmp"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/candor-grid/candor/cmd/candor/internal/client/cli"
	"github.com/candor-grid/candor/deploy/embedded"
	"github.com/candor-grid/candor/deploy/identity"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/durable"
)

// peersDir has the credentials and certificates from other sites. It is next to the configuration file.
const peersDir = "peers"

// maxLetter is the largest size of a letter in bytes. A letter with certificates has a few thousand bytes.
const maxLetter = 1 << 20

// letters are the commands with which two sites become peers. A letter is a file for the other operator: an invitation
// or its answer.
type letters struct {
	settings  settings
	limit     string
	sameOwner bool
	output    string
	urls      []string
}

func (l *letters) flags(cmd *cobra.Command, output string) {
	cmd.Flags().StringVar(&l.settings.file, "config", siteFileName, "configuration `file` of this site")
	cmd.Flags().StringVarP(&l.output, "output", "o", "", output)
}

func inviteCommand() *cobra.Command {
	l := &letters{}
	cmd := &cobra.Command{
		Use:   "invite SITE",
		Short: "write an invitation for another site to become a peer",
		Long: `Writes an invitation for the operator of another site. The invitation has the
address for the servers of peers, credentials for the other site, the key of
this site's bank and the certificate of its authority. Whoever has the file can
connect as the other site: give the file to its operator in private. The
operator answers with candor site join. Then use candor site join here with the
answer. Nothing changes before that. A second invitation has new credentials.
"candor user revoke --file" revokes the credentials of an invitation.`,
		Example: `  candor site invite east --config west/site.yaml \
      --url tls://hub.west.example:7422
  # at the other site:
  candor site join west-invites-east.json --limit 5000`,
		RunE: prepared(func(cmd *cobra.Command, args []string) error { return l.invite(cmd.OutOrStdout(), args[0]) }),
	}
	l.flags(cmd, "`file` to write (default WEST-invites-EAST.json)")
	cmd.Flags().StringSliceVar(&l.urls, "url", nil, "`URL` at which the other site's servers reach the servers of this site; may be repeated (default: as configured)")
	return cmd
}

func (l *letters) invite(w io.Writer, peer messages.Name) error {
	c, authority, err := l.open()
	if err != nil {
		return err
	}
	urls := l.urls
	if len(urls) == 0 {
		if urls, err = reachedAt(&c); err != nil {
			return err
		}
	}
	ca, err := c.TLS.Authority()
	if err != nil {
		return err
	}
	letter, err := authority.Invite(peer, urls, ca)
	if err != nil {
		return err
	}
	file := cmp.Or(l.output, c.Site+"-invites-"+peer+".json")
	if err := writeLetter(file, letter); err != nil {
		return err
	}
	return say(w, "%s\nGive this file in private to the operator of %s, who runs: candor site join %s --limit AMOUNT\nThen accept the answer here: candor site join %s --config %s --limit AMOUNT\n",
		file, peer, filepath.Base(file), answerFile(peer, c.Site), l.settings.file)
}

func answerFile(from, to messages.Name) string { return from + "-answers-" + to + ".json" }

func joinSiteCommand() *cobra.Command {
	l := &letters{}
	cmd := &cobra.Command{
		Use:   "join FILE --limit AMOUNT",
		Short: "accept an invitation or an answer of another site",
		Long: `Accepts an invitation or an answer of another site. The command adds the other
site to the peers of this site's configuration and writes its credentials and
its certificate next to the configuration. For an invitation the command also
writes an answer; the other site accepts the answer in the same way. The limit
is the most that the other site may owe this site. A site that runs with this
configuration has the peer within seconds. If the site has several hosts, copy
the configuration and its directory "peers" to each host.`,
		Example: `  candor site join west-invites-east.json --config east/site.yaml --limit 5000
  candor site join east-answers-west.json --config west/site.yaml --limit 5000`,
		Args: cobra.ExactArgs(1),
		RunE: prepared(func(cmd *cobra.Command, args []string) error { return l.join(cmd.OutOrStdout(), args[0]) }),
	}
	l.flags(cmd, "`file` for the answer to an invitation (default EAST-answers-WEST.json)")
	cmd.Flags().StringVar(&l.limit, "limit", "", "the most `credits` that the other site may owe")
	cmd.Flags().BoolVar(&l.sameOwner, "same-owner", false, "both sites have one owner: jobs that name no site may run at either")
	_ = cmd.MarkFlagRequired("limit")
	return cmd
}

func (l *letters) join(w io.Writer, file string) error {
	limit, err := messages.ParseCredits(l.limit)
	if err != nil {
		return messages.Errorf(messages.Invalid, "--limit: %v", err)
	}
	c, authority, err := l.open()
	if err != nil {
		return err
	}
	letter, err := readLetter(file)
	if err != nil {
		return err
	}
	if letter.Kind == identity.AnswerKind {
		err = authority.Verify(letter)
	} else {
		err = letter.Check(c.Site)
	}
	if err != nil {
		return err
	}
	answer := ""
	if letter.Kind == identity.InvitationKind { // first do what can fail before anything is changed
		if answer, err = l.answer(&c, authority, letter); err != nil {
			return err
		}
	}
	if err := l.admit(&c, letter, limit); err != nil {
		if answer != "" {
			err = errors.Join(err, os.Remove(answer))
		}
		return err
	}
	say(w, "Site %s is in %s as a peer that may owe up to %s credits.\n", letter.Site, l.settings.file, limit)
	if answer != "" {
		say(w, "%s\nGive this file to the operator of %s, who accepts the answer with candor site join.\n", answer, letter.Site)
	}
	return say(w, "If this site runs, it has the peer within seconds; otherwise from its next start. Then \"candor site status\" shows the link to the peer.\n")
}

// admit writes the files of a letter, and adds the site to the peers in the configuration. It checks the new
// configuration before it replaces the file.
func (l *letters) admit(c *embedded.Config, letter *identity.Letter, limit messages.Credits) error {
	if (c.TLS != nil) != (letter.CA != "") {
		return messages.Errorf(messages.Conflict, "site %s and site %s: only one has certificates; a link needs certificates at both ends, or at neither end", c.Site, letter.Site)
	}
	config, err := filepath.Abs(l.settings.file)
	if err != nil {
		return err
	}
	dir := filepath.Join(filepath.Dir(config), peersDir)
	p := embedded.Peer{Name: letter.Site, URLs: letter.URLs, Keys: letter.Keys, Limit: limit, SameOwner: l.sameOwner}
	if letter.Creds != "" {
		p.Creds = filepath.Join(dir, letter.Site+".creds")
	}
	if letter.CA != "" {
		p.CA = filepath.Join(dir, letter.Site+"-ca.pem")
	}
	text, err := withPeer(config, p)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	for _, f := range []struct{ name, text string }{{p.Creds, letter.Creds}, {p.CA, letter.CA}} {
		if f.name == "" {
			continue
		}
		if err := durable.WriteFile(f.name, []byte(f.text), 0o600); err != nil {
			return err
		}
	}
	info, err := os.Stat(config)
	if err != nil {
		return err
	}
	return durable.WriteFile(config, text, info.Mode().Perm())
}

// answer writes the answer to an invitation into a new file, and returns the file's name.
func (l *letters) answer(c *embedded.Config, authority *identity.Authority, invitation *identity.Letter) (string, error) {
	ca, err := c.TLS.Authority()
	if err != nil {
		return "", err
	}
	letter, err := authority.Answer(invitation, ca)
	if err != nil {
		return "", err
	}
	file := cmp.Or(l.output, answerFile(c.Site, invitation.Site))
	return file, writeLetter(file, letter)
}

func (l *letters) open() (embedded.Config, *identity.Authority, error) {
	c, authority, err := l.settings.authorityElse("make them with candor site init")
	if err == nil && authority.Site() != c.Site {
		err = messages.Errorf(messages.Conflict, "%s: holds the keys of site %s, not of %s", c.KeysDir(), authority.Site(), c.Site)
	}
	return c, authority, err
}

func readLetter(file string) (*identity.Letter, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, messages.Errorf(messages.Invalid, "%v", err)
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxLetter))
	if err != nil {
		return nil, messages.Errorf(messages.Invalid, "%s: %v", file, err)
	}
	letter := new(identity.Letter)
	if err := json.Unmarshal(text, letter); err != nil {
		return nil, messages.Errorf(messages.Invalid, "%s: is no invitation or answer: %v", file, err)
	}
	return letter, nil
}

// writeLetter writes a letter to a new file that only its owner can read.
func writeLetter(file string, letter *identity.Letter) error {
	text, err := json.MarshalIndent(letter, "", "  ")
	if err != nil {
		return err
	}
	f, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return messages.Errorf(messages.Conflict, "%s: exists already; remove it, or name another file with --output", file)
	}
	if err != nil {
		return messages.Errorf(messages.Invalid, "%v", cli.NotMade(file, err))
	}
	_, err = f.Write(append(text, '\n'))
	return errors.Join(err, f.Close())
}
