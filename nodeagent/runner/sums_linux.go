package runner

import (
	"cmp"
	"fmt"
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

// What has ended stays on the node's disk, and tasks that run can still write there: into a directory that an
// earlier task of the account left, or to a file that an earlier task passed on. So what has ended is measured again
// while tasks of its account run, and what an account keeps is bounded as a sum. Below a reserve of the
// disk, the account that keeps the most loses its oldest first, and in the end the task that keeps the most is ended.

// How often what has ended is measured, at most, and how often the free space is looked at while nothing runs.
const (
	sumEvery  = 4 // times Config.CheckEvery
	idleEvery = 5 * time.Second
	sumShare  = 20 // of a processor's time, for measuring: one part in as many
)

// leastEnded is how much a task has to keep, in bytes, to be ended because the disk is full, and an account to
// lose its oldest.
const leastEnded = 16 << 20

// startSum has what the accounts keep measured and bounded, by a goroutine of its own. p.mu is held.
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

// sum bounds what each account keeps, and frees space if the disk is almost full. The result is how long not to
// measure again.
func (p *Processes) sum() (rest time.Duration) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	began, used := time.Now(), threadTime()
	for _, account := range p.store.takeChanged() {
		if over := p.measureAccount(account) - p.config.KeptLimit; over > 0 {
			p.removeOldest(account, over)
		}
	}
	p.relieve()
	p.store.removeMoved()
	return max(sumEvery*p.config.CheckEvery, time.Since(began), (sumShare-1)*(threadTime()-used))
}

// relieve frees space below the reserve.
func (p *Processes) relieve() {
	reserve := p.config.KeepFree
	if freeBytes(p.config.Dir) >= reserve {
		p.pressed = false
		return
	}
	for _, account := range p.store.accountsThatKeep(0) {
		if !p.pressed { // what is known of them may be old
			p.measureAccount(account)
		}
	}
	p.pressed = true
	for lack := wantedFree(reserve) - freeBytes(p.config.Dir); lack > 0 && !p.closing(); lack = wantedFree(reserve) - freeBytes(p.config.Dir) {
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
	if freeBytes(p.config.Dir) < leastFree(reserve) {
		p.endLargest()
	}
}

// endLargest ends the task that keeps the most on the disk.
func (p *Processes) endLargest() {
	all := p.tasksNow()
	if len(all) == 0 {
		return
	}
	kept := func(t *process) int64 {
		t.mu.Lock()
		defer t.mu.Unlock()
		if t.ending || t.over {
			return 0
		}
		return t.measuring.bytes
	}
	most := slices.MaxFunc(all, func(a, b *process) int { return cmp.Compare(kept(a), kept(b)) })
	if held := kept(most); held >= leastEnded {
		most.mu.Lock()
		most.exceeds = cmp.Or(most.exceeds, fmt.Sprintf("ended because the node's disk is almost full, and this task kept the most there: %d MiB", held>>20))
		most.mu.Unlock()
		most.end(messages.OutOfDisk, p.config.Grace)
	}
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

// removeOldest removes so much of what the ended tasks of an account keep, or a little more, the oldest first, and
// returns how much it was. Files of jobs that still run tasks, or whose outputs are not stored yet, go last.
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

// kept is what an attempt left in the directory of its job.
type kept struct {
	files []string
	since time.Time // its latest change
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

// attemptOf is the attempt whose file is called so.
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

// Hold keeps what an attempt left, which has ended, until Confirm.
func (p *Processes) Hold(a messages.Attempt) { p.store.hold(a) }
