package embedded

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"go.uber.org/zap"
	"golang.org/x/sys/unix"
)

const (
	// leastLook is the shortest interval between two counts of the connections.
	leastLook = 20 * time.Millisecond
	// arrival is the shortest time between two new connections at a door (a port that can be shut). NATS accepts them
	// one after another.
	arrival = 10 * time.Microsecond
	// staysShut is the shortest time for which a door stays shut. In this time, NATS closes some connections that send
	// nothing.
	staysShut = time.Second
	// acceptable is the maximum number of connections at each door that wait to be accepted. They all become open
	// files.
	acceptable = 128
)

// mostAtDoor returns how many connections a door may have before it is shut. Each connection takes about 50 KB of
// memory and an open file.
func mostAtDoor() int { return min(mostConnections()/8, 4096) }

// refuseStrangers limits the connections of other servers and of browsers until the context ends. NATS limits only the
// connections of clients. Everybody who reaches the other ports, for example a task, can open connections that send
// nothing. Each of them takes an open file for up to ten seconds, and a replica that can open no file ends its process.
// So a port (door) with too many connections is shut: it accepts no new ones. Its old connections, and the other ports,
// are not affected.
func refuseStrangers(ctx context.Context, o *server.Options, most int, log *zap.Logger) {
	doors, err := findDoors(o.Cluster.Port, o.LeafNode.Port, o.Websocket.Port)
	if err != nil {
		log.Warn("cannot limit some connections of other servers or of browsers", zap.Error(err))
	}
	defer func() {
		for _, d := range doors {
			_ = unix.Close(d.listener)
		}
	}()
	var room int // at the last count: how many more connections the fullest open door may get
	var looked time.Time
	for len(doors) > 0 {
		select {
		case <-ctx.Done():
			return
		case <-time.After(max(leastLook, time.Duration(room)*arrival)): // before this time, no open door can have too many connections
		}
		if lowestFree() < room && time.Since(looked) < staysShut {
			continue // new connections have lower numbers, so no door can have too many now, and counting all sockets takes time
		}
		looked = time.Now()
		has := socketsOfPorts()
		room = most
		for _, d := range doors {
			log := log.With(zap.Int("port", d.port), zap.Int("connections", has[d.port]), zap.Int("most", most))
			switch was := d.shut; {
			case !d.decide(has[d.port], most, time.Now()):
			case was.IsZero():
				err := d.bar()
				if err != nil {
					d.shut = was // the next count tries again
				}
				if err == nil || !d.failed {
					log.Warn("accepting no connections of other servers or of browsers at this port for now: the port has too many connections", zap.Error(err))
				}
				d.failed = err != nil
			default:
				err := d.unbar()
				if err != nil {
					d.shut = time.Now() // it is still shut
				}
				log.Info("accepting connections at this port again", zap.Error(err))
			}
			if d.shut.IsZero() {
				room = min(room, most-has[d.port])
			}
		}
	}
}

// door is a port that can be shut.
type door struct {
	port, listener int
	shut           time.Time // when the door was shut; the zero time means that it is open
	failed         bool      // the last attempt to shut the door failed
}

// decide opens or shuts the door by its number of connections, and reports whether this changes anything.
func (d *door) decide(has, most int, now time.Time) (changes bool) {
	switch {
	case d.shut.IsZero() && has >= most:
		d.shut = now
	case !d.shut.IsZero() && has < most && now.Sub(d.shut) > staysShut:
		d.shut = time.Time{}
	default:
		return false
	}
	return true
}

// bar makes the kernel drop new connections to the door.
func (d *door) bar() error {
	nothing := []unix.SockFilter{{Code: unix.BPF_RET | unix.BPF_K}} // a filter that accepts 0 bytes of each packet
	return unix.SetsockoptSockFprog(d.listener, unix.SOL_SOCKET, unix.SO_ATTACH_FILTER, &unix.SockFprog{Len: 1, Filter: &nothing[0]})
}

func (d *door) unbar() error {
	return unix.SetsockoptInt(d.listener, unix.SOL_SOCKET, unix.SO_DETACH_FILTER, 0)
}

// findDoors finds the listeners of the ports among the files of this process. The port 0 stands for no listener. If any
// other port has no listener, findDoors also returns an error.
func findDoors(ports ...int) (doors []*door, err error) {
	found := map[int]int{} // listeners by their ports
	for fd, port := range sockets() {
		if listens, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_ACCEPTCONN); err == nil && listens != 0 {
			found[port] = fd
		}
	}
	slices.Sort(ports)
	for _, port := range slices.Compact(ports) {
		fd, listens := found[port]
		if !listens && port != 0 {
			err = errors.Join(err, fmt.Errorf("port %d has no listener", port))
		}
		if !listens {
			continue
		}
		own, failed := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 0) // own file number of the listener, which no other file can get meanwhile
		if failed == nil {
			doors = append(doors, &door{port: port, listener: own})
			failed = unix.Listen(own, acceptable)
		}
		err = errors.Join(err, failed)
	}
	return doors, err
}

// lowestFree returns the lowest number that no open file of this process has. The kernel gives it to the next file.
func lowestFree() int {
	fd, err := unix.FcntlInt(0, unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return math.MaxInt
	}
	_ = unix.Close(fd)
	return fd
}

// socketsOfPorts returns about how many sockets each port of this process has.
func socketsOfPorts() map[int]int {
	has := map[int]int{}
	for _, port := range sockets() {
		has[port]++
	}
	return has
}

// sockets yields the open sockets of this process that have a port.
func sockets() iter.Seq2[int, int] {
	return func(yield func(fd, port int) bool) {
		for fd := range fileNumbers() {
			at, _ := unix.Getsockname(fd)
			if port := portOf(at); port > 0 && !yield(fd, port) {
				return
			}
		}
	}
}

// fileNumbers returns the size of the kernel's table of this process's files. All numbers of open files are lower.
func fileNumbers() (size int) {
	status, _ := os.ReadFile("/proc/self/status")
	_, after, _ := strings.Cut(string(status), "\nFDSize:")
	_, _ = fmt.Sscan(after, &size)
	return size
}

func portOf(a unix.Sockaddr) int {
	switch a := a.(type) {
	case *unix.SockaddrInet4:
		return a.Port
	case *unix.SockaddrInet6:
		return a.Port
	}
	return 0
}
