package export

import (
	"encoding/csv"
	"strconv"
	"strings"

	"github.com/candor-grid/candor/bank/ledger"
	"github.com/candor-grid/candor/messages/money"
)

// columns are the names in the first line of a CSV file.
var columns = []string{
	"number", "at", "status", "by", "kind", "transfer", "pending", "member", "job", "linked", "reason", "note",
	"debit", "credit", "amount", "held",
	"debit_balance", "debit_reserved", "credit_balance", "credit_reserved",
	"labels",
}

type table struct {
	*output
	rows *csv.Writer
}

func newCSV(o *output) *table {
	t := &table{o, csv.NewWriter(o.w)}
	t.rows.Write(columns) //nolint:errcheck // Close returns the error of this call
	return t
}

func (t *table) Line(l *ledger.Line) error {
	row := []string{
		strconv.FormatUint(l.Number, 10), l.At.String(), l.What, Cell(l.By), "", Cell(l.Asked.ID), Cell(l.Asked.Pending), Cell(l.Asked.Member), "", "", Cell(l.Asked.Reason), Cell(l.Note),
		Cell(l.Debit), Cell(l.Credit), "", "", "", "", "", "",
		labels(l).String(),
	}
	if l.Asked.ID != "" || l.Debit != "" { // lines about no transfer have no kind
		row[4] = l.Asked.Kind.String()
	}
	if l.Job != 0 {
		row[8] = strconv.FormatUint(uint64(l.Job), 10)
	}
	if l.Asked.Linked {
		row[9] = "yes"
	}
	if l.Debit != "" {
		row[14], row[15] = decimal(l.Amount), decimal(l.Held)
		standing(row[16:18], l.DebitAfter)
	}
	if l.Credit != "" {
		standing(row[18:20], l.CreditAfter)
	}
	return t.rows.Write(row)
}

// Cell returns a text for a cell of a table. It adds an apostrophe in front of a text that a spreadsheet would take for
// a formula, because a stranger may have chosen the text.
func Cell(text string) string {
	if text != "" && strings.IndexByte("=+-@\t\r\n", text[0]) >= 0 {
		return "'" + text
	}
	return text
}

func standing(cells []string, s money.Standing) {
	cells[0], cells[1] = decimal(s.Balance), decimal(s.Reserved)
}

func (t *table) Close() error {
	t.rows.Flush()
	if err := t.rows.Error(); err != nil {
		return err
	}
	return t.flush()
}
