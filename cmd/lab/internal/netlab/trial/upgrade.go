package trial

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/candor-grid/candor/cmd/lab/internal/netlab"
	"github.com/candor-grid/candor/cmd/lab/internal/netlab/load"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/job"
)

// upgrade replaces the binary on the hosts of a site one by one, while users submit. Every node has a task that runs
// during the whole time.
func upgrade(ctx context.Context, _ *trial, all []*member) error {
	m := all[0]
	dir, err := openDir()
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	long, err := m.startLong(ctx, dir)
	if err != nil {
		return err
	}
	if err := m.begin(ctx, load.Config{Users: users, Job: quick, Every: 100 * time.Millisecond, Prefix: "upgrade"}); err != nil {
		return err
	}
	err = m.replaceAll(ctx)
	m.result = m.load.Stop()
	if err != nil {
		return err
	}
	m.reportLoad()
	if err := m.endLong(ctx, long); err != nil {
		return err
	}
	if err := m.checkWork(ctx); err != nil {
		return err
	}
	return m.checkBooks(ctx)
}

// between is the number of answered submissions between two replacements.
const between = 30

// leaving makes the hosts' first processes leave the tasks of their nodes running for the next ones.
func leaving(l *netlab.Lab) error {
	for _, h := range l.Sites[0].Hosts() {
		h.Leave(true)
	}
	return nil
}

// replaceAll replaces the hosts one by one. It continues when the new process serves and the node has registered
// again, as an operator would.
func (m *member) replaceAll(ctx context.Context) error {
	t, hosts, replaced := m.trial, m.Hosts(), []time.Duration{}
	slices.Reverse(hosts)
	for _, h := range hosts {
		began := time.Now()
		if err := m.replace(ctx, h); err != nil {
			return err
		}
		replaced = append(replaced, time.Since(began))
		t.log("%s has the newer build, in %v", h.Name, time.Since(began).Round(time.Millisecond))
		if err := m.load.AwaitMore(ctx, between); err != nil {
			return err
		}
	}
	t.count("hosts replaced", len(replaced))
	t.times("replacement of a host", replaced)
	return nil
}

func (m *member) replace(ctx context.Context, h *netlab.Host) error {
	ctx, cancel := context.WithTimeout(ctx, startWithin)
	defer cancel()
	began := time.Now()
	if err := h.Stop(); err != nil {
		return err
	}
	h.Run(m.trial.Newer)
	h.Leave(false)
	if err := revive(ctx, h); err != nil {
		return err
	}
	if err := m.AwaitBack(ctx, m.operator, h, began); err != nil {
		return err
	}
	if program, err := h.Program(); err != nil || program != m.trial.Newer {
		return fmt.Errorf("%s runs %s, %v, want the newer build %s", h.Name, program, err, m.trial.Newer)
	}
	return nil
}

// longJob is a job whose tasks run until a file exists.
type longJob struct {
	job   messages.JobID
	tasks int
	file  string
}

// startLong starts so many tasks that each node gets at least one. It waits until all of them run in the directory.
func (m *member) startLong(ctx context.Context, dir string) (*longJob, error) {
	p := plan(m.Name, false)
	long := &longJob{tasks: (p.Agents-1)*p.Slots + 1, file: filepath.Join(dir, "end")}
	alice, err := m.Connect("alice")
	if err != nil {
		return nil, err
	}
	defer alice.Close()
	reply, err := load.Submit(ctx, alice, m.Name, "alice", job.SubmitRequest{Key: "long", Spec: job.JobSpec{
		Name: "long", Budget: messages.Credit, Dir: dir,
		Stages: []job.Stage{{Name: "main", Attempts: 3, Class: "map", Tasks: long.tasks, Script: "while [ ! -e end ]; do sleep 0.2; done"}},
	}})
	if err != nil {
		return nil, err
	}
	long.job = reply.Job
	err = within(ctx, patience, func(ctx context.Context) error {
		job, err := ask[job.JobDetail](ctx, m, messages.Auctioneer, messages.VerbJob, job.JobRequest{Job: long.job})
		if err == nil && job.Running < long.tasks {
			err = fmt.Errorf("%d of %d long tasks run", job.Running, long.tasks)
		}
		return err
	})
	if err == nil {
		m.trial.log("%d long tasks run", long.tasks)
	}
	return long, err
}

// openDir makes a working directory that the users of all tasks can enter. It is not next to the sites' state, which
// nobody else can enter.
func openDir() (string, error) {
	dir, err := os.MkdirTemp("", "netlab-job-")
	if err != nil {
		return "", err
	}
	return dir, os.Chmod(dir, 0o777)
}

// endLong lets the tasks end, and checks that each of them has run once.
func (m *member) endLong(ctx context.Context, l *longJob) error {
	if err := os.WriteFile(l.file, nil, 0o600); err != nil {
		return err
	}
	if err := m.settle(ctx); err != nil {
		return err
	}
	reply, err := ask[job.TasksReply](ctx, m, messages.Auctioneer, messages.VerbTasks, job.TasksRequest{Job: l.job, Limit: l.tasks})
	if err != nil {
		return err
	}
	once := 0
	for _, task := range reply.Tasks {
		if task.State == "Done" && task.Attempt == 1 {
			once++
		}
	}
	m.trial.count("long tasks that ran once through all of it", once)
	if once != l.tasks {
		m.trial.breaks("of %d long tasks, %d ran once and well: %+v", l.tasks, once, reply.Tasks)
	}
	return nil
}
