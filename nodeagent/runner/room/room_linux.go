package room

import (
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/nodeagent/runner/access"
	"github.com/candor-grid/candor/nodeagent/runner/cell"
	"github.com/candor-grid/candor/nodeagent/runner/launch"
	"github.com/candor-grid/candor/nodeagent/runner/session"
	"github.com/candor-grid/candor/nodeagent/runner/tree"
)

// Room is a set of namespaces that the tasks of one account share. If accounts have no users of their own, the tasks of
// one job share it. The namespaces are for processes, IPC and mounts. If Private is set, there is also one for the
// network. One process, the holder, keeps the namespaces open. When the holder ends, the kernel ends every process of
// the room.
type Room struct {
	key    string
	as     *syscall.Credential // the user of the room's tasks; nil means this process's user
	spaces []*os.File          // the room's namespaces, in the order in which a thread enters them
	root   *os.File            // root directory of a thread that has entered the namespaces
	hold   io.Closer           // closing it ends the holder
	over   chan struct{}       // closed when the holder has ended
	holder int                 // process number of the holder
	Temp   string              // directory with the room's temporary directories
	sum    *cell.Account       // control group of the room's account; nil means none

	made sync.Once
	err  error // why the room could not be made

	mu    sync.Mutex
	shown map[string]bool // working directories that the room's tasks can see
	own   *launch.Forge   // starts the room's tasks; nil before the first task, or if cells have their own threads

	users int         // number of tasks; guarded by Rooms.mu
	idle  *time.Timer // timer that runs while there are no tasks; guarded by Rooms.mu
}

// Config configures the rooms of a node. The fields mean the same as in the configuration of the runner.
type Config struct {
	Dir        string
	Private    bool
	Hide       []string
	Inside     []string
	Namespaces bool
	Shared     int64 // limit of a room's shared memory, in bytes; 0 means no bound
}

// Rooms are the rooms of a node.
type Rooms struct {
	config Config
	loose  bool // processes in rooms are not in control groups
	cells  *cell.Cells

	mu   sync.Mutex
	open map[string]*Room

	closing  sync.WaitGroup // rooms that are being closed after their last task
	removing atomic.Int64   // number of rooms that are closing, or whose temporary directories are being removed
}

// linger is how long a room is kept without a task. To make a new room takes some milliseconds.
const linger = 10 * time.Second

// spaces returns the names and flags of the namespaces of a room. The mount namespace comes last: a thread that has
// entered it sees another /proc, and could not find the files of the other namespaces there.
func (c *Config) spaces() (names []string, flags uintptr) {
	names, flags = []string{"ipc", "pid", "mnt"}, unix.CLONE_NEWIPC|unix.CLONE_NEWPID|unix.CLONE_NEWNS
	if c.Private {
		names, flags = append([]string{"net"}, names...), flags|unix.CLONE_NEWNET
	}
	return names, flags
}

// Open tests whether rooms can be made here, by making one. If an earlier run left temporary directories of rooms, Open
// gives them to the function `discard`, which removes them later. So Open does not have to wait for the removal.
func Open(c Config, discard func(dir string)) (*Rooms, error) {
	r := &Rooms{config: c, open: map[string]*Room{}}
	if _, err := os.Lstat(r.tempDir()); err == nil {
		discard(r.tempDir())
	}
	trial, err := r.Take("trial", nil, nil)
	if err == nil {
		err = trial.Inside(func() error { return nil })
		r.remove(trial)
	}
	if err != nil {
		return nil, err
	}
	return r, nil
}

// Use sets the cells in which processes of rooms are counted. The argument `loose` is true if these processes are not
// in control groups.
func (r *Rooms) Use(cells *cell.Cells, loose bool) { r.cells, r.loose = cells, loose }

// IsRemoving reports whether rooms are closing, or their temporary directories are being removed.
func (r *Rooms) IsRemoving() bool { return r.removing.Load() > 0 }

func openSpaces(dir string, names []string) (files []*os.File, err error) {
	for _, name := range names {
		f, err := os.Open(dir + name)
		if err != nil {
			return nil, errors.Join(err, launch.CloseAll(files))
		}
		files = append(files, f)
	}
	return files, nil
}

