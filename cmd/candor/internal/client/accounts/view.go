package accounts

import (
	"encoding/csv"
	"fmt"
	"strings"

	"github.com/candor-grid/candor/bank/export"
	"github.com/candor-grid/candor/cmd/candor/internal/client/cli"
	"github.com/candor-grid/candor/cmd/candor/internal/terminal"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/clearing"
	"github.com/candor-grid/candor/messages/money"
)

func writeAccount(p *cli.Page, r money.AccountReply) {
	title := p.Bold("Account " + r.Account)
	if r.Title != "" {
		title += "  " + terminal.Safe(r.Title)
	}
	p.Printf("%s\n", title)
	p.Fields(
		"Available", cli.Credits(r.Available),
		"Held for jobs", cli.Credits(r.Reserved)+inHolds(r.Holds),
		"Balance", cli.Credits(r.Balance),
		"Credit limit", cli.Amount(r.Credit),
		"Frozen", frozen(p, r),
		"Granted, ever", cli.Credits(r.Granted),
		"Spent, ever", cli.Credits(r.Spent),
		"Members", plainMembers(r))
	writeExpiring(p, r.Expiring)
	writeMembers(p, r.Roles)
}

// inHolds returns the number of holds in words, such as " in 2 holds", or "" for none.
func inHolds(n int) string {
	if n == 0 {
		return ""
	}
	return " in " + terminal.Plural(n, "hold")
}

func frozen(p *cli.Page, r money.AccountReply) string {
	if r.Frozen == "" {
		return ""
	}
	text := "by " + terminal.Safe(r.Frozen)
	if r.Why != "" {
		text += ": " + p.Said(r.Why)
	}
	return p.Red(text)
}

func plainMembers(r money.AccountReply) string {
	if len(r.Roles) > 0 {
		return ""
	}
	return strings.Join(r.Members, ", ")
}

func writeExpiring(p *cli.Page, list []money.Expiring) {
	if len(list) == 0 {
		return
	}
	p.Title("Expiring")
	t := terminal.NewTable("WHEN|>IN|>UNSPENT|>HELD|~GRANT")
	for _, e := range list {
		t.Row(p.At(e.Expires), p.Between(p.Now, e.Expires), e.Free.String(), cli.OrBlank(e.Held), terminal.Safe(e.Grant))
	}
	p.Table(t, "  ")
}

func writeMembers(p *cli.Page, list []money.Membership) {
	if len(list) == 0 {
		return
	}
	p.Title("Members")
	t := terminal.NewTable("~ACCOUNT|ROLE|>SPENT|>HELD|>LIMIT|>LEFT")
	for _, m := range list {
		limit, left := "", ""
		if m.Limit != 0 {
			limit, left = m.Limit.String(), max(m.Limit-m.Spent-m.Held, 0).String()
		}
		t.Row(terminal.Safe(m.Member), m.Role.String(), m.Spent.String(), m.Held.String(), limit, left)
	}
	p.Table(t, "  ")
}

func writeProjects(p *cli.Page, r money.AccountsReply) {
	if len(r.Accounts) == 0 {
		p.Printf("No projects. An operator makes a project with candor project create.\n")
		return
	}
	t := terminal.NewTable("~PROJECT|>AVAILABLE|>HELD|>SPENT|>MEMBERS|STATE|~TITLE")
	for _, a := range r.Accounts {
		state := ""
		if a.Frozen != "" {
			state = "frozen"
		}
		t.Row(a.Account, a.Available.String(), a.Reserved.String(), a.Spent.String(), terminal.Count(len(a.Roles)), state, terminal.Safe(a.Title))
	}
	p.Table(t, "")
}

func writeMoved(p *cli.Page, what string, c messages.Credits, where string, r money.AccountReply) {
	p.Printf("%s %s %s; %s\n", what, cli.Credits(c), where, left(r))
}

// The function `left` returns a phrase that says how many credits an account has available. For the account of a peer's
// settled debts, the phrase says which site still owes the other, and how much.
func left(r money.AccountReply) string {
	if !strings.HasPrefix(r.Account, clearing.PeerAccountPrefix) {
		return r.Account + " now has " + cli.Credits(r.Available) + " available"
	}
	switch {
	case r.Balance > 0:
		return "this site still owes " + cli.Credits(r.Balance) + " on " + r.Account
	case r.Balance < 0:
		return "this site is still owed " + cli.Credits(-r.Balance) + " on " + r.Account
	}
	return "nothing is owed on " + r.Account + " now"
}

