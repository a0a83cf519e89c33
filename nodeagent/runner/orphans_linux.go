package runner

import (
	"os"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/candor-grid/candor/nodeagent/runner/program"
	"github.com/candor-grid/candor/nodeagent/runner/session"
)

// Without control groups, nothing lists a task's processes that have left its session. But when a parent ends, its
// children become children of the room's holder, or of this process. When the task ends, its orphans are found there by
// their environment. Orphans that hide their environment are ended when no task runs that could have started them.

func (p *Processes) endOrphansOf(t *process) {
	if !p.loose {
		return
	}
	marks := append([]string{"CANDOR_SITE=" + p.config.Site, "CANDOR_NODE=" + p.config.Node, "CANDOR_JOB=" + t.task.Attempt.Task.Job.String(),
		"CANDOR_STAGE=" + t.task.Program.StageName}, new(program.Program).Env(&t.task.Grant, "", "")[:2]...)
	list := p.adopted
	if t.room != nil {
		list = t.room.Orphans
	} else if !p.adopts {
		return
	}
	session.EndMarked(list, marks)
}

// endHidden ends all orphans that this process has adopted. It does so only if no task runs, because the orphans may
// belong to a running task.
func (p *Processes) endHidden() {
	if !p.adopts {
		return
	}
	left := func() []int {
		found := p.adopted()
		if len(p.tasksNow()) > 0 { // the orphans may belong to these tasks
			return nil
		}
		return found
	}
	session.EndEach(left, func(int) bool { return true })
}

// adopted returns the orphans that the kernel made children of this process. This process must reap them.
func (p *Processes) adopted() []int {
	children := session.Children(os.Getpid()) // before forks, so that forks has every listed child that this process forked
	forked, known := p.forks.PIDs()
	if !known {
		return nil // the end of a later task finds them
	}
	own, _ := unix.Getsid(0)
	return slices.DeleteFunc(children, func(pid int) bool {
		if of, _ := unix.Getsid(pid); forked[pid] || of == own { // a process that this process started for itself
			return true
		}
		reaped, err := unix.Wait4(pid, nil, unix.WNOHANG, nil)
		return err != nil || reaped == pid // it has ended meanwhile
	})
}
