package book

import "github.com/candor-grid/candor/messages"

// A claim is one of four things to its stage: it goes, it gathers, it is
// suspended, or it is leaving. Stage counts the last three.

// tally adds a claim to the counts of its stage, or with by −1 takes it off.
func (s *Stage) tally(h Held, by int) {
	switch {
	case h.Leaving:
		s.Leaving += by
	case h.Halt == Suspended:
		s.Suspended += by
	case h.Halt == Gathers:
		s.Gathering += by
	}
}

// paused is how long a claim has not run by now.
func (h *Held) paused(now messages.Time) messages.Duration {
	if h.Halt == Goes {
		return h.Paused
	}
	return h.Paused + now.Sub(h.Since)
}

// uncount takes a claim that is about to go off the counts of its stage.
func (b *Book) uncount(r messages.TaskRef, h Held) {
	if j := b.jobs[r.Job]; j != nil {
		b.meter(j, int(r.Stage))
		j.Stages[r.Stage].tally(h, -1)
	}
}

// turn makes a claim another thing. Suspended claims leave their slot, and
// others take it again.
func (b *Book) turn(node uint32, r messages.TaskRef, to Held) {
	n := b.nodes[node]
	from := n.Claims[r]
	if j := b.jobs[r.Job]; j != nil {
		b.meter(j, int(r.Stage))
		j.Stages[r.Stage].tally(from, -1)
		j.Stages[r.Stage].tally(to, 1)
		b.touch(j.ID)
	}
	if from.Halt != to.Halt {
		n.Version++
		to.Since, to.Paused = b.now, from.paused(b.now)
	}
	if was, is := from.Halt == Suspended, to.Halt == Suspended; was != is {
		if is {
			n.use(to.Class, -1)
		} else {
			n.use(to.Class, 1)
		}
	}
	n.Claims[r] = to
	b.touchNode(node)
}

// claimOf returns the valid claim of an attempt and where it is.
func (b *Book) claimOf(a messages.Attempt) (node uint32, h Held, ok bool) {
	j := b.jobs[a.Task.Job]
	if j == nil || int(a.Task.Stage) >= len(j.Stages) || int(a.Task.Index) >= len(j.Stages[a.Task.Stage].Tasks) {
		return 0, h, false
	}
	t := &j.Stages[a.Task.Stage].Tasks[a.Task.Index]
	if t.Phase != Claimed || t.Attempt != a.Number {
		return 0, h, false
	}
	h, ok = b.nodes[t.Node].Claims[a.Task]
	return t.Node, h, ok && h.Attempt == a.Number
}

// stop tells the node of a claim to end it.
func (b *Book) stop(a messages.Attempt) {
	if node, _, ok := b.claimOf(a); ok {
		b.nodes[node].Stop = append(b.nodes[node].Stop, a)
		b.touchNode(node)
	}
}

// requeue has a claim of a job that lives ended, and its task claimed again, with
// all of its gang. Saying so again changes nothing.
func (b *Book) requeue(a messages.Attempt) {
	node, h, ok := b.claimOf(a)
	if !ok || h.Leaving || !b.jobs[a.Task.Job].Active() {
		return
	}
	h.Leaving = true
	b.turn(node, a.Task, h)
	b.stop(a)
	b.breakGang(b.jobs[a.Task.Job], int(a.Task.Stage))
}

// suspend takes a claim's slot away until resume gives one back.
func (b *Book) suspend(a messages.Attempt) {
	if node, h, ok := b.claimOf(a); ok && h.Halt == Goes && !h.Leaving && b.jobs[a.Task.Job].Active() {
		h.Halt = Suspended
		b.turn(node, a.Task, h)
	}
}

// resume lets a suspended claim go on, if its node has a slot.
func (b *Book) resume(a messages.Attempt) {
	node, h, ok := b.claimOf(a)
	if !ok || h.Halt != Suspended || h.Leaving || !b.jobs[a.Task.Job].Active() || b.nodes[node].room(h.Class) == 0 {
		return
	}
	h.Halt = Goes
	b.turn(node, a.Task, h)
}

// Halted lists the attempts of a node that are not to run now, in the order of
// job, stage and index.
func (n *Node) Halted() (out []messages.Attempt) {
	if n.Version == 0 { // never any
		return nil
	}
	for _, r := range n.held() {
		if h := n.Claims[r]; h.Halt != Goes {
			out = append(out, messages.Attempt{Task: r, Number: h.Attempt})
		}
	}
	return out
}

// Running is the number of a job's claims of a class, but for those that are
// suspended or leaving.
func (j *Job) Running(class messages.Name) int {
	n := 0
	for i := range j.Stages {
		if s := &j.Stages[i]; j.Spec.Stages[i].Class == class {
			n += s.Running - s.Suspended - s.Leaving
		}
	}
	return n
}
