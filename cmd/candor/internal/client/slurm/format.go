package slurm

//lint:file-ignore ST1005 errors are in the words of Slurm's commands, which programs look for

import (
	"fmt"
	"strconv"
	"strings"
)

type column struct {
	title  string
	width  int // 0 means as wide as its text
	right  bool
	text   func(*row) string
	before string // text before the field
	after  string // text after the field
}

func (k *column) write(b *strings.Builder, text string) {
	b.WriteString(k.before)
	switch runes := []rune(text); {
	case k.width == 0:
		b.WriteString(text)
	case len(runes) > k.width:
		b.WriteString(string(runes[:k.width]))
	case k.right:
		b.WriteString(strings.Repeat(" ", k.width-len(runes)) + text)
	default:
		b.WriteString(text + strings.Repeat(" ", k.width-len(runes)))
	}
	b.WriteString(k.after)
}

// print writes rows in columns. If `titles` is true, a line of titles comes first.
func (c *call) print(columns []column, rows []row, titles bool) error {
	var b strings.Builder
	if titles {
		for i := range columns {
			columns[i].write(&b, columns[i].title)
		}
		b.WriteByte('\n')
	}
	for r := range rows {
		for i := range columns {
			columns[i].write(&b, oneLine(columns[i].text(&rows[r])))
		}
		b.WriteByte('\n')
	}
	_, err := c.Out.Write([]byte(b.String()))
	return err
}

// oneLine replaces control characters in another user's text. Such characters could end the line, or send commands to
// the terminal.
func oneLine(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || r >= 0x80 && r < 0xa0 || r == '\u202e' {
			return '?'
		}
		return r
	}, s)
}

// letters reads a format such as "job %.18i %t|%M". Each letter after % names a field.
func letters(format string, known map[byte]column) (columns []column, err error) {
	lead := ""
	for i := 0; i < len(format); i++ {
		if format[i] != '%' || i+1 == len(format) {
			if len(columns) == 0 {
				lead += format[i : i+1]
			} else {
				columns[len(columns)-1].after += format[i : i+1]
			}
			continue
		}
		i++
		k := column{}
		if format[i] == '.' {
			k.right = true
			i++
		}
		from := i
		for i < len(format) && format[i] >= '0' && format[i] <= '9' {
			i++
		}
		k.width, _ = strconv.Atoi(format[from:i])
		if i == len(format) {
			return nil, fmt.Errorf("Invalid job format specification: %q", format)
		}
		field, ok := known[format[i]]
		if !ok {
			return nil, fmt.Errorf("Invalid job format specification: %%%c", format[i])
		}
		k.title, k.text = field.title, field.text
		columns = append(columns, k)
	}
	if len(columns) == 0 {
		columns = []column{{text: func(*row) string { return "" }}}
	}
	columns[0].before = lead
	return columns, nil
}
