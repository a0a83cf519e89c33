package runner

import (
	"time"

	"golang.org/x/sys/unix"
)

// The reserve of a node's disk is for the replicas of the site, whose books are on the same disk: they refuse what
// needs space below 256 MiB. Below the reserve a node removes what ended tasks kept; below three quarters of
// it, the node takes no tasks; below five eighths, it ends the task that keeps the most.
const (
	leastReserve = 512 << 20
	mostReserve  = 8 << 30
	reserveShare = 20 // of the file system: one in as many
	leastKept    = 256 << 20
	keptShare    = 10
)

// wantedFree is how much is to be free again when space is made.
func wantedFree(reserve int64) int64 { return reserve + reserve/8 }

// leastFree is how much is free at least while no task is ended for it.
func leastFree(reserve int64) int64 { return reserve / 8 * 5 }

// A disk may fill by so many bytes in a nanosecond; it is looked at no sooner than soonest after a look.
const (
	fastest = 4
	soonest = 10 * time.Millisecond
)

// Soon is how long there is certainly more free on the disk of a directory than a number of bytes: soonest at least, most at most.
func Soon(dir string, bytes int64, most time.Duration) time.Duration {
	return min(max(time.Duration((freeBytes(dir)-bytes)/fastest), soonest), most)
}

// Takes is how much is free at least while a node takes tasks, in bytes.
func Takes(reserve int64) int64 { return reserve / 4 * 3 }

// Full reports whether a node takes no tasks because its disk is almost full; was: it took none before.
func Full(dir string, reserve int64, was bool) bool {
	enough := Takes(reserve)
	if was {
		enough = reserve / 8 * 7
	}
	return freeBytes(dir) < enough
}

// Reserve is how much tasks leave free on the disk of a directory, in bytes: what is configured, or else the default.
func Reserve(dir string, configured int64) int64 {
	if configured > 0 {
		return configured
	}
	return min(max(sizeOf(dir)/reserveShare, leastReserve), mostReserve)
}

// freeBytes is what a process without privileges may still write on the disk of a directory. An inode counts as its
// share of the disk, as in package tree. What cannot be asked is no reason to do anything.
func freeBytes(dir string) int64 {
	var s unix.Statfs_t
	if unix.Statfs(dir, &s) != nil {
		return 1 << 62
	}
	free := int64(s.Bavail) * int64(s.Bsize)
	if s.Files > 0 {
		free = min(free, int64(s.Ffree)*(int64(s.Blocks)*int64(s.Bsize)/int64(s.Files)))
	}
	return free
}

// sizeOf is the size of the file system of a directory, in bytes.
func sizeOf(dir string) int64 {
	var s unix.Statfs_t
	if unix.Statfs(dir, &s) != nil {
		return 0
	}
	return int64(s.Blocks) * int64(s.Bsize)
}
