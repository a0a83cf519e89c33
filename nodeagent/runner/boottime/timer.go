package boottime

import (
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// start is when this process was started.
var start = time.Now()

// Now returns the time since the machine was started. If the kernel does not tell it, Now returns the time since this
// process was started.
func Now() time.Duration {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &t); err != nil {
		return time.Since(start)
	}
	return time.Duration(t.Nano())
}

// Timer calls a function when a duration is over.
type Timer struct {
	ended func()

	mu      sync.Mutex
	file    *os.File    // the kernel's timer; nil means that the kernel has none
	fd      int         // descriptor of file; File.Fd would make it block
	instead *time.Timer // used where file is nil
	closed  bool
}

// NewTimer makes a timer that is not set. The timer calls the function `ended` in a goroutine, one call at a time.
// Reset and Stop do not cancel a call that is about to begin.
func NewTimer(ended func()) *Timer {
	t := &Timer{ended: ended}
	fd, err := unix.TimerfdCreate(unix.CLOCK_BOOTTIME, unix.TFD_NONBLOCK|unix.TFD_CLOEXEC)
	if err != nil {
		return t
	}
	t.file, t.fd = os.NewFile(uintptr(fd), "timerfd"), fd
	go t.wait(t.file)
	return t
}

// wait calls t.ended each time the kernel's timer expires, until the file of the timer is closed.
func (t *Timer) wait(file *os.File) {
	var count [8]byte
	for {
		if _, err := file.Read(count[:]); err != nil {
			return
		}
		t.ended()
	}
}

// Reset sets the timer to another time.
func (t *Timer) Reset(d time.Duration) { t.set(max(d, 1)) }

// Stop prevents the timer from firing.
func (t *Timer) Stop() { t.set(0) }

// set sets the timer; 0 means never.
func (t *Timer) set(d time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return
	}
	if t.file != nil {
		value := unix.ItimerSpec{Value: unix.NsecToTimespec(int64(d))}
		_ = unix.TimerfdSettime(t.fd, 0, &value, nil)
		return
	}
	if t.instead != nil {
		t.instead.Stop()
		t.instead = nil
	}
	if d > 0 {
		t.instead = time.AfterFunc(d, t.ended)
	}
}

// Close stops the timer; it cannot be set again.
func (t *Timer) Close() {
	t.Stop()
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed = true; t.file != nil {
		_ = t.file.Close()
		t.file = nil
	}
}
