package runner

import (
	"context"
	"errors"
	"os"
	"time"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/agent"
	"github.com/candor-grid/candor/nodeagent/runner/lane"
)

// maxLogWait bounds how long one read of a log waits.
const maxLogWait = time.Second

// Owner returns the account of a job that ran here.
func (p *Processes) Owner(job messages.JobID) (messages.Name, error) {
	for _, t := range p.tasksNow() { // the job may not have a directory yet
		if t.task.Program.Job == job {
			return t.task.Program.Account, nil
		}
	}
	if account, known := p.store.Owner(job); known {
		return account, nil
	}
	return "", NoOutput(job)
}

// ReadLog returns a piece of the output of an attempt.
func (p *Processes) ReadLog(ctx context.Context, r agent.LogsRequest) (agent.LogsReply, error) {
	reply, task, err := p.readLog(&r)
	if err != nil || task == nil || len(reply.Data) > 0 || r.Wait <= 0 {
		return reply, err
	}
	r.Offset = reply.Next
	ctx, cancel := context.WithTimeout(ctx, min(r.Wait.Std(), maxLogWait))
	defer cancel()
	select {
	case <-task.opened: // the output files exist, so they can be watched
	case <-task.ended:
	case <-ctx.Done():
	}
	changed, stop := p.watchOutput(task, &r)
	defer stop()
	// The log is read a second time, because the task may have written output after the first read and before the watch
	// began.
	if reply, task, err = p.readLog(&r); err != nil || task == nil || len(reply.Data) > 0 {
		return reply, err
	}
	select {
	case <-changed:
	case <-task.ended:
	case <-ctx.Done():
	}
	reply, _, err = p.readLog(&r)
	return reply, err
}

// watchOutput returns a channel that reports changes of the output of a running task. The kernel limits the number of
// watched files. If the limit is reached, the channel is nil, and the reader waits until the task ends or the request's
// time is over.
func (p *Processes) watchOutput(t *process, r *agent.LogsRequest) (changed <-chan struct{}, stop func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	changed, stop, err := p.watch.Watch(t.files.Path(which(r)))
	if err != nil {
		return nil, func() {}
	}
	return changed, stop
}

func which(r *agent.LogsRequest) int {
	if r.Stderr {
		return lane.Errors
	}
	return lane.Output
}

// readLog reads the present output. The returned task is nil if it ended before the read; then the output is complete.
func (p *Processes) readLog(r *agent.LogsRequest) (reply agent.LogsReply, task *process, err error) {
	var file *os.File
	if task = p.lookup(r.Attempt); task != nil {
		file, err = task.openOutput(which(r))
	} else {
		file, err = p.store.OpenOutput(r.Attempt, which(r))
	}
	if errors.Is(err, os.ErrNotExist) {
		if task != nil || p.store.RanHere(r.Attempt) {
			return agent.LogsReply{End: task == nil}, task, nil
		}
		return reply, nil, messages.Errorf(messages.NotFound,
			"attempt %d of task %v: has no output on this node; it never ran here, or its output was removed, because %d later jobs ran here or its account kept too much here",
			r.Attempt.Number, r.Attempt.Task, p.config.KeepJobs)
	}
	if err != nil {
		return reply, task, messages.Errorf(messages.Unavailable, "output of task %v: %v", r.Attempt.Task, err)
	}
	defer file.Close()
	reply, err = lane.ReadPiece(file, r)
	reply.End = reply.End && task == nil
	return reply, task, err
}

func (t *process) openOutput(i int) (*os.File, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.files.Read(i)
}
