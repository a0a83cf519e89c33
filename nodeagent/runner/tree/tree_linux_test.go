package tree

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// must ends the test if a step of building the task's directory tree failed.
func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

const big = 1 << 20 // size in bytes of the file that each hostile tree contains

func writeAt(t *testing.T, dir int) {
	t.Helper()
	fd, err := unix.Openat(dir, "big", unix.O_CREAT|unix.O_WRONLY, 0o600)
	must(t, err)
	must(t, unix.Fallocate(fd, 0, 0, big))
	must(t, unix.Close(fd))
}

// chain makes a chain of nested directories, with a big file in the deepest one.
func chain(t *testing.T, dir, name string, depth int) {
	t.Helper()
	at, err := unix.Open(dir, unix.O_RDONLY, 0)
	must(t, err)
	for range depth {
		must(t, unix.Mkdirat(at, name, 0o700))
		below, err := openDir(at, name)
		must(t, err)
		must(t, unix.Close(at))
		at = below
	}
	writeAt(t, at)
	must(t, unix.Close(at))
}

// hostile lists trees of files that are hard to remove or to measure. For each tree, it has the number of files below
// the top. One of the files is big.
var hostile = []struct {
	name  string
	make  func(t *testing.T, dir string)
	files int64
}{
	{"empty files", func(t *testing.T, dir string) {
		fd, err := unix.Open(dir, unix.O_RDONLY, 0)
		must(t, err)
		for i := range 100_000 {
			must(t, unix.Mknodat(fd, strconv.Itoa(i), unix.S_IFREG|0o600, 0))
		}
		writeAt(t, fd)
		must(t, unix.Close(fd))
	}, 100_001},
	{"a path beyond PATH_MAX before the rest", func(t *testing.T, dir string) {
		chain(t, dir, strings.Repeat("d", 250), 40)
		for i := range 300 {
			must(t, os.Mkdir(filepath.Join(dir, strconv.Itoa(i)), 0o700))
		}
	}, 341},
	{"12000 deep", func(t *testing.T, dir string) { chain(t, dir, "d", 12_000) }, 12_001},
	{"a comb of deep teeth", func(t *testing.T, dir string) {
		for i := range 50 {
			must(t, os.MkdirAll(filepath.Join(dir, strconv.Itoa(i), strings.Repeat("d/", 3*window)), 0o700))
		}
		must(t, os.Mkdir(filepath.Join(dir, "last"), 0o700))
		chain(t, filepath.Join(dir, "last"), "d", 10)
	}, 50*(3*window+1) + 12},
	{"names of any bytes", func(t *testing.T, dir string) {
		at := dir
		for _, name := range []string{"\xff\xfe", "\n", "*", " ", "-rf", "\x1b[2J", "...", strings.Repeat("\x80", 255)} {
			at = filepath.Join(at, name)
			must(t, os.Mkdir(at, 0o700))
			must(t, unix.Mkfifo(at+"/p\xff", 0o600))
		}
		chain(t, at, "d", 1)
	}, 18},
}

// few calls f while a limit lets this process open only a few more files.
func few(t *testing.T, f func()) {
	t.Helper()
	var before unix.Rlimit
	must(t, unix.Getrlimit(unix.RLIMIT_NOFILE, &before))
	highest := 0
	fds, err := os.ReadDir("/proc/self/fd")
	must(t, err)
	for _, e := range fds {
		n, _ := strconv.Atoi(e.Name())
		highest = max(highest, n)
	}
	must(t, unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: uint64(highest + window + 8), Max: before.Max}))
	defer func() { must(t, unix.Setrlimit(unix.RLIMIT_NOFILE, &before)) }()
	f()
}

// TestNoTreeHidesWhatItHolds measures and removes directory trees that are made to hide files from the measurement. The
// process may open only a few files at the same time. Every file of each tree must be measured and removed.
func TestNoTreeHidesWhatItHolds(t *testing.T) {
	for _, c := range hostile {
		t.Run(c.name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "dir")
			must(t, os.Mkdir(dir, 0o700))
			t.Cleanup(func() { must(t, Remove(dir)) })
			c.make(t, dir)
			share := shareOf(t, dir)
			few(t, func() {
				u := measure(dir)
				if least := big + c.files*share; u.Unread != nil || u.Bytes < least || u.Bytes > 2*least {
					t.Errorf("measured %+v, want some %d", u, least)
				}
				if err := Remove(dir); err != nil {
					t.Error(err)
				}
			})
			if _, err := os.Lstat(dir); !os.IsNotExist(err) {
				t.Errorf("is still there: %v", err)
			}
		})
	}
}

func measure(dir string) Usage {
	m := NewMeter(1<<62, func() bool { return true })
	m.Add(dir)
	return m.Usage()
}

func shareOf(t *testing.T, dir string) int64 {
	fd, err := openDir(unix.AT_FDCWD, dir)
	must(t, err)
	defer unix.Close(fd)
	return inodeShare(fd)
}

// TestMeterStopsAtTheMost checks that a meter stops counting as soon as a task uses more than its limit.
func TestMeterStopsAtTheMost(t *testing.T) {
	dir := t.TempDir()
	for i := range 1000 {
		must(t, os.Mkdir(filepath.Join(dir, strconv.Itoa(i)), 0o700))
	}
	asked := 0
	m := NewMeter(1, func() bool { asked++; return true })
	m.Add(dir)
	if u := m.Usage(); u.Bytes <= 1 || asked > 1 {
		t.Errorf("%+v after %d questions", u, asked)
	}
}

