package terminal

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// Span writes a duration with two or three digits: "830ms", "4.2s", "42s", "3m05s", "2h04m", "3d07h".
func Span(d time.Duration) string {
	if d < 0 {
		return "-" + Span(-d)
	}
	switch {
	case d == 0:
		return "0s"
	case d < time.Millisecond:
		return "<1ms"
	case d < time.Second:
		return strconv.FormatInt(d.Milliseconds(), 10) + "ms"
	case d < 10*time.Second:
		return strconv.FormatFloat(math.Floor(d.Seconds()*10)/10, 'f', 1, 64) + "s"
	case d < time.Minute:
		return strconv.Itoa(int(d/time.Second)) + "s"
	case d < time.Hour:
		return fmt.Sprintf("%dm%02ds", d/time.Minute, d%time.Minute/time.Second)
	case d < 24*time.Hour:
		return fmt.Sprintf("%dh%02dm", d/time.Hour, d%time.Hour/time.Minute)
	}
	return fmt.Sprintf("%dd%02dh", d/(24*time.Hour), d%(24*time.Hour)/time.Hour)
}

// Percent writes a share in [0, 1] as a percentage, below 10 % with one decimal place.
func Percent(share float64) string {
	if share > 0 && share < 0.0995 {
		return strconv.FormatFloat(100*share, 'f', 1, 64) + "%"
	}
	return strconv.FormatFloat(100*share, 'f', 0, 64) + "%"
}

// Count writes a whole number with separators between thousands.
func Count[N int | int64 | uint64 | uint32](n N) string {
	digits := strconv.FormatInt(int64(n), 10)
	sign := ""
	if digits[0] == '-' {
		sign, digits = "-", digits[1:]
	}
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return sign + digits
}

// Plural writes a count with its noun: "1 task", "12 tasks".
func Plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return Count(n) + " " + noun + "s"
}

// Bar draws a fraction in [0, 1] as a bar of width columns, in eighths of a column.
func Bar(fraction float64, width int) string {
	eighths := int(math.Round(min(max(fraction, 0), 1) * float64(width) * 8))
	bar := strings.Repeat("█", eighths/8)
	if part := eighths % 8; part > 0 {
		bar += string([]rune("▏▎▍▌▋▊▉")[part-1])
	}
	return bar + strings.Repeat("░", width-Width(bar))
}

// Wrap breaks lines that are wider than width, between words. The second part of a broken line gets the line's
// indentation. If the line is an item of a list, the second part begins below the text of the item. A single word that
// is too wide stays whole.
func Wrap(text string, width int) string {
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		if Width(line) > width {
			body := strings.TrimLeft(line, " ")
			in := len(line) - len(body)
			if strings.HasPrefix(body, "- ") {
				in += 2
			}
			lines[i] = line[:in] + WrapAt(line[in:], in, width)
		}
	}
	return strings.Join(lines, "\n")
}

// WrapAt breaks text that begins at a column of the terminal. The following lines begin at the same column.
func WrapAt(body string, column, width int) string {
	indent := strings.Repeat(" ", column)
	var b strings.Builder
	at := 0 // number of columns that the present line has
	for i, word := range strings.Split(body, " ") {
		switch {
		case i == 0:
			at = len(indent)
		case at+1+Width(word) > width && at > len(indent):
			b.WriteString("\n" + indent)
			at = len(indent)
		default:
			b.WriteString(" ")
			at++
		}
		b.WriteString(word)
		at += Width(word)
	}
	return b.String()
}
