package auctioneer

import (
	"context"
	"slices"

	"github.com/candor-grid/candor/auctioneer/book"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/agent"
	"github.com/candor-grid/candor/messages/bus"
)

// An allocation is a set of tasks that hold slots for a job's steps. step answers a request of a node that runs a task
// of an allocation. The node must name its current attempt; otherwise it gets an error. The answer names all tasks of
// this allocation, and no other. If the request is for a stream to another of these tasks, step passes it to that
// task's node, in the name of the job's owner.
func (l *queries) step(ctx context.Context, node messages.Name, r agent.StepRequest) (reply agent.StepReply, err error) {
	if r.Stream != nil {
		if err := r.Stream.Validate(); err != nil {
			return reply, err
		}
	}
	var owner messages.Name
	err = l.look(ctx, func(b *book.Book) error {
		of := r.Attempt.Task
		j := b.Job(of.Job)
		if j == nil || int(of.Stage) >= len(j.Stages) || !j.Spec.Stages[of.Stage].Allocation {
			return messages.Errorf(messages.NotFound, "task %v belongs to no allocation", of)
		}
		owner = j.Account
		members, err := membersOf(b, j, of.Stage)
		if err != nil {
			return err
		}
		if !slices.Contains(members, agent.Member{Node: node, Attempt: r.Attempt}) {
			return messages.Errorf(messages.Fenced, "attempt %d of task %v does not run on %s", r.Attempt.Number, of, node)
		}
		if reply.Members = members; r.Stream == nil {
			return nil
		}
		to := r.Stream.Attempt
		at := slices.IndexFunc(members, func(m agent.Member) bool { return m.Attempt == to })
		if at < 0 {
			return messages.Errorf(messages.PermissionDenied, "attempt %d of task %v does not belong to the allocation", to.Number, to.Task)
		}
		reply.Members, node = nil, members[at].Node
		return nil
	})
	if err != nil || r.Stream == nil {
		return reply, err
	}
	leave, err := l.steps.enter(owner, mostStepsOf)
	if err != nil {
		return reply, err
	}
	defer leave()
	ctx, cancel := context.WithTimeout(ctx, peerWithin)
	defer cancel()
	answer, err := bus.Call[agent.StreamReply](ctx, l.Bus, agent.StreamSubject(l.Site, node, owner), r.Stream)
	reply.Stream = &answer
	return reply, err
}

// membersOf returns the tasks of an allocation, once all have their slots. The tasks of a heterogeneous job are in the
// order of its stages.
func membersOf(b *book.Book, j *book.Job, stage uint32) (members []agent.Member, err error) {
	for i := range j.Stages {
		if s := &j.Stages[i]; (i == int(stage) || j.Spec.Together) && (len(s.Tasks) < s.Total || s.Gathering > 0) {
			return nil, messages.Errorf(messages.Unavailable, "job %v does not have all of its nodes yet", j.ID)
		}
	}
	for i := range j.Stages {
		if i != int(stage) && !j.Spec.Together {
			continue
		}
		for k, t := range j.Stages[i].Tasks {
			a := messages.Attempt{Task: messages.TaskRef{Job: j.ID, Stage: uint32(i), Index: uint32(k)}, Number: t.Attempt}
			members = append(members, agent.Member{Node: b.Nodes()[t.Node].Name, Attempt: a})
			if t.Phase != book.Claimed {
				return nil, messages.Errorf(messages.Ended, "task %v of the allocation no longer runs", a.Task)
			}
		}
	}
	return members, nil
}
