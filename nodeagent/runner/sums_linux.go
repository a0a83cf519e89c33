package runner

import (
	"maps"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/nodeagent/runner/tree"
)

// Files of ended tasks stay on the node's disk, and running tasks can still write to them: into a
// directory that an earlier task of the account left, or to a file that an earlier task passed on.
// So these files are measured again while tasks of the account run, and the sum for each account is
// bounded. If free space falls below a reserve, the account that keeps the most loses its oldest
// files first, and in the end the tasks that keep the most are ended.

// How often what has ended is measured, at most, and how often the free space is looked at while nothing runs.
const (
	sumEvery  = 4 // times Config.CheckEvery
	idleEvery = 5 * time.Second
	sumShare  = 20 // measuring takes at most 1/sumShare of a processor's time
)

// actAgain is how long to wait before space is freed again, on a disk that does not fill further.
const actAgain = 500 * time.Millisecond

// leastEnded is how much a task has to keep, in bytes, to be ended because the disk is full, and an account to
// lose its oldest.
const leastEnded = 16 << 20

// startSum measures and bounds what the accounts keep, in a goroutine of its own. The caller holds
// p.mu.
func (p *Processes) startSum() {
	if p.summing || p.closed || time.Now().Before(p.sumNext) {
		return
	}
	p.summing = true
	p.tasks.Go(func() {
		rest := p.sum()
		p.mu.Lock()
		defer p.mu.Unlock()
		p.summing, p.sumNext = false, time.Now().Add(rest)
	})
}

// sum bounds what each account keeps. The result is how long not to measure again.
func (p *Processes) sum() (rest time.Duration) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	began, used := time.Now(), threadTime()
	for _, account := range p.store.takeChanged() {
		if over := p.measureAccount(account) - p.config.KeptLimit; over > 0 {
			p.removeOldest(account, over)
		}
	}
	p.store.removeMoved()
	return max(sumEvery*p.config.CheckEvery, time.Since(began), (sumShare-1)*(threadTime()-used))
}

// followSpace looks at the free space of the disk until the runner is closed: as often as it may have filled since, however
// fast. It has a thread of its own, which does not wait for processors on which others compute.
func (p *Processes) followSpace() {
	defer p.tasks.Done()
	runtime.LockOSThread() // for good: the thread ends with this function
	hurry()
	for wait, goOn := soonest, true; goOn; {
		p.wake.await(wait)
		wait, goOn = p.lookAtSpace()
	}
	p.wake.close()
}

// hurry has the calling thread run before the others of the machine; without the right to do so, as soon as it is its turn.
func hurry() {
	const fifo, resetOnFork = 1, 1
	first := unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: fifo, Flags: resetOnFork, Priority: 1}
	if unix.SchedSetAttr(0, &first, 0) == nil {
		return
	}
	if usual, err := unix.SchedGetAttr(0, 0); err == nil {
		usual.Runtime = uint64(100 * time.Microsecond) // who asks for short turns waits less for them
		_ = unix.SchedSetAttr(0, usual, 0)
	}
}

