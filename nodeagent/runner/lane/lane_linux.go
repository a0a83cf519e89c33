package lane

import (
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/candor-grid/candor/nodeagent/runner/access"
	"github.com/candor-grid/candor/nodeagent/runner/tree"
)

// A lane has two output files and a working directory. Tasks use a lane one after the other as long as they write
// nothing to it. If a task writes to a file or directory of the lane, that file or directory is renamed after the
// attempt, and the next task gets a new one. Files are used again because new files for every task would cost more time
// than the process itself: ext4 checks each recently removed inode before it makes a new inode.
type lane struct {
	of    *Lanes
	base  string        // common beginning of the lane's three paths
	fresh bool          // no task of this run of the agent has used the lane
	dir   bool          // the directory of the lane exists and is empty
	since unix.Timespec // time of the directory's last change, if it exists
	// files are the lane's output files, held open from one task to the next; -1 means not open.
	files [len(Endings)]int
	alive *os.File // the file of package lease for the task; nil means not open
}

// A lane that no task uses may keep its files open for the next task. maxOpen bounds the number of such lanes.
const maxOpen = 64

var Endings = [...]string{".out", ".err"}

// The outputs of a task, as indices.
const (
	Output = 0
	Errors = 1
)

// DirEnding is the end of the name of a task's own working directory.
const DirEnding = ".dir"

// Lanes are the lanes of a job, or of all jobs of an account, in the directory Dir. A lane is a set of output files
// that one task after another uses.
type Lanes struct {
	Dir string

	mu   sync.Mutex
	free []*lane // lanes that no task uses
	made int
}

func (k *Lanes) take() *lane {
	k.mu.Lock()
	defer k.mu.Unlock()
	if n := len(k.free); n > 0 {
		l := k.free[n-1]
		k.free = k.free[:n-1]
		return l
	}
	k.made++
	return &lane{of: k, base: filepath.Join(k.Dir, "lane"+strconv.Itoa(k.made)), fresh: true, files: [len(Endings)]int{-1, -1}}
}

// A lane is a set of output files that one task after another uses. Ready reports whether a lane with open files is
// free for the next task.
func (k *Lanes) Ready() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	n := len(k.free)
	return n > 0 && k.free[n-1].dir && k.free[n-1].files[0] >= 0
}

func (k *Lanes) leave(l *lane) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if len(k.free) >= maxOpen {
		l.shut()
	}
	k.free = append(k.free, l)
}

// CloseFiles closes the files of lanes that no task uses.
func (k *Lanes) CloseFiles() {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, l := range k.free {
		l.shut()
	}
}

// open opens output file i of the lane for appending, unless it is open.
func (l *lane) open(i int) (fd int, err error) {
	if l.files[i] >= 0 {
		return l.files[i], nil
	}
	l.files[i], err = OpenFile(l.base+Endings[i], l.flags()|unix.O_WRONLY|unix.O_APPEND)
	return l.files[i], err
}

// flags returns the flags for opening a file of the lane. Only a file that may be older than this process is truncated.
// Other files are not, because the kernel writes a truncated file to the disk when the file is closed, and this costs
// time.
func (l *lane) flags() int {
	if l.fresh { // the file may be from before a restart
		return unix.O_CREAT | unix.O_TRUNC
	}
	return unix.O_CREAT
}

func (l *lane) close() {
	for i, fd := range l.files {
		if fd >= 0 {
			_ = unix.Close(fd)
			l.files[i] = -1
		}
	}
}

// workingDir returns the lane's directory, which is empty and belongs to the user of the job's tasks.
func (l *lane) workingDir(as *syscall.Credential) (string, error) {
	dir := l.base + DirEnding
	if l.dir {
		return dir, nil
	}
	err := unix.Mkdir(dir, access.PrivateDirs)
	if err == unix.EEXIST { // the directory is from before a restart
		if err = tree.Remove(dir); err == nil {
			err = os.Mkdir(dir, access.PrivateDirs)
		}
	}
	if err == nil && as != nil {
		err = os.Chown(dir, int(as.Uid), int(as.Gid))
	}
	l.dir = err == nil
	l.since, _ = changed(dir)
	return dir, err
}

// keepDir keeps the files that an attempt left in the lane's directory: it renames the directory after the attempt, and
// returns true. If the directory is empty, keepDir returns false, and the next attempt uses the directory again. The
// argument `from` is the time when the attempt began, by the clock that the kernel uses for files (see [coarse]).
func (l *lane) keepDir(base string, from unix.Timespec) (kept bool) {
	if !l.dir {
		return false
	}
	// If the directory's last change is older than the attempt, the task has added and removed nothing there. A task
	// cannot hide a change, because no process can set the time of a change.
	dir := l.base + DirEnding
	at, mode := changed(dir)
	if at == l.since && at.Nano() < from.Nano() {
		return false
	}
	if isEmpty(dir) {
		if l.since = at; mode != access.PrivateDirs { // the task may have changed the permissions
			l.dir = unix.Rmdir(dir) != nil
		}
		return false
	}
	l.dir = false
	_ = tree.Remove(base + DirEnding) // left by an earlier site whose jobs had the same numbers
	return unix.Rename(dir, base+DirEnding) == nil
}

// changed returns the time of a directory's last change, and the directory's permissions. If the directory is gone,
// both are zero.
func changed(dir string) (at unix.Timespec, mode uint32) {
	var info unix.Stat_t
	_ = unix.Lstat(dir, &info)
	return info.Ctim, info.Mode &^ unix.S_IFMT
}

// coarse returns the time of the clock that the kernel uses for changes of files.
func coarse() (now unix.Timespec) {
	_ = unix.ClockGettime(unix.CLOCK_REALTIME_COARSE, &now)
	return now
}

func isEmpty(dir string) bool {
	fd, err := unix.Open(dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return false
	}
	defer unix.Close(fd)
	buffer := make([]byte, 512) // room for more than "." and ".."
	n, err := unix.ReadDirent(fd, buffer)
	if err != nil {
		return false
	}
	_, names, _ := unix.ParseDirent(buffer[:n], 1, nil)
	return names == 0
}

// OpenFile opens a plain file of a job's directory. It does not follow symbolic links, because a task that runs as the
// node's user may have replaced the file by a link.
func OpenFile(path string, flags int) (int, error) {
	for {
		fd, err := unix.Open(path, flags|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, access.PrivateFiles)
		if err == unix.EINTR {
			continue
		}
		var info unix.Stat_t
		if err == nil {
			if err = unix.Fstat(fd, &info); err == nil && info.Mode&unix.S_IFMT != unix.S_IFREG {
				err = unix.ELOOP
			}
			if err != nil {
				_ = unix.Close(fd)
				return -1, err
			}
		}
		return fd, err
	}
}

// OpenToRead opens a file of a job's directory for reading.
func OpenToRead(path string) (*os.File, error) {
	fd, err := OpenFile(path, unix.O_RDONLY)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: path, Err: err}
	}
	return os.NewFile(uintptr(fd), path), nil
}
