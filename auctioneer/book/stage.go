package book

import (
	"math"
	"slices"

	"github.com/candor-grid/candor/messages"
)

// Stage is how far a stage has come.
type Stage struct {
	Total    int
	Unmet    int      // stages it waits for
	Tasks    []Task   // tasks claimed at least once: the first ones of the stage
	Again    []uint32 // tasks to be claimed again, in the order they came back, and gone ones
	Running  int
	Done     int
	Retried  int
	Started  messages.Time
	Ended    messages.Time
	SlotTime messages.Duration // slot time of accepted attempts, from claim to finish
	CPU      messages.Duration // processor time of accepted attempts
	MaxRSS   int64             // largest memory of a process of theirs, in bytes

	// Some of the claims that Running counts:
	Suspended int // have given up their slot until they are resumed
	Gathering int // have their slot, and wait for the rest of their gang
	Leaving   int // claims that must end and be claimed again; not part of the two above

	Gathered messages.Time // when the first member of a gathering gang was claimed
	Broken   bool          // the gang has lost a member: all members start again
	Meter    Meter

	// Failed is how many tasks failed in all their attempts before the job ended.
	Failed int
	// Requeued is how many attempts the owner or an operator ended so that they run again; they
	// count as retried too.
	Requeued int
	Lost     int64 // bytes of the output of ended attempts that were not kept
	Cut      int   // number of attempts with lost output
	// Complete is how many tasks are complete for prices, and CompleteAt when the last of
	// them was. Delivered is their slot time, of each until then.
	Complete   int
	CompleteAt messages.Time
	Delivered  messages.Duration
	// Cancelled is how many tasks were cancelled while the job went on. Skipped are the
	// positions of such tasks beyond Tasks.
	Cancelled int
	Skipped   messages.Array
	// Ahead is how many of the claims in Running wait for a slot, including claims that must end.
	Ahead int

	// Nodes is how many nodes gather slots for a task of the stage; none of these tasks is claimed.
	Nodes int

	gone int // tasks of Again that were cancelled: at most half of them
}

// The phases of a task that has been claimed at least once, or that waits for one of another array.
const (
	Claimed Phase = iota
	Done
	Failed
	Pending // came back, to be claimed again; or was Paired, and can be claimed
	Paired  // never claimed: its counterpart in another array has not completed
)

var phaseNames = [...]string{"Claimed", "Done", "Failed", "Pending", "Paired"}

// Phase is the phase of a task.
type Phase uint8

// String returns the phase's name.
func (p Phase) String() string { return phaseNames[p] }

// Task is the latest attempt of a task: 48 bytes, as there may be millions.
type Task struct {
	Attempt uint32
	Tries   uint8 // attempts that the program failed, not the site
	Phase   Phase
	Ender   Ender  // whether the task is complete for prices, and who ended it
	Node    uint32 // position in Book.Nodes
	Exit    int32
	Claimed messages.Time // when it got its slot; 0: it waits for one
	Ended   messages.Time
	// Once the attempt has ended:
	CPU    uint32             // hundredths of a second
	Memory uint32             // peak, in kibibytes
	Paused uint32             // hundredths of a second
	Reason messages.EndReason // why it did not complete its task
}

// CPUTime returns the processor time of the latest attempt, to a hundredth of a second.
func (t *Task) CPUTime() messages.Duration { return messages.Duration(t.CPU) * tick }

// PausedTime returns how long the latest attempt was claimed without running, to a hundredth of a
// second.
func (t *Task) PausedTime() messages.Duration { return messages.Duration(t.Paused) * tick }

// MaxRSS returns the peak memory of the latest attempt in bytes, to a kibibyte.
func (t *Task) MaxRSS() int64 { return int64(t.Memory) << 10 }

// tick is the unit of a task's CPU and Paused.
const tick = messages.Duration(10e6)

// ticks returns a duration in ticks. It is capped at the most that a task can store, which is more
// than a year.
func ticks(d messages.Duration) uint32 { return uint32(min(max(d, 0)/tick, math.MaxUint32)) }

// Ender is who ended the first attempt of a task that the site did not end.
type Ender uint8

// Who ended an attempt. NoEnder: only the site has ended attempts yet.
const (
	NoEnder Ender = iota
	ByProgram
	ByOwner
)

// over reports whether every task of the stage has ended.
func (s *Stage) over() bool { return s.Done+s.Failed+s.Cancelled == s.Total }

// short reports whether a task of the stage failed or was cancelled.
func (s *Stage) short() bool { return s.Failed+s.Cancelled > 0 }

