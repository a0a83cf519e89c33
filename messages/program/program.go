// Package program runs programs of the site: the filter for submissions, and the prolog and epilog of nodes.
//
// A program runs as the user of this process, in the directory /, in a separate process group. When the program ends,
// its whole group is ended. Its environment has PATH and the given variables.
package program

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"github.com/candor-grid/candor/messages"
)

// mostOutput bounds the standard output of a program, in bytes.
const mostOutput = 4 << 20

// Run runs a program until it ends or ctx ends, with input on its standard input. It returns the standard output. The
// text of an error continues a sentence that begins with the name of the program: "ended with exit status 3".
func Run(ctx context.Context, path string, env []string, input []byte) ([]byte, error) {
	began := time.Now()
	c := exec.CommandContext(ctx, path)
	out, said := &limited{most: mostOutput}, &limited{most: 4096}
	c.Stdin, c.Stdout, c.Stderr, c.Dir = bytes.NewReader(input), out, said, "/"
	c.Env = append([]string{"PATH=" + os.Getenv("PATH")}, env...)
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	end := func() error { return syscall.Kill(-c.Process.Pid, syscall.SIGKILL) }
	c.Cancel, c.WaitDelay = end, time.Second
	err := c.Run()
	if c.Process != nil {
		_ = end() // processes that the program has left
	}
	exit, failed := errors.AsType[*exec.ExitError](err)
	switch {
	case ctx.Err() != nil:
		return nil, fmt.Errorf("did not end within %v", time.Since(began).Round(100*time.Millisecond))
	case errors.Is(err, fs.ErrNotExist):
		return nil, errors.New("does not exist, or its interpreter does not exist")
	case errors.Is(err, fs.ErrPermission):
		return nil, errors.New("may not be executed by the user of the site")
	case failed:
		return nil, fmt.Errorf("ended with %v and wrote %q to its standard error", exit, messages.Short(strings.TrimSpace(string(said.text)), 200))
	case err != nil && !errors.Is(err, exec.ErrWaitDelay) && !errors.Is(err, syscall.EPIPE): // a program need not read its input
		return nil, fmt.Errorf("failed: %v", err)
	case out.over:
		return nil, fmt.Errorf("wrote more than %d MiB", mostOutput>>20)
	}
	return out.text, nil
}

// limited keeps the first bytes that are written to it, and drops the rest.
type limited struct {
	text []byte
	most int
	over bool
}

func (l *limited) Write(p []byte) (int, error) {
	room := min(len(p), l.most-len(l.text))
	l.over = l.over || room < len(p)
	l.text = append(l.text, p[:room]...)
	return len(p), nil
}
