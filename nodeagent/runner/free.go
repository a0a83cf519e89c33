package runner

import (
	"time"

	"golang.org/x/sys/unix"
)

// These are limits of a node's free disk space. A part of the disk is reserved for the replicas of the site, whose
// books may be on the same disk. The replicas refuse commands if less than 256 MiB are free. If less than the reserve
// is free, the node removes files of ended tasks. If less than three quarters of the reserve is free, the node claims
// no tasks. If less than five eighths is free, the node ends the tasks that use the most space.
const (
	leastReserve = 512 << 20
	mostReserve  = 8 << 30
	reserveShare = 20 // the reserve is 1/reserveShare of the file system
	leastKept    = 256 << 20
	keptShare    = 10
)

// wantedFree returns how much space of a disk should be free after files were removed: an eighth more than the
// configured reserve.
func wantedFree(reserve int64) int64 { return reserve + reserve/8 }

func leastFree(reserve int64) int64 { return reserve / 8 * 5 }

// These numbers set how often the disk's free space is read. fastest is the highest assumed speed at which the disk
// fills, in bytes per nanosecond. soonest is the shortest interval.
const (
	fastest = 4
	soonest = 10 * time.Millisecond
)

// Soon returns how long the disk will certainly have more than the given number of free bytes. This follows from the
// free space now and the fastest possible writing. The result is between the constant soonest and the argument `most`.
func Soon(dir string, bytes int64, most time.Duration) time.Duration {
	return min(max(time.Duration((freeBytes(dir)-bytes)/fastest), soonest), most)
}

// Takes returns the free space that a node needs to claim tasks, in bytes.
func Takes(reserve int64) int64 { return reserve / 4 * 3 }

// Full reports whether the disk is so full that the node must claim no tasks. The disk is full if less than 3/4 of the
// reserve is free. Then it stays full until 7/8 of the reserve are free. The argument `was` is the last result of Full.
func Full(dir string, reserve int64, was bool) bool {
	enough := Takes(reserve)
	if was {
		enough = reserve / 8 * 7
	}
	return freeBytes(dir) < enough
}

// Reserve returns the space that tasks must leave free on the disk of a directory, in bytes: the configured value, or
// else the default.
func Reserve(dir string, configured int64) int64 {
	if configured > 0 {
		return configured
	}
	return min(max(sizeOf(dir)/reserveShare, leastReserve), mostReserve)
}

// freeBytes returns how many bytes a process without privileges can still write on the disk of a directory. If few
// inodes are free, the number of bytes is limited: each free inode counts as the disk's size divided by the number of
// all inodes. If the system does not answer, the result is large, so that no task is ended.
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

// sizeOf returns the size of the file system of a directory, in bytes.
func sizeOf(dir string) int64 {
	var s unix.Statfs_t
	if unix.Statfs(dir, &s) != nil {
		return 0
	}
	return int64(s.Blocks) * int64(s.Bsize)
}