// OnSlots returns the number of a stage's claims that have a slot and are not about to lose it.
func (s *Stage) OnSlots() int { return s.Running - s.Suspended - s.Leaving - s.Ahead }

// gatherer is a stage that is an allocation, and gathers its nodes.
type gatherer struct {
	job   messages.JobID
	stage int
}

// assembles reports whether an allocation has some of its nodes, or gathers slots on some, and waits for others.
func (s *Stage) assembles() bool { return s.Gathering > 0 || s.Nodes > 0 }

// tally adds a claim to the counts of its stage; with by −1 it subtracts the claim.
func (s *Stage) tally(h NodeClaim, by int) {
	switch {
	case h.Halt == Ahead:
		s.Ahead += by
	case h.Leaving:
		s.Leaving += by
	case h.Halt == Suspended:
		s.Suspended += by
	case h.Halt == Gathers:
		s.Gathering += by
	}
}

// divide divides positions of a stage into tasks that were claimed before and other tasks.
func (s *Stage) divide(tasks messages.Array) (begun []uint32, rest []int64, err error) {
	if n := tasks.Count(); n == 0 || n > int64(s.Total) {
		return nil, nil, messages.Errorf(messages.Invalid, "tasks: %d are named, and the stage has %d", n, s.Total)
	}
	for at := range tasks.Indices {
		switch {
		case at >= int64(s.Total):
			return nil, nil, messages.Errorf(messages.NotFound, "tasks: there is no task %d, as the stage has tasks 0 to %d", at, s.Total-1)
		case at < int64(len(s.Tasks)):
			begun = append(begun, uint32(at))
		default:
			rest = append(rest, at)
		}
	}
	return begun, rest, nil
}

// with returns the tasks that no node may claim together with the tasks at positions. The result
// may have too many ranges. Its cost depends on the number of ranges and positions.
func (s *Stage) with(positions []int64) (all messages.Array) {
	slices.Sort(positions)
	positions = slices.Compact(positions)
	for _, r := range s.Skipped {
		for len(positions) > 0 && positions[0] <= r.Last {
			at := positions[0]
			positions = positions[1:]
			if over := at - r.First; over >= 0 && over%r.Step == 0 {
				continue
			} else if over > 0 {
				all = join(all, messages.Range{First: r.First, Last: at - over%r.Step, Step: r.Step})
				r.First = at - over%r.Step + r.Step
			}
			all = all.With(at)
		}
		all = join(all, r)
	}
	for _, at := range positions {
		all = all.With(at)
	}
	return all
}

// join adds a range to an array that ends before the range.
func join(all messages.Array, r messages.Range) messages.Array {
	if r.First == r.Last {
		return all.With(r.First)
	}
	if n := len(all); n > 0 {
		last := &all[n-1]
		if last.Last+r.Step == r.First && (last.Step == r.Step || last.First == last.Last) {
			last.Last, last.Step = r.Last, r.Step
			return all
		}
	}
	return append(all, r)
}

// pass skips tasks of a stage that no node may claim.
func (s *Stage) pass(now messages.Time) {
	for len(s.Skipped) > 0 && s.Skipped[0].First == int64(len(s.Tasks)) {
		s.Tasks = append(s.Tasks, Task{Phase: Failed, Reason: messages.EndTaskCancelled, Ended: now})
		if r := &s.Skipped[0]; r.First == r.Last {
			s.Skipped = s.Skipped[1:]
		} else {
			r.First += r.Step
		}
	}
	if len(s.Skipped) == 0 {
		s.Skipped = nil // an empty list is nil after reading an image, too
	}
}

// forgetGone removes cancelled tasks from the tasks to be claimed again.
func (s *Stage) forgetGone() {
	s.Again = slices.DeleteFunc(s.Again, func(index uint32) bool { return s.Tasks[index].Phase != Pending })
	s.gone = 0
}

// cancelled ends a task whose user cancelled it.
func (s *Stage) cancelled(t *Task, now messages.Time) {
	t.Phase, t.Reason, t.Ended = Failed, messages.EndTaskCancelled, now
	s.Cancelled++
}

// reopen makes a task incomplete for prices again, because the site was at fault for its attempt. had
// is the slot time of the attempt, which no longer counts as delivered.
func (s *Stage) reopen(t *Task, had messages.Duration) {
	if t.Ender != NoEnder {
		t.Ender = NoEnder
		s.Complete--
		s.Delivered = max(0, s.Delivered-had)
	}
}

// begun reports whether a task of the stage was claimed or cancelled.
func (s Stage) begun() bool { return len(s.Tasks)+len(s.Again)+len(s.Skipped)+s.Running > 0 }
