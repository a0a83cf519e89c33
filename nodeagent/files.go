package nodeagent

import (
	"context"
	"sync"
	"time"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/nodeagent/runner"
	"github.com/candor-grid/candor/nodeagent/state"
)

// travelWithin bounds how long the files of a task may travel, each way: the most
// that a task may have, at a few megabytes a second.
const travelWithin = 5 * time.Minute

// travels reports whether files come to the tasks of a program, or go from them.
func travels(p *messages.Program) bool { return len(p.Inputs)+len(p.Outputs) > 0 }

// traveller is a task with files: they are fetched before it starts, and stored
// after it has ended well, before its end is reported.
type traveller struct {
	agent   *Agent
	task    runner.Task
	context context.Context // of what travels: ended by Stop
	cancel  context.CancelFunc

	mu      sync.Mutex
	process runner.Process // nil before it is started
	held    bool
	stopped bool
}

// travel starts a task with files.
func (a *Agent) travel(s state.Start) runner.Process {
	t := &traveller{agent: a, task: runner.Task{Grant: s.Grant, Program: s.Program}}
	t.context, t.cancel = context.WithCancel(a.life)
	go t.run()
	return t
}

// run is the life of the task. If the agent is gone before it ends, the next one
// takes it over.
func (t *traveller) run() {
	defer t.cancel()
	a, p := t.agent, t.task.Program
	held, err := a.fetchInputs(t.context, t.task.Attempt, p)
	if err != nil {
		a.report(t.unstarted("input " + sentence(err)))
		return
	}
	defer a.inputs.release(held)
	ended := make(chan messages.Finished, 1)
	if !t.start(ended) {
		a.dropLuggage(p.Job, p.Stage)
		a.report(t.unstarted(""))
		return
	}
	select {
	case f := <-ended:
		f = a.settle(t.context, f, luggageOf(p))
		a.dropLuggage(p.Job, p.Stage)
		a.report(f)
	case <-a.life.Done():
	}
}

// start starts the process, unless the task was stopped before.
func (t *traveller) start(ended chan<- messages.Finished) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.stopped {
		return false
	}
	t.process = t.agent.c.Runner.Start(t.task, func(f messages.Finished) { ended <- f })
	if t.held {
		t.process.Hold(true)
	}
	return true
}

// unstarted is how a task ended that has no process.
func (t *traveller) unstarted(why string) messages.Finished {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := messages.TimeOf(time.Now())
	f := messages.Finished{Attempt: t.task.Attempt, Outcome: messages.Unstartable, Detail: why, Started: now, Ended: now}
	if t.stopped {
		f.Outcome, f.Detail = messages.Stopped, "stopped before it started"
	}
	return f
}

// Stop implements [runner.Process]. What travels meanwhile is given up.
func (t *traveller) Stop(grace time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.stopped = true
	t.cancel()
	if t.process != nil {
		t.process.Stop(grace)
	}
}

// Hold implements [runner.Process]. What travels goes on.
func (t *traveller) Hold(held bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.held = held
	if t.process != nil {
		t.process.Hold(held)
	}
}

// report tells the agent's goroutine how a task ended.
func (a *Agent) report(f messages.Finished) {
	a.queue.post(func(messages.Time) { a.finish(f) })
}

// sentence is an error's, without its kind.
func sentence(err error) string { return messages.AsError("", err).Message }
