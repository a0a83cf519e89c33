package store

import (
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/nodeagent/runner/lane"
	"github.com/candor-grid/candor/nodeagent/runner/tree"
)

// Bound bounds the files that ended tasks leave. It looks at each account that had a running task since the last call.
// If the account's files have more bytes than the limit, it removes the oldest ones.
func (s *Store) Bound(limit int64) {
	for _, account := range s.takeChanged() {
		if over := s.measureAccount(account) - limit; over > 0 {
			s.removeOldest(account, over)
		}
	}
	s.RemoveMoved()
}

// Free removes the oldest files of the account that keeps the most bytes, until at least the given number of bytes is
// freed. It returns the number of freed bytes. An account that keeps fewer than `least` bytes loses nothing, because
// its files would free little space.
func (s *Store) Free(bytes, least int64) (freed int64) {
	for _, account := range s.accountsThatKeep(least) {
		if freed = s.removeOldest(account, bytes); freed > 0 {
			s.RemoveMoved()
			break
		}
	}
	return freed
}

// measureAccount measures the files of an account's ended tasks, and returns the sum in bytes.
func (s *Store) measureAccount(account messages.Name) (sum int64) {
	meter := tree.NewMeter(math.MaxInt64, func() bool { return !s.config.Closing() })
	for _, j := range s.jobsOf(account) {
		before := meter.Usage().Bytes
		j.eachKept(func(_ messages.Attempt, e os.DirEntry) {
			path := filepath.Join(j.Dir, e.Name())
			meter.AddEntry(path)
			if !e.IsDir() {
				lane.CutAgain(path, s.config.MostOutput, s.config.OutputTail)
			}
		})
		now := meter.Usage().Bytes
		s.noteKept(j, now-before)
		sum += now - before
	}
	return sum
}

// removeOldest removes files of ended tasks of an account, the oldest first. It stops when it has freed at least the
// given number of bytes, and returns how many bytes it has freed. Files of jobs that still have running tasks, or
// outputs that are not stored yet, are removed last.
func (s *Store) removeOldest(account messages.Name, bytes int64) (removed int64) {
	jobs := s.jobsOf(account)
	for _, j := range jobs {
		if removed >= bytes {
			return removed
		}
		removed += s.dropIdle(j)
	}
	for _, j := range jobs {
		if removed < bytes {
			removed += s.removeAttempts(j, bytes-removed)
		}
	}
	return removed
}

// removeAttempts removes files of a job's ended attempts, the oldest first, until it has freed the given number of
// bytes. It returns the number of freed bytes.
func (s *Store) removeAttempts(j *Job, bytes int64) (removed int64) {
	found := map[messages.Attempt]*kept{}
	j.eachKept(func(a messages.Attempt, e os.DirEntry) {
		k := found[a]
		info, err := e.Info()
		if err != nil || k == nil && (len(found) == mostKept || s.isHeld(a) || s.config.Runs(a)) {
			return
		}
		if k == nil {
			k = new(kept)
			found[a] = k
		}
		k.files = append(k.files, e.Name())
		if info.ModTime().After(k.since) {
			k.since = info.ModTime()
		}
	})
	for _, k := range slices.SortedFunc(maps.Values(found), func(a, b *kept) int { return a.since.Compare(b.since) }) {
		if removed >= bytes {
			break
		}
		meter := tree.NewMeter(math.MaxInt64, func() bool { return !s.config.Closing() })
		for _, name := range k.files {
			path := filepath.Join(j.Dir, name)
			meter.AddEntry(path)
			if strings.HasSuffix(name, lane.DirEnding) {
				s.Discard(path)
			} else {
				_ = unix.Unlink(path)
			}
		}
		removed += meter.Usage().Bytes
	}
	s.noteRemoved(j, removed)
	return removed
}

type kept struct {
	files []string
	since time.Time // time of the last change
}

// The search for the oldest attempts of a job reads at most mostKept attempts.
const mostKept = 1 << 16

// eachKept calls f with each file and directory that has the name of an attempt of a job.
func (j *Job) eachKept(f func(messages.Attempt, os.DirEntry)) {
	dir, err := os.Open(j.Dir)
	if err != nil {
		return
	}
	defer dir.Close()
	const piece = 1024
	for err == nil {
		var entries []os.DirEntry
		entries, err = dir.ReadDir(piece)
		for _, e := range entries {
			if attempt, is := attemptOf(j.id, e.Name()); is {
				f(attempt, e)
			}
		}
	}
}

func attemptOf(job messages.JobID, name string) (a messages.Attempt, is bool) {
	parts := strings.Split(name, ".")
	if len(parts) != 4 {
		return a, false
	}
	var numbers [3]uint32
	for i := range numbers {
		n, err := strconv.ParseUint(parts[i], 10, 32)
		if err != nil {
			return a, false
		}
		numbers[i] = uint32(n)
	}
	a.Task = messages.TaskRef{Job: job, Stage: numbers[0], Index: numbers[1]}
	a.Number = numbers[2]
	return a, true
}
