package book

import (
	"math"
	"slices"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/job"
)

// Stage is the state of a stage of a job.
type Stage struct {
	Total    int
	Unmet    int      // number of stages for which this stage waits
	Tasks    []Task   // tasks claimed at least once: the first ones of the stage
	Again    []uint32 // tasks to be claimed again, in the order in which they became pending; some may have been cancelled
	Running  int
	Done     int
	Retried  int
	Started  messages.Time
	Ended    messages.Time
	SlotTime messages.Duration // slot time of accepted attempts, from claim to finish
	CPU      messages.Duration // processor time of accepted attempts
	MaxRSS   int64             // largest memory of a process of accepted attempts, in bytes

	// Suspended, Gathering and Leaving count attempts in three states. Running counts these attempts too.
	Suspended int // attempts without a slot, until they are resumed
	Gathering int // attempts with slots that wait for the other members of their gang
	Leaving   int // attempts that must end and be claimed again; not counted in the two fields above

	Gathered messages.Time // when the first member of the gathering gang was claimed
	Broken   bool          // the gang has lost a member, and all members start again
	Meter    Meter

	// Failed is how many tasks failed in all their attempts.
	Failed int
	// Requeued is how many attempts the owner or an operator ended. They also count as Retried.
	Requeued int
	Lost     int64 // bytes of output of ended attempts that were not kept
	Cut      int   // number of attempts with lost output
	// The price of a job depends on its complete tasks. A task is complete for prices if an attempt of it was ended by
	// its program or by its owner. Complete is the number of such tasks, and CompleteAt is the time when the last of
	// them became complete. Delivered is the sum of the slot times of these tasks. The slot time of a task counts only
	// until the task was complete.
	Complete   int
	CompleteAt messages.Time
	Delivered  messages.Duration
	// Cancelled is how many tasks were cancelled one by one, not because the whole job was cancelled. Skipped are the
	// positions of cancelled tasks that are not in Tasks yet.
	Cancelled int
	Skipped   job.Array
	// Ahead is how many of the claims in Running wait for a slot. It includes claims that must end.
	Ahead int

	// Nodes is how many nodes gather slots for a task of the stage. None of these tasks is claimed yet.
	Nodes int

	gone int // number of cancelled tasks in Again: at most half of its length
}

// These are the phases of a task that has been claimed at least once, or that waits for a task of another array.
const (
	Claimed Phase = iota
	Done
	Failed
	Pending // the task must be claimed again; or it was Paired, and can be claimed now
	Paired  // the task was never claimed, because its counterpart in the other array has not completed
)

var phaseNames = [...]string{"Claimed", "Done", "Failed", "Pending", "Paired"}

// Phase is the phase of a task.
type Phase uint8

// String returns the phase's name.
func (p Phase) String() string { return phaseNames[p] }

// Task is the latest attempt of a task. It has 48 bytes, because there may be millions of tasks.
type Task struct {
	Attempt uint32
	Tries   uint8 // failed attempts, without failures that the site caused
	Phase   Phase
	Ender   Ender  // who ended the task, if the price counts it as complete
	Node    uint32 // position in Book.Nodes
	Exit    int32
	Claimed messages.Time // when the attempt got its slot; 0 means that it waits for a slot
	Ended   messages.Time
	// The following fields are set when the attempt has ended:
	CPU    uint32        // hundredths of a second
	Memory uint32        // peak memory, in kibibytes
	Paused uint32        // time without running, in hundredths of a second
	Reason job.EndReason // why the attempt did not complete its task
}

// CPUTime returns the processor time of the latest attempt, rounded to a hundredth of a second.
func (t *Task) CPUTime() messages.Duration { return messages.Duration(t.CPU) * tick }

// PausedTime returns how long the latest attempt kept its claim without running, for example while it was suspended.
// The time is rounded to a hundredth of a second.
func (t *Task) PausedTime() messages.Duration { return messages.Duration(t.Paused) * tick }

// MaxRSS returns the peak memory of the latest attempt in bytes, rounded to a kibibyte.
func (t *Task) MaxRSS() int64 { return int64(t.Memory) << 10 }

