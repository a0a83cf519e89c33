package runner

import (
	"cmp"
	"fmt"
	"slices"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/candor-grid/candor/messages/agent"
	"github.com/candor-grid/candor/nodeagent/runner/room"
	"github.com/candor-grid/candor/nodeagent/runner/tree"
)

// A task can make 200,000 empty files a second, which count as 3 GB. Such a task may fill the disk before the runner
// has found the task. So when the disk is almost full, all tasks are suspended first. Then the runner measures them,
// ends the tasks that use the most space, and resumes the other tasks.

// In a survey, all tasks are suspended while the runner measures their files. brakeFor is the longest time for this.
// Then the runner stops the survey, even if it is not complete, so that the tasks do not stand still too long.
const brakeFor = time.Second

// When the runner decides to suspend tasks, it takes some time until they are suspended, above all if the processors
// are busy. lateBy is the longest time for which the tasks may still write.
const lateBy = 100 * time.Millisecond

// speed returns how fast the disk has filled since the last check, in bytes per nanosecond. The result is at most the
// constant fastest. The caller holds p.following.
func (p *Processes) speed(free int64, now time.Time) float64 {
	fell, passed := p.looked.free-free, max(now.Sub(p.looked.at), time.Millisecond)
	p.looked.free, p.looked.at = free, now
	return min(max(float64(fell)/float64(passed), 0), fastest)
}

// stopFilling ends the tasks that use the most space before the disk is full. It acts if the disk is almost full, or
// would be full before the tasks could be suspended. If there is less free space than after the last suspension, it
// first suspends all tasks and measures how much they use. The caller holds p.following.
func (p *Processes) stopFilling(free int64, now time.Time) {
	written := int64(p.speed(free, now) * float64(lateBy))
	if free-written >= leastFree(p.config.KeepFree) {
		return
	}
	p.mu.Lock()
	braking := p.braking
	fills := !p.closed && !braking && free < p.acted.braked-leastEnded/2
	if fills {
		p.braking = true
		p.tasks.Add(1)
	}
	p.mu.Unlock()
	switch {
	case fills:
		again := now.Sub(p.acted.resumed) < time.Second
		p.brake(true)
		go p.endFillers(again && free < 2*written)
	case !braking && !p.freeing():
		p.endLargest(false)
	}
}

// endFillers measures the suspended tasks. It ends the tasks whose files take the most space, and resumes the others.
// The argument `fast` is true if the disk fills so fast that it would be full before the tasks could be suspended a
// second time.
func (p *Processes) endFillers(fast bool) {
	defer p.tasks.Done()
	p.survey(time.Now().Add(brakeFor))
	p.endLargest(fast)
	p.following.Lock() // so that nobody suspends tasks again before all are resumed
	defer p.following.Unlock()
	p.acted.braked, p.acted.resumed = freeBytes(p.config.Dir), time.Now() // tasks wrote a little more until they were suspended
	p.mu.Lock()
	p.braking = false
	p.mu.Unlock()
	p.brake(false)
}

// brake(true) suspends all tasks for a moment. brake(false) resumes them.
func (p *Processes) brake(yes bool) {
	all := p.tasksNow()
	var begun []*process
	for _, t := range all {
		if t.brake(yes) {
			begun = append(begun, t)
		}
	}
	for _, t := range begun {
		go t.refreeze()
	}
}

// brake suspends the task if `yes` is true, and otherwise resumes it. If it returns true, the caller must call
// refreeze, which freezes or thaws the task's control group. This can take long. So brake first stops the first process
// group with a signal.
func (t *process) brake(yes bool) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.braked == yes {
		return false
	}
	t.braked = yes
	if t.child.PID == 0 || t.over { // the method `begun` suspends the task later
		return false
	}
	if yes && !t.suspended {
		t.halted = true
		unix.Kill(-t.child.PID, unix.SIGSTOP)
	}
	return t.beginFreeze()
}

// survey measures the disk space of all tasks. It stops at the time `until`, even if it has not measured all.
func (p *Processes) survey(until time.Time) {
	goOn := func() bool { return time.Now().Before(until) && !p.closing() }
	temporary := map[*room.Room]func() tree.Usage{} // each room is measured once
	var walks sync.WaitGroup
	for _, t := range p.tasksNow() {
		t.mu.Lock()
		if runs := t.child.PID != 0 && !t.over; runs {
			dir, processes, shared := t.ownDir(), t.processes(), temporary[t.room]
			if shared == nil {
				shared = sync.OnceValue(func() tree.Usage { return t.room.Usage(p.config.DirLimit, goOn) })
				temporary[t.room] = shared
			}
			walks.Go(func() {
				own, shared := t.usage(dir, processes, goOn, shared)
				t.surveyed(own, shared, goOn())
			})
		}
		t.mu.Unlock()
	}
	walks.Wait()
}