// TestLinkedFilesCountOnce checks that a file with several names counts once. The target of a symbolic link must not
// count.
func TestLinkedFilesCountOnce(t *testing.T) {
	outside, dir := t.TempDir(), t.TempDir()
	chain(t, outside, "d", 1)
	must(t, os.Symlink(outside, filepath.Join(dir, "link")))
	chain(t, dir, "d", 1)
	for i := range 100 {
		must(t, os.Link(filepath.Join(dir, "d", "big"), filepath.Join(dir, strconv.Itoa(i))))
	}
	if u := measure(dir); u.Unread != nil || u.Bytes < big || u.Bytes >= 2*big {
		t.Errorf("%+v", u)
	}
	must(t, Remove(dir))
	if _, err := os.Stat(filepath.Join(outside, "d", "big")); err != nil {
		t.Error(err)
	}
}

// TestFilesWithoutANameCount checks that a file without a name counts once while a process has it open.
func TestFilesWithoutANameCount(t *testing.T) {
	dir := t.TempDir()
	chain(t, dir, "d", 1)
	for range 2 {
		f, err := os.Open(filepath.Join(dir, "d", "big"))
		must(t, err)
		defer f.Close()
	}
	must(t, os.Remove(filepath.Join(dir, "d", "big")))
	m := NewMeter(1<<62, func() bool { return true })
	m.Add(dir)
	before := m.Usage().Bytes
	m.AddOpen(os.Getpid())
	if got := m.Usage().Bytes - before; got < big || got >= 2*big {
		t.Errorf("%d bytes in nameless files", got)
	}
}

// TestALargeFileThatLosesItsNameCountsOnce removes the name of a large file during a measurement, while a process has
// the file open. The file must not be counted twice.
func TestALargeFileThatLosesItsNameCountsOnce(t *testing.T) {
	dir := t.TempDir()
	chain(t, dir, "d", 1)
	f, err := os.Open(filepath.Join(dir, "d", "big"))
	must(t, err)
	defer f.Close()
	m := NewMeter(1<<62, func() bool { return true })
	m.Add(dir)
	must(t, os.Remove(filepath.Join(dir, "d", "big")))
	m.AddOpen(os.Getpid())
	if u := m.Usage(); u.Bytes >= 2*big {
		t.Errorf("%+v", u)
	}
}

// asOrdinary runs f with the file rights of an ordinary user. Root can read all files, so if this process runs as root,
// it runs f on a separate thread without these rights. The thread ends after f.
func asOrdinary(f func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		if os.Getuid() == 0 {
			runtime.LockOSThread()
			_ = unix.Setfsuid(65534) // this also removes root's rights on files
		}
		f()
	}()
	<-done
}

// TestClosedDirectories makes directories that their owner, an ordinary user, may not read. The measurement must report
// them, and count everything else.
func TestClosedDirectories(t *testing.T) {
	base, err := os.MkdirTemp("/var/tmp", "tree") // a place through which other users may pass
	must(t, err)
	t.Cleanup(func() { os.RemoveAll(base) })
	must(t, os.Chmod(base, 0o777))
	dir := filepath.Join(base, "dir")
	asOrdinary(func() {
		must(t, os.Mkdir(dir, 0o700))
		for i, mode := range []os.FileMode{0, 0o100, 0o200, 0o400, 0o500} {
			closed := filepath.Join(dir, strconv.Itoa(i))
			must(t, os.Mkdir(closed, 0o700))
			chain(t, closed, "d", 3)
			must(t, os.Chmod(closed, mode))
		}
		must(t, os.Mkdir(filepath.Join(dir, "last"), 0o700))
		chain(t, filepath.Join(dir, "last"), "d", 1)
		u := measure(dir)
		if !errors.Is(u.Unread, unix.EACCES) || !strings.Contains(u.Unread.Error(), "of 4 errors") || u.Bytes < 2*big {
			t.Errorf("%+v", u)
		}
		must(t, os.Chmod(dir, 0))
		if err := Remove(dir); err != nil {
			t.Error(err)
		}
	})
}

// mover is a visitor that moves a directory to another place while a walk is far below this directory.
type mover struct {
	visitor
	at   int
	move func()
}

func (m *mover) found(dir int, e entry) (bool, error) {
	if m.at--; m.at == 0 {
		m.move()
	}
	return m.visitor.found(dir, e)
}

// TestTheWayBackIsNoOthers moves a directory while a walk visits the files below it. When the walk leaves this
// directory, it must not continue in the directory above the new place.
func TestTheWayBackIsNoOthers(t *testing.T) {
	dir, elsewhere := t.TempDir(), t.TempDir()
	chain(t, dir, "d", 3*window)
	must(t, os.WriteFile(filepath.Join(elsewhere, "others"), nil, 0o600))
	fd, err := openDir(unix.AT_FDCWD, dir)
	must(t, err)
	w := walk{visitor: &mover{&removal{until: farOff()}, 3 * window, func() {
		must(t, os.Rename(filepath.Join(dir, "d", "d"), filepath.Join(elsewhere, "d")))
	}}}
	w.run(fd)
	if !errors.Is(w.failed.err(), errMoved) {
		t.Errorf("%v", w.failed.err())
	}
	if _, err := os.Stat(filepath.Join(elsewhere, "others")); err != nil {
		t.Error(err)
	}
	if fds := len(open(t)); fds > 20 {
		t.Errorf("%d descriptors are left open", fds)
	}
}

func open(t *testing.T) (names []string) {
	fds, err := os.ReadDir("/proc/self/fd")
	must(t, err)
	for _, e := range fds {
		to, _ := os.Readlink("/proc/self/fd/" + e.Name())
		names = append(names, fmt.Sprint(e.Name(), " ", to))
	}
	return names
}
