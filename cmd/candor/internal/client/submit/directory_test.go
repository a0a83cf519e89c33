package submit

import (
	"os"
	"os/user"
	"path/filepath"
	"testing"

	"github.com/candor-grid/candor/nodeagent/runner/access"
)

// A user can submit a job from a directory. TestHomesAreNotOpened submits from a home directory and from its parent
// directory, by their paths and through links. Only a directory inside the home may be opened for the tasks.
func TestHomesAreNotOpened(t *testing.T) {
	const tasks = 61234
	disk := access.Real(t.TempDir())
	home, link := filepath.Join(disk, "data", "alice"), filepath.Join(disk, "alice")
	work := filepath.Join(home, "work")
	for _, dir := range []string{filepath.Dir(home), home, work} {
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(home, link); err != nil {
		t.Fatal(err)
	}
	for _, set := range []string{home, link} {
		t.Setenv("HOME", set)
		for _, dir := range []string{home, link, home + "/", filepath.Dir(home)} {
			if err := open(dir, tasks); err == nil || access.Named(dir, tasks) {
				t.Errorf("HOME is %s: %s was opened (%v)", set, dir, err)
			}
		}
	}
	if mount := filepath.Join(t.TempDir(), "mount"); os.Symlink(filepath.Dir(home), mount) != nil || mayOpen(mount) == nil {
		t.Errorf("%s, where the parent of HOME is also mounted, may be opened", mount)
	}
	t.Setenv("HOME", "")
	if u, err := user.Current(); err == nil {
		if err := mayOpen(u.HomeDir); err == nil || err == errOpen {
			t.Errorf("%s: %v", u.HomeDir, err)
		}
	}
	if err := open(filepath.Join(link, "work"), tasks); err != nil || !access.Named(work, tasks) {
		t.Errorf("%s in a home was not opened: %v", work, err)
	}
}

func TestDirectoriesOfTheSystemAreNotOpened(t *testing.T) {
	for dir, want := range map[string]bool{"/": true, "/etc": true, "/tmp": true, "/usr/local/share": true, "/var/lib/x": true, "/var/tmp": true,
		"/var": true, "/var/opt": true, "/var/www/html": true, "/var/crash": true, "/libx32": true, "/data": false, "/var/data": false, "/var/scratch": false, "/tmp/work": false, "/var/tmp/work": false, "/srv/project": false, "/home/ann": false} {
		if got := ofSystem(dir); got != want {
			t.Errorf("%s: %v, want %v", dir, got, want)
		}
	}
	if err := mayOpen("/etc"); err == nil {
		t.Error("/etc may be opened for tasks")
	}
}
