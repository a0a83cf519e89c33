package runner

import (
	"fmt"
	"time"

	"golang.org/x/sys/unix"
)

// The last line of a task's output names the reason if its time limit, its owner or its market ended the task, as under
// Slurm. This line goes to the file to which the first process writes its errors, because a script may have sent its
// output to a file.

// endWithLine writes the last line of a task, and then ends the task. A task without output files has no such line. The
// caller holds t.mu.
func (t *process) endWithLine(grace time.Duration, words string) {
	first, err := -1, error(unix.EBADF)
	if t.stream == nil && !t.task.holds() && t.child.FD >= 0 {
		first, err = unix.FcntlInt(uintptr(t.child.FD), unix.F_DUPFD_CLOEXEC, 0)
	}
	if err != nil {
		t.ask(grace)
		return
	}
	as, line := t.program.As, []byte(t.lastLine(words))
	go func() {
		t.runner.forks.WriteLine(t.task.Program.Account, first, as, line)
		t.mu.Lock()
		defer t.mu.Unlock()
		if !t.over {
			t.ask(grace)
		}
	}()
}

// lastLine returns the line that is written at the end of the task's error output. It has Slurm's words for the end of
// a job, because other programs search for these words.
func (t *process) lastLine(words string) string {
	p, job := t.task.Program, t.task.Attempt.Task.Job.String()
	if p.Tasks > 1 && !p.Allocation {
		job += fmt.Sprintf("_%d", t.task.Array)
	}
	return fmt.Sprintf("candor: error: *** JOB %s ON %s CANCELLED AT %s %s\n",
		job, t.runner.config.Node, t.runner.config.Clock().Std().Local().Format("2006-01-02T15:04:05"), words)
}
