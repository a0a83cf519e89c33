package embedded

import (
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/durable"
)

// Info is the content of site.json in a running site's state directory. It tells the command line how to reach the
// site.
type Info struct {
	Site           messages.Name `json:"site"`
	Server         string        `json:"server"` // URL of the NATS server
	DefaultAccount messages.Name `json:"default_account"`
	JobSite        messages.Name `json:"job_site,omitempty"` // site that runs jobs that name no site; empty: this site
	CA             string        `json:"ca,omitempty"`       // PEM file with the authority of the server's certificate, with TLS
	Leaf           string        `json:"leaf,omitempty"`     // address for the servers of other sites
	// Console is the URL of the console for browsers. WebSocket is the URL of the NATS server for the console's pages.
	// Both are empty if the site has no console.
	Console   string `json:"console,omitempty"`
	WebSocket string `json:"websocket,omitempty"`
	// TaskUsers is a range of system users. Each account gets one of these users, and the file UsersFile says which
	// account has which user. TaskUsers is empty if the site does not use such a range.
	TaskUsers string `json:"task_users,omitempty"`
	UsersFile string `json:"users_file,omitempty"`
	// Hidden are the directories of this machine that tasks cannot see.
	Hidden []string `json:"hidden,omitempty"`
}

const infoFile = "site.json"

// ReadInfo reads the Info in a state directory. The error matches fs.ErrNotExist if no site was ever started there.
func ReadInfo(state string) (Info, error) {
	var info Info
	data, err := os.ReadFile(filepath.Join(state, infoFile))
	if err != nil {
		return info, err
	}
	if err := json.Unmarshal(data, &info); err != nil {
		return info, fmt.Errorf("%s: %w", filepath.Join(state, infoFile), err)
	}
	return info, nil
}

func writeInfo(state string, info Info) error {
	data, err := json.MarshalIndent(info, "", "  ")
	if err != nil {
		return err
	}
	return durable.WriteFile(filepath.Join(state, infoFile), append(data, '\n'), 0o644)
}

// runningFile has the configuration of the running site. Only the owner of the state directory can read it.
const runningFile = "running.json"

// Running returns the configuration of the running site of a state directory, as JSON, and the ID of its process.
func Running(state string) (config []byte, process string, err error) {
	f, err := os.OpenFile(filepath.Join(state, lockName), os.O_RDONLY, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, "", messages.Errorf(messages.NotFound, "no site was ever started with state directory %s; name another directory with --state", state)
	}
	if err != nil {
		return nil, "", messages.Errorf(messages.PermissionDenied, "%v: only the user who runs the site may read its configuration", err)
	}
	defer f.Close()
	if err := unix.Flock(int(f.Fd()), unix.LOCK_SH|unix.LOCK_NB); err == nil {
		return nil, "", messages.Errorf(messages.Unavailable, "no site runs with state directory %s; start the site with `candor up`", state)
	}
	holder := make([]byte, 32)
	n, _ := f.ReadAt(holder, 0)
	config, err = os.ReadFile(filepath.Join(state, runningFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, "", messages.Errorf(messages.Unavailable, "the site with state directory %s is still starting; try again", state)
	}
	return config, string(holder[:n]), err
}

// replaceJSON replaces a file by one with a value as JSON. Only the file's owner can read it.
func replaceJSON(path string, value any) error {
	text, err := json.Marshal(value)
	if err != nil {
		return err
	}
	return durable.WriteFile(path, append(text, '\n'), 0o600)
}

// CredsFile returns the path of an account's credentials file in a state directory.
func CredsFile(state string, account messages.Name) string {
	return filepath.Join(state, "creds", account+".creds")
}

const lockName = "lock"

// lockState makes the state directory if it is missing, and locks a file in it. The lock ends when the returned file is
// closed, or when the process ends.
func lockState(state string) (*os.File, error) {
	if err := os.MkdirAll(state, 0o700); err != nil {
		return nil, fmt.Errorf("state directory: %w", err)
	}
	f, err := os.OpenFile(filepath.Join(state, lockName), os.O_CREATE|os.O_RDWR, 0o600)
	if errors.Is(err, fs.ErrPermission) {
		return nil, messages.Errorf(messages.PermissionDenied, "state directory %s: belongs to another user: start the site as that user, or name another directory with --state (%v)", state, err)
	}
	if err != nil {
		return nil, fmt.Errorf("state directory: %w", err)
	}
	err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) {
		holder := make([]byte, 32)
		n, _ := f.ReadAt(holder, 0)
		_ = f.Close()
		return nil, messages.Errorf(messages.Conflict, "state directory %s: is in use by process %s; stop the process, or name another directory with --state", state, holder[:n])
	}
	if err == nil {
		err = f.Truncate(0)
	}
	if err == nil {
		_, err = fmt.Fprint(f, os.Getpid())
	}
	if err != nil {
		_ = f.Close()
		return nil, fmt.Errorf("state directory %s: cannot be locked: %w", state, err)
	}
	return f, nil
}

// shape has properties of the site for which a state directory was made. These properties cannot change, because a
// group's log contains the members of the group.
type shape struct {
	Site     messages.Name `json:"site"`
	Replicas []string      `json:"replicas"`
	// Restored is the start time of the backup from which the directory was made, or 0 if the directory was not
	// restored.
	Restored messages.Time `json:"restored,omitempty"`
	// Sum is a checksum of the other fields.
	Sum string `json:"sum"`
}

