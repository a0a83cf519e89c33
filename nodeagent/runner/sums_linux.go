package runner

import (
	"math"
	"runtime"
	"time"

	"golang.org/x/sys/unix"

	"github.com/candor-grid/candor/messages"
)

// Files of ended tasks stay on the node's disk, and later tasks of the account can still write to them. So they are
// measured again while tasks of the account run, and their sum is bounded. If the free space falls below the reserve,
// the account that keeps the most loses its oldest files first. If that is not enough, the tasks that use the most
// space are ended.

// These constants bound how often two things are done: measuring the files of ended tasks, and reading the free space
// while no task runs.
const (
	sumEvery  = 4 // multiple of Config.CheckEvery
	idleEvery = 5 * time.Second
	sumShare  = 20 // measuring takes at most 1/sumShare of a processor's time
)

// If the free space is below the reserve but does not become less, space is freed again after the pause actAgain.
const actAgain = 500 * time.Millisecond

// leastEnded is an amount of disk space, in bytes. When the disk is full, only a task that uses at least leastEnded is
// ended. Only an account that keeps at least leastEnded loses its oldest files.
const leastEnded = 16 << 20

// startSum starts the method `sum` in a goroutine. It does nothing if this method already runs, or if the time for its
// next run has not come. The caller holds p.mu.
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

// sum measures the files of ended tasks. If the files of an account exceed its limit, sum removes the account's oldest
// files. It returns the pause before the next call.
func (p *Processes) sum() (rest time.Duration) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	began, used := time.Now(), threadTime()
	p.store.Bound(p.config.KeptLimit)
	return max(sumEvery*p.config.CheckEvery, time.Since(began), (sumShare-1)*(threadTime()-used))
}

// followSpace reads the free space of the disk again and again until the runner is closed. From the free space, it
// computes the earliest time at which tasks could have filled the disk at the highest assumed speed. The next reading
// comes before this time. The function has its own thread, which gets a processor even while other threads compute.
func (p *Processes) followSpace() {
	defer p.tasks.Done()
	runtime.LockOSThread() // never unlocked: the thread ends with this function
	hurry()
	for wait, goOn := soonest, true; goOn; {
		p.wake.await(wait)
		wait, goOn = p.lookAtSpace()
	}
	p.wake.close()
}

// hurry makes the calling thread run before other threads of the machine. Without the right to do this, the thread asks
// the kernel for time slices of 100 µs.
func hurry() {
	const fifo, resetOnFork = 1, 1
	first := unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: fifo, Flags: resetOnFork, Priority: 1}
	if unix.SchedSetAttr(0, &first, 0) == nil {
		return
	}
	if usual, err := unix.SchedGetAttr(0, 0); err == nil {
		usual.Runtime = uint64(100 * time.Microsecond) // a thread that asks for short turns waits less
		_ = unix.SchedSetAttr(0, usual, 0)
	}
}

// lookAtSpace reads the free space once. If less than the reserve is free, it measures the tasks and starts to free
// space. It starts again only after the pause actAgain, or earlier if the free space has fallen by half of leastEnded
// since it last started. It returns the pause before the next look. The result `goOn` is false if the runner is closed.
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

// alarm wakes a thread without the help of the Go scheduler, which may have to wait for a processor first.
type alarm int

func newAlarm() (alarm, error) {
	fd, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err != nil {
		return 0, messages.Errorf(messages.Unavailable, "runner: eventfd: %v", err)
	}
	return alarm(fd), nil
}

func (a alarm) ring() { _, _ = unix.Write(int(a), []byte{1, 0, 0, 0, 0, 0, 0, 0}) }

// await waits until the alarm rings, but at most for a duration.
func (a alarm) await(most time.Duration) {
	fds := []unix.PollFd{{Fd: int32(a), Events: unix.POLLIN}}
	if n, _ := unix.Poll(fds, int(most.Milliseconds())); n > 0 {
		_, _ = unix.Read(int(a), make([]byte, 8))
	}
}

func (a alarm) close() { _ = unix.Close(int(a)) }

// relieve frees space until more than the reserve is free. First it removes unused rooms. Then it removes files of
// ended tasks, from the accounts whose files take the most space.
func (p *Processes) relieve() {
	reserve := p.config.KeepFree
	for lack := wantedFree(reserve) - freeBytes(p.config.Dir); lack > 0 && !p.closing(); lack = wantedFree(reserve) - freeBytes(p.config.Dir) {
		if p.rooms != nil && p.rooms.RetireFull(leastEnded) {
			break // a removed room frees more than anything else
		}
		if p.store.Free(min(lack, leastEnded), leastEnded) == 0 {
			break
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.relieving = false
}

func (p *Processes) closing() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.closed
}

// Confirm records that the outputs of an ended attempt are stored. Its files may then be removed.
func (p *Processes) Confirm(a messages.Attempt) { p.store.LetGo(a) }

// Hold keeps the files of an ended attempt until Confirm.
func (p *Processes) Hold(a messages.Attempt) { p.store.Hold(a) }
