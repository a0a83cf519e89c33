package launch

import (
	"os"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/candor-grid/candor/messages"
)

// Ends calls a function when a process exits, one function for each process. A single goroutine waits for the exits of
// all processes.
type Ends struct {
	file *os.File // the descriptor of epoll
	conn syscall.RawConn
	fd   int // descriptor of the field file

	mu   sync.Mutex
	then map[int32]func() // by the descriptor of the process
}

func OpenEnds() (*Ends, error) {
	fd, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err == nil {
		err = unix.SetNonblock(fd, true) // so that the runtime polls the file
	}
	e := &Ends{fd: fd, file: os.NewFile(uintptr(fd), "ends"), then: map[int32]func(){}}
	if err == nil {
		e.conn, err = e.file.SyscallConn()
	}
	if err != nil {
		return nil, messages.Errorf(messages.Unavailable, "runner: epoll: %v", err)
	}
	go e.listen()
	return e, nil
}

func (e *Ends) Close() error { return e.file.Close() }

// Await sets the function to call when a process has exited. Await does not wait, and does not reap the process.
func (e *Ends) Await(c Child, then func()) {
	if c.FD >= 0 {
		e.mu.Lock()
		e.then[int32(c.FD)] = then
		e.mu.Unlock()
		if unix.EpollCtl(e.fd, unix.EPOLL_CTL_ADD, c.FD, &unix.EpollEvent{Events: unix.EPOLLIN | unix.EPOLLONESHOT, Fd: int32(c.FD)}) == nil {
			return
		}
		e.take(int32(c.FD))
	}
	go func() {
		exited(c.PID)
		then()
	}()
}

// take closes a descriptor and removes it from the map. It returns the function that must be called when the process of
// this descriptor has ended.
func (e *Ends) take(fd int32) func() {
	e.mu.Lock()
	defer e.mu.Unlock()
	then := e.then[fd]
	delete(e.then, fd)
	_ = unix.Close(int(fd))
	return then
}

func (e *Ends) listen() {
	var events [16]unix.EpollEvent
	for {
		n := 0
		err := e.conn.Read(func(fd uintptr) bool {
			n, _ = unix.EpollWait(int(fd), events[:], 0)
			return n > 0
		})
		if err != nil {
			return
		}
		for _, event := range events[:n] {
			e.take(event.Fd)()
		}
	}
}
