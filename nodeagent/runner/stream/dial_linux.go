package stream

import (
	"cmp"
	"errors"
	"net"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// Dialled is a task to which a connection is opened. It has only the methods that the connection needs.
type Dialled interface {
	Ended() <-chan struct{}              // closed when the task has ended
	Private() bool                       // no other account uses the task's network
	Socket(family int) (*os.File, error) // makes a socket in the task's network
	Owns(sockets []Listener) error       // returns an error if a socket does not belong to the task
}

// dialWithin is how long to wait until a program of a task accepts a connection.
const dialWithin = 3 * time.Second

// Dial connects to a port of the loopback in the task's network.
func Dial(t Dialled, port int) (conn net.Conn, err error) {
	var foreign error
	for _, to := range []struct {
		family int
		at     unix.Sockaddr
	}{{unix.AF_INET, &unix.SockaddrInet4{Port: port, Addr: [4]byte{127, 0, 0, 1}}}, {unix.AF_INET6, &unix.SockaddrInet6{Port: port, Addr: [16]byte{15: 1}}}} {
		socket, socketErr := t.Socket(to.family)
		if socketErr != nil {
			err = socketErr
			continue
		}
		if err = connectTo(t, socket, to.family, port, to.at); err == nil {
			conn, err = net.FileConn(socket)
		}
		_ = socket.Close()
		if err == nil {
			return conn, nil
		}
		if errors.Is(err, errForeign) {
			foreign = err
		}
	}
	return nil, cmp.Or(foreign, err)
}

// connectTo connects a socket to a listener of the task. It checks that the task is listening, because another process
// may listen at the port.
func connectTo(t Dialled, socket *os.File, family, port int, to unix.Sockaddr) error {
	if t.Private() { // the account has its own network
		return connect(t, socket, to)
	}
	before, err := listens(t, family, port)
	if err == nil {
		err = connect(t, socket, to)
	}
	if err == nil {
		err = reached(t, int(socket.Fd()), family, port, before)
	}
	return err
}

// connect connects a socket. Meanwhile it holds no lock of the task: the listener may take long to accept the
// connection.
func connect(t Dialled, socket *os.File, to unix.Sockaddr) error {
	raw, err := socket.SyscallConn()
	if err != nil {
		return err
	}
	_ = socket.SetWriteDeadline(time.Now().Add(dialWithin))
	over := make(chan struct{})
	defer close(over)
	go func() {
		select {
		case <-t.Ended():
			_ = socket.SetWriteDeadline(time.Now())
		case <-over:
		}
	}()
	begun, result := false, error(nil)
	err = raw.Write(func(fd uintptr) bool {
		if !begun {
			begun = true
			result = unix.Connect(int(fd), to)
			return result != unix.EINPROGRESS
		}
		number, err := unix.GetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_ERROR)
		if result = err; err == nil && number != 0 {
			result = unix.Errno(number)
		} else if err == nil {
			_, result = unix.Getpeername(int(fd)) // not connected yet: the wait ended without a reason
		}
		return result != unix.ENOTCONN
	})
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return unix.ETIMEDOUT
	}
	return errors.Join(err, result)
}
