package slurm

//lint:file-ignore ST1005 errors are in the words of Slurm's commands, which programs look for

import (
	"context"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"syscall"

	"github.com/candor-grid/candor/cmd/candor/internal/client/cli"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/agent"
)

// endStep is a script that runs next to a task. It sends the signal $2 to the processes of the task's step $1. If $2 is
// "", it ends these processes: it sends SIGTERM, and 2 seconds later SIGKILL. It prints "found" if there are any.
const endStep = `cd /proc || exit
tell() {
	told=1
	for f in $(grep -lzxF "CANDOR_LEASE=$CANDOR_LEASE" [0-9]*/environ 2>/dev/null); do
		if grep -qzxF "CANDOR_STEP=$step" $f 2>/dev/null && kill -s "$1" "${f%/environ}" 2>/dev/null; then told=0; fi
	done
	return $told
}
step=$1
tell "${2:-CONT}" || exit 0
echo found
[ -z "$2" ] && tell TERM || exit 0
for wait in 1 2 3 4 5 6 7 8; do
	sleep 0.25
	tell 0 || exit 0
done
tell KILL || :`

// cancelStep sends a signal to the processes of a step on all nodes of its job. With the signal "", it ends them.
func (c *call) cancelStep(ctx context.Context, s *cli.Session, t target, signal string) error {
	words := []string{"/bin/sh", "-c", endStep, "sh", t.step, signal}
	var said []string
	if t.indices == nil && c.isOwn(t.job.String()) {
		cmd := exec.CommandContext(ctx, words[0], words[1:]...)
		cmd.Env = slices.DeleteFunc(c.Environ(), func(v string) bool { return strings.HasPrefix(v, agent.StepVariable+"=") })
		cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
		out, err := cmd.Output()
		if err != nil {
			return err
		}
		said = append(said, string(out))
	} else {
		tasks, err := runningOf(ctx, s, t)
		if err != nil {
			return err
		}
		said = make([]string, len(tasks))
		failed := make([]error, len(tasks))
		var all sync.WaitGroup
		for i := range tasks {
			all.Go(func() { said[i], failed[i] = c.beside(ctx, s, &tasks[i], words) })
		}
		all.Wait()
		for _, err := range failed {
			if kind := messages.KindOf(err); err != nil && kind != messages.Ended && kind != messages.NotFound {
				return err
			}
		}
	}
	if !slices.Contains(said, "found\n") {
		return messages.Errorf(messages.NotFound, "Invalid job id specified: no step %s runs", t.step)
	}
	return nil
}
