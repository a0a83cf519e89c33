package runner

import (
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/candor-grid/candor/messages/agent"
	jobmsg "github.com/candor-grid/candor/messages/job"
	"github.com/candor-grid/candor/nodeagent/runner/session"
)

// Suspend implements [Process].
func (t *process) Suspend(suspended bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.suspended == suspended || t.ending {
		return
	}
	t.suspended = suspended
	if t.child.PID != 0 && !t.over { // if the task has no process yet, the method begun suspends it
		t.freeze()
	}
}

// freeze suspends or resumes the task's processes. It does so in a separate goroutine, because that can take long: a
// task may fork without end, or wait for a device. The caller holds t.mu.
func (t *process) freeze() {
	if t.beginFreeze() {
		go t.refreeze()
	}
}

// Only one call of refreeze may run for a task. beginFreeze reports whether the caller must call refreeze: it is true
// if no other call is running. The caller holds t.mu.
func (t *process) beginFreeze() bool {
	if t.suspended {
		t.limit.stop()
		t.early.stop()
	} else {
		t.limit.run(nil)
		t.early.run(nil)
	}
	if t.freezing {
		return false
	}
	t.freezing = true
	t.guests.Add(1) // the cell belongs to the task until refreeze returns
	return true
}

// refreeze suspends the task's processes or lets them continue. The wanted state can change meanwhile, so refreeze
// repeats this until the processes are in the state that is wanted now. It uses the kernel's freezer if there is one.
// Otherwise it uses signals, which a task may notice. It holds no lock while it waits.
func (t *process) refreeze() {
	defer t.guests.Done()
	t.mu.Lock()
	defer t.mu.Unlock()
	for t.frozen != t.toFreeze() {
		t.frozen = !t.frozen
		frozen := t.frozen
		t.mu.Unlock()
		done, err := t.runner.freeze(t.cell, frozen)
		t.mu.Lock()
		switch {
		case t.over:
		case frozen && t.toFreeze() && (!done || err != nil):
			t.halted = true
			t.signal(unix.SIGSTOP)
		case !frozen && (t.halted || !done || err != nil):
			t.halted = false
			t.signal(unix.SIGCONT)
		}
	}
	t.freezing = false
	if t.halted && !t.frozen && !t.over { // the task was resumed before the freezer stopped it
		t.halted = false
		t.signal(unix.SIGCONT)
	}
}

// toFreeze reports whether the processes should be suspended. The caller holds t.mu.
func (t *process) toFreeze() bool { return (t.suspended || t.braked) && !t.over }

// A task can ask for a signal some time before its time limit ends. warn sets the timer for this signal. The caller
// holds t.mu.
func (t *process) warn() {
	w := t.task.Program.Signal
	if w == nil || t.limit.left <= 0 {
		return
	}
	t.early.left = max(t.task.Program.TimeLimit-w.Time(), 1).Std()
	t.early.run(func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.early = limit{} // the early signal is sent only once
		if !t.over && !t.ending {
			t.alert(w)
		}
	})
}

// alert sends the early signal to the processes that should get it. The caller holds t.mu.
func (t *process) alert(w *jobmsg.EarlySignal) {
	signal := unix.SignalNum("SIG" + w.Name)
	switch {
	case w.First:
		unix.Kill(t.child.PID, signal)
	case w.Rest:
		session.SignalWhere(t.child.PID, func(env []string) bool {
			return slices.ContainsFunc(env, func(v string) bool { return strings.HasPrefix(v, agent.StepVariable+"=") })
		}, signal)
	default:
		t.signal(signal)
	}
}

// limit is a timer that can be paused, and then continues with the time that is left.
type limit struct {
	left  time.Duration // time that is left; 0 if there is no limit
	from  time.Time     // when the timer was last started or continued
	over  func()
	timer *time.Timer // nil while the timer is paused
}

// run starts the timer, or continues it after a pause. When the time is up, the timer calls the function `over`. If
// `over` is nil, it calls the function of the earlier call of run.
func (l *limit) run(over func()) {
	if over != nil {
		l.over = over
	}
	if l.left <= 0 || l.timer != nil {
		return
	}
	l.from = time.Now()
	l.timer = time.AfterFunc(l.left, l.over)
}

func (l *limit) stop() {
	if l.timer == nil {
		return
	}
	l.timer.Stop()
	l.timer = nil
	l.left = max(l.left-time.Since(l.from), 1) // 0 would mean no limit
}
