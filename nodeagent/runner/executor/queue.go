package executor

import (
	"slices"
	"time"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/agent"
	"github.com/candor-grid/candor/nodeagent/runner"
)

// follows is the number in the frame "ready" of an executor that supports waiting tasks: a waiting task gets the slot
// of another task when that task ends.
const follows = 1

// queue has the tasks that wait for the slot of another task: each starts on the slot of an ended task of its class.
// The agent that is connected now has put these tasks into the queue. The server's mu guards the queue.
type queue struct {
	waits map[messages.Name][]runner.Task // by class; the first task of a list starts next
	// `untold` is the number of tasks that have ended, but that have not been reported yet. `ticking` is true while a
	// timer is set. When the timer fires, these tasks are reported.
	untold  int
	ticking bool
}

func (q *queue) clear() { clear(q.waits); q.untold = 0 }

func (q *queue) remove(a messages.Attempt) {
	for class, all := range q.waits {
		if i := slices.IndexFunc(all, func(t runner.Task) bool { return t.Attempt == a }); i >= 0 {
			q.waits[class] = slices.Delete(all, i, i+1)
			return
		}
	}
}

func (f *frame) task(p *agent.Program) runner.Task {
	return runner.Task{Grant: agent.Grant{Attempt: f.Attempt, Array: f.Array, Position: f.Position, Nodes: f.Nodes, Steps: f.Steps}, Program: p}
}

// follow makes a task wait on the node until another task of its class ends, and then start on its slot.
func (s *server) follow(agent *conn, f *frame, p *agent.Program) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.agent != agent || s.tasks[f.Attempt] != nil || p == nil {
		return
	}
	if s.waits == nil {
		s.waits = map[messages.Name][]runner.Task{}
	}
	s.waits[p.Class] = append(s.waits[p.Class], f.task(p))
}

// withdraw removes a waiting task. If the task has started already, `t` is the started task; otherwise `t` is nil. The
// agent gets the answer that the task was withdrawn or, if it has started, the report of its start. The caller holds
// s.mu.
func (s *server) withdraw(a messages.Attempt, t *task) {
	if t != nil {
		s.agent.sendAll()
		return
	}
	s.queue.remove(a)
	s.agent.sendSoon(&frame{Kind: withdrawn, Attempt: a}) // often there are several such frames, which are then sent together
}

// next returns the task that takes the slot of an ended task, or nil. A suspended task has no slot. The files of an
// ended task must be stored before another one takes its slot. The caller holds s.mu.
func (s *server) next(t *task) (*task, runner.Task) {
	all := s.waits[t.class]
	if len(all) == 0 || s.agent == nil || t.suspended || t.files {
		return nil, runner.Task{}
	}
	what := all[0]
	s.waits[t.class] = all[1:]
	return s.take(what.Attempt, what.Program), what
}

// These are limits for collecting ends of tasks. If many tasks wait for slots, the executor collects ends for a short
// time, and then reports them together. It collects at most a quarter as many ends as there are waiting tasks. Only
// ends of one job are collected, because the leader divides the time of a slot between tasks by these reports.
const (
	gatherPart   = 4
	gatherWithin = 5 * time.Millisecond
)

// tell reports ended tasks to the agent. It is called when the executor has started a waiting task on the slot of an
// ended task. It sends the report at once, or collects several reports for at most gatherWithin.
func (s *server) tell(agent *conn, sameJob bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.agent != agent {
		return
	}
	left := 0
	for _, all := range s.waits {
		left += len(all)
	}
	if s.untold++; !sameJob || s.untold*gatherPart > left {
		s.untold = 0
		agent.sendAll()
		return
	}
	if !s.ticking {
		s.ticking = true
		time.AfterFunc(gatherWithin, s.tick)
	}
}

func (s *server) tick() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ticking = false
	if s.untold > 0 && s.agent != nil {
		s.untold = 0
		s.agent.sendAll()
	}
}
