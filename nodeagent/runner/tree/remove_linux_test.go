package tree

import (
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func farOff() time.Time { return time.Now().Add(time.Hour) }

// TestRemovalEndsThoughFilesAreMade runs a program that makes files all the time. The removal must still end.
func TestRemovalEndsThoughFilesAreMade(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "dir")
	must(t, os.MkdirAll(filepath.Join(dir, "d"), 0o700))
	stop, stopped, begun := make(chan struct{}), make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for i := 0; ; i++ {
			_ = os.MkdirAll(filepath.Join(dir, "d", strconv.Itoa(i), "e"), 0o700)
			if i == 100 {
				close(begun)
			}
			select {
			case <-stop:
				return
			default:
			}
		}
	}()
	<-begun
	_ = removeUntil(dir, time.Now().Add(50*time.Millisecond)) // remove as much as possible in this time
	close(stop)
	<-stopped
	must(t, Remove(dir))
	if _, err := os.Lstat(dir); !os.IsNotExist(err) {
		t.Error("is still there")
	}
}

// After the removal of a directory has begun, the owner of the directory must not be able to make files in it.
func TestOthersMakeNothingInWhatIsRemoved(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("needs root")
	}
	dir := t.TempDir()
	must(t, os.Chown(dir, 65534, 65534))
	must(t, os.Chmod(dir, 0o777))
	fd, err := (&removal{}).open(unix.AT_FDCWD, dir)
	must(t, err)
	defer unix.Close(fd)
	asOrdinary(func() {
		if err := unix.Mkdirat(fd, "more", 0o700); err != unix.EACCES {
			t.Errorf("%v", err)
		}
	})
}

func TestRemoveFilesAndNothing(t *testing.T) {
	dir := t.TempDir()
	must(t, Remove(filepath.Join(dir, "nothing")))
	must(t, os.WriteFile(filepath.Join(dir, "file"), nil, 0o400))
	must(t, Remove(filepath.Join(dir, "file")))
	must(t, os.Symlink(t.TempDir(), filepath.Join(dir, "link")))
	must(t, Remove(filepath.Join(dir, "link")))
	must(t, os.Remove(dir))
}

// TestGiveReachesAll checks that Give changes the owner of a very deep tree completely.
func TestGiveReachesAll(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("needs root")
	}
	dir := filepath.Join(t.TempDir(), "dir")
	must(t, os.Mkdir(dir, 0o700))
	t.Cleanup(func() { must(t, Remove(dir)) })
	chain(t, dir, "d", 3000)
	must(t, os.Symlink("/", filepath.Join(dir, "link")))
	must(t, Give(dir, 65534, 65534))
	at, err := openDir(unix.AT_FDCWD, dir)
	must(t, err)
	var info unix.Stat_t
	for err == nil {
		must(t, unix.Fstat(at, &info))
		if info.Uid != 65534 || info.Gid != 65534 {
			t.Fatalf("%+v", info)
		}
		below, belowErr := openDir(at, "d")
		if err = belowErr; err == nil {
			must(t, unix.Close(at))
			at = below
		}
	}
	must(t, unix.Fstatat(at, "big", &info, 0))
	must(t, unix.Close(at))
	if info.Uid != 65534 {
		t.Errorf("%+v", info)
	}
	must(t, unix.Stat("/", &info))
	if info.Uid != 0 {
		t.Error("a link was followed")
	}
}
