package study

import (
	"fmt"
	"strings"
)

// Page is a page of Markdown that is being written.
type Page struct {
	text     strings.Builder
	captions map[string]string // captions by figure
}

// NewPage begins a page.
func NewPage(title string) *Page {
	p := &Page{captions: map[string]string{}}
	fmt.Fprintf(&p.text, "# %s\n", title)
	return p
}

// Section begins a section.
func (p *Page) Section(title string) { fmt.Fprintf(&p.text, "\n## %s\n", title) }

// Text adds a paragraph.
func (p *Page) Text(format string, args ...any) {
	fmt.Fprintf(&p.text, "\n"+format+"\n", args...)
}

// Figure adds a figure of the report to the page.
func (p *Page) Figure(name, caption string) {
	p.captions[name] = caption
	fmt.Fprintf(&p.text, "\n![%s](%s.svg)\n\n%s\n", caption, name, caption)
}

// Table adds a table.
func (p *Page) Table(head []string, rows [][]string) {
	rule := make([]string, len(head))
	for i := range rule {
		rule[i] = "---"
	}
	p.text.WriteByte('\n')
	for _, row := range append([][]string{head, rule}, rows...) {
		fmt.Fprintf(&p.text, "| %s |\n", strings.Join(row, " | "))
	}
}

// Cells returns numbers as cells of a table, all of one format.
func Cells(format string, numbers ...float64) []string {
	return Each(numbers, func(x *float64) string { return fmt.Sprintf(format, *x) })
}

// Claim adds a sentence of the paper, whether it holds, and a sentence about our run.
func (p *Page) Claim(holds bool, paper, ours string, args ...any) {
	verdict := "Same"
	if !holds {
		verdict = "Different"
	}
	p.Text("- %s: %s Ours: %s.", verdict, paper, fmt.Sprintf(ours, args...))
}

func (p *Page) String() string { return p.text.String() }
