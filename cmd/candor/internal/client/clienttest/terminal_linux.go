package clienttest

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/candor-grid/candor/cmd/candor/internal/client/cli"
	"github.com/candor-grid/candor/cmd/candor/internal/terminal"
	"github.com/candor-grid/candor/messages/bus"
)

// OpenTerminal opens a terminal of 100 columns and 30 rows. The test types into the first file and reads from it, as a
// person would. The tested program gets the second file.
func OpenTerminal(t *testing.T) (user, tty *os.File) {
	t.Helper()
	user, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { user.Close() })
	if err := unix.IoctlSetPointerInt(int(user.Fd()), unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	number, err := unix.IoctlGetInt(int(user.Fd()), unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	tty, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { tty.Close() })
	if err := unix.IoctlSetWinsize(int(tty.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: 30, Col: 100}); err != nil {
		t.Fatal(err)
	}
	return user, tty
}

// ReadUntil reads the output of the program up to a mark, and returns it with the mark.
func ReadUntil(t *testing.T, user *os.File, mark string) string {
	t.Helper()
	var seen bytes.Buffer
	piece := make([]byte, 4096)
	for !strings.Contains(seen.String(), mark) {
		n, err := user.Read(piece)
		if err != nil {
			t.Fatalf("%v after %q", err, seen.String())
		}
		seen.Write(piece[:n])
	}
	return seen.String()
}

// OnTerminal starts a command on a terminal. The channel gives the exit code of the command.
func (s *Site) OnTerminal(tty *os.File, args ...string) <-chan int {
	a := &cli.App{
		In: tty, Out: tty, Err: tty,
		Lookup:  func(name string) (string, bool) { v, ok := s.Env[name]; return v, ok },
		Environ: s.environ, Workdir: func() (string, error) { return s.Dir, nil },
		Now: func() time.Time { return Noon.Add(time.Hour) }, Zone: time.UTC,
		Pause:   func(ctx context.Context, _ time.Duration) error { return ctx.Err() },
		Connect: func(t cli.Target) (bus.Bus, error) { return s.Net.Connect(t.Account), nil }, Width: terminal.Columns,
	}
	code := make(chan int, 1)
	go func() { code <- s.Execute(s.T.Context(), a, args...) }()
	return code
}
