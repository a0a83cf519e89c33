package client

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
	"github.com/candor-grid/candor/messages/job"
)

// openTerminal makes a terminal of 100 columns and 30 rows. user is the person's side, and tty the program's side.
func openTerminal(t *testing.T) (user, tty *os.File) {
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

// TestAWidthWithoutAHeightCounts checks that the width of a terminal is used even if the terminal does not tell its
// height, as after "stty cols 20".
func TestAWidthWithoutAHeightCounts(t *testing.T) {
	_, tty := openTerminal(t)
	for _, c := range []struct{ told, want unix.Winsize }{
		{unix.Winsize{Col: 20}, unix.Winsize{Col: 20, Row: 24}}, {unix.Winsize{Row: 50}, unix.Winsize{Col: 80, Row: 50}}, {unix.Winsize{}, unix.Winsize{Col: 80, Row: 24}},
	} {
		if err := unix.IoctlSetWinsize(int(tty.Fd()), unix.TIOCSWINSZ, &c.told); err != nil {
			t.Fatal(err)
		}
		if columns, rows := terminal.Size(tty); columns != int(c.want.Col) || rows != int(c.want.Row) {
			t.Errorf("%+v: %d columns and %d rows", c.told, columns, rows)
		}
	}
}

// readUntil reads the output of the program up to a mark, and returns it with the mark.
func readUntil(t *testing.T, user *os.File, mark string) string {
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

// onTerminal starts a command on a terminal. The channel gives its exit code.
func (s *fakeSite) onTerminal(tty *os.File, args ...string) <-chan int {
	a := &cli.App{
		In: tty, Out: tty, Err: tty,
		Lookup:  func(name string) (string, bool) { v, ok := s.env[name]; return v, ok },
		Environ: s.environ, Workdir: func() (string, error) { return s.dir, nil },
		Now: func() time.Time { return noon.Add(time.Hour) }, Zone: time.UTC,
		Pause:   func(ctx context.Context, _ time.Duration) error { return ctx.Err() },
		Connect: func(t cli.Target) (bus.Bus, error) { return s.net.Connect(t.Account), nil }, Width: terminal.Columns,
	}
	code := make(chan int, 1)
	go func() { code <- run(s.t.Context(), a, args, root(a, nil)) }()
	return code
}

func TestTopOnATerminal(t *testing.T) {
	for name, key := range map[string]string{"q": "q", "Ctrl-C": "\x03", "Escape": "\x1b"} {
		t.Run(name, func(t *testing.T) {
			s := fullSite(t)
			user, tty := openTerminal(t)
			before, err := unix.IoctlGetTermios(int(tty.Fd()), unix.TCGETS)
			if err != nil {
				t.Fatal(err)
			}
			code := s.onTerminal(tty, "top", "--interval", "1h")
			frame := readUntil(t, user, "q quits")
			if !strings.Contains(frame, "\x1b[?1049h") || !strings.Contains(frame, "proportional") || !strings.Contains(frame, "\x1b[1m") {
				t.Errorf("the screen shows %q", frame)
			}
			for line := range strings.SplitSeq(strings.ReplaceAll(frame, "\x1b[H", "\r\n"), "\r\n") {
				if terminal.Width(strings.NewReplacer("\x1b[K", "", "\x1b[H", "", "\x1b[J", "", "\x1b[?1049h", "", "\x1b[?25l", "").Replace(line)) > 100 {
					t.Errorf("a line is wider than the terminal: %q", line)
				}
			}
			if _, err := user.WriteString(key); err != nil {
				t.Fatal(err)
			}
			readUntil(t, user, "\x1b[?25h\x1b[?1049l")
			if got := <-code; got != cli.CodeOK {
				t.Errorf("exit code %d", got)
			}
			after, err := unix.IoctlGetTermios(int(tty.Fd()), unix.TCGETS)
			if err != nil || *after != *before {
				t.Errorf("the terminal was not given back as it was: %v", err)
			}
		})
	}
}

// TestTopScrollsAndSorts types keys in top. Arrow keys, which begin with the byte of Escape, must scroll. A new size
// of the terminal must show at once.
func TestTopScrollsAndSorts(t *testing.T) {
	s := fullSite(t)
	user, tty := openTerminal(t)
	if err := unix.IoctlSetWinsize(int(tty.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: 8, Col: 80}); err != nil {
		t.Fatal(err)
	}
	code := s.onTerminal(tty, "top", "--interval", "1h")
	readUntil(t, user, "proportional")
	for _, step := range []struct{ keys, mark string }{
		{"\x1b[6~\x1b[B", "BUDGET"}, {"s", "sorts (budget)"}, {"\x1b[H", "proportional"},
	} {
		if _, err := user.WriteString(step.keys); err != nil {
			t.Fatal(err)
		}
		readUntil(t, user, step.mark)
	}
	if _, err := user.WriteString("q"); err != nil {
		t.Fatal(err)
	}
	if got := <-code; got != cli.CodeOK {
		t.Errorf("exit code %d", got)
	}
}

// TestWaitOnATerminal checks that progress is redrawn in place on a terminal, and removed at the end.
func TestWaitOnATerminal(t *testing.T) {
	s := newSite(t)
	submissions(s)
	s.write("x.sh", "date\n")
	progressing(s, job.JobSummary{Reason: "WaitingForShare"}, job.JobSummary{State: job.Running, Running: 1}, job.JobSummary{State: job.Completed, Ended: at(9)})
	user, tty := openTerminal(t)
	code := s.onTerminal(tty, "submit", "-b", "1", "--wait", s.path("x.sh"))
	shown := readUntil(t, user, "charged to alice")
	if got := <-code; got != cli.CodeOK {
		t.Errorf("exit code %d", got)
	}
	if strings.Count(shown, "\x1b[1A\r\x1b[J") != 3 {
		t.Errorf("progress was not redrawn in place: %q", shown)
	}
}

// TestColoursLeaveTheTextAlone runs commands with and without colours. Without the colour sequences, the text must be
// the same.
func TestColoursLeaveTheTextAlone(t *testing.T) {
	s := fullSite(t)
	s.width = 100 // the width of the terminal
	for _, line := range []string{"jobs", "why 104", "markets", "statement"} {
		user, tty := openTerminal(t)
		code := s.onTerminal(tty, strings.Fields(line)...)
		go func() {
			<-code
			tty.WriteString("END")
		}()
		coloured := strings.ReplaceAll(strings.TrimSuffix(readUntil(t, user, "END"), "END"), "\r\n", "\n")
		plain := s.run(strings.Fields(line)...).out
		if coloured == plain {
			t.Errorf("%s: nothing was coloured", line)
		}
		if got := uncoloured(coloured); got != plain {
			t.Error(difference(got, plain))
		}
	}
}

// uncoloured removes the colour sequences from a text.
func uncoloured(s string) string {
	out := []byte{}
	for i := 0; i < len(s); i++ {
		if s[i] == 0x1b {
			for s[i] != 'm' {
				i++
			}
			continue
		}
		out = append(out, s[i])
	}
	return string(out)
}

// TestMenuIsDrawn checks that the menu of contracts is also drawn as a curve on a terminal.
func TestMenuIsDrawn(t *testing.T) {
	s, _ := marketSite(t)
	s.write("job.yaml", "market: sold\nlength: 10s\ncommand: [hostname]\nvaluation: {class: hard, max: 20, deadline: 90}\n")
	user, tty := openTerminal(t)
	code := s.onTerminal(tty, "quote", s.path("job.yaml"))
	go func() {
		<-code
		tty.WriteString("END")
	}()
	shown := readUntil(t, user, "END")
	for _, mark := range []string{"│·", "◆", "└──"} {
		if !strings.Contains(shown, mark) {
			t.Errorf("no %q in:\n%s", mark, shown)
		}
	}
}
