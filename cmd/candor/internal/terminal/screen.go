package terminal

import (
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"golang.org/x/term"
)

// Block is a few lines at the end of the output that are redrawn in place. The lines must not be wider than the
// terminal; see [Clip].
type Block struct {
	Out   io.Writer
	lines int
}

// Draw replaces the block's lines on the screen by new lines.
func (b *Block) Draw(lines ...string) {
	var s strings.Builder
	s.WriteString(b.erase())
	for _, line := range lines {
		s.WriteString(line + "\n")
	}
	io.WriteString(b.Out, s.String())
	b.lines = len(lines)
}

// Clear removes the block's lines from the screen.
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

// Screen is the terminal's alternate screen, with keys read one by one. Close restores the previous content.
type Screen struct {
	in, out *os.File
	saved   *term.State
	keys    chan Key
	closed  chan struct{}
}

// OpenScreen takes over a terminal. `in` is the terminal's input, and `out` is its output.
func OpenScreen(in, out *os.File) (*Screen, error) {
	saved, err := term.MakeRaw(int(in.Fd()))
	if err != nil {
		return nil, fmt.Errorf("terminal: %w", err)
	}
	s := &Screen{in: in, out: out, saved: saved, keys: make(chan Key), closed: make(chan struct{})}
	io.WriteString(out, "\x1b[?1049h\x1b[?25l")
	pieces := make(chan []byte)
	go s.read(pieces)
	go s.decode(pieces)
	return s, nil
}

// read sends typed bytes to the channel `pieces` until the input ends. A read from a terminal cannot be interrupted, so
// it may run until the process ends.
func (s *Screen) read(pieces chan<- []byte) {
	defer close(pieces)
	for {
		piece := make([]byte, 256)
		n, err := s.in.Read(piece)
		if n == 0 || err != nil {
			return
		}
		select {
		case pieces <- piece[:n]:
		case <-s.closed:
			return
		}
	}
}

// escapeWait is how long to wait after Escape for the other bytes of a sequence.
const escapeWait = 50 * time.Millisecond

// decode translates typed bytes into keys. A change of the terminal's size is also a key.
func (s *Screen) decode(pieces <-chan []byte) {
	defer close(s.keys)
	sizes := make(chan os.Signal, 1)
	signal.Notify(sizes, syscall.SIGWINCH)
	defer signal.Stop(sizes)
	var open Keys
	for {
		var late <-chan time.Time
		if open.Waiting() {
			late = time.After(escapeWait)
		}
		var keys []Key
		select {
		case piece, more := <-pieces:
			if !more {
				return
			}
			keys = open.Feed(piece)
		case <-late:
			keys = open.Flush()
		case <-sizes:
			keys = []Key{Resize}
		case <-s.closed:
			return
		}
		for _, key := range keys {
			select {
			case s.keys <- key:
			case <-s.closed:
				return
			}
		}
	}
}

// Keys returns a channel with the typed keys. The channel is closed at the end of the input.
func (s *Screen) Keys() <-chan Key { return s.keys }

// Size returns the columns and rows of the screen.
func (s *Screen) Size() (columns, rows int) { return Size(s.out) }

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

// Close restores the previous state of the terminal.
func (s *Screen) Close() error {
	close(s.closed)
	io.WriteString(s.out, "\x1b[?25h\x1b[?1049l")
	return term.Restore(int(s.in.Fd()), s.saved)
}
