package session

import (
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// orphanRounds bounds the number of searches for orphans: a process that ends can leave new orphans.
const orphanRounds = 100

// EndMarked ends processes that have a task's marks in their environment. It looks only at the processes that the
// function `list` returns. A process that is executing a program has no environment for a moment, so EndMarked looks
// several times. It does not find orphans that hide their environment.
func EndMarked(list func() []int, marks []string) {
	const looks, pause = 10, time.Millisecond
	for range looks {
		bare := false
		EndEach(list, func(pid int) bool {
			env, err := variablesOf(pid)
			bare = bare || err == nil && len(env) == 0
			return bears(env, marks)
		})
		if !bare {
			return
		}
		time.Sleep(pause)
	}
}

// EndEach ends each process of the list for which the function `which` returns true. The function `list` returns the
// processes. EndEach repeats this until it finds no such process, because an ended process can leave children.
func EndEach(list func() []int, which func(pid int) bool) {
	for range orphanRounds {
		chosen := slices.DeleteFunc(list(), func(pid int) bool { return !which(pid) })
		if len(chosen) == 0 {
			return
		}
		for _, pid := range chosen {
			endProcess(pid, which)
		}
	}
}

// killedWithin is how long endProcess waits for the end of a killed process.
const killedWithin = time.Second

// endProcess kills a process and waits for its end. The function `which` says whether the number `pid` still belongs to
// this process. If it does not, nothing is killed.
func endProcess(pid int, which func(pid int) bool) {
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return
	}
	defer unix.Close(fd)
	if which(pid) && unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0) == nil {
		_, _ = unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, int(killedWithin.Milliseconds()))
	}
}

// Children returns the children of all threads of a process. It returns none if the kernel does not list children.
func Children(pid int) (all []int) {
	threads := "/proc/" + strconv.Itoa(pid) + "/task/"
	entries, err := os.ReadDir(threads)
	if err != nil {
		return nil
	}
	for _, e := range entries {
		text, err := os.ReadFile(threads + e.Name() + "/children")
		if err != nil {
			continue
		}
		for _, word := range strings.Fields(string(text)) {
			if child, err := strconv.Atoi(word); err == nil {
				all = append(all, child)
			}
		}
	}
	return all
}
