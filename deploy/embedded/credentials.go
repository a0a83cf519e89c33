package embedded

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/candor-grid/candor/deploy/identity"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/durable"
)

// writeCredentials writes a credentials file for each operator and account. It keeps a file that has this role and is
// valid for long enough.
func writeCredentials(c *Config, authority *identity.Authority) error {
	role := map[messages.Name]identity.Role{}
	names := []messages.Name{}
	for _, a := range c.Accounts {
		if !messages.ValidName(a.Name) { // the name belongs to a project, not to a user
			continue
		}
		role[a.Name] = identity.User
		names = append(names, a.Name)
	}
	for _, name := range c.Operators {
		role[name] = identity.Operator
		names = append(names, name)
	}
	for _, name := range names {
		if _, err := WriteCredentials(c.State, authority, role[name], name); err != nil {
			return err
		}
	}
	return nil
}

// WriteCredentials writes credentials for a name and a role into a state directory, unless valid ones are there. It
// returns the path of the file. Users' files are in the directory itself. Each other role has a separate directory,
// because a user and a node, for example, may have the same name.
func WriteCredentials(state string, authority *identity.Authority, role identity.Role, name messages.Name) (file string, err error) {
	file = RoleCredsFile(state, role, name)
	if held, err := os.ReadFile(file); err == nil {
		if r, n, err := authority.Issued(held); err == nil && r == role && n == name && identity.Lasting(held, time.Now()) {
			return file, nil
		}
	}
	creds, err := authority.Issue(role, name)
	if err != nil {
		return "", err
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return "", fmt.Errorf("credentials of %s: %w", name, err)
	}
	if err := durable.WriteFile(file, creds, 0o600); err != nil {
		return "", fmt.Errorf("credentials of %s: %w", name, err)
	}
	return file, nil
}

// RoleCredsFile returns the path of the credentials file for a name and a role, in a state directory.
func RoleCredsFile(state string, role identity.Role, name messages.Name) string {
	switch role {
	case identity.Node:
		return CredsFile(state, filepath.Join("nodes", name))
	case identity.Service:
		// The file name has no '$': NATS clients would read it as the beginning of a variable.
		return CredsFile(state, filepath.Join("services", strings.TrimPrefix(name, "$")))
	case identity.Door:
		return CredsFile(state, filepath.Join("doors", strings.TrimPrefix(name, "$"+messages.DoorPrefix)))
	case identity.Peer:
		return CredsFile(state, filepath.Join("peers", strings.TrimPrefix(name, "$")))
	}
	return CredsFile(state, name)
}
