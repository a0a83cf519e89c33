package program

import (
	"context"
	"os/exec"
	"os/user"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/agent"
	"github.com/candor-grid/candor/nodeagent/runner/users"
)

// userOfAccount is a value of the configured user. It means that each account has the user with the account's name.
const userOfAccount = "account"

// PerAccount reports whether each account has a user of its own. Then the kernel separates the files and processes of
// different accounts.
func PerAccount(user string) bool {
	_, isRange := users.Parse(user)
	return isRange || user == userOfAccount
}

// If each account has its own user, probes run as the user with the number 65534, whose name is "nobody".
const nobody = 65534

// Identity is the user that a program runs as.
type Identity struct {
	As         *syscall.Credential // nil means the user of this process
	name, home string              // values for the program's environment; without a home, HOME is the working directory
}

// Identity finds the user that a program runs as.
func (c *Config) Identity(p *agent.Program) (Identity, error) {
	switch {
	case c.User == "":
		return Identity{}, nil
	case c.Numbers != nil:
		n, err := c.Numbers.Number(c.Site + "/" + p.Account)
		return Identity{As: &syscall.Credential{Uid: n, Gid: n}, name: p.Account}, err
	case c.User == userOfAccount && p.Job == 0: // a probe belongs to no account
		return Identity{As: &syscall.Credential{Uid: nobody, Gid: nobody}, name: "nobody"}, nil
	case c.User == userOfAccount:
		return identityOf(p.Account)
	}
	return identityOf(c.User)
}

// identityOf looks a user up. It refuses the super-user, because a job must not have the rights of the node.
func identityOf(name string) (Identity, error) {
	found, err := directory.find(name, time.Now())
	if err != nil {
		return Identity{}, messages.Errorf(messages.NotFound, "user %q, who would run the task, is not known on this node", name)
	}
	uid, uidErr := strconv.ParseUint(found.Uid, 10, 32)
	gid, gidErr := strconv.ParseUint(found.Gid, 10, 32)
	if uidErr != nil || gidErr != nil || uid == 0 || gid == 0 {
		return Identity{}, messages.Errorf(messages.PermissionDenied, "user %q: tasks cannot run as root; name another user", name)
	}
	c := &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
	for _, g := range found.groups {
		if id, err := strconv.ParseUint(g, 10, 32); err == nil && id != 0 {
			c.Groups = append(c.Groups, uint32(id))
		}
	}
	return Identity{As: c, name: found.Username, home: found.HomeDir}, nil
}

// directory caches the users of the system that were recently looked up.
var directory lookups

type lookups struct {
	mu     sync.Mutex
	known  map[string]lookup
	asking map[string]*asking // look-ups that are running, by name
}

// asking is a look-up of one user in the machine's user database, while it is under way. Other callers that need the
// same user wait for its result.
type asking struct {
	done chan struct{}
	lookup
	err error
}

type lookup struct {
	*user.User
	groups []string
	at     time.Time
}

// lookupLasts is how long a look-up stays valid. mostLookups bounds how many are kept.
const (
	lookupLasts = time.Minute
	mostLookups = 10_000
)

// find finds a user and its groups. If a directory service is slow for one name, other names do not wait.
func (d *lookups) find(name string, now time.Time) (lookup, error) {
	d.mu.Lock()
	if l, ok := d.known[name]; ok && now.Sub(l.at) < lookupLasts {
		d.mu.Unlock()
		return l, nil
	}
	if other := d.asking[name]; other != nil {
		d.mu.Unlock()
		<-other.done
		return other.lookup, other.err
	}
	own := &asking{done: make(chan struct{})}
	if d.asking == nil {
		d.asking = map[string]*asking{}
	}
	d.asking[name] = own
	d.mu.Unlock()
	own.lookup, own.err = lookUpUser(name)
	own.at = now
	d.mu.Lock()
	defer d.mu.Unlock()
	close(own.done)
	delete(d.asking, name)
	if own.err != nil {
		return own.lookup, own.err
	}
	if d.known == nil || len(d.known) >= mostLookups {
		d.known = map[string]lookup{}
	}
	d.known[name] = own.lookup
	return own.lookup, nil
}

// lookUpUser looks a user up with getent and id, which also know the users of directory services. This program cannot
// ask these services: it is linked without the C library.
func lookUpUser(name string) (l lookup, err error) {
	line, err := ask("getent", "passwd", name)
	if f := strings.Split(line, ":"); err == nil && len(f) == 7 && f[0] == name {
		l.User = &user.User{Username: f[0], Uid: f[2], Gid: f[3], HomeDir: f[5]}
	} else if l.User, err = user.Lookup(name); err != nil {
		return l, err
	}
	if line, err = ask("id", "-G", name); err == nil {
		l.groups = strings.Fields(line)
	} else {
		l.groups, _ = l.GroupIds()
	}
	return l, nil
}

func ask(program string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	said, err := exec.CommandContext(ctx, program, args...).Output()
	return strings.TrimSpace(string(said)), err
}

// baseEnv returns the environment with which the user's programs start. If this process runs as another user, this
// environment has no variable of this process.
func (i *Identity) baseEnv() []string {
	if i.As == nil {
		return ownEnv()
	}
	env := []string{"PATH=" + loginPath, "USER=" + i.name, "LOGNAME=" + i.name, "LANG=C.UTF-8", "TMPDIR=/tmp", "SHELL=/bin/sh"}
	if i.home != "" {
		env = append(env, "HOME="+i.home)
	}
	return env
}
