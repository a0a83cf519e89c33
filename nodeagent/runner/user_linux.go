package runner

import (
	"os/user"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/candor-grid/candor/messages"
)

// nobody is the user of probes where the tasks of accounts have users of theirs.
const nobody = 65534

// credential is as whom a program runs, nil as this process.
func (c *Config) credential(p *messages.Program) (*syscall.Credential, error) {
	first, last, isRange := userRange(c.User)
	switch {
	case c.User == "":
		return nil, nil
	case isRange:
		id := uint32(first + uint64(p.Job)%(last-first+1))
		return &syscall.Credential{Uid: id, Gid: id, NoSetGroups: unix.Geteuid() != 0}, nil
	case c.User == userOfAccount && p.Job == 0:
		return &syscall.Credential{Uid: nobody, Gid: nobody, NoSetGroups: unix.Geteuid() != 0}, nil // a probe is no account's
	case c.User == userOfAccount:
		return credentialOf(p.Account)
	}
	return credentialOf(c.User)
}

// credentialOf looks a user up. The super-user is refused: a job is not to have
// the power of the node.
func credentialOf(name string) (*syscall.Credential, error) {
	u, err := user.Lookup(name)
	if err != nil {
		return nil, messages.Errorf(messages.NotFound, "user %q, as whom the task would run: is not known on this node", name)
	}
	uid, uidErr := strconv.ParseUint(u.Uid, 10, 32)
	gid, gidErr := strconv.ParseUint(u.Gid, 10, 32)
	if uidErr != nil || gidErr != nil || uid == 0 {
		return nil, messages.Errorf(messages.PermissionDenied, "user %q: tasks do not run as the super-user", name)
	}
	c := &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
	groups, _ := u.GroupIds()
	for _, g := range groups {
		if id, err := strconv.ParseUint(strings.TrimSpace(g), 10, 32); err == nil {
			c.Groups = append(c.Groups, uint32(id))
		}
	}
	return c, nil
}
