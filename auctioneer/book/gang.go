package book

import "github.com/candor-grid/candor/messages"

// Disband gives back the tasks of a gang that has gathered since Since and is
// not complete. Result: nil.
type Disband struct {
	Job   messages.JobID
	Stage uint32
	Since messages.Time
}

// gather has a claim of a gang wait for the others; the last lets all go.
func (b *Book) gather(j *Job, stage int, r messages.TaskRef) {
	s := &j.Stages[stage]
	if s.Gathering == 0 {
		s.Gathered = b.now
	}
	b.halt(j, r, Gathers)
	if s.Gathering < s.Total {
		return
	}
	s.Gathered = 0
	for k := range s.Tasks {
		b.halt(j, messages.TaskRef{Job: j.ID, Stage: uint32(stage), Index: uint32(k)}, Goes)
	}
}

func (b *Book) halt(j *Job, r messages.TaskRef, halt Halt) {
	node := j.Stages[r.Stage].Tasks[r.Index].Node
	h := b.nodes[node].Claims[r]
	h.Halt = halt
	b.turn(node, r, h)
}

// breakGang has a gang that lost a member start anew, as soon as all others
// have ended, those too that finished well.
func (b *Book) breakGang(j *Job, stage int) {
	s := &j.Stages[stage]
	if !j.Spec.Stages[stage].Gang || !j.Active() || s.Broken {
		return
	}
	s.Broken, s.Gathered = s.Running > 0, 0
	for k := range s.Tasks {
		r := messages.TaskRef{Job: j.ID, Stage: uint32(stage), Index: uint32(k)}
		switch t := &s.Tasks[k]; t.Phase {
		case Claimed:
			b.requeue(messages.Attempt{Task: r, Number: t.Attempt})
		case Done:
			s.Done--
			s.Running++ // which again takes off
			b.again(j, s, r.Index)
		}
	}
}

func (b *Book) disband(c *Disband) any {
	j := b.jobs[c.Job]
	if j == nil || int(c.Stage) >= len(j.Stages) {
		return messages.Errorf(messages.NotFound, "there is no stage %d of job %d", c.Stage, c.Job)
	}
	if s := &j.Stages[c.Stage]; c.Since != 0 && s.Gathered == c.Since && s.Gathering > 0 {
		b.breakGang(j, int(c.Stage))
	}
	return nil
}
