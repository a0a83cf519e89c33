// Package hooks runs the prolog and the epilog of a node. These are programs of the site that run before the first and
// after the last task of a job on the node.
//
// # When
//
// The prolog runs before the first task of a job starts on the node; the tasks wait for it. The node does not know
// which task of a job is the last. So the epilog runs when the node has had no task of the job for 30 s. If a task of
// the job comes later, both run again. A job whose prolog has run is noted in a file, so the epilog runs even if the
// agent was started again meanwhile.
//
// # What fails
//
// If the prolog fails, or does not end within 5 minutes, the tasks that wait for it do not start. Once a prolog has
// begun, the epilog runs, even if the prolog failed. A failed epilog runs again before the next task of any job starts.
// If it fails again, the task does not start. The leader puts such a node in quarantine, and runs the tasks elsewhere.
package hooks

import (
	"cmp"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/agent"
	"github.com/candor-grid/candor/messages/durable"
	"github.com/candor-grid/candor/messages/program"
)

// Config names the programs to run.
type Config struct {
	Prolog, Epilog string // paths; "" means none
	Node           messages.Name
	Dir            string // directory with the notes of jobs whose prolog has run
	Log            *zap.Logger

	within, linger time.Duration
}

// Hooks runs the programs. It is safe for concurrent use.
type Hooks struct {
	c    Config
	life context.Context

	mu   sync.Mutex
	jobs map[messages.JobID]*job
}

type job struct {
	id    messages.JobID
	tasks int         // guarded by Hooks.mu: number of tasks that run, or wait for the prolog
	timer *time.Timer // guarded by Hooks.mu: starts the epilog
	owed  bool        // guarded by Hooks.mu: the epilog failed

	lock   chan struct{} // the holder of this lock may run the programs and use the fields below
	env    []string
	begun  bool // a prolog has begun since the last epilog
	ready  bool // the prolog has ended well
	failed time.Time
	why    error // why the prolog failed at the time `failed`
}

// Open returns the hooks of a node, or nil if there are no programs. The hooks stop when the context `life` ends.
func Open(life context.Context, c Config) (*Hooks, error) {
	if c.Prolog == "" && c.Epilog == "" {
		return nil, nil
	}
	c.within, c.linger = cmp.Or(c.within, 5*time.Minute), cmp.Or(c.linger, 30*time.Second)
	h := &Hooks{c: c, life: life, jobs: map[messages.JobID]*job{}}
	if err := os.MkdirAll(c.Dir, 0o700); err != nil {
		return nil, err
	}
	notes, err := os.ReadDir(c.Dir)
	if err != nil {
		return nil, err
	}
	for _, note := range notes {
		id, bad := strconv.ParseUint(note.Name(), 10, 64)
		data, err := os.ReadFile(filepath.Join(c.Dir, note.Name()))
		var env []string
		if err != nil || bad != nil || json.Unmarshal(data, &env) != nil {
			continue // this note was not written completely, so no prolog has begun
		}
		j := h.enter(messages.JobID(id))
		j.env, j.begun = env, true
		h.Leave(j.id)
	}
	return h, nil
}

func (h *Hooks) enter(id messages.JobID) *job {
	h.mu.Lock()
	defer h.mu.Unlock()
	j := h.jobs[id]
	if j == nil {
		j = &job{id: id, lock: make(chan struct{}, 1)}
		h.jobs[id] = j
	}
	if j.timer != nil {
		j.timer.Stop()
	}
	j.tasks++
	return j
}

// Adopt counts a task that an earlier agent started. The prolog of the task's job has already run. Call Adopt before
// Enter.
func (h *Hooks) Adopt(id messages.JobID) { h.enter(id).ready = true }

// Enter counts a task of a job, and returns when the prolog of the job has run. If Enter returns nil, the caller must
// call Leave when the task has ended.
func (h *Hooks) Enter(ctx context.Context, p *agent.Program) error {
	came := time.Now()
	if err := h.settle(ctx); err != nil {
		return err
	}
	j := h.enter(p.Job)
	err := h.prepare(ctx, j, p, came)
	if err != nil {
		h.Leave(p.Job)
	}
	return err
}

