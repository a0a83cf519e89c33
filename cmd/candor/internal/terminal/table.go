package terminal

import (
	"io"
	"strings"
)

// Column is a column of a table: its title, and whether its cells are
// aligned to the right, as numbers are.
type Column struct {
	Title string
	Right bool
}

// Left is a column of text.
func Left(title string) Column { return Column{Title: title} }

// Right is a column of numbers.
func Right(title string) Column { return Column{Title: title, Right: true} }

// Table is a table in the making. Columns in which no row has anything are
// left out.
type Table struct {
	columns []Column
	rows    [][]string
}

// NewTable starts a table.
func NewTable(columns ...Column) *Table { return &Table{columns: columns} }

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
		titles[i] = c.Title
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
			widths[i] = max(widths[i], Width(c.Title))
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
		if t.columns[i].Right {
			parts = append(parts, pad+cell)
		} else {
			parts = append(parts, cell+pad)
		}
	}
	return strings.TrimRight(strings.Join(parts, "  "), " ")
}
