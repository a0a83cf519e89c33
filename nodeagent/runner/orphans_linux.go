package runner

import (
	"os"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/candor-grid/candor/nodeagent/runner/program"
	"github.com/candor-grid/candor/nodeagent/runner/session"
)

// Without control groups, a process of a task that has left the task's session is in no list. But when its parent ends,
// the kernel gives it a new parent: the holder of the task's room, or this process. Such a process is called an orphan.
// When the task ends, its orphans are found among the children of these two, by their environment. An orphan can hide
// its environment. It is ended when no task runs that could have started it.

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

// endHidden ends all orphans that this process has adopted. If a task runs, it ends none, because they may belong to
// the task.
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
	children := session.Children(os.Getpid()) // listed before `forks`, so that `forks` has every listed child that this process forked
	forked, known := p.forks.PIDs()
	if !known {
		return nil // the orphans are found when a later task ends
	}
	own, _ := unix.Getsid(0)
	return slices.DeleteFunc(children, func(pid int) bool {
		if of, _ := unix.Getsid(pid); forked[pid] || of == own { // a process that this process started for itself
			return true
		}
		reaped, err := unix.Wait4(pid, nil, unix.WNOHANG, nil)
		return err != nil || reaped == pid // the process has ended meanwhile
	})
}
