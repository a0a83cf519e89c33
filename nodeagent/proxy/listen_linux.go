package proxy

import (
	"context"
	"errors"
	"net"
	"sync"
	"syscall"
	"time"

	"go.uber.org/zap"
)

// listenAgain is the pause before an agent tries again to listen on a name that another process has.
const listenAgain = time.Second

// Listen serves connections to an abstract socket, a bounded number at the same time, until the returned function is
// called. That function also waits for the connections under way. The function refuse answers a connection that gets no
// place, and must not read from it. The client gets the answer even if its request was not read.
//
// While no agent runs, a task can listen on the name. The clients of other tasks notice this, but they cannot ask their
// site. So Listen tries again until it has the name, and logs which process took it.
func Listen(name string, most int, log *zap.Logger, serve func(context.Context, net.Conn), refuse func(net.Conn, error)) (stop func(), err error) {
	l, err := net.Listen("unix", name)
	if err != nil && !errors.Is(err, syscall.EADDRINUSE) {
		return nil, err
	}
	life, die := context.WithCancel(context.Background())
	var under sync.WaitGroup
	under.Go(func() {
		if l == nil {
			process, user := holder(name)
			log.Warn("the socket for the requests of tasks was taken by another process: end the tasks of that process's user, because until then tasks cannot send requests to the site, or start steps on other nodes",
				zap.String("socket", name), zap.Int("process", process), zap.Int("user", user))
			if l = insist(life, name); l == nil {
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
			ctx, served, leave, err := places.Take(life, conn)
			if err != nil {
				_ = conn.SetDeadline(time.Now().Add(listenAgain))
				refuse(conn, err)
				_ = conn.Close()
				continue
			}
			under.Go(func() {
				defer leave()
				serve(ctx, served)
			})
		}
	})
	return func() { die(); under.Wait() }, nil
}

// insist tries again and again to listen on a name, until it succeeds. If ctx ends first, it returns nil.
func insist(ctx context.Context, name string) net.Listener {
	for {
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

// holder returns the process that began to listen on a socket with a given name, and the user of this process. It
// returns zeros if they cannot be found out. The process may have passed the socket on and ended, and its number may
// belong to another process now.
func holder(name string) (process, user int) {
	conn, err := net.DialTimeout("unix", name, time.Second)
	if err != nil {
		return 0, 0
	}
	defer conn.Close()
	peer, err := peerOf(conn)
	if err != nil {
		return 0, 0
	}
	return int(peer.Pid), int(peer.Uid)
}
