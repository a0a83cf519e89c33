package runner

import (
	"context"
	"time"

	"github.com/candor-grid/candor/messages"
)

// Task is one granted attempt and what it runs. The program is shared by the
// tasks of a stage and never changes.
type Task struct {
	messages.Grant
	Program *messages.Program
}

// holds reports whether the task runs nothing, and holds its slots for the first task of its allocation.
func (t *Task) holds() bool { return t.Nodes != "" && t.Place() > 0 }

// holding is what such a task runs.
var holding = []string{"/bin/sh", "-c", "exec sleep infinity"}

// Runner runs tasks. It is safe for concurrent use.
type Runner interface {
	// Start begins a task and returns without waiting. done is called exactly
	// once, when the task has ended, or could not be started; perhaps from
	// another goroutine, perhaps before Start returns. It must return at once.
	Start(task Task, done func(messages.Finished)) Process
	// Close kills what still runs and returns when every done was called.
	Close() error
}

// Process is a started task.
type Process interface {
	// Stop ends the task with the outcome Stopped: asked to end, and killed
	// when the grace is over; with no grace killed at once. It returns at
	// once and may be called again; the earliest end counts. Stopping a task
	// that has ended does nothing.
	Stop(grace time.Duration)
	// Suspend suspends the task, or resumes it. The time limit of a suspended task
	// does not run. A task that is being stopped is not suspended any more.
	Suspend(yes bool)
}

// Real is a [Runner] of real processes.
type Real interface {
	Runner
	// Abilities are what it can do to a task, in the words of package messages.
	Abilities() []messages.Name
	// Owner returns the account whose job it is.
	Owner(job messages.JobID) (messages.Name, error)
	// ReadLog returns a piece of output; if there is none yet it waits for some,
	// for the end of the attempt, of the request's Wait, or of ctx.
	ReadLog(ctx context.Context, request messages.LogsRequest) (messages.LogsReply, error)
	// Stream answers for tasks that are interactive, signalled or joined by other commands.
	Stream(ctx context.Context, request messages.StreamRequest) (messages.StreamReply, error)
	// Keep says to the tasks until when they are the current attempts, which is until when
	// the node's lease lasts, by the clock of package boottime.
	Keep(until time.Duration)
	// Confirm says that the end of a task is known where it counts, and its outputs are stored: what it
	// left may be removed, and the next agent is not told its end.
	Confirm(messages.Attempt)
}

// NoOutput is the answer about a job that never ran here, whose output was removed, or
// that whoever asks may not know of.
func NoOutput(job messages.JobID) error {
	return messages.Errorf(messages.NotFound, "job %v: this node has no output that you may read: the job never ran here, or its output was removed to make room for later ones", job)
}

// Lasting is a [Real] whose tasks outlive the agent, and can begin without it. Without
// another word of Keep it kills them when the lease is over.
type Lasting interface {
	Real
	// Adopt takes over the tasks that are there; done is called for each, perhaps
	// before Adopt returns. It may be called once.
	Adopt(done func(messages.Finished)) []Adopted
	// Detach leaves the tasks to the next agent.
	Detach() error
	// Notify has f called now and whenever that changes, with whether tasks can be
	// started; one call at a time. It may be called once.
	Notify(f func(able bool))
	// Follow has a task begin once one of its class has ended that has a slot and no files.
	// Then turned is called with the end of that one, in place of its done, and with when
	// the slot went to this one, by the clock of package boottime. If only the end is lost, turned is
	// called with none. A task with files is not to follow. It reports false if the runner
	// cannot do so now.
	Follow(task Task, done func(messages.Finished), turned func(ended messages.Finished, at time.Duration)) (Follower, bool)
}

// Follower is a task that has not begun. [Runner.Start] begins it at once.
type Follower interface {
	Process
	// Withdraw has the task not begin any more: then its done is called, with the outcome
	// Stopped. Where the task has begun already, turned is called, and nothing else happens.
	Withdraw()
}

// Adopted is a task that an earlier agent of this node began.
type Adopted struct {
	Attempt   messages.Attempt
	Class     messages.Name
	Width     int  // slots that it has; 0: 1
	Suspended bool // it is suspended, or was told to be
	Process   Process
}