// Inside calls f on a thread in the room.
func (r *Room) Inside(f func() error) error {
	failed := make(chan error)
	go cell.OnThread(func() {
		if err := unix.Unshare(unix.CLONE_FS); err != nil {
			failed <- os.NewSyscallError("unshare", err)
		} else if err := r.Enter(); err != nil {
			failed <- err
		} else {
			failed <- f()
		}
	})
	return <-failed
}

// Enter moves the calling thread into the room. Processes that the thread forks are in the room too.
func (r *Room) Enter() error {
	for _, f := range r.spaces {
		if err := unix.Setns(int(f.Fd()), 0); err != nil {
			return &os.PathError{Op: "setns", Path: f.Name(), Err: err}
		}
	}
	if err := unix.Fchdir(int(r.root.Fd())); err != nil {
		return os.NewSyscallError("chdir", err)
	}
	return os.NewSyscallError("chroot", unix.Chroot("."))
}

// Take returns the room that all tasks with the key `key` share, for one more task. It makes the room if needed. A new
// room shows the directories in the list `show`. Give the room back with [Rooms.Leave].
func (r *Rooms) Take(key string, as *syscall.Credential, show []string) (*Room, error) {
	r.mu.Lock()
	found := r.open[key]
	if found != nil && found.ended() {
		found = nil
	}
	if found == nil {
		found = &Room{key: key, as: as, shown: map[string]bool{}, over: make(chan struct{})}
		r.open[key] = found
	}
	found.users++
	if found.idle != nil {
		found.idle.Stop()
		found.idle = nil
	}
	r.mu.Unlock()
	found.made.Do(func() {
		if found.err = r.make(found, show); found.holder == 0 { // closed here, because without a holder nothing else would close it
			close(found.over)
		}
	})
	if found.err != nil {
		r.remove(found)
		return nil, messages.Errorf(messages.Unavailable, "the namespaces of the task cannot be made: %v", found.err)
	}
	return found, nil
}

// Counted returns the control group of the room's account. If there is none, it returns nil.
func (r *Room) Counted() *cell.Account {
	if r == nil {
		return nil
	}
	return r.sum
}

// Orphans returns the processes in the room whose parents have ended.
func (r *Room) Orphans() []int { return session.Children(r.holder) }

// EnterGroup moves the calling thread into the control group of the room's account.
func (r *Room) EnterGroup() error { return r.sum.Enter() }

// Forge returns the object that starts the tasks of the room (see launch.Forge). The first call makes it.
func (r *Room) Forge(may launch.Rules) (_ *launch.Forge, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.own == nil {
		r.own, err = launch.NewForge(may)
	}
	return r.own, err
}

// ended reports whether the process that holds the room has ended unexpectedly.
func (r *Room) ended() bool {
	select {
	case <-r.over:
		return true
	default:
		return false
	}
}

// Leave gives a room back. A room without tasks stays for a while, unless Replace was called for it.
func (r *Rooms) Leave(left *Room) {
	r.mu.Lock()
	defer r.mu.Unlock()
	left.users--
	if left.users == 0 && r.loose && len(left.Orphans()) > 0 && r.open[left.key] == left {
		delete(r.open, left.key) // the room must end now: only its end removes processes that the last task left
	}
	switch {
	case left.users > 0:
	case r.open[left.key] == left:
		left.idle = time.AfterFunc(linger, func() { r.retire(left) })
	default:
		r.removing.Add(1)
		r.closing.Go(func() { left.close(&r.removing) })
	}
}

// Replace makes the next task with the key of this room get a new room. The old room ends with its last task.
func (r *Rooms) Replace(full *Room) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.open[full.key] == full {
		delete(r.open, full.key)
	}
}

// RetireFull removes unused rooms whose temporary directories hold more than the given number of bytes, and reports
// whether it removed any.
func (r *Rooms) RetireFull(bytes int64) (any bool) {
	r.mu.Lock()
	var idle []*Room
	for _, one := range r.open {
		if one.users == 0 {
			idle = append(idle, one)
		}
	}
	r.mu.Unlock()
	for _, one := range idle {
		meter := tree.NewMeter(bytes, func() bool { return true })
		meter.Add(one.Temp)
		if meter.Usage().Bytes > bytes {
			r.retire(one)
			any = true
		}
	}
	return any
}

// retire removes a room that no task has used for 10 s (linger).
func (r *Rooms) retire(left *Room) {
	r.mu.Lock()
	unused := left.users == 0 && r.open[left.key] == left
	if unused {
		delete(r.open, left.key)
	}
	r.mu.Unlock()
	if unused {
		r.removing.Add(1)
		left.close(&r.removing)
	}
}