// lookAtSpace looks at the free space once. Below the reserve it acts when there is less than when it acted last; for a disk that
// others keep full, that is seldom. The result is how long not to look again; goOn: the runner is not closed.
func (p *Processes) lookAtSpace() (wait time.Duration, goOn bool) {
	p.following.Lock()
	defer p.following.Unlock()
	reserve := p.config.KeepFree
	free, now := freeBytes(p.config.Dir), time.Now()
	acts := free < reserve && (free < p.acted.free-leastEnded/2 || now.Sub(p.acted.at) >= actAgain)
	p.stopFilling(free, now)
	switch {
	case acts:
		p.acted.free, p.acted.at = free, now
		for _, t := range p.tasksNow() {
			t.measureAgain()
		}
	case free >= reserve:
		p.acted.free, p.acted.braked = math.MaxInt64, math.MaxInt64
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if acts && !p.relieving && !p.closed {
		p.relieving = true
		p.tasks.Go(p.relieve)
	}
	if p.quiet = len(p.running) == 0 && !p.relieving; !p.quiet {
		return Soon(p.config.Dir, reserve, p.config.CheckEvery), !p.closed
	}
	if free < reserve {
		return actAgain, !p.closed
	}
	return idleEvery, !p.closed
}

// alarm wakes a thread that waits. It does not need the Go scheduler for that, which may have to wait for a processor.
type alarm int

func newAlarm() (alarm, error) {
	fd, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err != nil {
		return 0, messages.Errorf(messages.Unavailable, "runner: eventfd: %v", err)
	}
	return alarm(fd), nil
}

func (a alarm) ring() { _, _ = unix.Write(int(a), []byte{1, 0, 0, 0, 0, 0, 0, 0}) }

// await waits until it rings, or so long.
func (a alarm) await(most time.Duration) {
	fds := []unix.PollFd{{Fd: int32(a), Events: unix.POLLIN}}
	if n, _ := unix.Poll(fds, int(most.Milliseconds())); n > 0 {
		_, _ = unix.Read(int(a), make([]byte, 8))
	}
}

func (a alarm) close() { _ = unix.Close(int(a)) }

// relieve frees space until there is more than the reserve. It removes rooms that nobody uses, and
// files of the accounts that keep the most.
func (p *Processes) relieve() {
	reserve := p.config.KeepFree
	for lack := wantedFree(reserve) - freeBytes(p.config.Dir); lack > 0 && !p.closing(); lack = wantedFree(reserve) - freeBytes(p.config.Dir) {
		if p.rooms != nil && p.rooms.retireFull(leastEnded) {
			break // removing a room frees more than anything else
		}
		freed := int64(0)
		for _, account := range p.store.accountsThatKeep(leastEnded) { // others did not fill the disk, and would lose their logs
			if freed = p.removeOldest(account, min(lack, leastEnded)); freed > 0 {
				break
			}
		}
		if freed == 0 {
			break
		}
		p.store.removeMoved()
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.relieving = false
}

// closing reports whether the runner is being closed.
func (p *Processes) closing() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.closed
}

// measureAccount measures what the ended tasks of an account keep, and returns the sum in bytes.
func (p *Processes) measureAccount(account messages.Name) (sum int64) {
	meter := tree.NewMeter(math.MaxInt64, func() bool { return !p.closing() })
	for _, j := range p.store.jobsOf(account) {
		before := meter.Usage().Bytes
		j.eachKept(func(_ messages.Attempt, e os.DirEntry) {
			path := filepath.Join(j.dir, e.Name())
			meter.AddEntry(path)
			if !e.IsDir() {
				p.config.cutAgain(path)
			}
		})
		now := meter.Usage().Bytes
		p.store.noteKept(j, now-before)
		sum += now - before
	}
	return sum
}

// removeOldest removes files of ended tasks of an account, the oldest first, until at least so many
// bytes are gone. It returns how many it removed. Jobs with running tasks, or with outputs that are
// not stored yet, come last.
func (p *Processes) removeOldest(account messages.Name, bytes int64) (removed int64) {
	jobs := p.store.jobsOf(account)
	for _, j := range jobs {
		if removed >= bytes {
			return removed
		}
		removed += p.store.dropIdle(j)
	}
	for _, j := range jobs {
		if removed < bytes {
			removed += p.removeAttempts(j, bytes-removed)
		}
	}
	return removed
}

// removeAttempts removes what attempts of a job left that have ended.
func (p *Processes) removeAttempts(j *job, bytes int64) (removed int64) {
	found := map[messages.Attempt]*kept{}
	j.eachKept(func(a messages.Attempt, e os.DirEntry) {
		k := found[a]
		info, err := e.Info()
		if err != nil || k == nil && (len(found) == mostKept || p.store.isHeld(a) || p.lookup(a) != nil) {
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
		meter := tree.NewMeter(math.MaxInt64, func() bool { return !p.closing() })
		for _, name := range k.files {
			path := filepath.Join(j.dir, name)
			meter.AddEntry(path)
			if strings.HasSuffix(name, dirEnding) {
				p.store.discard(path)
			} else {
				_ = unix.Unlink(path)
			}
		}
		removed += meter.Usage().Bytes
	}
	p.store.noteRemoved(j, removed)
	return removed
}

// kept is the files of an attempt in its job's directory.
type kept struct {
	files []string
	since time.Time // last change
}

// mostKept bounds the attempts of a job that are looked at to find the oldest.
const mostKept = 1 << 16

// eachKept calls f with each file and directory that an attempt of a job left, or has given its name so far.
func (j *job) eachKept(f func(messages.Attempt, os.DirEntry)) {
	dir, err := os.Open(j.dir)
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

// attemptOf returns the attempt whose file is called so.
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

// Confirm says that the node is done with an attempt that has ended: its outputs are stored.
func (p *Processes) Confirm(a messages.Attempt) { p.store.letGo(a) }

// Hold keeps the files of an ended attempt until Confirm.
func (p *Processes) Hold(a messages.Attempt) { p.store.hold(a) }
