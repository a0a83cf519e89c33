package terminal

import (
	"io"
	"strings"
)

// column is a column of a table: its title, and whether its cells are
// aligned to the right, as numbers are.
type column struct {
	title string
	right bool
}

// Table is a table in the making. Columns in which no row has anything are
// left out.
type Table struct {
	columns []column
	rows    [][]string
}

// NewTable starts a table with the titles of a header, which a "|" parts; ">" stands
// before the title of a column of numbers.
func NewTable(header string) *Table {
	t := new(Table)
	for title := range strings.SplitSeq(header, "|") {
		title, right := strings.CutPrefix(title, ">")
		t.columns = append(t.columns, column{title, right})
	}
	return t
}

// Row adds a row: a cell for each column.
func (t *Table) Row(cells ...string) { t.rows = append(t.rows, cells[:len(t.columns):len(t.columns)]) }

// Len is the number of rows.
func (t *Table) Len() int { return len(t.rows) }

// Write writes the table, each column as wide as its widest cell, two spaces
// apart, each line after indent.
func (t *Table) Write(w io.Writer, style Style, indent string) {
	widths := t.widths()
	titles := make([]string, len(t.columns))
	for i, c := range t.columns {
		titles[i] = c.title
	}
	var b strings.Builder
	if head := t.line(titles, widths); head != "" {
		b.WriteString(indent + style.Dim(head) + "\n")
	}
	for _, row := range t.rows {
		b.WriteString(strings.TrimRight(indent+t.line(row, widths), " ") + "\n")
	}
	io.WriteString(w, b.String())
}

// widths returns each column's width, 0 for those to be left out.
func (t *Table) widths() []int {
	widths := make([]int, len(t.columns))
	for i, c := range t.columns {
		for _, row := range t.rows {
			widths[i] = max(widths[i], Width(row[i]))
		}
		if widths[i] > 0 {
			widths[i] = max(widths[i], Width(c.title))
		}
	}
	return widths
}

func (t *Table) line(cells []string, widths []int) string {
	var parts []string
	for i, cell := range cells {
		if widths[i] == 0 {
			continue
		}
		pad := strings.Repeat(" ", widths[i]-Width(cell))
		if t.columns[i].right {
			parts = append(parts, pad+cell)
		} else {
			parts = append(parts, cell+pad)
		}
	}
	return strings.TrimRight(strings.Join(parts, "  "), " ")
}
