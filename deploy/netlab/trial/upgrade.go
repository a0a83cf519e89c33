package trial

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/candor-grid/candor/deploy/netlab"
	"github.com/candor-grid/candor/deploy/netlab/load"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/bus"
)

// upgrade replaces the binary on every host of a site, one host after another, while
// users submit and every node has a task that runs through all of it.
func upgrade(ctx context.Context, t *trial) error {
	s := t.Lab.Sites[0]
	operator, err := s.Connect(netlab.Operator)
	if err != nil {
		return err
	}
	defer operator.Close()
	dir, err := openDir()
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	long, err := t.startLong(ctx, s, operator, dir)
	if err != nil {
		return err
	}
	l, err := load.Start(ctx, load.Config{Site: s.Name, Users: users, Connect: s.Connect, Job: quick,
		Every: 100 * time.Millisecond, Patience: patience, Prefix: "upgrade"})
	if err != nil {
		return err
	}
	err = t.replaceAll(ctx, s, operator, l)
	result := l.Stop()
	if err != nil {
		return err
	}
	t.reportLoad(&result)
	if err := long.end(ctx, t, s, operator); err != nil {
		return err
	}
	if err := t.checkWork(ctx, s, operator, l, result.Acks); err != nil {
		return err
	}
	return t.checkBooks(ctx, s, operator)
}

// between is how many submissions are answered between two replacements.
const between = 30

// leaving has the hosts' first processes leave the tasks of their nodes to the next.
func leaving(l *netlab.Lab) error {
	for _, h := range l.Sites[0].Hosts() {
		h.Leave(true)
	}
	return nil
}

// replaceAll goes on to the next host when the one before serves and its node has
// registered anew, as an operator does.
func (t *trial) replaceAll(ctx context.Context, s *netlab.Site, operator bus.Bus, l *load.Load) error {
	var replaced []time.Duration
	hosts := s.Hosts()
	slices.Reverse(hosts)
	for _, h := range hosts {
		began := time.Now()
		if err := t.replace(ctx, s, h, operator); err != nil {
			return err
		}
		replaced = append(replaced, time.Since(began))
		t.log("%s has the newer build, in %v", h.Name, time.Since(began).Round(time.Millisecond))
		if err := t.awaitMore(ctx, l, between); err != nil {
			return err
		}
	}
	t.count("hosts replaced", len(replaced))
	t.times("replacement of a host", replaced)
	return nil
}

func (t *trial) replace(ctx context.Context, s *netlab.Site, h *netlab.Host, operator bus.Bus) error {
	ctx, cancel := context.WithTimeout(ctx, startWithin)
	defer cancel()
	began := time.Now()
	if err := h.Stop(); err != nil {
		return err
	}
	h.Run(t.Newer)
	h.Leave(false)
	if err := errors.Join(h.Start(), h.Await(ctx), s.AwaitBack(ctx, operator, h, began)); err != nil {
		return err
	}
	if program, err := h.Program(); err != nil || program != t.Newer {
		return fmt.Errorf("%s runs %s, %v, want the newer build %s", h.Name, program, err, t.Newer)
	}
	return nil
}

// longJob is tasks that run until a file is there.
type longJob struct {
	job   messages.JobID
	tasks int
	file  string
}

// startLong starts as many tasks as cannot do without any node, so that each has
// one, and waits until all of them run in the directory.
func (t *trial) startLong(ctx context.Context, s *netlab.Site, operator bus.Bus, dir string) (*longJob, error) {
	p := plan(s.Name)
	long := &longJob{tasks: (p.Agents-1)*p.Slots + 1, file: filepath.Join(dir, "end")}
	alice, err := s.Connect("alice")
	if err != nil {
		return nil, err
	}
	defer alice.Close()
	reply, err := load.Submit(ctx, alice, s.Name, "alice", messages.SubmitRequest{Key: "long", Spec: messages.JobSpec{
		Name: "long", Budget: messages.Credit, Dir: dir,
		Stages: []messages.Stage{{Name: "main", Class: "map", Tasks: long.tasks, Script: "while [ ! -e end ]; do sleep 0.2; done"}},
	}})
	if err != nil {
		return nil, err
	}
	long.job = reply.Job
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		job, err := bus.Call[messages.JobDetail](ctx, operator, messages.Subject(s.Name, messages.Auctioneer, messages.VerbJob, netlab.Operator), messages.JobRequest{Job: long.job})
		if err == nil && job.Running == long.tasks {
			t.log("%d long tasks run", long.tasks)
			return long, nil
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("%d of %d long tasks run, %v: %w", job.Running, long.tasks, err, ctx.Err())
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// openDir makes a working directory that the users of all tasks may enter. It is not
// beside the sites' state, to which nobody else has a way.
func openDir() (string, error) {
	dir, err := os.MkdirTemp("", "netlab-job-")
	if err != nil {
		return "", err
	}
	return dir, os.Chmod(dir, 0o777)
}

// end lets the tasks end, and wants each of them to have run once.
func (l *longJob) end(ctx context.Context, t *trial, s *netlab.Site, operator bus.Bus) error {
	if err := os.WriteFile(l.file, nil, 0o600); err != nil {
		return err
	}
	if _, err := t.settle(ctx, s, operator); err != nil {
		return err
	}
	reply, err := bus.Call[messages.TasksReply](ctx, operator, messages.Subject(s.Name, messages.Auctioneer, messages.VerbTasks, netlab.Operator),
		messages.TasksRequest{Job: l.job, Limit: l.tasks})
	if err != nil {
		return err
	}
	once := 0
	for _, task := range reply.Tasks {
		if task.State == "Done" && task.Attempt == 1 {
			once++
		}
	}
	t.count("long tasks that ran once through all of it", once)
	if once != l.tasks {
		t.breaks("of %d long tasks, %d ran once and well: %+v", l.tasks, once, reply.Tasks)
	}
	return nil
}
