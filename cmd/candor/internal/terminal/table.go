package terminal

import (
	"io"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

type column struct {
	title string
	right bool // aligned to the right, for numbers
	least int  // least width of a cell that is shortened; 0 means cells are not shortened
	end   bool // a cell that is shortened keeps its end, not its beginning
}

// Table collects the cells of a table. A column without any text is not printed. On a narrow terminal, spare columns
// (columns that readers can do without) are not printed either.
type Table struct {
	columns []column
	rows    [][]string
	spare   []int // indices of spare columns, in the order in which they are left out
}

// Layout says how a table is written. The zero value writes all of the table.
type Layout struct {
	Width   int      // width of the terminal in columns; 0 means no limit
	Names   bool     // print only the first cell of each row, without titles
	Columns []string // titles of the only columns to print, in this order
}

// NewTable starts a table. The header has the titles of the columns, separated by "|". A title may begin with marks.
// The mark ">" aligns the column to the right. With the mark "~", cells may be shortened at the end. With "~30", they
// keep at least 30 characters. The mark "<" is used like "~", but cells are shortened at the beginning.
func NewTable(header string) *Table {
	t := new(Table)
	for title := range strings.SplitSeq(header, "|") {
		title, right := strings.CutPrefix(title, ">")
		title, end := strings.CutPrefix(title, "<")
		c := column{right: right, end: end}
		if text, short := strings.CutPrefix(title, "~"); short || end {
			c.least, title = leastWidth(text)
		}
		c.title = title
		t.columns = append(t.columns, c)
	}
	return t
}

// leastCell is the smallest width to which a cell is shortened, in characters. The header of a column can give another
// width.
const leastCell = 12

// leastWidth splits a text such as "20Reason" into the least width of a column and its title. If the text has no
// number, the least width is leastCell.
func leastWidth(text string) (least int, title string) {
	title = strings.TrimLeft(text, "0123456789")
	if n, err := strconv.Atoi(text[:len(text)-len(title)]); err == nil {
		return n, title
	}
	return leastCell, title
}

// Spare names the columns that the table may leave out on a narrow terminal. It leaves out the first named column
// first. The argument has the titles of the columns, separated by "|".
func (t *Table) Spare(titles string) *Table {
	for title := range strings.SplitSeq(titles, "|") {
		if i := t.find(title); i >= 0 {
			t.spare = append(t.spare, i)
		}
	}
	return t
}

// Row adds a row with a cell for each column.
func (t *Table) Row(cells ...string) { t.rows = append(t.rows, cells[:len(t.columns):len(t.columns)]) }

// Len returns the number of rows.
func (t *Table) Len() int { return len(t.rows) }

// Titles returns the titles of all columns.
func (t *Table) Titles() []string {
	titles := make([]string, len(t.columns))
	for i, c := range t.columns {
		titles[i] = c.title
	}
	return titles
}

// Has reports whether the table has a column with this title. Case, spaces and signs do not matter.
func (t *Table) Has(title string) bool { return t.find(title) >= 0 }

// find returns the index of the column with a title, or −1. Case, spaces and signs do not matter.
func (t *Table) find(title string) int {
	plain := plainTitle(title)
	return slices.IndexFunc(t.columns, func(c column) bool { return plain != "" && plainTitle(c.title) == plain })
}

func plainTitle(title string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) || unicode.IsDigit(r) || r == '%' {
			return unicode.ToLower(r)
		}
		return -1
	}, title)
}

// Write writes the table. On a terminal, no line is wider than the terminal.
func (t *Table) Write(w io.Writer, style Style, indent string) {
	t.WriteAs(w, style, indent, Layout{Width: Columns(w)})
}

// WriteAs writes the table with a layout. Two spaces separate columns, and each line begins with indent. No line is
// wider than the layout allows.
func (t *Table) WriteAs(w io.Writer, style Style, indent string, l Layout) {
	if l.Names {
		t.writeNames(w)
		return
	}
	shown := t.chosen(l.Columns)
	if len(shown) == 0 {
		return
	}
	shown, widths := t.fit(shown, len(indent), l)
	var b strings.Builder
	write := func(line string) {
		if line = strings.TrimRight(indent+line, " "); l.Width > 0 {
			line = Clip(line, l.Width)
		}
		b.WriteString(line + "\n")
	}
	if head := t.line(t.Titles(), shown, widths); head != "" {
		write(style.Dim(head))
	}
	for _, row := range t.rows {
		write(t.line(row, shown, widths))
	}
	io.WriteString(w, b.String())
}

func (t *Table) writeNames(w io.Writer) {
	for _, row := range t.rows {
		io.WriteString(w, Plain(row[0])+"\n")
	}
}

// chosen returns the indices of the columns that have the given titles. If no title is given, it returns the columns
// that have text in at least one row.
func (t *Table) chosen(titles []string) (shown []int) {
	for _, title := range titles {
		if i := t.find(title); i >= 0 {
			shown = append(shown, i)
		}
	}
	if len(titles) > 0 {
		return shown
	}
	for i := range t.columns {
		if slices.ContainsFunc(t.rows, func(row []string) bool { return Width(row[i]) > 0 }) {
			shown = append(shown, i)
		}
	}
	return shown
}

// fit returns the columns that fit on the terminal, and their widths. It first shortens cells. Then it leaves out
// columns, but never a column that the user named.
func (t *Table) fit(shown []int, indent int, l Layout) ([]int, []int) {
	natural := t.widths()
	for spare := t.spare; ; spare = spare[1:] {
		widths := slices.Clone(natural)
		over := indent + 2*(len(shown)-1) - l.Width
		for _, i := range shown {
			over += widths[i]
		}
		if l.Width == 0 || t.shorten(shown, widths, over) || len(spare) == 0 || len(l.Columns) > 0 {
			return shown, widths
		}
		shown = slices.DeleteFunc(shown, func(i int) bool { return i == spare[0] })
	}
}

// shorten reduces the sum of the shown columns' widths by `over`. In each step, it makes the widest column narrower by
// 1. It returns false if that is impossible.
func (t *Table) shorten(shown, widths []int, over int) bool {
	for ; over > 0; over-- {
		widest := -1
		for _, i := range shown {
			c := t.columns[i]
			if c.least > 0 && widths[i] > max(c.least, Width(c.title)) && (widest < 0 || widths[i] > widths[widest]) {
				widest = i
			}
		}
		if widest < 0 {
			return false
		}
		widths[widest]--
	}
	return true
}

// widths returns the width of each column's widest cell or title.
func (t *Table) widths() []int {
	widths := make([]int, len(t.columns))
	for i, c := range t.columns {
		widths[i] = Width(c.title)
		for _, row := range t.rows {
			widths[i] = max(widths[i], Width(row[i]))
		}
	}
	return widths
}

func (t *Table) line(cells []string, shown, widths []int) string {
	var parts []string
	for _, i := range shown {
		cell := Clip(cells[i], widths[i])
		if t.columns[i].end {
			cell = clipStart(cells[i], widths[i])
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
