package proxy

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"go.uber.org/zap"
)

// listenAgain is the pause before an agent tries again to listen on a name that another process has.
const listenAgain = time.Second

// Listen serves connections to an abstract socket, a bounded number at the same time, until the returned function is
// called. That function also waits for the connections under way.
//
// While no agent runs, a task can listen on the name. The clients of other tasks notice this, but they cannot ask their
// site. So Listen tries again until it has the name. If root runs the agent, Listen ends the processes of other users
// that have it.
func Listen(name string, most int, log *zap.Logger, serve func(context.Context, net.Conn)) (stop func(), err error) {
	l, err := net.Listen("unix", name)
	if err != nil && !errors.Is(err, syscall.EADDRINUSE) {
		return nil, err
	}
	life, die := context.WithCancel(context.Background())
	var under sync.WaitGroup
	under.Go(func() {
		if l == nil {
			log.Warn("another process has the socket for the requests of tasks: they cannot ask the site, or start steps on other nodes, until it has ended", zap.String("socket", name))
			if l = insist(life, name, log); l == nil {
				return
			}
			log.Info("tasks can send requests again", zap.String("socket", name))
		}
		defer context.AfterFunc(life, func() { _ = l.Close() })()
		places := NewPlaces(most)
		for life.Err() == nil {
			conn, err := l.Accept()
			if err != nil {
				if life.Err() == nil {
					time.Sleep(100 * time.Millisecond) // too many files are open
				}
				continue
			}
			if ctx, served, leave, ok := places.Take(life, conn); ok {
				under.Go(func() {
					defer leave()
					serve(ctx, served)
				})
			}
		}
	})
	return func() { die(); under.Wait() }, nil
}

// insist tries to listen on a name until it succeeds, or until ctx ends; then it returns nil.
func insist(ctx context.Context, name string, log *zap.Logger) net.Listener {
	for {
		if os.Geteuid() == 0 {
			for _, pid := range strangers(name) {
				log.Warn("ended a process that had the socket for the requests of tasks", zap.String("socket", name), zap.Int("process", pid))
				_ = syscall.Kill(pid, syscall.SIGKILL)
			}
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(listenAgain):
		}
		if l, err := net.Listen("unix", name); err == nil {
			return l
		}
	}
}

// strangers returns the processes of users other than root that have an abstract socket open.
func strangers(name string) (pids []int) {
	text, _ := os.ReadFile("/proc/net/unix")
	sockets := map[string]bool{}
	for line := range strings.Lines(string(text)) {
		// Num RefCount Protocol Flags Type St Inode Path
		if f := strings.Fields(line); len(f) == 8 && f[7] == name {
			sockets[fmt.Sprintf("socket:[%s]", f[6])] = true
		}
	}
	files, _ := filepath.Glob("/proc/[0-9]*/fd/*")
	for _, file := range files {
		target, err := os.Readlink(file)
		if err != nil || !sockets[target] {
			continue
		}
		process := filepath.Dir(filepath.Dir(file))
		pid, bad := strconv.Atoi(filepath.Base(process))
		// The owner of the directory is root if the process refuses dumps, whoever runs it.
		status, err := os.ReadFile(filepath.Join(process, "status"))
		if _, uids, found := strings.Cut(string(status), "\nUid:\t"); err == nil && bad == nil && found && !strings.HasPrefix(uids, "0\t") {
			pids = append(pids, pid)
		}
	}
	return pids
}
