package submit

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/candor-grid/candor/cmd/candor/internal/client/cli"
	"github.com/candor-grid/candor/cmd/candor/internal/client/jobfile"
	"github.com/candor-grid/candor/nodeagent/runner/access"
	"github.com/candor-grid/candor/nodeagent/runner/users"
)

// openDir gives the account's tasks access to the directory in which the job runs, if the
// site of this machine runs tasks as another user. Home directories, and directories of
// other users, are not opened: unless the user named such a directory, each task runs in
// a fresh directory instead.
func openDir(a *cli.App, job *jobfile.Job) error {
	dir := job.Spec.Dir
	if dir == "" {
		return nil
	}
	_, local, err := a.LocalSite()
	t, unresolved := a.Resolve(false)
	if err != nil || unresolved != nil || t.Server != local.Server || t.Site != local.Site {
		return nil // no site of this machine's, or what dialling says
	}
	among, others := users.Parse(local.TaskUsers)
	if !others {
		return nil
	}
	number, err := users.Open(local.UsersFile, among).Number(local.Site + "/" + t.Account)
	if err != nil {
		return nil // who cannot read the site's state does not run the site, and opens directories by hand
	}
	why := mayOpen(a, dir)
	if why == nil {
		why = access.Allow(dir, number)
	}
	if why == nil || errors.Is(why, errOpen) || os.IsNotExist(why) {
		return nil
	}
	if !job.Here {
		return cli.Usagef("--chdir %s: user %d, who runs the tasks of %s here, cannot enter: %v; use another directory, or allow the user with setfacl -m u:%d:rwx", dir, number, t.Account, why, number)
	}
	warn(a, job, "the tasks run in new directories of their own, not here: "+why.Error()+" (--chdir names another)")
	job.Spec.Dir = ""
	return nil
}

// errOpen says that all users may use a directory already.
var errOpen = errors.New("it is open to all")

// mayOpen says why a directory is not one to let others into.
func mayOpen(a *cli.App, dir string) error {
	info, err := os.Stat(dir)
	if err != nil {
		return err
	}
	if info.Mode().Perm()&0o007 == 0o007 {
		return errOpen
	}
	if home, err := os.UserHomeDir(); err == nil && (home == dir || strings.HasPrefix(home, strings.TrimSuffix(filepath.Clean(dir), "/")+"/")) {
		return errors.New("it is a home directory, or holds one")
	}
	if owner, ok := info.Sys().(*syscall.Stat_t); ok && int(owner.Uid) != os.Geteuid() {
		return errors.New("it belongs to another user")
	}
	return nil
}
