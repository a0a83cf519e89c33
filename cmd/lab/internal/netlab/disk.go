package netlab

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/candor-grid/candor/deploy/embedded"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/durable"
)

// imagesDir is the directory of a lab's disk images. It is in memory.
const imagesDir = "disks"

// giveDisk gives a new host a small disk for its state: a loop device with an image in memory. This disk can be full or
// hang without an effect on the machine's disk.
func (h *Host) giveDisk(bytes int64) error {
	images := filepath.Join(h.site.lab.Dir, imagesDir)
	if err := os.MkdirAll(images, 0o700); err != nil {
		return err
	}
	if err := h.site.lab.imagesInMemory(images); err != nil {
		return err
	}
	if err := errors.Join(os.WriteFile(h.image(), nil, 0o600), os.Truncate(h.image(), bytes), os.MkdirAll(h.Dir(), 0o700)); err != nil {
		return err
	}
	if err := errors.Join(run("mkfs.ext4", "-q", "-m", "0", "-E", "nodiscard", h.image()), h.mount()); err != nil {
		return messages.Errorf(messages.Unavailable, "a disk of its own for %s: %v", h.Name, err)
	}
	h.disk = true
	return nil
}

// image returns the file with the content of the host's disk.
func (h *Host) image() string {
	return filepath.Join(h.site.lab.Dir, imagesDir, h.site.Name+"-"+h.Name)
}

func (h *Host) mount() error { return run("mount", "-o", "loop,discard", h.image(), h.Dir()) }

// LosePower ends all processes of a host with its own disk. Everything that was not synced to the disk is lost.
func (h *Host) LosePower() error {
	if err := shutDown(h.Dir()); err != nil {
		return err
	}
	h.Kill()
	if err := endUsers(h.Dir()); err != nil {
		return err
	}
	// The tasks of other hosts also see the mount of this host's image, in their own mount namespaces. So the mount
	// cannot be removed completely, and the host continues with a copy of the image.
	old := h.image() + ".old"
	if err := errors.Join(os.Rename(h.image(), old), run("cp", "--sparse=always", old, h.image())); err != nil {
		return err
	}
	return errors.Join(run("umount", "--lazy", h.Dir()), os.Truncate(old, 0), os.Remove(old), h.mount())
}

// These constants are from linux/ext4.h and other headers.
const (
	ioctlShutdown     = 0x8004587d // the value of FS_IOC_SHUTDOWN
	shutdownNoJournal = 2          // nothing more is written, not even the journal
)

// shutDown puts a file system into a state in which all access fails. Data that is not on the disk is lost.
func shutDown(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	err = unix.IoctlSetPointerInt(int(f.Fd()), ioctlShutdown, shutdownNoJournal)
	return errors.Join(err, f.Close())
}

// endUsers kills the processes that use the file system of a directory, until there are none.
func endUsers(dir string) error {
	var on unix.Stat_t
	if err := unix.Stat(dir, &on); err != nil {
		return err
	}
	for {
		var used []string
		for _, kind := range []string{"cwd", "root", "fd/*"} {
			found, err := filepath.Glob("/proc/[0-9]*/" + kind)
			if err != nil {
				return err
			}
			used = append(used, found...)
		}
		ended := false
		for _, path := range used {
			var is unix.Stat_t
			var pid int
			if _, err := fmt.Sscanf(path, "/proc/%d/", &pid); err == nil && pid != os.Getpid() && unix.Stat(path, &is) == nil && is.Dev == on.Dev {
				ended = unix.Kill(pid, unix.SIGKILL) == nil || ended
			}
		}
		if !ended {
			return nil
		}
	}
}

// imagesInMemory mounts a file system in memory for the lab's disk images, but only in the lab's own namespaces.
// Elsewhere the mount would outlive a killed lab.
func (l *Lab) imagesInMemory(dir string) error {
	if !Inside() {
		return messages.Errorf(messages.Unavailable, "disks of hosts are mounted only within namespaces of the lab's own")
	}
	if l.images {
		return nil
	}
	l.images = true
	return unix.Mount("tmpfs", dir, "tmpfs", 0, "")
}

