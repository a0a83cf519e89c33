package depot

import (
	"context"
	"fmt"

	"go.uber.org/zap"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/bus"
	jobmsg "github.com/candor-grid/candor/messages/job"
	"github.com/candor-grid/candor/messages/wire"
)

// holding is an attempt that a node claims to have.
type holding struct {
	node    messages.Name
	attempt messages.Attempt
}

// take returns a piece of an input file. The input belongs to a task, and the task must have been given to the calling
// node.
func (d *Depot) take(ctx context.Context, node messages.Name, r jobmsg.GetRequest) (jobmsg.GetReply, error) {
	account, err := d.owner(ctx, holding{node, r.Attempt})
	if err != nil {
		return jobmsg.GetReply{}, err
	}
	j, err := d.job(ctx, r.Attempt.Task.Job)
	if err != nil {
		return jobmsg.GetReply{}, err
	}
	size, has := j.inputs[r.Digest]
	if !has {
		return jobmsg.GetReply{}, messages.Errorf(messages.PermissionDenied, "job %v has no input of this digest", r.Attempt.Task.Job)
	}
	reply, err := d.read(ctx, account, &r)
	if err != nil && j.visit != nil && messages.KindOf(err) == messages.NotFound {
		return d.bring(ctx, j.visit, size, &r)
	}
	return reply, err
}

// give stores a piece of a task's output. The calling node must be the node to which the task was given.
func (d *Depot) give(ctx context.Context, node messages.Name, r jobmsg.PutRequest) (jobmsg.PutReply, error) {
	account, err := d.owner(ctx, holding{node, r.Attempt})
	if err != nil {
		return jobmsg.PutReply{}, err
	}
	return d.put(ctx, account, r)
}

// deliver records a task's outputs, unless another node was given a later attempt.
func (d *Depot) deliver(ctx context.Context, node messages.Name, r jobmsg.DeliverRequest) (messages.Empty, error) {
	if err := r.Validate(); err != nil {
		return messages.Empty{}, err
	}
	account, err := d.ask(ctx, holding{node, r.Attempt})
	if err != nil {
		return messages.Empty{}, err
	}
	b, err := d.bucket(ctx, account)
	if err != nil {
		return messages.Empty{}, err
	}
	for i, f := range r.Files {
		if size, _, err := stored(ctx, b, f.Digest); err != nil || size != f.Size {
			return messages.Empty{}, messages.Errorf(messages.NotFound, "files[%d]: %q was not received with this size and digest; send the file first", i, f.Name)
		}
	}
	data, err := wire.Marshal(jobmsg.TaskOutputs(r), wire.Msgpack)
	if err != nil {
		return messages.Empty{}, err
	}
	t, err := d.atHome(ctx, account, r.Attempt.Task)
	if err != nil {
		return messages.Empty{}, err
	}
	return messages.Empty{}, b.Put(ctx, outputsName(t), data)
}

func outputsName(t messages.TaskRef) string {
	return fmt.Sprintf("outputs.%d.%d.%d", t.Job, t.Stage, t.Index)
}

// defaultLook is the number of tasks in a reply about outputs if the request does not set it. enoughBytes limits the
// bytes of names and digests in such a reply. At either limit, no further task is added.
const (
	defaultLook = 100
	enoughBytes = 1 << 20
)

// outputs lists the outputs of one job. The caller sees the outputs of its own jobs, and an operator sees the outputs
// of any account's jobs. A bucket contains only its account's jobs.
func (d *Depot) outputs(ctx context.Context, caller messages.Name, r jobmsg.OutputsRequest) (jobmsg.OutputsReply, error) {
	var reply jobmsg.OutputsReply
	if err := r.Validate(); err != nil {
		return reply, err
	}
	account, err := d.whose(caller, r.Account, zap.Stringer("outputs of job", r.Job))
	if err != nil {
		return reply, err
	}
	if away, err := d.awayOf(ctx, account, r.Job); away != "" || err != nil {
		return d.outputsAway(ctx, away, &r, err)
	}
	if account == caller {
		if err := d.handedOver(ctx, r.Job, r.Job); err != nil {
			return reply, err
		}
	}
	return d.list(ctx, account, &r)
}

