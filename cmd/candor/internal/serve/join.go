package serve

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/pflag"

	"github.com/candor-grid/candor/deploy/embedded"
	"github.com/candor-grid/candor/deploy/identity/admission"
	"github.com/candor-grid/candor/messages"
)

// joining has the flags about the token with which an agent gets its credentials at its first start.
type joining struct{ token, file string }

func (j *joining) flags(f *pflag.FlagSet) {
	f.StringVar(&j.token, "join", "", "join `token` for the first start; other users may see it in the list of processes")
	f.StringVar(&j.file, "join-file", "", "`file` that holds the token")
}

func (j *joining) given() bool { return j.token != "" || j.file != "" }

// obtain gets a node's credentials with the token. It does nothing if the file of credentials exists. The flag --creds
// names this file; without the flag, the file is in the state directory. If no flag names the server's address, the
// address comes from the token.
func (j *joining) obtain(ctx context.Context, s *single, state string) error {
	if s.creds == "" {
		s.creds = embedded.CredsFile(state, filepath.Join("nodes", s.node))
	}
	if _, err := os.Stat(s.creds); err == nil && s.server != "" {
		return nil
	} else if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return messages.Errorf(messages.Invalid, "--creds: %v", err)
	}
	t, err := j.read()
	if err != nil {
		return err
	}
	if t.Node != s.node {
		return messages.Errorf(messages.Invalid, "--node %s: the join token is for node %s", s.node, t.Node)
	}
	if s.server == "" {
		s.server = strings.Join(t.Servers, ",")
	}
	if _, err := os.Stat(s.creds); err == nil {
		return nil // the node has joined before; only the address in the token is used
	}
	return admission.Join(ctx, t, s.server, s.creds)
}

func (j *joining) read() (*admission.Token, error) {
	text := j.token
	if text == "" {
		data, err := os.ReadFile(j.file)
		if err != nil {
			return nil, messages.Errorf(messages.Invalid, "--join-file: %v", err)
		}
		text = string(data)
	}
	return admission.ParseToken(text)
}