func (s *shape) sum() string {
	return fmt.Sprintf("%08x", crc32.ChecksumIEEE(fmt.Appendf(nil, "%q %q %d", s.Site, s.Replicas, int64(s.Restored))))
}

const shapeFile = "shape.json"

// The shape of a state directory is its site and its replicas. keepShape writes the shape of a new state directory. For
// an existing one, it refuses a configuration with another shape.
func keepShape(c *Config) error {
	want := shape{Site: c.Site, Replicas: c.replicaIDs()}
	path := filepath.Join(c.State, shapeFile)
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		want.Sum = want.sum()
		return replaceJSON(path, want)
	}
	var have shape
	if err == nil {
		err = json.Unmarshal(text, &have)
	}
	if err == nil && (have.Sum != have.sum()) {
		err = errors.New("the file is damaged; delete it, and start with the configuration that the site had")
	}
	if err != nil {
		return fmt.Errorf("state directory: %s: %w", path, err)
	}
	if have.Site != want.Site || !have.sameGroup(&want, len(c.Hosts) > 0) {
		return messages.Errorf(messages.Conflict, "state directory: %s says that the directory was made for site %s with replicas %v, not for site %s with replicas %v; use the old site and replicas, or another directory",
			path, have.Site, have.Replicas, want.Site, want.Replicas)
	}
	return nil
}

// restoredFrom returns the start time of the backup from which a state directory was made, or 0 if the directory was
// not restored. An unreadable file stops the start (see keepShape).
func restoredFrom(state string) messages.Time {
	var have shape
	if text, err := os.ReadFile(filepath.Join(state, shapeFile)); err != nil || json.Unmarshal(text, &have) != nil {
		return 0
	}
	return have.Restored
}

// A shape describes the site that a state directory was made for. sameGroup reports whether the replicas in two state
// directories can belong to the same group. On a site of one host, the shapes must list the same replicas. On a site of
// several hosts, operators replace one replica after another, and only the log knows the present replicas. So one
// common replica is enough.
func (s *shape) sameGroup(other *shape, hosts bool) bool {
	if !hosts {
		return slices.Equal(s.Replicas, other.Replicas)
	}
	return slices.ContainsFunc(s.Replicas, func(id string) bool { return slices.Contains(other.Replicas, id) })
}

// These are the files of a site in its state directory, except the lock. A start with Options.Fresh removes them. The
// keys are among them, so after this start old credentials are refused.
var kept = []string{infoFile, runningFile, formatFile, shapeFile, toldFile, clockFile, "keys", "creds", "nats", messages.Auctioneer, messages.Bank, messages.Estimator, "nodes", usersFile, messages.Depot, backupSocket}

// A directory with one of these files is the state of a site. These are the first four files in the list `kept`.
var marks = kept[:4]

func isState(dir string) bool {
	return slices.ContainsFunc(marks, func(name string) bool { return exists(filepath.Join(dir, name)) })
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// erase removes the files of a site from a locked state directory, and nothing else. Some files are marks: they show
// that the directory belongs to a site. erase removes the marks last, so that an interrupted erasure can be repeated.
// If there are no marks, it removes nothing, because the files may belong to somebody else.
func erase(state string) error {
	if !isState(state) {
		for _, name := range kept {
			if path := filepath.Join(state, name); exists(path) {
				return messages.Errorf(messages.Conflict, "state directory %s: no site was started here, and %s would be removed: name another directory with --state, or move these files away", state, path)
			}
		}
	}
	for _, name := range slices.Backward(kept) {
		if err := os.RemoveAll(filepath.Join(state, name)); err != nil {
			return fmt.Errorf("state directory: %w", err)
		}
	}
	return nil
}

// removeMarks removes the files that show that a directory is the state of a site. It is called if a start wrote these
// files and then failed.
func removeMarks(state string) {
	for _, name := range marks {
		_ = os.Remove(filepath.Join(state, name)) // the caller reports the error of the start
	}
}

// stateFormat is the version of the format of state directories. It increases when any part of a directory changes its
// format. This build reads no other version.
const stateFormat = 3

const formatFile = "format"

// keepFormat refuses a state directory with another version in the file "format". If the file is missing, it writes the
// file with this program's version. If the file was lost, writing it does no harm, because each part of the directory
// has its own version too.
func keepFormat(state string) error {
	path := filepath.Join(state, formatFile)
	text, err := os.ReadFile(path)
	switch {
	case err == nil:
		version, err := strconv.Atoi(strings.TrimSpace(string(text)))
		switch {
		case err != nil:
			return messages.Errorf(messages.Internal, "state directory: %s: %q is not a version number; this build writes %d", path, clip(string(text)), stateFormat)
		case version > stateFormat:
			return messages.NewerFormat("state directory "+state, version, stateFormat)
		case version < stateFormat:
			return messages.Errorf(messages.Conflict, "state directory %s: has format %d, and this build reads only format %d, because an earlier version wrote it; start that version, or begin with another directory", state, version, stateFormat)
		}
		return nil
	case !errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("state directory: %w", err)
	}
	return durable.WriteFile(path, []byte(strconv.Itoa(stateFormat)+"\n"), 0o644)
}
