package terminal

import (
	"os"
	"strings"
	"unicode/utf8"

	"golang.org/x/term"
)

// Style says whether text is coloured. The zero value writes plain text.
type Style struct{ Colour bool }

// StyleFor colours what goes to a terminal, unless the user refused: by flag,
// or through NO_COLOR (any non-empty value, see no-color.org) or TERM=dumb.
func StyleFor(isTerminal, refused bool, getenv func(string) string) Style {
	return Style{Colour: isTerminal && !refused && getenv("NO_COLOR") == "" && getenv("TERM") != "dumb"}
}

// IsTerminal reports whether f is an *os.File that is a terminal.
func IsTerminal(f any) bool {
	file, ok := f.(*os.File)
	return ok && term.IsTerminal(int(file.Fd()))
}

// Size returns the columns and rows of the terminal f, 80 by 24 where f has none.
func Size(f any) (columns, rows int) {
	if file, ok := f.(*os.File); ok {
		if w, h, err := term.GetSize(int(file.Fd())); err == nil && w > 0 && h > 0 {
			return w, h
		}
	}
	return 80, 24
}

func (s Style) paint(code, text string) string {
	if !s.Colour || text == "" {
		return text
	}
	return "\x1b[" + code + "m" + text + "\x1b[0m"
}

// Bold makes text stand out.
func (s Style) Bold(text string) string { return s.paint("1", text) }

// Dim makes text recede.
func (s Style) Dim(text string) string { return s.paint("2", text) }

// Red is for what went wrong.
func (s Style) Red(text string) string { return s.paint("31", text) }

// Green is for what went well.
func (s Style) Green(text string) string { return s.paint("32", text) }

// Yellow is for what waits or may need a look.
func (s Style) Yellow(text string) string { return s.paint("33", text) }

// Cyan is for what is under way.
func (s Style) Cyan(text string) string { return s.paint("36", text) }

// Width is the number of columns that text takes: its runes, without the
// escape sequences of colours.
func Width(text string) int {
	n := 0
	for text != "" {
		if rest, ok := cutEscape(text); ok {
			text = rest
			continue
		}
		_, size := utf8.DecodeRuneInString(text)
		text, n = text[size:], n+1
	}
	return n
}

// Clip shortens a line to at most width columns, so that it does not wrap.
func Clip(line string, width int) string {
	if Width(line) <= width {
		return line
	}
	var b strings.Builder
	coloured := false
	for n := 0; line != "" && n < width-1; {
		if rest, ok := cutEscape(line); ok {
			b.WriteString(line[:len(line)-len(rest)])
			line, coloured = rest, true
			continue
		}
		_, size := utf8.DecodeRuneInString(line)
		b.WriteString(line[:size])
		line, n = line[size:], n+1
	}
	if coloured {
		b.WriteString("\x1b[0m")
	}
	return b.String() + "…"
}

// cutEscape removes one colour sequence from the front of text.
func cutEscape(text string) (rest string, ok bool) {
	if !strings.HasPrefix(text, "\x1b[") {
		return text, false
	}
	end := strings.IndexByte(text, 'm')
	if end < 0 {
		return text, false
	}
	return text[end+1:], true
}

// Safe replaces control characters, so that a name or message that a stranger
// chose cannot move the cursor, recolour the terminal or break a table.
func Safe(text string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || (r >= 0x80 && r < 0xa0) {
			return '·'
		}
		return r
	}, text)
}
