package embedded

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math"
	"slices"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"go.uber.org/zap"
	"golang.org/x/sys/unix"
)

const (
	// leastLook is the shortest interval between two looks at the number of connections.
	leastLook = 20 * time.Millisecond
	// arrival is the shortest time in which a door gets one connection more. NATS accepts them one after another.
	arrival = 10 * time.Microsecond
	// staysShut is how long a door stays shut at least. Meanwhile NATS closes some connections that send nothing.
	staysShut = time.Second
	// acceptable bounds the connections of each door that wait to be accepted. They all become open files.
	acceptable = 128
)

// mostAtDoor returns how many connections a door may have before it is shut. Each takes about 50 KB of memory, and a file.
func mostAtDoor() int { return min(mostConnections()/8, 4096) }

// refuseStrangers bounds the connections of other servers and of browsers until the context ends. NATS bounds only the
// connections of clients. Everybody who reaches the other ports, such as a task, can open connections that send nothing,
// and each takes a file for up to ten seconds. A replica that can open no file ends its process. A door with too many
// connections is shut: it gets no new ones. Its connections, and the other doors, are not affected.
func refuseStrangers(ctx context.Context, o *server.Options, most int, log *zap.Logger) {
	doors, err := findDoors(o.Cluster.Port, o.LeafNode.Port, o.Websocket.Port)
	if err != nil {
		log.Warn("some connections of other servers or of browsers have no bound", zap.Error(err))
	}
	defer func() {
		for _, d := range doors {
			_ = unix.Close(d.listener)
		}
	}()
	var room, files int // at the last look
	var looked time.Time
	for len(doors) > 0 {
		select {
		case <-ctx.Done():
			return
		case <-time.After(max(leastLook, time.Duration(room)*arrival)): // until then, no open door has too many
		}
		now := openFiles()
		if now-files < room && time.Since(looked) < staysShut {
			continue // a look at all sockets would cost time, and no door can have too many
		}
		files, looked = now, time.Now()
		has := socketsOfPorts()
		room = most
		for _, d := range doors {
			log := log.With(zap.Int("port", d.port), zap.Int("connections", has[d.port]), zap.Int("most", most))
			switch was := d.shut; {
			case !d.decide(has[d.port], most, time.Now()):
			case was.IsZero():
				log.Warn("accepting no connections of other servers or of browsers at this port for now: it has too many", zap.Error(d.bar()))
			default:
				log.Info("accepting connections at this port again", zap.Error(d.unbar()))
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
	shut           time.Time // zero while the door is open
}

// decide opens or shuts the door for its number of connections, and reports whether this changes anything.
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
	nothing := []unix.SockFilter{{Code: unix.BPF_RET | unix.BPF_K}} // accepts 0 bytes of each packet
	return unix.SetsockoptSockFprog(d.listener, unix.SOL_SOCKET, unix.SO_ATTACH_FILTER, &unix.SockFprog{Len: 1, Filter: &nothing[0]})
}

func (d *door) unbar() error {
	return unix.SetsockoptInt(d.listener, unix.SOL_SOCKET, unix.SO_DETACH_FILTER, 0)
}

// findDoors finds the listeners of the ports among the files of this process. A port that is 0 has no listener. If some
// other port has none, the result also has an error.
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
		own, failed := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 0) // this number does not become another file
		if failed == nil {
			doors = append(doors, &door{port: port, listener: own})
			failed = unix.Listen(own, acceptable)
		}
		err = errors.Join(err, failed)
	}
	return doors, err
}

// openFiles returns about how many files this process has open: the kernel gives out the lowest free number.
func openFiles() int {
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

// sockets yields the open sockets of this process that have a port. New files get the lowest free numbers, so a large
// gap between the numbers of two sockets means that there is room: sockets stops there.
func sockets() iter.Seq2[int, int] {
	const gap = 1024
	return func(yield func(fd, port int) bool) {
		for fd, closed := 0, 0; closed < gap; fd++ {
			at, err := unix.Getsockname(fd)
			if closed++; err != unix.EBADF {
				closed = 0
			}
			if port := portOf(at); port > 0 && !yield(fd, port) {
				return
			}
		}
	}
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
