package hooks

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/zap"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/agent"
	"github.com/candor-grid/candor/messages/await"
)

// site is a node with a prolog and an epilog. These programs write their arguments and variables to a file.
type site struct {
	t   *testing.T
	dir string
	c   Config
}

func newSite(t *testing.T) *site {
	s := &site{t: t, dir: t.TempDir()}
	s.c = Config{Node: "rack1", Dir: filepath.Join(s.dir, "notes"), Log: zap.NewNop(), Prolog: filepath.Join(s.dir, "prolog"), Epilog: filepath.Join(s.dir, "epilog"), within: 10 * time.Second, linger: time.Millisecond}
	s.program("prolog", "")
	s.program("epilog", "")
	return s
}

// program makes a script that records how it was called. The lines in `more` follow at the end of the script.
func (s *site) program(name, more string) {
	s.t.Helper()
	text := "#!/bin/sh\necho " + name + " $CANDOR_JOB $SLURM_JOB_ACCOUNT >> " + s.dir + "/said\n" + more + "\n"
	if err := errors.Join(os.WriteFile(filepath.Join(s.dir, name+".new"), []byte(text), 0o755), os.Rename(filepath.Join(s.dir, name+".new"), filepath.Join(s.dir, name))); err != nil {
		s.t.Fatal(err)
	}
}

func (s *site) open(life context.Context) *Hooks {
	s.t.Helper()
	h, err := Open(life, s.c)
	if err != nil {
		s.t.Fatal(err)
	}
	return h
}

func (s *site) said() string {
	text, _ := os.ReadFile(filepath.Join(s.dir, "said"))
	return strings.ReplaceAll(string(text), "\n", "; ")
}

func (s *site) says(want string) {
	s.t.Helper()
	await.Until(s.t, want, func() bool { return s.said() == want })
}

func job1() *agent.Program { return &agent.Program{Job: 1, Account: "alice", Payer: "physics"} }

// TestAJobHasOnePrologAndOneEpilog starts several tasks of a job. All must wait for one prolog, and one epilog must run
// after the last. A later task needs both again.
func TestAJobHasOnePrologAndOneEpilog(t *testing.T) {
	s := newSite(t)
	s.program("prolog", "sleep 0.1")
	h := s.open(t.Context())
	var tasks sync.WaitGroup
	for range 3 {
		tasks.Go(func() {
			if err := h.Enter(t.Context(), job1()); err != nil {
				t.Error(err)
			}
		})
	}
	tasks.Wait()
	if got := s.said(); got != "prolog 1 physics; " {
		t.Errorf("the tasks started after %q", got)
	}
	for range 3 {
		h.Leave(1)
	}
	s.says("prolog 1 physics; epilog 1 physics; ")
	if err := h.Enter(t.Context(), job1()); err != nil {
		t.Error(err)
	}
	h.Leave(1)
	s.says("prolog 1 physics; epilog 1 physics; prolog 1 physics; epilog 1 physics; ")
	await.Until(t, "the job is forgotten", func() bool { h.mu.Lock(); defer h.mu.Unlock(); return len(h.jobs) == 0 })
}

// TestAFailingPrologStartsNoTask checks that no task starts after a failed prolog, and that the epilog runs before the
// next try.
func TestAFailingPrologStartsNoTask(t *testing.T) {
	s := newSite(t)
	s.c.linger = time.Hour
	s.program("prolog", "echo no scratch >&2; exit 7")
	h := s.open(t.Context())
	err := h.Enter(t.Context(), job1())
	if want := `the prolog of node rack1, ` + s.c.Prolog + `, ended with exit status 7 and wrote "no scratch" to its standard error`; err == nil || messages.Detail(err) != want {
		t.Errorf("%v, want %s", err, want)
	}
	s.program("prolog", "")
	if err := h.Enter(t.Context(), job1()); err != nil {
		t.Error(err)
	}
	s.says("prolog 1 physics; epilog 1 physics; prolog 1 physics; ")
}

// An epilog has failed, and the node runs it again. TestAfterAFailedEpilogNoTaskStarts checks that no task of any job
// starts before the epilog has ended well.
func TestAfterAFailedEpilogNoTaskStarts(t *testing.T) {
	s := newSite(t)
	s.program("epilog", "exit 1")
	h := s.open(t.Context())
	if err := h.Enter(t.Context(), job1()); err != nil {
		t.Fatal(err)
	}
	h.Leave(1)
	await.Until(t, "the epilog has failed", func() bool { h.mu.Lock(); defer h.mu.Unlock(); return h.jobs[1].owed })
	other := &agent.Program{Job: 2, Account: "bob"}
	if err := h.Enter(t.Context(), other); err == nil || !strings.Contains(err.Error(), "the epilog of node rack1") {
		t.Errorf("a task started after a failed epilog: %v", err)
	}
	s.program("epilog", "")
	if err := h.Enter(t.Context(), other); err != nil {
		t.Error(err)
	}
	s.says("prolog 1 physics; epilog 1 physics; epilog 1 physics; epilog 1 physics; prolog 2 bob; ")
}

// TestAnEpilogRunsAfterTheAgentWasStartedAnew restarts the agent. While adopted tasks run, the epilog must wait, and no
// second prolog may run.
func TestAnEpilogRunsAfterTheAgentWasStartedAnew(t *testing.T) {
	s := newSite(t)
	s.c.linger = 300 * time.Millisecond
	life, end := context.WithCancel(t.Context())
	h := s.open(life)
	for _, p := range []*agent.Program{job1(), {Job: 2, Account: "bob"}} {
		if err := h.Enter(life, p); err != nil {
			t.Fatal(err)
		}
	}
	end()
	h = s.open(t.Context())
	h.Adopt(1)
	s.says("prolog 1 physics; prolog 2 bob; epilog 2 bob; ")
	if err := h.Enter(t.Context(), job1()); err != nil {
		t.Error(err)
	}
	h.Leave(1)
	h.Leave(1)
	s.says("prolog 1 physics; prolog 2 bob; epilog 2 bob; epilog 1 physics; ")
}

func TestAStoppedTaskWaitsForNoProlog(t *testing.T) {
	s := newSite(t)
	s.program("prolog", "sleep 60")
	h := s.open(t.Context())
	ctx, stop := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer stop()
	began := time.Now()
	if err := h.Enter(ctx, job1()); err == nil || time.Since(began) > 5*time.Second {
		t.Errorf("%v after %v", err, time.Since(began))
	}
	s.says("prolog 1 physics; epilog 1 physics; ")
}
