package runner

import (
	"context"
	"time"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/agent"
	jobmsg "github.com/candor-grid/candor/messages/job"
)

// Task is one granted attempt and its program. The tasks of a stage share the program, which never
// changes.
type Task struct {
	agent.Grant
	Program *agent.Program
}

// holds is true for every task of an allocation except the first one. Such a task runs no command: it only holds its
// slots for the first task.
func (t *Task) holds() bool { return t.Nodes != "" && t.Place() > 0 }

// interactive returns how the task's input and output are streamed; nil if they are not streamed. In an allocation only
// the first task has a stream.
func (t *Task) interactive() *jobmsg.Interactive {
	if t.holds() {
		return nil
	}
	return t.Program.Interactive
}

// holding is the command of a task that only holds its slots.
var holding = []string{"/bin/sh", "-c", "exec sleep infinity"}

// Runner runs tasks. It is safe for concurrent use.
type Runner interface {
	// Start starts a task and returns without waiting. It calls the function `done` exactly once, when the task has
	// ended or could not be started. The call may come before Start returns, and from another goroutine. The function
	// must return at once.
	Start(task Task, done func(agent.Finished)) Process
	// Close kills the running tasks. It returns when the function `done` of each task has been called.
	Close() error
}

// Process is a started task.
type Process interface {
	// Stop ends the task with the outcome Stopped. It sends SIGTERM, and SIGKILL when the grace has passed. With a
	// grace of 0, it sends SIGKILL at once. Stop does not wait for the end, and may be called again. If several calls
	// give different times for SIGKILL, the earliest time counts. Stopping an ended task does nothing.
	Stop(grace time.Duration)
	// Say sets the words that follow the time in the last line of the task's output. That line is written only if Stop
	// ends the task.
	Say(last string)
	// Suspend suspends or resumes the task. The time of a suspension does not count for the time limit. A task that is
	// being stopped is not suspended.
	Suspend(yes bool)
}

// Real is a [Runner] of real processes.
type Real interface {
	Runner
	// Abilities returns what the runner can do with tasks, as names from package messages.
	Abilities() []messages.Name
	// Owner returns the account that owns the job.
	Owner(job messages.JobID) (messages.Name, error)
	// ReadLog returns a piece of output. If there is no new output yet, it waits. It stops waiting when there is some
	// output, when the attempt or ctx has ended, or when the time Wait of the request is over.
	ReadLog(ctx context.Context, request agent.LogsRequest) (agent.LogsReply, error)
	// Stream answers a request of a client that uses a stream. The stream can belong to an interactive task, or to a
	// command that the client runs in addition to the task. A request can also send a signal.
	Stream(ctx context.Context, request agent.StreamRequest) (agent.StreamReply, error)
	// Keep tells the running tasks until when the node has its lease. The time is a reading of the clock of package
	// boottime. Until then, the leader starts no other attempts of these tasks.
	Keep(until time.Duration)
	// Confirm says that the leader has the report of a task's end, and that the task's output files are stored. The
	// runner may then remove the files of the task, and does not report the end again.
	Confirm(messages.Attempt)
}

// NoOutput returns the error for a job without an output that the caller may see. There are three causes: the job never
// ran here, its output was removed, or the caller may not see it.
func NoOutput(job messages.JobID) error {
	return messages.Errorf(messages.NotFound, "job %v: this node has no output that you may read: the job never ran here, or its output was removed to make room for later output", job)
}

// Lasting is a [Real] whose tasks outlive the agent. Its waiting tasks can start without the agent. When the lease
// ends, Lasting kills the tasks. A call of Keep moves the end of the lease.
type Lasting interface {
	Real
	// Adopt takes over the running tasks. It calls done when one of them ends, perhaps before Adopt returns. Adopt may
	// be called once.
	Adopt(done func(agent.Finished)) []Adopted
	// Detach leaves the tasks to the next agent.
	Detach() error
	// Notify calls f now and after each change, one call at a time. The argument `able` is true if tasks can be
	// started. Notify may be called only once.
	Notify(f func(able bool))
	// Follow makes the given task wait for the slot of another task. Both tasks have no files and are of the same
	// class. When the other task ends, the runner starts the given task on this slot. Then the runner calls `turned`,
	// and does not call `done` for the ended task. The first argument of `turned` is the report of the end, or empty if
	// the report was lost. The second is the time at which the slot was passed on, by the clock of package boottime.
	// Follow returns false if the runner cannot make the task wait now.
	Follow(task Task, done func(agent.Finished), turned func(ended agent.Finished, at time.Duration)) (Follower, bool)
}

// Follower is a task that waits for a slot. Calling [Runner.Start] with the same task starts it at once.
type Follower interface {
	Process
	// Withdraw asks the runner not to start the waiting task. The runner then calls `done` with the outcome Stopped. If
	// the task has started already, the runner calls `turned` instead.
	Withdraw()
}

// Adopted is a task that an earlier agent of this node started.
type Adopted struct {
	Attempt   messages.Attempt
	Class     messages.Name
	Width     int  // number of the task's slots; 0 means 1
	Suspended bool // the task is suspended, or will be
	Process   Process
}