// Used returns the number of used bytes on the host's own disk.
func (h *Host) Used() int64 {
	var s unix.Statfs_t
	if !h.disk || unix.Statfs(h.Dir(), &s) != nil {
		return 0
	}
	return int64(s.Blocks-s.Bfree) * s.Bsize
}

// Tidy removes damaged files that the host's replicas set aside, as an operator does.
func (h *Host) Tidy() error {
	var failed error
	for _, replicas := range replicaDirs {
		aside, err := filepath.Glob(filepath.Join(h.Dir(), replicas, h.Name, "damaged-*"))
		failed = errors.Join(failed, err)
		for _, dir := range aside {
			failed = errors.Join(failed, os.RemoveAll(dir))
		}
	}
	return failed
}

// HasDisk reports whether giveDisk gave the host a disk of its own.
func (h *Host) HasDisk() bool { return h.disk }

func (h *Host) filler() string { return filepath.Join(h.Dir(), "filler") }

// Fill fills the host's disk until only a number of bytes are free.
func (h *Host) Fill(free int64) error {
	var s unix.Statfs_t
	if err := unix.Statfs(h.Dir(), &s); err != nil {
		return err
	}
	f, err := os.OpenFile(h.filler(), os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	if size := int64(s.Bavail)*s.Bsize - free; size > 0 {
		err = unix.Fallocate(int(f.Fd()), 0, 0, size)
	}
	if errors.Is(err, unix.ENOSPC) { // the file may be too large now, because the host also writes to the disk
		err = nil
	}
	return errors.Join(err, f.Close())
}

// Drain frees the space that Fill took, also after a loss of power.
func (h *Host) Drain() error { return errors.Join(os.Remove(h.filler()), durable.Sync(h.Dir())) }

// Freeze makes every write to the host's disk wait until Thaw.
func (h *Host) Freeze() error { return run("fsfreeze", "--freeze", h.Dir()) }

// Thaw undoes Freeze.
func (h *Host) Thaw() error { return run("fsfreeze", "--unfreeze", h.Dir()) }

// empty lists those files of a replica that never have content.
var empty = []string{"lock", "probe", "room"}

// State returns the paths of the files of the host's replicas. While the host runs, the list may change.
func (h *Host) State() ([]string, error) {
	var own []string
	for _, replicas := range replicaDirs {
		own = append(own, filepath.Join(replicas, h.Name))
	}
	return h.files(own...)
}

// replicaDirs are the directories with the replicas of the auctioneer and of the bank.
var replicaDirs = []string{messages.Auctioneer, messages.Bank}

// NodeState returns the paths of the files of the host's agents and executors.
func (h *Host) NodeState() ([]string, error) { return h.files("nodes") }

func (h *Host) files(below ...string) (files []string, err error) {
	for _, dir := range below {
		err = errors.Join(err, filepath.WalkDir(filepath.Join(h.Dir(), dir), func(path string, entry os.DirEntry, err error) error {
			if err == nil && entry.Type().IsRegular() && !strings.Contains(path, "damaged-") && !slices.Contains(empty, entry.Name()) {
				files = append(files, path)
			}
			if errors.Is(err, os.ErrNotExist) {
				return nil
			}
			return err
		}))
	}
	return files, err
}

// Empty removes all files of the host's replicas, as if the disk were new.
func (h *Host) Empty() error {
	return embedded.Each(replicaDirs, func(replicas string) error { return os.RemoveAll(filepath.Join(h.Dir(), replicas)) })
}

// Copy copies the files of the host's replicas. PutBack puts the copy back, so that the replicas have older data. The
// host must be stopped for both.
func (h *Host) Copy() error {
	if err := os.RemoveAll(h.copyDir()); err != nil {
		return err
	}
	for _, replicas := range replicaDirs {
		if err := os.CopyFS(filepath.Join(h.copyDir(), replicas), os.DirFS(filepath.Join(h.Dir(), replicas))); err != nil && !errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("copying the state of %s: %w", h.Name, err)
		}
	}
	return nil
}

// PutBack replaces the files of the host's replicas by the copy.
func (h *Host) PutBack() error {
	return errors.Join(h.Empty(), os.CopyFS(h.Dir(), os.DirFS(h.copyDir())))
}

func (h *Host) copyDir() string { return h.Dir() + ".copy" }