func writeAccounts(p *cli.Page, r money.AccountsReply) {
	t := terminal.NewTable("~ACCOUNT|>AVAILABLE|>HELD|>BALANCE|>GRANTED|>SPENT|~MEMBERS").Spare("GRANTED")
	for _, a := range r.Accounts {
		t.Row(a.Account, a.Available.String(), a.Reserved.String(), a.Balance.String(), a.Granted.String(), a.Spent.String(), strings.Join(a.Members, ", "))
	}
	p.Table(t, "")
}

func writeGranted(p *cli.Page, q money.GrantRequest, r money.AccountReply) {
	until := ""
	if q.Expires != 0 {
		until = " until " + p.At(q.Expires)
	}
	if q.Lasts != 0 {
		until = " for " + terminal.Span(q.Lasts.Std())
	}
	p.Printf("Granted %s to %s%s; %s\n", cli.Credits(q.Amount), r.Account, until, left(r))
}

func writeStatement(p *cli.Page, r money.StatementReply, facts map[messages.JobID]jobFacts) {
	p.Printf("%s  opening balance %s\n", p.Bold("Account "+r.Account), cli.Credits(r.Opening))
	if !entries(p, r.Entries, facts) {
		return
	}
	last := r.Entries[len(r.Entries)-1]
	p.Printf("%s balance %s, %v held, %v available\n", p.Bold("Closing"), cli.Credits(last.Balance), last.Reserved, last.Balance-last.Reserved)
	writeOlder(p, r.More)
}

func writePart(p *cli.Page, r money.StatementReply, member messages.Name, facts map[messages.JobID]jobFacts) {
	p.Printf("%s  entries that %s asked for\n", p.Bold("Account "+r.Account), member)
	if !entries(p, r.Entries, facts) {
		return
	}
	var moved, held messages.Credits
	for _, e := range r.Entries {
		moved += e.Change
		held += e.Hold
	}
	p.Printf("%s %s charged, %v more held than before\n", p.Bold("Together"), cli.Credits(-moved), held)
	writeOlder(p, r.More)
}

func writeOlder(p *cli.Page, more bool) {
	if more {
		p.Printf("%s\n", p.Dim("There are older entries: use a larger --limit."))
	}
}

// entries writes a line for each entry, and reports whether there are any.
func entries(p *cli.Page, entries []money.Entry, facts map[messages.JobID]jobFacts) bool {
	if len(entries) == 0 {
		p.Printf("  No movements.\n")
		return false
	}
	t := terminal.NewTable(">NO.|AT|WHAT|>JOB|~WITH|>CHANGE|>HELD|>BALANCE|>HELD NOW|~30REASON").Spare("HELD NOW|WITH|HELD|NO.|WHAT")
	for _, e := range entries {
		t.Row(terminal.Count(e.Number), p.At(e.At), e.Kind.String(), cli.OrBlank(e.Job), terminal.Safe(e.Other),
			p.Change(e.Change), cli.Change(e.Hold), e.Balance.String(), e.Reserved.String(), p.Said(inWords(e, facts)))
	}
	p.Table(t, "  ")
	return true
}

// statementCSV prints a statement as comma-separated values, with column names in the first line. Times are in RFC 3339
// and UTC, amounts in credits.
func statementCSV(a *cli.App, r money.StatementReply, facts map[messages.JobID]jobFacts) error {
	w := csv.NewWriter(a.Out)
	w.Write([]string{"account", "number", "at", "kind", "transfer", "pending", "job", "market", "mechanism", "with", "member", "by",
		"change", "held", "balance", "held_now", "reason"})
	for _, e := range r.Entries {
		f := facts[e.Job]
		w.Write([]string{r.Account, fmt.Sprint(e.Number), e.At.String(), e.Kind.String(), export.Cell(e.Transfer), export.Cell(e.Pending), cli.OrBlank(e.Job), export.Cell(f.market), f.mechanism,
			export.Cell(e.Other), export.Cell(e.Member), export.Cell(e.By), e.Change.String(), e.Hold.String(), e.Balance.String(), e.Reserved.String(), export.Cell(inWords(e, facts))})
	}
	w.Flush()
	return w.Error()
}
