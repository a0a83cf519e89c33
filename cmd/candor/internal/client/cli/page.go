package cli

import (
	"bytes"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/candor-grid/candor/cmd/candor/internal/terminal"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/job"
	"github.com/candor-grid/candor/messages/market"
)

// Page collects the output of a command. A view is a function that writes a reply to a page.
type Page struct {
	bytes.Buffer
	terminal.Style
	Now     messages.Time
	Zone    *time.Location
	Columns int // width of the terminal; 80 without a terminal
	// Layout says which columns tables have and how they are written.
	Layout terminal.Layout
	tables []*terminal.Table
	listed bytes.Buffer // the names or columns that Layout asks for
}

// Part returns an empty page with the same settings as p.
func (p *Page) Part() *Page {
	return &Page{Style: p.Style, Now: p.Now, Zone: p.Zone, Columns: p.Columns, Layout: p.Layout}
}

// Table writes a table, shortened to the width of the terminal.
func (p *Page) Table(t *terminal.Table, indent string) {
	p.tables = append(p.tables, t)
	if p.alone() {
		if !p.Layout.Names || p.listed.Len() == 0 { // the first table is the main list of the command
			t.WriteAs(&p.listed, p.Style, "", p.Layout)
		}
		return
	}
	t.WriteAs(p, p.Style, indent, p.Layout)
}

// alone reports whether the user asked only for the names or columns of tables.
func (p *Page) alone() bool { return p.Layout.Names || len(p.Layout.Columns) > 0 }

// check returns an error if the user named a column that no table of the page has.
func (p *Page) check() error {
	for _, title := range p.Layout.Columns {
		if len(p.tables) == 0 || slices.ContainsFunc(p.tables, func(t *terminal.Table) bool { return t.Has(title) }) {
			continue
		}
		var there []string
		for _, t := range p.tables {
			for _, known := range t.Titles() {
				if t.Has(known) && !slices.Contains(there, known) {
					there = append(there, known)
				}
			}
		}
		return Usagef("--columns: there is no column %q: the columns are %s", title, strings.Join(there, ", "))
	}
	return nil
}

// Printf writes formatted text to the page.
func (p *Page) Printf(format string, args ...any) { fmt.Fprintf(&p.Buffer, format, args...) }

// State returns the name of a job's state in its colour.
func (p *Page) State(s job.State) string {
	switch s {
	case job.Completed:
		return p.Green(s.String())
	case job.Failed:
		return p.Red(s.String())
	case job.Cancelled, job.Discarded:
		return p.Yellow(s.String())
	case job.Running, job.Settling:
		return p.Cyan(s.String())
	}
	return s.String()
}

// instants is the format of times, in the user's time zone.
const instants = "2006-01-02 15:04:05"

// At writes a time, or "" for the zero time.
func (p *Page) At(t messages.Time) string {
	if t == 0 {
		return ""
	}
	return t.Std().In(p.Zone).Format(instants)
}

// Said writes a text from the site or from another user. It replaces control characters, and writes times in the zone
// of the page.
func (p *Page) Said(text string) string { return LocalTimes(terminal.Safe(text), p.Zone) }

// written matches a time in a sentence that the site wrote.
var written = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z`) })

// LocalTimes rewrites the times in a sentence of the site in another time zone.
func LocalTimes(text string, zone *time.Location) string {
	return written().ReplaceAllStringFunc(text, func(instant string) string {
		t, err := time.Parse(time.RFC3339Nano, instant)
		if err != nil {
			return instant
		}
		return t.In(zone).Format(instants)
	})
}

// Between writes the time between two instants. If the second instant is zero or in the future, Between counts up to
// now. If the first instant is zero, it returns "".
func (p *Page) Between(from, to messages.Time) string {
	if from == 0 {
		return ""
	}
	if to == 0 {
		to = p.Now
	}
	return terminal.Span(max(to.Sub(from).Std(), 0))
}

// Credits writes an amount with its unit.
func Credits(c messages.Credits) string {
	return c.Words()
}

// Price writes a number of credits that a mechanism computed, to four digits.
func Price(x float64) string {
	rounded, _ := strconv.ParseFloat(strconv.FormatFloat(x, 'g', 4, 64), 64) // cannot fail, because FormatFloat wrote the text
	if rounded >= 1000 && rounded < math.MaxInt32 {
		return terminal.Count(int(rounded))
	}
	return strconv.FormatFloat(rounded, 'f', -1, 64)
}

// Fields writes a line for each pair of a name and a value. It leaves out pairs with an empty value.
func (p *Page) Fields(pairs ...string) {
	width := 0
	for i := 0; i < len(pairs); i += 2 {
		if pairs[i+1] != "" {
			width = max(width, len(pairs[i]))
		}
	}
	for i := 0; i < len(pairs); i += 2 {
		if pairs[i+1] != "" {
			value := pairs[i+1]
			if p.Layout.Width > width+4 {
				value = terminal.WrapAt(value, width+4, p.Layout.Width)
			}
			p.Printf("  %s  %s\n", p.Dim(fmt.Sprintf("%-*s", width, pairs[i])), value)
		}
	}
}

// Title writes the heading of a part of the page.
func (p *Page) Title(text string) { p.Printf("\n%s\n", p.Bold(text)) }

// OrBlank writes a value, or "" for the zero value.
func OrBlank[T interface {
	comparable
	fmt.Stringer
}](value T) string {
	if value == *new(T) {
		return ""
	}
	return value.String()
}

// Number writes a count, or "" for 0.
func Number(n int) string {
	if n == 0 {
		return ""
	}
	return terminal.Count(n)
}

// AmountOf reads an amount of credits from the command line.
func AmountOf(text string) (messages.Credits, error) {
	amount, err := messages.ParseCredits(text)
	if err != nil {
		return 0, Usagef("%v", err)
	}
	return amount, nil
}

// Amount writes an amount of credits, or "" for 0.
func Amount(c messages.Credits) string {
	if c == 0 {
		return ""
	}
	return Credits(c)
}

// Change writes a difference of credits with its sign, or "" for 0.
func Change(c messages.Credits) string {
	if c == 0 {
		return ""
	}
	if c > 0 {
		return "+" + c.String()
	}
	return c.String()
}

// Prices writes the price, the slots and the demand of each class. It leaves out sealed prices.
func (p *Page) Prices(prices []market.ClassPrice) {
	t := terminal.NewTable("~CLASS|>PRICE (CREDITS)|SLOTS|>USED|>SLOTS WANTED|>BIDDERS").Spare("SLOTS")
	for _, c := range prices {
		busy, price, waiting := c.Slots-c.Idle, SlotPrice(c.Price, c.PerSecond), terminal.Count(c.Pending)
		if c.Sealed {
			price, waiting = "sealed", "sealed"
		}
		t.Row(c.Class, price, terminal.Bar(float64(busy)/float64(max(c.Slots, 1)), 16), fmt.Sprintf("%d/%d", busy, c.Slots),
			waiting, terminal.Count(c.Bidders))
	}
	p.Table(t, "  ")
}

// Change returns the text of the function [Change] in the colour of a gain or a loss.
func (p *Page) Change(c messages.Credits) string {
	if c < 0 {
		return p.Red(Change(c))
	}
	return p.Green(Change(c))
}