// surveyed records how much disk space a task uses. If `whole` is false, the measurement was stopped early, so a value
// counts only if it is larger than the recorded one. If some files of the task could not be read, surveyed records the
// task's limit, because the task may have used all of it.
func (t *process) surveyed(own, shared tree.Usage, whole bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	before := t.measuring
	for u, bytes := range map[*tree.Usage]*int64{&own: &t.measuring.bytes, &shared: &t.measuring.shared} {
		if u.Unread != nil {
			u.Bytes = max(u.Bytes, t.runner.config.DirLimit)
		}
		if whole || u.Bytes > *bytes {
			*bytes = u.Bytes
		}
	}
	t.measuring.grew, t.measuring.sharedGrew = t.measuring.bytes-before.bytes, t.measuring.shared-before.shared
}

// filler is something that uses much disk space. It is either one task, or all tasks of a room whose temporary
// directories use much space.
type filler struct {
	tasks []*process
	room  *room.Room // room with the temporary directories; nil means that the files are in a task's own directory
	bytes int64
	grew  int64 // growth since the measurement before the last survey, in bytes
}

// endLargest ends tasks on an almost full disk, the largest first, until the ended tasks have as many bytes as the
// reserve lacks. In two cases it ends only one task: while space already becomes free, and on a disk that fills fast.
// On a disk that fills fast, it takes the task that grew the most. It kills the tasks at once, because a task could go
// on writing after SIGTERM.
func (p *Processes) endLargest(fast bool) {
	reserve, free := p.config.KeepFree, freeBytes(p.config.Dir)
	if !fast && free >= leastFree(reserve) {
		return
	}
	lack := reserve - free
	if fast || p.freeing() {
		lack = 1
	}
	all := p.fillers()
	slices.SortFunc(all, func(a, b *filler) int {
		if fast {
			return cmp.Compare(b.grew, a.grew)
		}
		return cmp.Compare(b.bytes, a.bytes)
	})
	for _, most := range all {
		if lack <= 0 {
			break
		}
		lack -= most.bytes
		p.endFiller(most)
	}
}

// fillers returns the tasks and rooms that use at least leastEnded bytes. A room is a set of namespaces that tasks of
// an account share.
func (p *Processes) fillers() (all []*filler) {
	rooms := map[*room.Room]*filler{}
	for _, t := range p.tasksNow() {
		t.mu.Lock()
		runs, m := t.child.PID != 0 && !t.over && !t.endsNow(), t.measuring
		t.mu.Unlock()
		if runs && m.bytes >= leastEnded {
			all = append(all, &filler{tasks: []*process{t}, bytes: m.bytes, grew: m.grew})
		}
		if runs && m.shared >= leastEnded {
			f := rooms[t.room]
			if f == nil {
				f = &filler{room: t.room}
				rooms[t.room], all = f, append(all, f)
			}
			f.tasks, f.bytes, f.grew = append(f.tasks, t), max(f.bytes, m.shared), max(f.grew, m.sharedGrew)
		}
	}
	return all
}

// endsNow reports whether the task was told to end at once. The caller holds t.mu.
func (t *process) endsNow() bool { return t.ending && t.grace <= 0 }

func (p *Processes) endFiller(f *filler) {
	what := "this task had the most data on the disk"
	if f.room != nil {
		what = "the shared temporary directories of the task had the most data on the disk"
		p.rooms.Replace(f.room)
	}
	for _, t := range f.tasks {
		t.mu.Lock()
		t.exceeds = cmp.Or(t.exceeds, fmt.Sprintf("ended because the node's disk is almost full, and %s: %d MiB", what, f.bytes>>20))
		t.mu.Unlock()
		t.end(agent.OutOfDisk, 0)
	}
}

// freeing reports whether space becomes free: files are being removed, or tasks with many files end.
func (p *Processes) freeing() bool {
	if p.store.IsRemoving() || p.rooms != nil && p.rooms.IsRemoving() {
		return true
	}
	return slices.ContainsFunc(p.tasksNow(), func(t *process) bool {
		t.mu.Lock()
		defer t.mu.Unlock()
		return t.ending && t.exceeds != ""
	})
}
