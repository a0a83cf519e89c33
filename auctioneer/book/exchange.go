package book

import (
	"slices"

	"github.com/candor-grid/candor/messages"
)

func (b *Book) exchange(c *Exchange) any {
	i, known := b.names[c.Node]
	if !known || !b.nodes[i].Up || b.nodes[i].Session != c.Session {
		return messages.Errorf(messages.Fenced, "session %x of node %s is over; stop its tasks and register again", c.Session, c.Node)
	}
	n := b.nodes[i]
	if c.Seq == n.Seq {
		return n.Grants
	}
	if c.Seq < n.Seq {
		return messages.Errorf(messages.Fenced, "exchange %d of node %s comes after %d was answered", c.Seq, c.Node, n.Seq)
	}
	b.careful = c.Rules >= RulesHealth
	defer func() { b.careful = false }()
	for k := range c.Finished {
		b.finish(n, i, &c.Finished[k])
	}
	grants := []messages.Grant{}
	if b.careful && n.Examines(b.now) {
		c = &Exchange{Seq: c.Seq} // it claims nothing while it is examined
	}
	for k := range c.Claims {
		grants = b.claim(n, i, &c.Claims[k], grants)
	}
	if b.careful {
		grants = append(grants, b.examine(i)...)
	}
	n.Seq, n.Grants = c.Seq, grants
	return grants
}

// finish takes an attempt's end from the node that holds its claim. Anything
// else is an old word about a task that has moved on, and is let pass.
func (b *Book) finish(n *Node, node uint32, f *messages.Finished) {
	r := f.Attempt.Task
	n.Stop = slices.DeleteFunc(n.Stop, func(a messages.Attempt) bool { return a == f.Attempt })
	if r.Job == 0 {
		b.probed(node, f)
		return
	}
	h, ok := n.Claims[r]
	if !ok || h.Attempt != f.Attempt.Number {
		return
	}
	b.uncount(r, h)
	delete(n.Claims, r)
	if h.Halt != Suspended {
		n.use(h.Class, -1)
	}
	if h.Halt != Goes {
		n.Version++
	}
	n.Finished++
	b.touchNode(node)
	if j := b.jobs[r.Job]; j != nil {
		b.finishTask(j, r, node, f, h.paused(b.now))
	}
}

func (b *Book) finishTask(j *Job, r messages.TaskRef, node uint32, f *messages.Finished, paused messages.Duration) {
	stage, index := int(r.Stage), r.Index
	s := &j.Stages[stage]
	t := &s.Tasks[index]
	t.Exit = int32(f.ExitCode)
	b.touch(j.ID)
	switch {
	case s.Broken && j.Active():
		b.again(j, s, index)
	case f.Outcome == messages.Exited && f.ExitCode == 0:
		b.vouch(j, r, node)
		b.accept(j, stage, t, f, paused)
	case f.Outcome == messages.Stopped && j.Active():
		b.again(j, s, index)
		b.breakGang(j, stage)
	default:
		b.fail(j, stage, index, f, b.suspect(j, r, node, f))
	}
}

// maxCPU bounds what an agent can say of one attempt, so that no sum overflows.
const maxCPU = messages.Duration(1e15)

func (b *Book) accept(j *Job, stage int, t *Task, f *messages.Finished, paused messages.Duration) {
	s := &j.Stages[stage]
	t.Phase, t.Ended = Done, b.now
	s.Running--
	s.Done++
	s.SlotTime += b.now.Sub(t.Claimed) - paused
	s.CPU += min(max(f.CPU, 0), maxCPU)
	s.MaxRSS = max(s.MaxRSS, f.MaxRSS)
	if s.Done < s.Total || !j.Active() {
		return
	}
	s.Ended = b.now
	name := j.Spec.Stages[stage].Name
	over := true
	for i := range j.Stages {
		if slices.Contains(j.Spec.Stages[i].After, name) {
			j.Stages[i].Unmet--
		}
		over = over && j.Stages[i].Done == j.Stages[i].Total
	}
	if over {
		b.end(j, messages.Completed, "Completed")
	}
}

