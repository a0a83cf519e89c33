package terminal

import (
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/term"
)

// Block is a few lines that are redrawn in place, at the bottom of what was
// printed. The terminal must not be narrower than the lines: see [Clip].
type Block struct {
	Out   io.Writer
	lines int
}

// Draw replaces what was drawn before.
func (b *Block) Draw(lines ...string) {
	var s strings.Builder
	s.WriteString(b.erase())
	for _, line := range lines {
		s.WriteString(line + "\n")
	}
	io.WriteString(b.Out, s.String())
	b.lines = len(lines)
}

// Clear removes what was drawn.
func (b *Block) Clear() {
	io.WriteString(b.Out, b.erase())
	b.lines = 0
}

func (b *Block) erase() string {
	if b.lines == 0 {
		return ""
	}
	return fmt.Sprintf("\x1b[%dA\r\x1b[J", b.lines)
}

// Screen is the terminal's alternate screen, with keys read one by one. What
// was on the terminal before comes back with Close.
type Screen struct {
	in, out *os.File
	saved   *term.State
	keys    chan byte
}

// OpenScreen takes over the terminal whose two sides are in and out.
func OpenScreen(in, out *os.File) (*Screen, error) {
	saved, err := term.MakeRaw(int(in.Fd()))
	if err != nil {
		return nil, fmt.Errorf("terminal: %w", err)
	}
	s := &Screen{in: in, out: out, saved: saved, keys: make(chan byte)}
	io.WriteString(out, "\x1b[?1049h\x1b[?25l")
	go s.readKeys()
	return s, nil
}

// readKeys hands over what is typed. It ends with the input, or stays in its
// read until the process ends, as a read of a terminal cannot be interrupted.
func (s *Screen) readKeys() {
	defer close(s.keys)
	key := make([]byte, 1)
	for {
		if n, err := s.in.Read(key); n == 0 || err != nil {
			return
		}
		s.keys <- key[0]
	}
}

// Keys gives the keys as they are typed; closed at the end of the input.
func (s *Screen) Keys() <-chan byte { return s.keys }

// Draw shows text from the top left corner on, cut to the terminal's size.
func (s *Screen) Draw(text string) {
	columns, rows := Size(s.out)
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	lines = lines[:min(len(lines), rows)]
	var b strings.Builder
	b.WriteString("\x1b[H")
	for i, line := range lines {
		if i > 0 {
			b.WriteString("\r\n")
		}
		b.WriteString(Clip(line, columns) + "\x1b[K")
	}
	b.WriteString("\x1b[J")
	io.WriteString(s.out, b.String())
}

// Close gives the terminal back as it was.
func (s *Screen) Close() error {
	io.WriteString(s.out, "\x1b[?25h\x1b[?1049l")
	return term.Restore(int(s.in.Fd()), s.saved)
}
