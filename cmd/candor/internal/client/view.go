package client

import (
	"bytes"
	"fmt"
	"strconv"
	"time"

	"github.com/candor-grid/candor/cmd/candor/internal/terminal"
	"github.com/candor-grid/candor/messages"
)

// page is output in the making: the views write on it. What a view writes is
// determined by the page and the reply alone.
type page struct {
	bytes.Buffer
	terminal.Style
	now     messages.Time
	zone    *time.Location
	columns int
}

func (p *page) printf(format string, args ...any) { fmt.Fprintf(&p.Buffer, format, args...) }

// state colours the state of a job.
func (p *page) state(s messages.State) string {
	switch s {
	case messages.Completed:
		return p.Green(s.String())
	case messages.Failed:
		return p.Red(s.String())
	case messages.Cancelled, messages.Discarded:
		return p.Yellow(s.String())
	case messages.Running, messages.Settling:
		return p.Cyan(s.String())
	}
	return s.String()
}

// at writes an instant in the page's zone: the time alone if it was within
// the last twelve hours.
func (p *page) at(t messages.Time) string {
	if t == 0 {
		return ""
	}
	layout := "2006-01-02 15:04"
	if age := p.now.Sub(t).Std(); age >= 0 && age < 12*time.Hour {
		layout = "15:04:05"
	}
	return t.Std().In(p.zone).Format(layout)
}

// exactly writes an instant in full.
func (p *page) exactly(t messages.Time) string {
	return t.Std().In(p.zone).Format("2006-01-02 15:04:05")
}

// between writes the span between two instants, up to now where the second
// has not come; "" where the first has not.
func (p *page) between(from, to messages.Time) string {
	if from == 0 {
		return ""
	}
	if to == 0 {
		to = p.now
	}
	return terminal.Span(max(to.Sub(from).Std(), 0))
}

// credits writes an amount with its unit.
func credits(c messages.Credits) string {
	if c == messages.Credit {
		return "1 credit"
	}
	return c.String() + " credits"
}

// price writes a number of credits that a mechanism computed, to four digits.
func price(x float64) string { return strconv.FormatFloat(x, 'g', 4, 64) }

// fields writes lines of a name and what it is, aligned; empty ones are left out.
func (p *page) fields(pairs ...string) {
	width := 0
	for i := 0; i < len(pairs); i += 2 {
		if pairs[i+1] != "" {
			width = max(width, len(pairs[i]))
		}
	}
	for i := 0; i < len(pairs); i += 2 {
		if pairs[i+1] != "" {
			p.printf("  %s  %s\n", p.Dim(fmt.Sprintf("%-*s", width, pairs[i])), pairs[i+1])
		}
	}
}

// title writes a heading of a part of the page.
func (p *page) title(text string) { p.printf("\n%s\n", p.Bold(text)) }

// number writes a count, "" for 0.
func number(n int) string {
	if n == 0 {
		return ""
	}
	return terminal.Count(n)
}
