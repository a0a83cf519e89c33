package site_test

import (
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/candor-grid/candor/cmd/candor/internal/client/cli"
	"github.com/candor-grid/candor/cmd/candor/internal/client/clienttest"
	"github.com/candor-grid/candor/cmd/candor/internal/terminal"
)

func TestTopOnATerminal(t *testing.T) {
	for name, key := range map[string]string{"q": "q", "Ctrl-C": "\x03", "Escape": "\x1b"} {
		t.Run(name, func(t *testing.T) {
			s := clienttest.AnswerAll(newSite(t))
			user, tty := clienttest.OpenTerminal(t)
			before, err := unix.IoctlGetTermios(int(tty.Fd()), unix.TCGETS)
			if err != nil {
				t.Fatal(err)
			}
			code := s.OnTerminal(tty, "top", "--interval", "1h")
			frame := clienttest.ReadUntil(t, user, "q quits")
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
			clienttest.ReadUntil(t, user, "\x1b[?25h\x1b[?1049l")
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

// Arrow keys must scroll, although they begin with the byte of Escape. After a change of the terminal's size, the
// display must change at once.
func TestTopScrollsAndSorts(t *testing.T) {
	s := clienttest.AnswerAll(newSite(t))
	user, tty := clienttest.OpenTerminal(t)
	if err := unix.IoctlSetWinsize(int(tty.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: 8, Col: 80}); err != nil {
		t.Fatal(err)
	}
	code := s.OnTerminal(tty, "top", "--interval", "1h")
	clienttest.ReadUntil(t, user, "proportional")
	for _, step := range []struct{ keys, mark string }{
		{"\x1b[6~\x1b[B", "BUDGET"}, {"s", "sorts (budget)"}, {"\x1b[H", "proportional"},
	} {
		if _, err := user.WriteString(step.keys); err != nil {
			t.Fatal(err)
		}
		clienttest.ReadUntil(t, user, step.mark)
	}
	if _, err := user.WriteString("q"); err != nil {
		t.Fatal(err)
	}
	if got := <-code; got != cli.CodeOK {
		t.Errorf("exit code %d", got)
	}
}