// fail counts a failed attempt, unless it is spared; the task is tried again
// unless it has used up its attempts or ran into the limit that its user set.
func (b *Book) fail(j *Job, stage int, index uint32, f *messages.Finished, spared bool) {
	s := &j.Stages[stage]
	t := &s.Tasks[index]
	if spared {
		b.again(j, s, index)
		b.breakGang(j, stage)
		return
	}
	t.Tries++
	limit := uint32(j.Spec.Stages[stage].Attempts)
	if limit == 0 {
		limit = DefaultAttempt
	}
	if j.Active() && t.Tries < limit && f.Outcome != messages.TimedOut && f.Outcome != messages.Exceeded {
		b.again(j, s, index)
		b.breakGang(j, stage)
		return
	}
	t.Phase, t.Ended = Failed, b.now
	s.Running--
	if !j.Active() {
		return
	}
	j.ExitCode = f.ExitCode
	b.end(j, messages.Failed, failure(f.Outcome))
}

func failure(o messages.Outcome) string {
	switch o {
	case messages.TimedOut:
		return "TimeLimit"
	case messages.Exceeded:
		return "LimitExceeded"
	case messages.Unstartable:
		return "CannotStart"
	}
	return "TaskFailed"
}

// claim grants tasks of a class from the jobs of the claim, in their order,
// as far as the node has idle slots.
func (b *Book) claim(n *Node, node uint32, c *Claim, grants []messages.Grant) []messages.Grant {
	want := min(c.Slots, n.Idle(c.Class))
	for at, id := range c.Jobs {
		j := b.jobs[id]
		if want <= 0 {
			break
		}
		if j == nil || !j.Active() {
			continue
		}
		room := want
		if at < len(c.Most) {
			room = min(want, c.Most[at]-j.Running(c.Class))
		}
		for i := range j.Stages {
			if j.Spec.Stages[i].Class != c.Class {
				continue
			}
			for k := min(room, j.Claimable(i)); k > 0; k-- {
				at, ok := b.next(j, i, node)
				if !ok {
					break
				}
				grants = append(grants, b.grant(n, node, j, i, at))
				want, room = want-1, room-1
			}
		}
	}
	return grants
}

// grant claims the task at a position of those that came back, −1: a new one.
func (b *Book) grant(n *Node, node uint32, j *Job, stage, at int) messages.Grant {
	s := &j.Stages[stage]
	b.meter(j, stage)
	var index uint32
	switch {
	case at == 0:
		index, s.Again = s.Again[0], s.Again[1:]
	case at > 0:
		index = s.Again[at]
		s.Again = slices.Delete(s.Again, at, at+1)
	default:
		index = uint32(len(s.Tasks))
		s.Tasks = append(s.Tasks, Task{})
	}
	t := &s.Tasks[index]
	t.Attempt++
	t.Phase, t.Node, t.Claimed, t.Ended, t.Exit = Claimed, node, b.now, 0, 0
	if s.Started == 0 {
		s.Started = b.now
	}
	s.Running++
	if j.State == messages.Waiting {
		j.State, j.Started = messages.Running, b.now
	}
	ref := messages.TaskRef{Job: j.ID, Stage: uint32(stage), Index: index}
	if n.Claims == nil {
		n.Claims = map[messages.TaskRef]Held{}
	}
	n.Claims[ref] = Held{Attempt: t.Attempt, Class: j.Spec.Stages[stage].Class}
	n.use(n.Claims[ref].Class, 1)
	if j.Spec.Stages[stage].Gang {
		b.gather(j, stage, ref)
	}
	b.touch(j.ID)
	b.touchNode(node)
	return messages.Grant{Attempt: messages.Attempt{Task: ref, Number: t.Attempt}, Array: j.Spec.Stages[stage].Array.At(int64(index))}
}
