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

// upgrade replaces the binary on the hosts of a site, one after another: by the newer build, by the older one, and by
// the newer one again. Users submit, and every node has a task that runs all the time.
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
	err = m.forthAndBack(ctx)
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

// In this trial, the processes of the hosts are replaced one after another. The constant `between` is the number of
// submissions that must be answered after one replacement, before the next one begins.
const between = 30

// leaving makes the first process of each host leave its node's tasks running when it stops. The host's next process
// continues them.
func leaving(l *netlab.Lab) error {
	for _, h := range l.Sites[0].Hosts() {
		h.Leave(true)
	}
	return nil
}

// forthAndBack replaces the binary on all hosts by the newer one, then by the older one, and then by the newer one
// again. During a replacement, some hosts already have the new binary and others still have the old one. In each of the
// three replacements, both a host with the older binary and a host with the newer binary must have led.
func (m *member) forthAndBack(ctx context.Context) error {
	t, led := m.trial, map[string]int{}
	var replaced []time.Duration
	for _, pass := range []struct {
		build, name string
		leave       bool // the new processes leave tasks running when they stop
	}{{t.Newer, "newer", true}, {t.Binary, "older", true}, {t.Newer, "newer", false}} {
		hosts := m.Hosts()
		slices.Reverse(hosts)
		for i, h := range hosts {
			began := time.Now()
			if err := m.replace(ctx, h, pass.build, pass.leave); err != nil {
				return err
			}
			replaced = append(replaced, time.Since(began))
			t.log("%s has the %s build, in %v", h.Name, pass.name, time.Since(began).Round(time.Millisecond))
			if err := m.load.AwaitMore(ctx, between); err != nil {
				return err
			}
			if i == len(hosts)-1 { // now all hosts run one build
				continue
			}
			if err := m.countLeaders(ctx, led); err != nil {
				return err
			}
		}
	}
	t.count("hosts replaced", len(replaced))
	t.times("replacement of a host", replaced)
	t.count("times that the older build led beside the newer", led[t.Binary])
	t.count("times that the newer build led beside the older", led[t.Newer])
	return nil
}

// countLeaders counts, by build, the hosts that lead the auctioneer or the bank. It adds the counts to `led`.
func (m *member) countLeaders(ctx context.Context, led map[string]int) error {
	for _, actor := range []string{messages.Auctioneer, messages.Bank} {
		reply, err := ask[messages.ReplicasReply](ctx, m, actor, messages.VerbReplicas, messages.Empty{})
		if err != nil {
			return err
		}
		for _, r := range reply.Replicas {
			i := slices.IndexFunc(m.Hosts(), func(h *netlab.Host) bool { return h.Name == r.ID })
			if !r.Leads || i < 0 {
				continue
			}
			program, err := m.Hosts()[i].Program()
			if err != nil {
				return err
			}
			led[program]++
		}
	}
	return nil
}

// replace stops a host and starts another build on it. It returns when the new process serves and the host's node has
// registered.
func (m *member) replace(ctx context.Context, h *netlab.Host, build string, leave bool) error {
	ctx, cancel := context.WithTimeout(ctx, startWithin)
	defer cancel()
	began := time.Now()
	if err := h.Stop(); err != nil {
		return err
	}
	h.Run(build)
	h.Leave(leave)
	if err := revive(ctx, h); err != nil {
		return err
	}
	if err := m.AwaitBack(ctx, m.operator, h, began); err != nil {
		return err
	}
	if program, err := h.Program(); err != nil || program != build {
		return fmt.Errorf("%s runs %s, %v, want the build %s", h.Name, program, err, build)
	}
	return nil
}

// longJob is a job whose tasks run until a file exists.
type longJob struct {
	job   messages.JobID
	tasks int
	file  string
}

// startLong submits a job with at least one task for each node, and waits until all run. The tasks run in the directory
// dir.
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

// openDir makes a working directory that every user can enter. Tasks need it, because their users cannot enter the
// directory with the states of the sites.
func openDir() (string, error) {
	dir, err := os.MkdirTemp("", "netlab-job-")
	if err != nil {
		return "", err
	}
	return dir, os.Chmod(dir, 0o777)
}

// endLong lets the tasks of a long job end, and checks that each task has run once.
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
		m.trial.breaks("of %d long tasks, only %d ran exactly once and ended well: %+v", l.tasks, once, reply.Tasks)
	}
	return nil
}
