package terminal_test

import (
	"testing"

	"golang.org/x/sys/unix"

	"github.com/candor-grid/candor/cmd/candor/internal/client/clienttest"
	"github.com/candor-grid/candor/cmd/candor/internal/terminal"
)

// After "stty cols 20", a terminal tells its width, but not its height. The width must be used.
func TestAWidthWithoutAHeightCounts(t *testing.T) {
	_, tty := clienttest.OpenTerminal(t)
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