// remove removes a room, and ends processes in it.
func (r *Rooms) remove(gone *Room) {
	r.mu.Lock()
	if r.open[gone.key] == gone {
		delete(r.open, gone.key)
	}
	r.mu.Unlock()
	r.removing.Add(1)
	gone.close(&r.removing)
}

func (r *Rooms) Close() error {
	r.mu.Lock()
	all := r.open
	r.open = map[string]*Room{}
	r.mu.Unlock()
	for _, one := range all {
		r.removing.Add(1)
		one.close(&r.removing)
	}
	r.closing.Wait()
	_ = tree.RemoveWithin(r.tempDir(), removeAtEnd) // the next run of the node removes what this call does not remove
	return nil
}

// removeAtEnd bounds the time in which a closing runner removes temporary files.
const removeAtEnd = 2 * time.Second

func (r *Rooms) tempDir() string { return filepath.Join(r.config.Dir, "rooms") }

// make starts the process that holds a room, and waits until this process has set the room up.
func (r *Rooms) make(one *Room, show []string) (err error) {
	if one.Temp, err = r.makeTemp(); err != nil {
		return err
	}
	if r.cells != nil {
		one.sum = r.cells.Account()
	}
	plan, err := json.Marshal(inside{Hide: r.config.Hide, Show: show, Temp: one.Temp, As: one.as, Network: r.config.Private, Namespaces: r.config.Namespaces, Shared: r.config.Shared})
	if err != nil {
		return err
	}
	names, flags := r.config.spaces()
	cmd := exec.Command(r.config.Inside[0], r.config.Inside[1:]...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Cloneflags: flags}
	said := new(strings.Builder)
	cmd.Stderr = said
	hold, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	ready, err := cmd.StdoutPipe()
	if err != nil {
		return errors.Join(err, hold.Close())
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	one.hold = hold
	_, _ = hold.Write(plan) // not passed as an argument, because tasks could read arguments; if the write fails, the holder reports why
	answer, _ := io.ReadAll(io.LimitReader(ready, int64(len(roomReady))))
	if string(answer) != roomReady {
		err := errors.Join(hold.Close(), cmd.Wait())
		return messages.Errorf(messages.Unavailable, "%s (%v)", strings.TrimSpace(said.String()), err)
	}
	holder := "/proc/" + strconv.Itoa(cmd.Process.Pid)
	if one.root, err = os.Open(holder + "/root"); err == nil {
		one.spaces, err = openSpaces(holder+"/ns/", names)
	}
	one.holder = cmd.Process.Pid
	go func() { defer close(one.over); _ = cmd.Wait() }()
	return err
}

func (r *Rooms) makeTemp() (string, error) {
	if err := os.MkdirAll(r.tempDir(), access.PrivateDirs); err != nil {
		return "", err
	}
	temp, err := os.MkdirTemp(r.tempDir(), "")
	for i := range access.Temporary {
		dir := filepath.Join(temp, strconv.Itoa(i))
		if err == nil {
			err = os.Mkdir(dir, access.PrivateDirs)
		}
		if err == nil {
			err = os.Chmod(dir, 0o777|os.ModeSticky)
		}
	}
	return temp, err
}

// close ends all processes in the room and removes the room. When the room's temporary directories are gone, it
// subtracts 1 from the counter `removing`.
func (r *Room) close(removing *atomic.Int64) {
	if r.own != nil {
		r.own.Close()
	}
	if r.hold != nil {
		_ = r.hold.Close()
	}
	if r.over != nil {
		<-r.over
	}
	_ = r.sum.Close() // the next run of the node removes what this call does not remove
	_ = launch.CloseAll(r.spaces)
	if r.root != nil {
		_ = r.root.Close()
	}
	go func() {
		defer removing.Add(-1)
		if r.Temp != "" {
			_ = tree.Remove(r.Temp) // the next run of the node removes what this call does not remove
		}
	}()
}

// Usage measures the temporary directories of a room. It stops when it has counted `most` bytes, or when `goOn` returns
// false.
func (r *Room) Usage(most int64, goOn func() bool) tree.Usage {
	meter := tree.NewMeter(most, goOn)
	meter.Add(r.Temp)
	return meter.Usage()
}
