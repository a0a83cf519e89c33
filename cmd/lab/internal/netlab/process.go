package netlab

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/candor-grid/candor/messages"
)

// stopWithin is the longest time that a process may take to stop after the signal to stop.
const stopWithin = 30 * time.Second

// process is a running process of a host. When it is ready, it sends a datagram to a socket, as services of systemd do.
type process struct {
	command *exec.Cmd
	log     string // file with all output of the process
	ready   chan struct{}
	ended   chan struct{}
}

func begin(command *exec.Cmd, log string) (*process, error) {
	p := &process{command: command, log: log, ready: make(chan struct{}), ended: make(chan struct{})}
	output, err := os.OpenFile(log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	defer output.Close() // the process has its own copy
	socket, err := listenNotify(log + ".notify")
	if err != nil {
		return nil, err
	}
	command.Stdout, command.Stderr = output, output
	command.Env = append(command.Environ(), "NOTIFY_SOCKET="+socket.LocalAddr().String())
	if err := command.Start(); err != nil {
		_ = socket.Close()
		return nil, err
	}
	go p.listen(socket)
	go func() {
		_ = command.Wait() // the method stop checks how the process ended
		_ = socket.Close()
		close(p.ended)
	}()
	return p, nil
}

// socketPath is the largest length of a socket's path in bytes.
const socketPath = 107

func listenNotify(path string) (*net.UnixConn, error) {
	if len(path) > socketPath {
		return nil, messages.Errorf(messages.Invalid, "%s: has more than %d bytes, which is the limit for the path of a socket; use a directory with a shorter path", path, socketPath)
	}
	_ = os.Remove(path) // the earlier process may have left this file
	return net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
}

// listen waits for the message that the process is ready.
func (p *process) listen(socket *net.UnixConn) {
	buffer := make([]byte, 4096)
	for {
		n, err := socket.Read(buffer)
		if err != nil {
			return
		}
		if strings.Contains(string(buffer[:n]), "READY=1") {
			close(p.ready)
			return
		}
	}
}

func (p *process) await(ctx context.Context) error {
	select {
	case <-p.ready:
		return nil
	case <-p.ended:
		return messages.Errorf(messages.Internal, "%s ended: %s", filepath.Base(p.log), p.tail())
	case <-ctx.Done():
		return messages.Errorf(messages.Unavailable, "%s is not ready: %v: %s", filepath.Base(p.log), ctx.Err(), p.tail())
	}
}

func (p *process) tail() string {
	const most = 4 << 10
	f, err := os.Open(p.log)
	if err != nil {
		return err.Error()
	}
	defer f.Close()
	if end, err := f.Seek(0, io.SeekEnd); err == nil {
		_, _ = f.Seek(max(0, end-most), io.SeekStart) // Seek cannot fail on a regular file
	}
	text, err := io.ReadAll(f)
	if err != nil {
		return err.Error()
	}
	return string(text)
}

func (p *process) kill() {
	_ = p.command.Process.Kill() // the process may have ended by itself
	<-p.ended
}

// end asks the process to end, and kills it after stopWithin.
func (p *process) end() error {
	_ = p.command.Process.Signal(syscall.SIGTERM)
	select {
	case <-p.ended:
		return nil
	case <-time.After(stopWithin):
		p.kill()
		return fmt.Errorf("%s did not stop within %v and was killed: %s", filepath.Base(p.log), stopWithin, p.tail())
	}
}

// stop stops the process, and returns an error if it did not end well.
func (p *process) stop() error {
	if err := p.end(); err != nil {
		return err
	}
	if !p.command.ProcessState.Success() {
		return fmt.Errorf("%s ended with %v: %s", filepath.Base(p.log), p.command.ProcessState, p.tail())
	}
	return nil
}

// memory returns the memory of the process in bytes, or 0 if unknown.
func (p *process) memory() int64 {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", p.command.Process.Pid))
	var size, resident int64
	if err != nil {
		return 0
	}
	if _, err := fmt.Sscan(string(text), &size, &resident); err != nil {
		return 0
	}
	return resident * int64(os.Getpagesize())
}
