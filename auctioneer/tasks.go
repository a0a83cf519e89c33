package auctioneer

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/candor-grid/candor/auctioneer/book"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/job"
)

// mostSought is the maximum number of tasks that one request searches.
const mostSought = 100_000

func (l *queries) tasks(ctx context.Context, caller messages.Name, r job.TasksRequest) (reply job.TasksReply, err error) {
	if away := l.remoteJob(caller, r.Job); away != nil {
		return l.remote.tasks(ctx, away, r)
	}
	return l.tasksOf(ctx, l.seenBy(caller, r.Job), r)
}

func (l *queries) tasksOf(ctx context.Context, find finding, r job.TasksRequest) (reply job.TasksReply, err error) {
	most, err := limit(r.Limit)
	if err != nil {
		return reply, err
	}
	for _, s := range r.States {
		if !slices.Contains(job.TaskStates, s) {
			return reply, messages.Errorf(messages.Invalid, "states: %q is not one of %s", job.Printable(s, 64), strings.Join(job.TaskStates, ", "))
		}
	}
	err = l.lookAt(ctx, find, func(b *book.Book, j *book.Job) error {
		if r.Stage != nil && (*r.Stage < 0 || *r.Stage >= len(j.Stages)) {
			return messages.Errorf(messages.NotFound, "stage: job %d has stages 0 to %d", j.ID, len(j.Stages)-1)
		}
		reply.Account, reply.Omitted = j.Account, j.Omitted
		s := taskSearch{TasksRequest: &r, book: b, job: j, most: most, now: l.Clock(), reply: &reply}
		for i := range j.Stages {
			if r.Stage == nil || *r.Stage == i {
				s.stage(i)
				reply.Unstarted += j.Stages[i].Total - len(j.Stages[i].Tasks) - int(j.Stages[i].Skipped.Count())
			}
		}
		return nil
	})
	return reply, err
}

// taskSearch collects the tasks of a job that a request asks for.
type taskSearch struct {
	*job.TasksRequest
	book   *book.Book
	job    *book.Job
	most   int
	sought int
	now    messages.Time
	reply  *job.TasksReply
}

func (s *taskSearch) stage(i int) {
	tasks, kept := s.job.Stages[i].Tasks, s.job.Kept.Of(i)
	first, end := uint64(s.From), uint64(len(tasks))
	if s.Until != 0 {
		end = min(end, uint64(s.Until))
	}
	for k := first; k < end && !s.reply.More; k++ {
		if s.reply.More = len(s.reply.Tasks) >= s.most || s.sought >= mostSought; s.reply.More {
			s.reply.Next = uint32(k)
			return
		}
		s.sought++
		at, _ := slices.BinarySearchFunc(kept, uint32(k), func(p book.Kept, index uint32) int { return cmp.Compare(p.Index, index) })
		s.task(i, uint32(k), kept[at:])
	}
}

// task adds the attempts of a task to the result of the search. Earlier attempts come first.
func (s *taskSearch) task(stage int, index uint32, kept []book.Kept) {
	t, latest := &s.job.Stages[stage].Tasks[index], (*book.Kept)(nil)
	for i := range kept {
		p := &kept[i]
		if p.Index != index {
			break
		}
		if p.Attempt == t.Attempt {
			latest = p
		} else if s.Attempts {
			s.list(s.earlier(p))
		}
	}
	s.list(s.latest(stage, index, t, latest))
}

func (s *taskSearch) list(t job.TaskStatus) {
	if s.Node != "" && t.Node != s.Node || len(s.States) > 0 && !slices.Contains(s.States, t.State) {
		return
	}
	s.reply.Tasks = append(s.reply.Tasks, t)
}

