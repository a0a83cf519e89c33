package netlab

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// adopt makes this process the parent of all its descendants whose own parents end. Executors outlive their agents, and
// tasks outlive their executors. As their parent, this process can end them all.
func adopt() error {
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("becoming the parent of orphaned processes: %w", err)
	}
	return nil
}

// endOrphans kills the children of this process, and the processes that these children leave. It spares the processes
// in the list `before`, which existed earlier.
func endOrphans(before []int) {
	for {
		left := slices.DeleteFunc(children(), func(pid int) bool { return slices.Contains(before, pid) })
		if len(left) == 0 {
			return
		}
		for _, pid := range left {
			_ = unix.Kill(pid, unix.SIGKILL)
		}
		// Wait until any child has ended, without taking its exit status. The first process of a namespace ends only
		// after all other processes of the namespace have ended.
		_ = unix.Waitid(unix.P_ALL, 0, nil, unix.WEXITED|unix.WNOWAIT, nil)
		for _, pid := range left {
			var status unix.WaitStatus
			_, _ = unix.Wait4(pid, &status, unix.WNOHANG, nil)
		}
	}
}

func children() (pids []int) {
	lists, err := filepath.Glob("/proc/self/task/*/children")
	if err != nil {
		return nil
	}
	for _, list := range lists {
		text, err := os.ReadFile(list)
		if err != nil {
			continue
		}
		for _, field := range strings.Fields(string(text)) {
			var pid int
			if _, err := fmt.Sscan(field, &pid); err == nil {
				pids = append(pids, pid)
			}
		}
	}
	return pids
}
