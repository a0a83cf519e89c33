package session

import (
	"os"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Signal sends signals to the processes of a session that are not in the session's first process group. The session's
// first process must not have been reaped: otherwise its number may already belong to another session.
func Signal(session int, signals ...unix.Signal) {
	eachMember(session, func(pid, group int) {
		if group != session {
			signalMember(pid, session, signals)
		}
	})
}

// SignalWhere sends signals to those processes of a session for which the function `which` returns true. This function
// gets the environment of the process.
func SignalWhere(session int, which func(env []string) bool, signals ...unix.Signal) {
	eachMember(session, func(pid, _ int) {
		if env, _ := variablesOf(pid); which(env) {
			signalMember(pid, session, signals)
		}
	})
}

// Members returns the processes of a session.
func Members(session int) (all []int) {
	eachMember(session, func(pid, _ int) { all = append(all, pid) })
	return all
}

// eachMember calls f with each process of a session, and its process group.
func eachMember(session int, f func(pid, group int)) {
	proc, err := os.Open("/proc")
	if err != nil {
		return
	}
	defer proc.Close()
	names, _ := proc.Readdirnames(-1)
	for _, name := range names {
		pid, err := strconv.Atoi(name)
		if err != nil {
			continue
		}
		if group, of := sessionOf(name); of == session {
			f(pid, group)
		}
	}
}

// signalMember signals a process only if it still belongs to the session. The process may have ended, and another
// process may have its number now.
func signalMember(pid, session int, signals []unix.Signal) {
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return
	}
	defer unix.Close(fd)
	if _, of := sessionOf(strconv.Itoa(pid)); of == session {
		for _, s := range signals {
			unix.PidfdSendSignal(fd, s, nil, 0)
		}
	}
}

// sessionOf returns a process's group and session. If the process is gone, both results are 0.
func sessionOf(pid string) (group, session int) {
	const groupAt, sessionAt = 2, 3
	fields := statOf(pid)
	if len(fields) <= sessionAt {
		return 0, 0
	}
	group, _ = strconv.Atoi(fields[groupAt])
	session, _ = strconv.Atoi(fields[sessionAt])
	return group, session
}

// startOf returns when a process began, in ticks since boot.
func startOf(pid string) (began int64, alive bool) {
	const startAt = 19
	fields := statOf(pid)
	if len(fields) <= startAt {
		return 0, false
	}
	began, err := strconv.ParseInt(fields[startAt], 10, 64)
	return began, err == nil
}

// statOf returns the fields of /proc/PID/stat that follow the name of the process: state, parent, group, session and
// more. The name itself may contain any character, so it is left out. statOf returns nil if the process is gone.
func statOf(pid string) []string {
	b, err := os.ReadFile("/proc/" + pid + "/stat")
	if err != nil {
		return nil
	}
	return strings.Fields(string(b[strings.LastIndexByte(string(b), ')')+1:]))
}

// variablesOf returns the environment of a process. It is empty for a moment while the process executes a program.
func variablesOf(pid int) ([]string, error) {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/environ")
	if len(b) == 0 {
		return nil, err
	}
	return strings.Split(string(b), "\x00"), nil
}

// bears reports whether a process has all marks of a task among its environment variables.
func bears(env, marks []string) bool {
	return !slices.ContainsFunc(marks, func(m string) bool { return !slices.Contains(env, m) })
}
