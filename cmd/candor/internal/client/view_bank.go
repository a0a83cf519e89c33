package client

import (
	"strings"

	"github.com/candor-grid/candor/cmd/candor/internal/terminal"
	"github.com/candor-grid/candor/messages"
)

func (p *page) account(r messages.AccountReply) {
	p.printf("%s\n", p.Bold("Account "+r.Account))
	p.fields(
		"Available", credits(r.Available),
		"Held for jobs", credits(r.Reserved),
		"Balance", credits(r.Balance),
		"Granted, ever", credits(r.Granted),
		"Spent, ever", credits(r.Spent),
		"Members", strings.Join(r.Members, ", "))
}

func (p *page) accounts(r messages.AccountsReply) {
	t := terminal.NewTable(terminal.Left("ACCOUNT"), terminal.Right("AVAILABLE"), terminal.Right("HELD"), terminal.Right("BALANCE"),
		terminal.Right("GRANTED"), terminal.Right("SPENT"), terminal.Left("MEMBERS"))
	for _, a := range r.Accounts {
		t.Row(a.Account, a.Available.String(), a.Reserved.String(), a.Balance.String(), a.Granted.String(), a.Spent.String(), strings.Join(a.Members, ", "))
	}
	t.Write(p, p.Style, "")
}

func (p *page) granted(q messages.GrantRequest, r messages.AccountReply) {
	p.printf("Granted %s to %s, which now has %s available\n", credits(q.Amount), r.Account, credits(r.Available))
}

// statement writes the entries between the opening and the closing balance.
func (p *page) statement(r messages.StatementReply) {
	p.printf("%s  opening balance %s\n", p.Bold("Account "+r.Account), credits(r.Opening))
	if len(r.Entries) == 0 {
		p.printf("  No movements.\n")
		return
	}
	t := terminal.NewTable(terminal.Right("NO."), terminal.Left("AT"), terminal.Left("WHAT"), terminal.Right("JOB"), terminal.Left("WITH"),
		terminal.Right("CHANGE"), terminal.Right("HELD"), terminal.Right("BALANCE"), terminal.Right("HELD NOW"), terminal.Left("REASON"))
	for _, e := range r.Entries {
		job := ""
		if e.Job != 0 {
			job = e.Job.String()
		}
		t.Row(terminal.Count(e.Number), p.exactly(e.At), e.Kind.String(), job, terminal.Safe(e.Other),
			p.change(e.Change), change(e.Hold), e.Balance.String(), e.Reserved.String(), terminal.Safe(e.Reason))
	}
	t.Write(p, p.Style, "  ")
	last := r.Entries[len(r.Entries)-1]
	p.printf("%s balance %s, %v held, %v available\n", p.Bold("Closing"), credits(last.Balance), last.Reserved, last.Balance-last.Reserved)
	if r.More {
		p.printf("%s\n", p.Dim("There are later entries: see them with --limit."))
	}
}

// change writes a difference with its sign, "" for none.
func change(c messages.Credits) string {
	if c == 0 {
		return ""
	}
	if c > 0 {
		return "+" + c.String()
	}
	return c.String()
}

func (p *page) change(c messages.Credits) string {
	if c < 0 {
		return p.Red(change(c))
	}
	return p.Green(change(c))
}

func (p *page) books(r messages.BooksReply) {
	verdict := p.Green("The books balance")
	if !r.Balanced {
		verdict = p.Red("The books do NOT balance")
	}
	p.printf("%s\n", verdict)
	p.fields(
		"Issued", credits(r.Issued),
		"On accounts", credits(r.Balances),
		"Of that held", credits(r.Held)+" in "+terminal.Plural(r.Holds, "hold"),
		"Accounts", terminal.Count(r.Accounts),
		"Transfers", terminal.Count(r.Transfers),
		"Message", terminal.Safe(r.Message))
}
