package runner

import (
	"os"
	"os/exec"
	"os/user"
	"strconv"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/nodeagent/runner/access"
	"github.com/candor-grid/candor/nodeagent/runner/launch"
	"github.com/candor-grid/candor/nodeagent/runner/users"
)

// UserSelf is the choice of a site that runs its tasks as its own user.
const UserSelf = "self"

// Contain sets the fields that separate tasks from the site and from one another. It chooses the best separation that
// this machine and the rights of this process allow. The argument `choice` is a value of [Config.User]. It is empty for
// the best possible separation, or [UserSelf] for no separation. If the argument `executors` is true, a separate
// process starts the tasks.
func (c *Config) Contain(choice string, executors bool) error {
	c.Hide = withoutLinks(c.Hide) // links are resolved now, before a task can change one
	switch {
	case choice == UserSelf && c.Private:
		return messages.Errorf(messages.Invalid, "tasks.private: needs tasks that run as other users than the site; leave tasks.user out")
	case choice == UserSelf:
		return nil
	case launch.MaySetUsers():
		return c.containAsRoot(choice)
	case choice != "":
		return messages.Errorf(messages.PermissionDenied, "tasks.user %q: needs a site that runs as root; leave tasks.user out for the best protection without root", choice)
	}
	c.Apart = true
	if !executors { // only an executor can be in another user namespace
		c.Apart = false
		return nil
	}
	return c.containMapped()
}

func (c *Config) containAsRoot(choice string) error {
	c.User, c.Apart = choice, true
	r, isRange := users.Parse(choice)
	switch {
	case choice == "":
		chosen, err := users.ForMachine()
		c.User = chosen.String()
		return err
	case isRange:
		return r.Free(users.Machine())
	}
	return nil
}

// containMapped chooses the best separation that an ordinary user can have: a user namespace with subordinate users,
// one with this user only, or none.
func (c *Config) containMapped() error {
	if numbers, _, err := SubordinateUsers(); err == nil && mapsUsers(MappedRange) {
		c.Mapped, c.User = MappedRange, numbers.String()
		return nil
	}
	if mapsUsers(MappedSelf) {
		c.Mapped, c.Hide = MappedSelf, append(c.Hide, sessionDirs(os.Getuid(), os.Getenv("XDG_RUNTIME_DIR"))...)
		return nil
	}
	c.Apart = false
	if c.Private {
		return messages.Errorf(messages.Unavailable, "tasks.private: this machine gives an ordinary user no namespaces; start the site as root")
	}
	return nil
}

// sessionDirs returns the directories where the programs of a user's session listen, such as systemd and D-Bus. These
// programs start processes for every process of that user. Such new processes are not in the control group of a task.
func sessionDirs(uid int, runtimeDir string) []string {
	dirs := []string{"/run/user/" + strconv.Itoa(uid)}
	if access.Beneath(access.Real(runtimeDir), "/run") && access.Real(runtimeDir) != "/run" && runtimeDir != dirs[0] {
		dirs = append(dirs, runtimeDir)
	}
	return withoutLinks(dirs)
}

// mapsUsers reports whether this process can make user namespaces of the given kind on this machine.
func mapsUsers(kind string) bool {
	if kind == MappedRange {
		for _, program := range []string{"newuidmap", "newgidmap"} {
			if _, err := exec.LookPath(program); err != nil {
				return false
			}
		}
	}
	return makesNamespaces()
}

// makesNamespaces reports whether an ordinary user can make namespaces. The first call tries it, and later calls return
// the same result. The first call must come before [dumps.Refuse], because a process cannot make namespaces after that.
var makesNamespaces = sync.OnceValue(func() bool {
	probe := exec.Command("/bin/true")
	probe.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  unix.CLONE_NEWUSER | unix.CLONE_NEWNS | unix.CLONE_NEWPID,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: os.Getuid(), HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: os.Getgid(), HostID: os.Getgid(), Size: 1}},
		AmbientCaps: []uintptr{unix.CAP_SYS_ADMIN},
	}
	return probe.Run() == nil
})

// SubordinateUsers returns the user numbers that this process's user may use in addition to its own, and as many group
// numbers.
func SubordinateUsers() (numbers, groups users.Range, err error) {
	name := ""
	if u, err := user.Current(); err == nil {
		name = u.Username
	}
	own := strconv.Itoa(os.Getuid())
	numbers, ok := users.Subordinate("/etc/subuid", name, own)
	groups, also := users.Subordinate("/etc/subgid", name, own)
	if !ok || !also {
		return numbers, groups, messages.Errorf(messages.Unavailable, "user %s has no subordinate users (/etc/subuid, /etc/subgid)", name)
	}
	count := uint32(min(numbers.Size(), groups.Size()))
	numbers.Last, groups.Last = numbers.First+count-1, groups.First+count-1
	return numbers, groups, numbers.Check()
}
