package site

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"github.com/candor-grid/candor/cmd/candor/internal/client/cli"
	"github.com/candor-grid/candor/cmd/candor/internal/terminal"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/market"
)

// look is the site's latest answer to the display, or the error that came instead. Before the first answer, both fields
// are nil.
type look struct {
	overview *overview
	err      error
}

// topView is the state of the display: the site's latest answer, the scrolled lines, and the sort order.
type topView struct {
	look     look
	offset   int // first line shown below the header
	by       int // index in the list of orders by which jobs can be sorted
	reversed bool
}

// order is a column by which the display can sort the jobs.
type order struct {
	name    string
	compare func(a, b market.JobShare) int
}

var orders = []order{
	{"share", func(a, b market.JobShare) int { return 0 }},
	{"budget", func(a, b market.JobShare) int { return cmp.Compare(b.Budget, a.Budget) }},
	{"running", func(a, b market.JobShare) int { return cmp.Compare(b.Running, a.Running) }},
	{"waiting", func(a, b market.JobShare) int { return cmp.Compare(b.Pending, a.Pending) }},
	{"account", func(a, b market.JobShare) int { return cmp.Compare(a.Account, b.Account) }},
	{"job", func(a, b market.JobShare) int { return cmp.Compare(a.Job, b.Job) }},
}

// around is the number of lines of a frame that do not scroll: the head, two blank lines and the keys.
const around = 4

// press handles a key, and reports whether the user wants to quit.
func (v *topView) press(key terminal.Key, rows int) (enough bool) {
	page := max(1, rows-around)
	switch key {
	case 'q', 'Q', terminal.Interrupt, terminal.Escape:
		return true
	case 's':
		v.by = (v.by + 1) % len(orders)
	case 'S':
		v.by = (v.by + len(orders) - 1) % len(orders)
	case 'r':
		v.reversed = !v.reversed
	case terminal.Up, 'k':
		v.offset--
	case terminal.Down, 'j':
		v.offset++
	case terminal.PageUp, 'b':
		v.offset -= page
	case terminal.PageDown, ' ':
		v.offset += page
	case terminal.Home, 'g':
		v.offset = 0
	case terminal.End, 'G':
		v.offset = math.MaxInt32
	}
	v.offset = max(0, v.offset)
	return false
}

// frame returns the text for a terminal. `rows` is the number of the terminal's lines. If the site does not answer, the
// text says so.
func (v *topView) frame(p *cli.Page, rows int) string {
	head := p.Bold("candor top")
	if v.look == (look{}) {
		return head + "\n\n" + p.Dim("asking the site ...") + "\n"
	}
	if o := v.look.overview; o != nil && v.look.err == nil {
		head = topHead(p, *o)
	}
	body := v.body(p)
	v.offset = min(v.offset, max(0, len(body)-max(1, rows-around)))
	body = body[v.offset:]
	body = body[:min(len(body), max(1, rows-around))]
	keys := "q quits  ↑↓ scroll  s sorts (" + orders[v.by].name + ")  r reverses"
	return head + "\n\n" + strings.Join(body, "\n") + "\n\n" + p.Dim(keys) + "\n"
}

// body returns the lines that can scroll.
func (v *topView) body(p *cli.Page) []string {
	if v.look.err != nil {
		said := terminal.Safe(cli.Sentence(v.look.err))
		if messages.KindOf(v.look.err).Retriable() {
			said = "The site does not answer: " + said
		}
		return []string{p.Yellow(said)}
	}
	part := p.Part()
	o := *v.look.overview
	o.Markets = v.sorted(o.Markets)
	writeOverview(part, o)
	return strings.Split(strings.TrimRight(part.String(), "\n"), "\n")
}

func (v *topView) sorted(markets []market.MarketStatus) []market.MarketStatus {
	markets = slices.Clone(markets)
	for i := range markets {
		top := slices.Clone(markets[i].Top)
		slices.SortStableFunc(top, orders[v.by].compare)
		if v.reversed {
			slices.Reverse(top)
		}
		markets[i].Top = top
	}
	return markets
}
