package executor

import (
	"slices"
	"time"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/nodeagent/runner"
)

// follows is the number with which an executor says that tasks can wait for the slots of others.
const follows = 1

// queue is the tasks that follow others: each begins on the slot of one of its class that has
// ended. They are the present agent's alone: no other knows of them. The server's mu is held.
type queue struct {
	waits map[messages.Name][]runner.Task // by class, the next first
	// untold is how many ends were told to nobody yet; ticking: a timer will tell them.
	untold  int
	ticking bool
}

func (q *queue) clear() { clear(q.waits); q.untold = 0 }

// remove removes a waiting task.
func (q *queue) remove(a messages.Attempt) {
	for class, all := range q.waits {
		if i := slices.IndexFunc(all, func(t runner.Task) bool { return t.Attempt == a }); i >= 0 {
			q.waits[class] = slices.Delete(all, i, i+1)
			return
		}
	}
}

// task returns the task that the frame asks to start.
func (f *frame) task(p *messages.Program) runner.Task {
	return runner.Task{Grant: messages.Grant{Attempt: f.Attempt, Array: f.Array, Position: f.Position, Nodes: f.Nodes, Steps: f.Steps}, Program: p}
}

// follow lets a task begin when another one of its class has ended.
func (s *server) follow(agent *conn, f *frame, p *messages.Program) {
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

// withdraw keeps a task from following; t is nil unless the task has begun, which the agent then
// hears in place of an answer. s.mu is held.
func (s *server) withdraw(a messages.Attempt, t *task) {
	if t != nil {
		s.agent.sendAll()
		return
	}
	s.queue.remove(a)
	s.agent.sendSoon(&frame{Kind: withdrawn, Attempt: a}) // rarely the only one
}

// next returns the task that takes the slot of an ended task, or nil. A suspended task had no slot.
// For a task with files, the agent must do some work before the slot is free. The caller holds
// s.mu.
func (s *server) next(t *task) (*task, runner.Task) {
	all := s.waits[t.class]
	if len(all) == 0 || s.agent == nil || t.suspended || t.files {
		return nil, runner.Task{}
	}
	what := all[0]
	s.waits[t.class] = all[1:]
	return s.take(what.Attempt, what.Program), what
}

// If many tasks wait for slots, the agent need not hear of each end at once. Ends are collected
// until they are a certain part of the waiting tasks, but not for long. The leader divides the time
// of a slot between tasks by the reports that it has: so ends are collected only while one job has
// the slot.
const (
	gatherPart   = 4
	gatherWithin = 5 * time.Millisecond
)

// tell tells the agent how tasks ended that others followed, at once or soon.
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

// tick tells the ends that waited.
func (s *server) tick() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ticking = false
	if s.untold > 0 && s.agent != nil {
		s.untold = 0
		s.agent.sendAll()
	}
}