// tick is the unit of the fields CPU and Paused of a Task: 10 ms.
const tick = messages.Duration(10e6)

// ticks converts a duration to ticks. The maximum is more than a year.
func ticks(d messages.Duration) uint32 { return uint32(min(max(d, 0)/tick, math.MaxUint32)) }

// Ender says whether the program or the owner ended a task first. Attempts that the site ended are ignored.
type Ender uint8

// These values say who ended an attempt of the task. NoEnder means that no attempt has ended, or that only the site has
// ended attempts.
const (
	NoEnder Ender = iota
	ByProgram
	ByOwner
)

// The method over reports whether every task of the stage has ended.
func (s *Stage) over() bool { return s.Done+s.Failed+s.Cancelled == s.Total }

// The method short reports whether the stage has tasks that will never complete, because they failed or were cancelled.
func (s *Stage) short() bool { return s.Failed+s.Cancelled > 0 }

// OnSlots returns the number of claims that have a slot and are not about to lose it.
func (s *Stage) OnSlots() int { return s.Running - s.Suspended - s.Leaving - s.Ahead }

// gatherer is an allocation that gathers nodes: a job and its first stage.
type gatherer struct {
	job   messages.JobID
	stage int
}

// tally adds a claim to the counts of its stage. If the argument `by` is −1, it subtracts the claim.
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

// divide splits the named tasks of a stage into two lists: tasks that were claimed before, and tasks that were never
// claimed.
func (s *Stage) divide(tasks job.Array) (begun []uint32, rest []int64, err error) {
	if n := tasks.Count(); n == 0 || n > int64(s.Total) {
		return nil, nil, messages.Errorf(messages.Invalid, "tasks: the request names %d tasks, and the stage has %d", n, s.Total)
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

// The method `with` returns the positions of the skipped tasks together with the given positions. The result may have
// more ranges than needed. The time grows with the number of ranges and positions, not with the number of tasks.
func (s *Stage) with(positions []int64) (all job.Array) {
	slices.Sort(positions)
	positions = slices.Compact(positions)
	for _, r := range s.Skipped {
		for len(positions) > 0 && positions[0] <= r.Last {
			at := positions[0]
			positions = positions[1:]
			if over := at - r.First; over >= 0 && over%r.Step == 0 {
				continue
			} else if over > 0 {
				all = join(all, job.Range{First: r.First, Last: at - over%r.Step, Step: r.Step})
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

// join appends a range to an array. The range must be after all elements of the array.
func join(all job.Array, r job.Range) job.Array {
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

// Some tasks of a stage were cancelled before they were claimed (Skipped). If the next task of the stage is one of
// these, pass appends it to Tasks as a failed task. It repeats this for each further task.
func (s *Stage) pass(now messages.Time) {
	for len(s.Skipped) > 0 && s.Skipped[0].First == int64(len(s.Tasks)) {
		s.Tasks = append(s.Tasks, Task{Phase: Failed, Reason: job.EndTaskCancelled, Ended: now})
		if r := &s.Skipped[0]; r.First == r.Last {
			s.Skipped = s.Skipped[1:]
		} else {
			r.First += r.Step
		}
	}
	if len(s.Skipped) == 0 {
		s.Skipped = nil // reading an image also gives nil for an empty list
	}
}

func (s *Stage) forgetGone() {
	s.Again = slices.DeleteFunc(s.Again, func(index uint32) bool { return s.Tasks[index].Phase != Pending })
	s.gone = 0
}

func (s *Stage) cancelled(t *Task, now messages.Time) {
	t.Phase, t.Reason, t.Ended = Failed, job.EndTaskCancelled, now
	s.Cancelled++
}

// reopen is called when the site caused the failure of a task's attempt. The task may have counted as complete in the
// computation of prices. reopen changes this: the task is not complete, and the slot time `had` of the attempt is
// subtracted.
func (s *Stage) reopen(t *Task, had messages.Duration) {
	if t.Ender != NoEnder {
		t.Ender = NoEnder
		s.Complete--
		s.Delivered = max(0, s.Delivered-had)
	}
}

func (s Stage) begun() bool { return len(s.Tasks)+len(s.Again)+len(s.Skipped)+s.Running > 0 }
