package accounts

import (
	"encoding/csv"
	"fmt"

	"github.com/candor-grid/candor/bank/export"
	"github.com/candor-grid/candor/cmd/candor/internal/client/cli"
	"github.com/candor-grid/candor/messages"
)

// statementCSV prints a statement as comma-separated values: a line of names,
// then one for each entry. Instants are in RFC 3339 and UTC, amounts in
// credits.
func statementCSV(a *cli.App, r messages.StatementReply, facts map[messages.JobID]jobFacts) error {
	w := csv.NewWriter(a.Out)
	w.Write([]string{"account", "number", "at", "kind", "transfer", "pending", "job", "market", "mechanism", "with", "member", "by",
		"change", "held", "balance", "held_now", "reason"})
	for _, e := range r.Entries {
		job := ""
		if e.Job != 0 {
			job = e.Job.String()
		}
		f := facts[e.Job]
		w.Write([]string{r.Account, fmt.Sprint(e.Number), e.At.String(), e.Kind.String(), export.Cell(e.Transfer), export.Cell(e.Pending), job, export.Cell(f.market), f.mechanism,
			export.Cell(e.Other), export.Cell(e.Member), export.Cell(e.By), e.Change.String(), e.Hold.String(), e.Balance.String(), e.Reserved.String(), export.Cell(inWords(e, facts))})
	}
	w.Flush()
	return w.Error()
}
