package nodeagent

import (
	"context"
	"os"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/agent"
	"github.com/candor-grid/candor/messages/bus"
	"github.com/candor-grid/candor/messages/job"
	"github.com/candor-grid/candor/nodeagent/hooks"
	"github.com/candor-grid/candor/nodeagent/runner"
	"github.com/candor-grid/candor/nodeagent/state"
)

// filesWithin is the longest time to fetch all inputs of a task, and also the longest time to store all its outputs. It
// is enough for the largest permitted files at a few megabytes a second.
const filesWithin = 5 * time.Minute

func hasFiles(p *agent.Program) bool { return len(p.Inputs)+len(p.Outputs) > 0 }

type files struct {
	site, node messages.Name
	dir        string // state directory
	bus        bus.Bus
	log        *zap.Logger
	inputs     *inputs
	manifests  *manifests
}

func (f *files) subject(verb string) string {
	return messages.Subject(f.site, messages.Depot, verb, f.node)
}

// fetch gets the inputs of a task onto the node, and keeps them until they are released. If it fails, nothing is kept
// for the task.
func (f *files) fetch(ctx context.Context, attempt messages.Attempt, p *agent.Program) (kept []*input, err error) {
	if f.dir == "" {
		return nil, messages.Errorf(messages.Invalid, "files of a job need a node that has a state directory")
	}
	if err := f.manifests.add(p); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, filesWithin)
	defer cancel()
	for _, file := range p.Inputs {
		k, err := f.inputs.acquire(ctx, file, func(to *os.File) error {
			return bus.ReceiveFile(ctx, f.bus, f.subject(job.VerbTake), attempt, file, to)
		})
		if err != nil {
			f.inputs.release(kept)
			f.manifests.remove(p.Job, p.Stage)
			return nil, messages.Errorf(messages.KindOf(err), "%s: %s", file.Name, messages.Detail(err))
		}
		kept = append(kept, k)
	}
	return kept, nil
}

// fileTask is a task with files. Its inputs are fetched before it starts. Its outputs are stored after it has ended
// well, before its end is reported.
type fileTask struct {
	files   *files
	runner  runner.Runner
	task    runner.Task
	context context.Context             // Stop cancels this context, which ends the transfers
	prepare func(context.Context) error // called before the task starts; nil means nothing to prepare
	hooks   *hooks.Hooks                // hooks of the node; nil means that the node has none
	cancel  context.CancelFunc

	mu        sync.Mutex
	process   runner.Process // nil before the task starts
	suspended bool
	stopped   bool
}

// startWithFiles starts a task that has files, or any task on a node with hooks, and reports its end.
func (a *Agent) startWithFiles(s state.Start) runner.Process {
	t := &fileTask{files: a.files, hooks: a.hooks, runner: a.c.Runner, task: runner.Task{Grant: s.Grant, Program: s.Program}}
	t.context, t.cancel = context.WithCancel(a.life)
	go t.run(a.life.Done(), a.report)
	return t
}

// This method runs the task to its end. If the agent stops earlier, the next agent adopts the task.
func (t *fileTask) run(gone <-chan struct{}, report func(agent.Finished)) {
	defer t.cancel()
	if t.hooks != nil {
		if err := t.hooks.Enter(t.context, t.task.Program); err != nil {
			report(t.unstarted(agent.Unprepared, messages.Detail(err)))
			return
		}
		defer func() {
			if !isDone(gone) { // otherwise the next agent adopts the task
				t.hooks.Leave(t.task.Program.Job)
			}
		}()
	}
	if t.prepare != nil {
		if err := t.prepare(t.context); err != nil {
			report(t.unstarted(agent.Unstartable, messages.Detail(err)))
			return
		}
	}
	ended, files := make(chan agent.Finished, 1), hasFiles(t.task.Program)
	if files {
		kept, err := t.files.fetch(t.context, t.task.Attempt, t.task.Program)
		if err != nil {
			report(t.unstarted(agent.Unstartable, "input "+messages.Detail(err)))
			return
		}
		defer t.files.inputs.release(kept)
	}
	if !t.start(ended) {
		if files {
			t.files.manifests.remove(t.task.Program.Job, t.task.Program.Stage)
		}
		report(t.unstarted(agent.Unstartable, ""))
		return
	}
	select {
	case f := <-ended:
		if files && t.task.Nodes == "" || files && t.task.Place() == 0 { // only task 0 of an allocation has outputs
			f = t.files.settle(t.context, f, manifestOf(t.task.Program))
		}
		report(f)
	case <-gone:
	}
}

func isDone(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// start starts the process, unless the task was stopped before.
func (t *fileTask) start(ended chan<- agent.Finished) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.stopped {
		return false
	}
	t.process = t.runner.Start(t.task, func(f agent.Finished) { ended <- f })
	if t.suspended {
		t.process.Suspend(true)
	}
	return true
}

// unstarted returns the report of a task that never had a process.
func (t *fileTask) unstarted(how agent.Outcome, why string) agent.Finished {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := messages.TimeOf(time.Now())
	f := agent.Finished{Attempt: t.task.Attempt, Outcome: how, Detail: why, Started: now, Ended: now}
	if t.stopped {
		f.Outcome, f.Detail = agent.Stopped, "stopped before it started"
	}
	return f
}

// Stop implements [runner.Process]. It cancels transfers that have not finished.
func (t *fileTask) Stop(grace time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.stopped = true
	t.cancel()
	if t.process != nil {
		t.process.Stop(grace)
	}
}

// Say implements [runner.Process].
func (t *fileTask) Say(last string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.process != nil {
		t.process.Say(last)
	}
}

// Suspend implements [runner.Process]. Transfers continue while the task is suspended.
func (t *fileTask) Suspend(suspended bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.suspended = suspended
	if t.process != nil {
		t.process.Suspend(suspended)
	}
}

func (a *Agent) report(f agent.Finished) {
	a.queue.post(func(messages.Time) { a.finish(f) })
}