// status returns the fields that all attempts of a task share.
func (s *taskSearch) status(stage, index, attempt, node uint32) job.TaskStatus {
	spec := &s.job.Spec.Stages[stage]
	out := job.TaskStatus{Task: messages.TaskRef{Job: s.job.ID, Stage: stage, Index: index}, Attempt: attempt,
		Stage: spec.Name, Index: index, Array: spec.Array.At(int64(index))}
	if attempt > 0 {
		out.Node = s.book.Nodes()[node].Name
	}
	return out
}

// earlier returns the status of an attempt whose task has a later attempt.
func (s *taskSearch) earlier(p *book.Kept) job.TaskStatus {
	out := s.status(p.Stage, p.Index, p.Attempt, p.Node)
	out.State = "Stopped"
	if book.OfTask(p.Reason) {
		out.State = "Failed"
	}
	out.Claimed, out.Ended = p.Claimed, p.Ended
	out.Ran, out.Suspended, out.CPU, out.MaxRSS = p.Ended.Sub(p.Claimed)-p.Paused, p.Paused, p.CPU, p.MaxRSS
	s.explain(&out, p.Reason, p.Exit, p.Detail)
	return out
}

// latest returns the status of the latest attempt of a task. The argument `p` is the book's record of this attempt's
// end. It is nil if the book has no such record.
func (s *taskSearch) latest(stage int, index uint32, t *book.Task, p *book.Kept) job.TaskStatus {
	out := s.status(uint32(stage), index, t.Attempt, t.Node)
	out.State = s.state(out.Task, t)
	out.Claimed, out.Ended = t.Claimed, t.Ended
	if t.Phase == book.Claimed {
		c := s.book.Nodes()[t.Node].Claims[out.Task]
		if c.Halt == book.Ahead {
			return out
		}
		out.Suspended = c.PausedBy(s.now)
		out.Ran = max(0, s.now.Sub(t.Claimed)-out.Suspended)
		return out
	}
	out.Suspended, out.CPU, out.MaxRSS = t.PausedTime(), t.CPUTime(), t.MaxRSS()
	detail := ""
	if p != nil {
		out.Suspended, out.CPU, out.MaxRSS, detail = p.Paused, p.CPU, p.MaxRSS, p.Detail
	}
	if t.Attempt > 0 {
		out.Ran = max(0, t.Ended.Sub(t.Claimed)-out.Suspended)
	}
	s.explain(&out, t.Reason, t.Exit, detail)
	return out
}

func (s *taskSearch) state(r messages.TaskRef, t *book.Task) string {
	switch {
	case t.Reason == job.EndTaskCancelled:
		return "Cancelled"
	case t.Phase == book.Failed && t.Reason != job.NoReason && !book.OfTask(t.Reason):
		return "Stopped"
	case t.Phase == book.Pending && !s.job.Active() && t.Attempt > 0: // it would have run again if the job had not ended
		return "Stopped"
	case (t.Phase == book.Paired || t.Phase == book.Pending) && !s.job.Active(): // it never ran, and the job has ended
		return "Cancelled"
	case t.Phase == book.Paired:
		return "Pending"
	case t.Phase != book.Claimed:
		return t.Phase.String()
	}
	switch s.book.Nodes()[t.Node].Claims[r].Halt {
	case book.Suspended:
		return "Suspended"
	case book.Gathers:
		return "Gathering"
	case book.Ahead:
		return "Pending"
	}
	return "Running"
}

// explain adds to a task's status how its attempt ended. If the attempt never had a process, or nobody reported its
// end, the status gets no exit code.
func (s *taskSearch) explain(t *job.TaskStatus, why job.EndReason, exit int32, detail string) {
	t.Reason = why.String()
	t.Message = job.Ending{Reason: why, ExitCode: int(exit), Detail: detail, Node: t.Node}.String()
	if why == job.EndJobOver && s.job.Reason != "" {
		t.Message += ": " + cmp.Or(s.job.Cause, s.job.Reason)
	}
	switch why {
	case job.EndCannotStart, job.EndNodeLost, job.EndAgentLost, job.EndTaskCancelled:
		return
	}
	t.ExitCode = new(int(exit))
}