// list lists the outputs of a job's tasks that are in an account's bucket.
func (d *Depot) list(ctx context.Context, account messages.Name, r *jobmsg.OutputsRequest) (reply jobmsg.OutputsReply, err error) {
	b, err := d.bucket(ctx, account)
	if err != nil {
		return reply, err
	}
	if r.Limit == 0 {
		r.Limit = defaultLook
	}
	reply.Next = r.From
	for size := 0; reply.Next-r.From < uint32(r.Limit) && size < enoughBytes; reply.Next++ {
		data, _, err := b.Get(ctx, outputsName(messages.TaskRef{Job: r.Job, Stage: r.Stage, Index: reply.Next}))
		if err != nil && messages.KindOf(err) == messages.NotFound {
			continue
		}
		var left jobmsg.TaskOutputs
		if err == nil {
			err = wire.Unmarshal(data, wire.Msgpack, &left)
		}
		if err != nil {
			return jobmsg.OutputsReply{}, err
		}
		reply.Tasks, size = append(reply.Tasks, left), size+len(data)
	}
	return reply, nil
}

// handedOver returns an error if the job's market still withholds the outputs of the job. If the auctioneer no longer
// knows the job, its outputs may be read. A job at two sites has two numbers. `asked` is the number that the caller
// used, and the error contains this number.
func (d *Depot) handedOver(ctx context.Context, id, asked messages.JobID) error {
	_, err := d.readable.get(id, func() (bool, error) {
		job, err := query[jobmsg.JobDetail](ctx, d, messages.VerbJob, jobmsg.JobRequest{Job: id})
		switch {
		case err != nil && messages.KindOf(err) == messages.NotFound:
			return true, nil
		case err == nil && job.Kept:
			err = jobmsg.ErrKept(asked, job.Spec.Deadline)
		}
		return err == nil, err
	})
	return err
}

// owner returns the owner of an attempt's job. It remembers the answer of the auctioneer.
func (d *Depot) owner(ctx context.Context, h holding) (messages.Name, error) {
	return d.owners.get(h, func() (messages.Name, error) { return d.ask(ctx, h) })
}

// ask asks the auctioneer whether a node has the latest attempt of a task. It returns the owner of the task's job.
func (d *Depot) ask(ctx context.Context, h holding) (messages.Name, error) {
	t := h.attempt.Task
	stage := int(t.Stage)
	reply, err := query[jobmsg.TasksReply](ctx, d, messages.VerbTasks, jobmsg.TasksRequest{Job: t.Job, Stage: &stage, From: t.Index, Limit: 1})
	if err != nil {
		return "", err
	}
	if len(reply.Tasks) == 0 || reply.Tasks[0].Task != t {
		return "", messages.Errorf(messages.PermissionDenied, "task %v was given to no node", t)
	}
	switch latest := reply.Tasks[0]; {
	case latest.Attempt != h.attempt.Number:
		return "", messages.Errorf(messages.Fenced, "attempt %d of task %v is not the latest attempt: that is attempt %d", h.attempt.Number, t, latest.Attempt)
	case latest.Node != h.node:
		return "", messages.Errorf(messages.PermissionDenied, "task %v was given to another node", t)
	}
	return reply.Account, nil
}

// job has the properties of a job that never change.
type job struct {
	account messages.Name
	away    messages.Name    // the site that runs the job; "": this one
	visit   *jobmsg.Visit    // the job's identity at its home site; nil if this site is its home
	inputs  map[string]int64 // sizes by digest
}

func (d *Depot) job(ctx context.Context, id messages.JobID) (job, error) {
	return d.jobs.get(id, func() (job, error) {
		found, err := query[jobmsg.JobDetail](ctx, d, messages.VerbJob, jobmsg.JobRequest{Job: id})
		j := job{account: found.Account, visit: found.Visit, inputs: map[string]int64{}}
		if found.Away != nil {
			j.away = found.Away.Site
		}
		for _, s := range found.Spec.Stages {
			for _, f := range s.Inputs {
				j.inputs[f.Digest] = f.Size
			}
		}
		return j, err
	})
}

func query[Reply any](ctx context.Context, d *Depot, verb string, request any) (Reply, error) {
	return bus.Call[Reply](ctx, d.c.Bus, messages.Subject(d.c.Site, messages.Auctioneer, verb, d.c.Operator), request)
}
