package demo

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/candor-grid/candor/cmd/candor/internal/terminal"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/job"
)

func (r *Report) write(w io.Writer, style terminal.Style) {
	fmt.Fprintf(w, "\n%s\n", style.Bold(fmt.Sprintf("%s, %s, on %s of site %s, in %s",
		terminal.Plural(len(r.Jobs), "job"), terminal.Plural(r.Tasks, "task"), terminal.Plural(r.Nodes, "node"), r.Site, terminal.Span(r.Took.Std()))))
	r.writeJobs(w, style)
	r.writeAccounts(w, style)
	r.writeAnswers(w, style)
	r.writeBooks(w, style)
}

func (r *Report) writeJobs(w io.Writer, style terminal.Style) {
	fmt.Fprintf(w, "\n%s\n", style.Bold("Jobs")+"   (shares of the slots: received / allocated, on average while tasks waited for a slot)")
	t := terminal.NewTable(">JOB|~NAME|~ACCOUNT|STATE|>TASKS|>WAIT|>RESPONSE|>SHARE|>BUDGET|>CHARGE|~RESULT").Spare("ACCOUNT|TASKS|WAIT|SHARE")
	for _, j := range r.Jobs {
		result := style.Green("right")
		if !j.Result.Right {
			result = style.Red("wrong")
		}
		t.Row(j.Job.String(), j.Name, j.Account, paintState(j.State, style), fmt.Sprint(j.Tasks),
			terminal.Span(j.Wait.Std()), terminal.Span(j.Response.Std()), shareOf(j.Shares, class),
			j.Budget.String(), j.Charge.String(), result)
	}
	t.Write(w, style, "  ")
}

// telling is about the run time of one task of the demo. The average share of a job is shown only if it covers at least
// this time. An average over a shorter time says nothing about the job's share.
const telling = messages.Duration(250 * time.Millisecond)

// shareOf writes the received and the allocated share of a class, or "-" if the job hardly ever waited for a slot.
func shareOf(shares []job.ClassShare, class messages.Name) string {
	for _, s := range shares {
		if s.Class == class && s.Over >= telling {
			return terminal.Percent(s.Received) + " / " + terminal.Percent(s.Allocated)
		}
	}
	return "-"
}

func (r *Report) writeAccounts(w io.Writer, style terminal.Style) {
	fmt.Fprintf(w, "\n%s\n", style.Bold("Accounts")+"   (in credits, from their statements)")
	t := terminal.NewTable("~ACCOUNT|>OPENING|>HOLDS|>CHARGES|>REFUNDS|>EARNINGS|>CLOSING")
	for _, a := range r.Books.Accounts {
		t.Row(a.Account, a.Opening.String(), a.Holds.String(), a.Charges.String(), a.Refunds.String(), a.Earnings.String(), a.Closing.String())
	}
	t.Write(w, style, "  ")
}

func (r *Report) writeAnswers(w io.Writer, style terminal.Style) {
	fmt.Fprintf(w, "\n%s\n", style.Bold("What the log says")+"   (a year of the IBM SP2 of the San Diego Supercomputer Center)")
	for _, f := range r.Answers.Findings {
		fmt.Fprintln(w, "  "+f)
	}
	fmt.Fprintf(w, "  %s %d of %d results match the known answers\n", mark(r.Answers.Right == r.Answers.Of, style), r.Answers.Right, r.Answers.Of)
}

func (r *Report) writeBooks(w io.Writer, style terminal.Style) {
	b := r.Books
	fmt.Fprintf(w, "\n%s\n", style.Bold("Books"))
	fmt.Fprintf(w, "  %s the bank: %v credits issued, %v in %d accounts, %s left, %d transfers\n", mark(b.Bank.Balanced, style),
		b.Bank.Issued, b.Bank.Balances, b.Bank.Accounts, terminal.Plural(b.Bank.Holds, "hold"), b.Bank.Transfers)
	fmt.Fprintf(w, "  %s recomputed from %d entries of all statements: %v issued, %v in accounts\n", mark(b.Balanced, style), b.Entries, b.Issued, b.Sum)
	if b.Problem != "" {
		fmt.Fprintln(w, "    "+style.Red(b.Problem))
	}
	if r.OK {
		fmt.Fprintf(w, "\n%s\n", style.Green(strings.Join([]string{"Every job finished", "every result is right", "and the books balance."}, ", ")))
	}
}

func mark(right bool, style terminal.Style) string {
	if right {
		return style.Green("✓")
	}
	return style.Red("✗")
}
