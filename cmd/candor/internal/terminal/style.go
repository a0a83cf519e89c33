package terminal

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"

	"golang.org/x/term"
)

// Style says whether text is coloured. The zero value writes plain text.
type Style struct{ Colour bool }

// StyleFor returns the style for an output. It colours text for a terminal, unless the user refused colours: by flag,
// by NO_COLOR (any non-empty value, see no-color.org) or by TERM=dumb.
func StyleFor(isTerminal, refused bool, getenv func(string) string) Style {
	return Style{Colour: isTerminal && !refused && getenv("NO_COLOR") == "" && getenv("TERM") != "dumb"}
}

// IsTerminal reports whether f is an *os.File that is a terminal.
func IsTerminal(f any) bool {
	file, ok := f.(*os.File)
	return ok && term.IsTerminal(int(file.Fd()))
}

// Size returns the columns and rows of the terminal f. Unknown numbers are replaced by 80 and 24.
func Size(f any) (columns, rows int) {
	if file, ok := f.(*os.File); ok {
		columns, rows, _ = term.GetSize(int(file.Fd()))
	}
	if columns <= 0 {
		columns = 80
	}
	if rows <= 0 {
		rows = 24
	}
	return columns, rows
}

// Columns returns the width of the terminal w. It returns 0 if w is no terminal, because other output is not shortened.
func Columns(w io.Writer) int {
	if !IsTerminal(w) {
		return 0
	}
	columns, _ := Size(w)
	return columns
}

func (s Style) paint(code, text string) string {
	if !s.Colour || text == "" {
		return text
	}
	return "\x1b[" + code + "m" + text + "\x1b[0m"
}

// Bold makes text stand out.
func (s Style) Bold(text string) string { return s.paint("1", text) }

// Dim makes text less visible.
func (s Style) Dim(text string) string { return s.paint("2", text) }

// Red marks errors.
func (s Style) Red(text string) string { return s.paint("31", text) }

// Green marks success.
func (s Style) Green(text string) string { return s.paint("32", text) }

// Yellow marks things that wait or may need attention.
func (s Style) Yellow(text string) string { return s.paint("33", text) }

// Cyan marks things that are in progress.
func (s Style) Cyan(text string) string { return s.paint("36", text) }

// Width returns the number of columns that text takes on a terminal, without escape sequences of colours.
func Width(text string) int {
	n := 0
	for text != "" {
		if rest, ok := cutEscape(text); ok {
			text = rest
			continue
		}
		r, size := utf8.DecodeRuneInString(text)
		text, n = text[size:], n+runeWidth(r)
	}
	return n
}

// wide has the runes that take two columns: East Asian scripts, and pictures.
var wide = &unicode.RangeTable{
	R16: []unicode.Range16{{0x1100, 0x115f, 1}, {0x2e80, 0x303e, 1}, {0x3041, 0xa4cf, 1}, {0xac00, 0xd7a3, 1},
		{0xf900, 0xfaff, 1}, {0xfe30, 0xfe6f, 1}, {0xff00, 0xff60, 1}, {0xffe0, 0xffe6, 1}},
	R32: []unicode.Range32{{0x1f300, 0x1faff, 1}, {0x20000, 0x3fffd, 1}},
}

func runeWidth(r rune) int {
	switch {
	case unicode.In(r, unicode.Mn, unicode.Me):
		return 0
	case unicode.Is(wide, r):
		return 2
	}
	return 1
}

// Clip shortens a line to at most `width` columns, so that it does not wrap.
func Clip(line string, width int) string {
	if Width(line) <= width {
		return line
	}
	var b strings.Builder
	coloured := false
	for n := 0; line != ""; {
		if rest, ok := cutEscape(line); ok {
			b.WriteString(line[:len(line)-len(rest)])
			line, coloured = rest, true
			continue
		}
		r, size := utf8.DecodeRuneInString(line)
		if n += runeWidth(r); n >= width {
			break
		}
		b.WriteString(line[:size])
		line = line[size:]
	}
	if coloured {
		b.WriteString("\x1b[0m")
	}
	return b.String() + "…"
}

// clipStart shortens a line without colours to at most `width` columns. It cuts the beginning and keeps the end.
func clipStart(line string, width int) string {
	if Width(line) <= width {
		return line
	}
	for line != "" && Width(line) >= width {
		_, size := utf8.DecodeRuneInString(line)
		line = line[size:]
	}
	return "…" + line
}

// Plain returns text without the escape sequences of colours.
func Plain(text string) string {
	var b strings.Builder
	for text != "" {
		if rest, ok := cutEscape(text); ok {
			text = rest
			continue
		}
		_, size := utf8.DecodeRuneInString(text)
		b.WriteString(text[:size])
		text = text[size:]
	}
	return b.String()
}

// cutEscape removes one colour sequence from the front of text.
func cutEscape(text string) (rest string, ok bool) {
	sequence, rest, ok := strings.Cut(text, "m")
	if !ok || !strings.HasPrefix(sequence, "\x1b[") {
		return text, false
	}
	return rest, true
}

// Safe replaces control characters in an untrusted text. The text then cannot move the cursor, change colours, break a
// table or reverse the direction of later text.
func Safe(text string) string {
	return strings.Map(func(r rune) rune {
		if unsafe(r) {
			return '·'
		}
		return r
	}, text)
}

func unsafe(r rune) bool { return unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp) }

// SafeJSON escapes the characters that [Safe] replaces, in the strings of a JSON text. The JSON's meaning stays.
func SafeJSON(text []byte) []byte {
	if !bytes.ContainsFunc(text, unsafe) {
		return text
	}
	var out []byte
	for _, r := range string(text) {
		switch {
		case !unsafe(r):
			out = utf8.AppendRune(out, r)
		case r > 0xffff:
			high, low := utf16.EncodeRune(r)
			out = fmt.Appendf(out, "\\u%04x\\u%04x", high, low)
		default:
			out = fmt.Appendf(out, "\\u%04x", r)
		}
	}
	return out
}
