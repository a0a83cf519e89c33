package runner

import (
	"context"
	"time"

	"github.com/candor-grid/candor/messages"
)

// Task is one granted attempt and its program. The tasks of a stage share the program, which never
// changes.
type Task struct {
	messages.Grant
	Program *messages.Program
}

// holds reports whether the task runs nothing, and holds its slots for the first task of its allocation.
func (t *Task) holds() bool { return t.Nodes != "" && t.Place() > 0 }

// interactive is what is streamed to and from the task; nil: nothing. Of an allocation only the first task has a stream.
func (t *Task) interactive() *messages.Interactive {
	if t.holds() {
		return nil
	}
	return t.Program.Interactive
}

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
	// Suspend suspends or resumes the task. The time limit of a suspended task does not run. A task
	// that is being stopped is not suspended.
	Suspend(yes bool)
}

// Real is a [Runner] of real processes.
type Real interface {
	Runner
	// Abilities returns what the runner can do with tasks, as names from package messages.
	Abilities() []messages.Name
	// Owner returns the account that owns the job.
	Owner(job messages.JobID) (messages.Name, error)
	// ReadLog returns a piece of output; if there is none yet it waits for some,
	// for the end of the attempt, of the request's Wait, or of ctx.
	ReadLog(ctx context.Context, request messages.LogsRequest) (messages.LogsReply, error)
	// Stream answers for tasks that are interactive, signalled or joined by other commands.
	Stream(ctx context.Context, request messages.StreamRequest) (messages.StreamReply, error)
	// Keep says to the tasks until when they are the current attempts, which is until when
	// the node's lease lasts, by the clock of package boottime.
	Keep(until time.Duration)
	// Confirm says that the leader knows the end of a task, and that its outputs are stored. Its
	// files may then be removed, and the next agent is not told its end.
	Confirm(messages.Attempt)
}

// NoOutput returns the answer about a job that never ran here, whose output was removed, or that
// the caller may not see.
func NoOutput(job messages.JobID) error {
	return messages.Errorf(messages.NotFound, "job %v: this node has no output that you may read: the job never ran here, or its output was removed to make room for later ones", job)
}

// Lasting is a [Real] with tasks that outlive the agent, and can begin without it. If Keep is not
// called again, it kills them when the lease is over.
type Lasting interface {
	Real
	// Adopt takes over the tasks that are there; done is called for each, perhaps
	// before Adopt returns. It may be called once.
	Adopt(done func(messages.Finished)) []Adopted
	// Detach leaves the tasks to the next agent.
	Detach() error
	// Notify calls f now and after each change, with whether tasks can be started; one call at a
	// time. It may be called once.
	Notify(f func(able bool))
	// Follow lets a task begin after another of its class has ended that has a slot and no files.
	// turned is then called, instead of the done of the ended task, with the report of its end, and
	// with the time when the slot changed hands, by the clock of package boottime. If the report is
	// lost, turned is called with an empty one. A task with files must not be passed. Follow
	// returns false if the runner cannot do this now.
	Follow(task Task, done func(messages.Finished), turned func(ended messages.Finished, at time.Duration)) (Follower, bool)
}

// Follower is a task that has not begun. [Runner.Start] begins it at once.
type Follower interface {
	Process
	// Withdraw asks that the task no longer begins; then its done is called with the outcome
	// Stopped. If the task has begun already, turned is called instead.
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