func (h *Hooks) prepare(ctx context.Context, j *job, p *agent.Program, came time.Time) error {
	if err := j.take(ctx); err != nil {
		return err
	}
	defer j.give()
	switch {
	case j.ready:
		return nil
	case j.failed.After(came): // it failed while this task waited
		return j.why
	case j.begun:
		if err := h.end(ctx, j); err != nil {
			return err
		}
	}
	j.env = h.env(p)
	data, err := json.Marshal(j.env)
	if err == nil {
		err = durable.WriteFile(h.note(j.id), data, 0o600)
	}
	if err != nil {
		return err
	}
	j.begun = true
	if err := h.run(ctx, "prolog", h.c.Prolog, j.env); err != nil {
		if ctx.Err() == nil { // if ctx has ended, the task was stopped, and the next task tries again
			j.failed, j.why = time.Now(), err
		}
		return err
	}
	j.ready = true
	return nil
}

// settle runs failed epilogs again.
func (h *Hooks) settle(ctx context.Context) error {
	var owed []*job
	h.mu.Lock()
	for _, j := range h.jobs {
		if j.owed {
			owed = append(owed, j)
		}
	}
	h.mu.Unlock()
	for _, j := range owed {
		if err := j.take(ctx); err != nil {
			return err
		}
		var err error
		if j.begun {
			err = h.end(ctx, j)
		}
		j.give()
		if err != nil {
			return err
		}
		h.forget(j)
	}
	return nil
}

// Leave says that a task of a job has ended.
func (h *Hooks) Leave(id messages.JobID) {
	h.mu.Lock()
	defer h.mu.Unlock()
	j := h.jobs[id]
	if j == nil {
		return
	}
	if j.tasks--; j.tasks == 0 {
		j.timer = time.AfterFunc(h.c.linger, func() { h.over(j) })
	}
}

// The method `over` runs the epilog of a job whose last task has ended. If the job has got a new task since then, it
// does nothing.
func (h *Hooks) over(j *job) {
	if j.take(h.life) != nil {
		return
	}
	defer j.give()
	if h.used(j) {
		return
	}
	if j.begun && h.end(h.life, j) != nil { // the error is logged, and the epilog runs again before the next task
		return
	}
	h.forget(j)
}

// forget removes what is known about a job, if no task of the job is left. The job's epilog need not run.
func (h *Hooks) forget(j *job) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if j.tasks == 0 {
		delete(h.jobs, j.id)
	}
}

func (h *Hooks) used(j *job) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return j.tasks > 0
}

// This method runs the epilog of a job. The caller has the job's lock.
func (h *Hooks) end(ctx context.Context, j *job) error {
	j.ready = false
	err := h.run(ctx, "epilog", h.c.Epilog, j.env)
	h.mu.Lock()
	if err == nil || ctx.Err() == nil { // if ctx has ended, the task that waited for the epilog was stopped
		j.owed = err != nil
	}
	h.mu.Unlock()
	if err != nil {
		return err
	}
	j.begun = false
	return os.Remove(h.note(j.id))
}

func (h *Hooks) run(ctx context.Context, what, path string, env []string) error {
	if path == "" {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, h.c.within)
	defer cancel()
	if _, err := program.Run(ctx, path, env, nil); err != nil {
		h.c.Log.Error("the "+what+" of a job failed", zap.String("program", path), zap.Error(err))
		return messages.Errorf(messages.Internal, "the %s of node %s, %s, %v", what, h.c.Node, path, err)
	}
	return nil
}

func (h *Hooks) note(id messages.JobID) string { return filepath.Join(h.c.Dir, id.String()) }

// env returns the variables of a job for a program of a hook. CANDOR_SITE is not among them: with it, the program would
// look like a process of a task, and the runner would end it.
func (h *Hooks) env(p *agent.Program) []string {
	job, payer := p.Job.String(), cmp.Or(p.Payer, p.Account)
	name := strings.ReplaceAll(p.JobName, "\x00", "")
	return []string{"CANDOR_NODE=" + h.c.Node, "CANDOR_JOB=" + job, "CANDOR_JOB_NAME=" + name, "CANDOR_ACCOUNT=" + p.Account, "CANDOR_PAYER=" + payer, "CANDOR_MARKET=" + p.Market,
		"SLURMD_NODENAME=" + h.c.Node, "SLURM_JOB_ID=" + job, "SLURM_JOB_NAME=" + name, "SLURM_JOB_USER=" + p.Account, "SLURM_JOB_ACCOUNT=" + payer, "SLURM_JOB_PARTITION=" + p.Market}
}

func (j *job) take(ctx context.Context) error {
	select {
	case j.lock <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (j *job) give() { <-j.lock }
