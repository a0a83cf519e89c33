package submit

import (
	"errors"
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/candor-grid/candor/cmd/candor/internal/client/cli"
	"github.com/candor-grid/candor/cmd/candor/internal/client/jobfile"
	"github.com/candor-grid/candor/nodeagent/runner/access"
	"github.com/candor-grid/candor/nodeagent/runner/users"
)

// openDir gives the account's tasks access to the job's directory, if they run as another user. It never opens home
// directories or directories of other users. Without access, each task runs in a fresh directory, unless the user named
// the directory.
func openDir(a *cli.App, job *jobfile.Job) error {
	dir := job.Spec.Dir
	cure, why := letTasksIn(a, dir)
	if why == nil {
		return nil
	}
	if !job.Here {
		return cli.Usagef("--chdir %s: %v; %s", dir, why, cure)
	}
	warn(a, job, "the tasks run in new directories of their own, not here: "+why.Error()+" (name another directory with --chdir)")
	job.Spec.Dir = ""
	return nil
}

// letTasksIn lets the account's tasks enter a directory of this machine. If it cannot, `why` says what prevents it, and
// `cure` says what the user can do.
func letTasksIn(a *cli.App, dir string) (cure string, why error) {
	if dir == "" {
		return "", nil
	}
	_, local, err := a.LocalSite()
	t, unresolved := a.Resolve(false)
	if err != nil || unresolved != nil || t.Server != local.Server || t.Site != local.Site {
		return "", nil // this machine has no site, or connecting will report the error
	}
	cure, why = "use another directory", hides(local.Hidden, dir)
	if among, others := users.Parse(local.TaskUsers); others && why == nil {
		number, err := users.Open(local.UsersFile, among).Number(local.Site + "/" + t.Account)
		if err != nil {
			return "", nil // the user does not run this site, and so must open the directory by hand
		}
		if why = open(dir, number); why != nil {
			why = fmt.Errorf("user %d, who runs the tasks of %s here, cannot enter the directory: %w", number, t.Account, why)
			cure += fmt.Sprintf(", or allow the user with setfacl -m u:%d:rwx %s", number, dir)
		}
	}
	return cure, why
}

// The function hides returns an error if the site hides `dir` from tasks. This is so if `dir`, or a directory above it,
// is in the list `hidden`.
func hides(hidden []string, dir string) error {
	for _, h := range hidden {
		if access.Conceals(dir, h) {
			return fmt.Errorf("tasks cannot see %s, because it holds the state of the site; so no task can run in %s", h, dir)
		}
	}
	return nil
}

// open gives a system user access to a directory. If this is not possible, the error says why.
func open(dir string, number uint32) error {
	dir = access.Real(dir)
	why := mayOpen(dir)
	if why == nil {
		why = access.Allow(dir, number)
	}
	if errors.Is(why, errOpen) || os.IsNotExist(why) {
		return nil
	}
	return why
}

// mayOpen returns errOpen for a directory that all users can use. Such a directory need not be opened to them.
var errOpen = errors.New("it is open to all")

// mayOpen returns an error for a directory that must not be opened to tasks. The path has no links.
func mayOpen(dir string) error {
	info, err := os.Stat(dir)
	if err != nil {
		return err
	}
	if info.Mode().Perm()&0o007 == 0o007 {
		return errOpen
	}
	homes := []string{os.Getenv("HOME")}
	if u, err := user.Current(); err == nil {
		homes = append(homes, u.HomeDir)
	}
	for _, home := range homes {
		if home != "" && (access.Beneath(home, dir) || contains(info, access.Real(home))) {
			return errors.New("the directory is or contains a home directory")
		}
	}
	if ofSystem(dir) {
		return errors.New("the directory belongs to the system")
	}
	if owner, ok := info.Sys().(*syscall.Stat_t); ok && int(owner.Uid) != os.Geteuid() {
		return errors.New("the directory belongs to another user")
	}
	return nil
}

// contains reports whether a directory is or contains the path. It also finds a bind mount of such a directory, which
// has another path: /scratch/ada contains /data/ada/home if /data/ada is mounted there.
func contains(dir os.FileInfo, path string) bool {
	for ; path != filepath.Dir(path); path = filepath.Dir(path) {
		if parent, err := os.Stat(path); err == nil && os.SameFile(dir, parent) {
			return true
		}
	}
	return false
}

// ofSystem reports whether a directory belongs to the machine's system, such as /etc, /tmp or /usr/local. Root owns
// these directories. So if root submits a job there, they must not be opened for tasks.
func ofSystem(dir string) bool {
	parts := strings.Split(strings.TrimPrefix(dir, "/"), "/")
	if parts[0] == "var" && len(parts) > 1 && !slices.Contains([]string{"data", "home", "local", "opt", "scratch", "tmp"}, parts[1]) {
		return true
	}
	return len(parts) == 1 && slices.Contains([]string{"", "home", "media", "mnt", "opt", "root", "srv", "tmp", "var"}, parts[0]) ||
		len(parts) == 2 && parts[0] == "var" && !slices.Contains([]string{"data", "scratch"}, parts[1]) ||
		slices.Contains([]string{"bin", "boot", "dev", "etc", "lib", "lib32", "lib64", "libx32", "proc", "run", "sbin", "sys", "usr"}, parts[0])
}
