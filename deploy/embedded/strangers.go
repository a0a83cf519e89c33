package embedded

import (
	"context"
	"errors"
	"slices"
	"syscall"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"go.uber.org/zap"
	"golang.org/x/sys/unix"
)

const (
	// manyFiles is how many files a process may have open, beyond its clients' connections, while it accepts others.
	manyFiles = 32768
	// valveEvery is the interval between two looks at the number of open files.
	valveEvery = 20 * time.Millisecond
	// valveShut is how long the ports stay shut at least. Meanwhile NATS closes some connections that send nothing.
	valveShut = time.Second
	// acceptable bounds the connections of each port that wait to be accepted. They all become open files.
	acceptable = 128
)

// refuseStrangers accepts no connections of other servers and of browsers while the process has many files open, until
// the context ends. NATS bounds only the connections of clients. Everybody who reaches the other ports, such as a task,
// can open connections that send nothing, and each takes a file for up to ten seconds. A replica that can open no file
// ends its process. Connections that exist already are not affected.
func refuseStrangers(ctx context.Context, s *server.Server, o *server.Options, log *zap.Logger) {
	v, err := newValve(o.Cluster.Port, o.LeafNode.Port, o.Websocket.Port)
	if err != nil {
		log.Warn("connections of servers and of browsers have no bound", zap.Error(err))
		return
	}
	defer v.close()
	var shut time.Time
	for tick := time.NewTicker(valveEvery); ; {
		select {
		case <-ctx.Done():
			tick.Stop()
			return
		case <-tick.C:
		}
		open, most := v.files()
		crowded := open >= min(most*5/8, manyFiles+s.NumClients())
		switch {
		case crowded && shut.IsZero():
			log.Warn("accepting no connections of other servers and of browsers for now: too many files are open", zap.Int("files", open), zap.Error(v.shut()))
			shut = time.Now()
		case !crowded && !shut.IsZero() && time.Since(shut) > valveShut:
			log.Info("accepting connections of other servers and of browsers again", zap.Int("files", open), zap.Error(v.open()))
			shut = time.Time{}
		}
	}
}

// valve makes the kernel drop new connections to some ports.
type valve struct{ listeners []int }

// newValve finds the listeners of the ports among the files of this process.
func newValve(ports ...int) (v valve, err error) {
	var found []int
	open, most := v.files()
	for fd := range min(most, open+1024) {
		at, err := unix.Getsockname(fd)
		if err != nil || !slices.Contains(ports, portOf(at)) {
			continue
		}
		if listens, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_ACCEPTCONN); err != nil || listens == 0 {
			continue
		}
		found = append(found, fd)
	}
	for _, fd := range found { // a descriptor of this process's own does not become another file
		own, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 0)
		if err != nil {
			return v, errors.Join(err, v.close())
		}
		v.listeners = append(v.listeners, own)
	}
	return v, v.each(func(fd int) error { return unix.Listen(fd, acceptable) })
}

// files returns about how many files are open, and how many the process may open.
func (v valve) files() (open, most int) {
	var files syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &files); err != nil {
		return 0, server.DEFAULT_MAX_CONNECTIONS
	}
	most = int(min(files.Cur, 1<<30))
	fd, err := unix.Dup(0) // the kernel gives out the lowest free descriptor
	if err != nil {
		return most, most
	}
	_ = unix.Close(fd)
	return fd, most
}

func (v valve) shut() error {
	nothing := []unix.SockFilter{{Code: unix.BPF_RET | unix.BPF_K}} // accepts 0 bytes of each packet
	return v.each(func(fd int) error {
		return unix.SetsockoptSockFprog(fd, unix.SOL_SOCKET, unix.SO_ATTACH_FILTER, &unix.SockFprog{Len: 1, Filter: &nothing[0]})
	})
}

func (v valve) open() error {
	return v.each(func(fd int) error { return unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_DETACH_FILTER, 0) })
}

func (v valve) close() error { return v.each(unix.Close) }

func (v valve) each(do func(listener int) error) (err error) {
	for _, fd := range v.listeners {
		err = errors.Join(err, do(fd))
	}
	return err
}

func portOf(a unix.Sockaddr) int {
	switch a := a.(type) {
	case *unix.SockaddrInet4:
		return a.Port
	case *unix.SockaddrInet6:
		return a.Port
	}
	return -1
}
