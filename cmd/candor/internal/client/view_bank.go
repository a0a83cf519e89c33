package client

import (
	"strings"

	"github.com/candor-grid/candor/cmd/candor/internal/terminal"
	"github.com/candor-grid/candor/messages"
)

func (p *page) account(r messages.AccountReply) {
	title := p.Bold("Account " + r.Account)
	if r.Title != "" {
		title += "  " + terminal.Safe(r.Title)
	}
	p.printf("%s\n", title)
	p.fields(
		"Available", credits(r.Available),
		"Held for jobs", credits(r.Reserved)+inHolds(r.Holds),
		"Balance", credits(r.Balance),
		"Credit limit", amount(r.Credit),
		"Frozen", p.frozen(r),
		"Granted, ever", credits(r.Granted),
		"Spent, ever", credits(r.Spent),
		"Members", plainMembers(r))
	p.expiring(r.Expiring)
	p.members(r.Roles)
}

// inHolds says in how many holds credits are held.
func inHolds(n int) string {
	if n == 0 {
		return ""
	}
	return " in " + terminal.Plural(n, "hold")
}

// amount writes credits, "" for none.
func amount(c messages.Credits) string {
	if c == 0 {
		return ""
	}
	return credits(c)
}

func (p *page) frozen(r messages.AccountReply) string {
	if r.Frozen == "" {
		return ""
	}
	text := "by " + terminal.Safe(r.Frozen)
	if r.Why != "" {
		text += ": " + terminal.Safe(r.Why)
	}
	return p.Red(text)
}

// plainMembers lists the members where their parts are not listed.
func plainMembers(r messages.AccountReply) string {
	if len(r.Roles) > 0 {
		return ""
	}
	return strings.Join(r.Members, ", ")
}

// expiring lists what goes back to the issuer, and when.
func (p *page) expiring(list []messages.Expiring) {
	if len(list) == 0 {
		return
	}
	p.title("Expiring")
	t := terminal.NewTable(terminal.Left("WHEN"), terminal.Right("IN"), terminal.Right("UNSPENT"), terminal.Right("HELD"), terminal.Left("GRANT"))
	for _, e := range list {
		held := ""
		if e.Held != 0 {
			held = e.Held.String()
		}
		t.Row(p.exactly(e.Expires), p.between(p.now, e.Expires), e.Free.String(), held, terminal.Safe(e.Grant))
	}
	t.Write(p, p.Style, "  ")
}

// members lists the parts in a project.
func (p *page) members(list []messages.Membership) {
	if len(list) == 0 {
		return
	}
	p.title("Members")
	t := terminal.NewTable(terminal.Left("ACCOUNT"), terminal.Left("ROLE"), terminal.Right("SPENT"), terminal.Right("HELD"), terminal.Right("LIMIT"), terminal.Right("LEFT"))
	for _, m := range list {
		limit, left := "", ""
		if m.Limit != 0 {
			limit, left = m.Limit.String(), max(m.Limit-m.Spent-m.Held, 0).String()
		}
		t.Row(terminal.Safe(m.Member), m.Role.String(), m.Spent.String(), m.Held.String(), limit, left)
	}
	t.Write(p, p.Style, "  ")
}

// projects lists projects in a line each.
func (p *page) projects(r messages.AccountsReply) {
	if len(r.Accounts) == 0 {
		p.printf("No projects. An operator makes one with candor project create.\n")
		return
	}
	t := terminal.NewTable(terminal.Left("PROJECT"), terminal.Right("AVAILABLE"), terminal.Right("HELD"), terminal.Right("SPENT"),
		terminal.Right("MEMBERS"), terminal.Left("STATE"), terminal.Left("TITLE"))
	for _, a := range r.Accounts {
		state := ""
		if a.Frozen != "" {
			state = "frozen"
		}
		t.Row(a.Account, a.Available.String(), a.Reserved.String(), a.Spent.String(), terminal.Count(len(a.Roles)), state, terminal.Safe(a.Title))
	}
	t.Write(p, p.Style, "")
}

// moved says what was moved, and what an account has after it.
func (p *page) moved(what string, c messages.Credits, where string, r messages.AccountReply) {
	p.printf("%s %s %s; %s now has %s available\n", what, credits(c), where, r.Account, credits(r.Available))
}

// prediction shows an account before and after a job.
func (p *page) prediction(r prediction) {
	p.printf("%s pays for a job on market %s, which may cost up to %s\n", p.Bold("Account "+r.Account.Account), r.Market, credits(r.Held))
	t := terminal.NewTable(terminal.Left(""), terminal.Right("NOW"), terminal.Right("WHILE IT LIVES"), terminal.Right("AFTER IT"))
	t.Row("Balance", r.Account.Balance.String(), r.Account.Balance.String(), r.Least.String()+" to "+r.Most.String())
	t.Row("Held for jobs", r.Account.Reserved.String(), (r.Account.Reserved + r.Held).String(), r.Account.Reserved.String())
	t.Row("Available", r.Account.Available.String(), r.Available.String(), r.Available.String()+" to "+r.Account.Available.String())
	t.Write(p, p.Style, "  ")
	for _, d := range r.Draws {
		p.printf("  %s of what it holds expire on %s\n", credits(d.Amount), p.exactly(d.Expires))
	}
	if r.Limited {
		p.printf("  of your limit in it, %s are left while the job lives\n", credits(max(r.Left, 0)))
	}
	if r.Refusal != "" {
		p.printf("%s\n", p.Red("It would be refused now: "+terminal.Safe(r.Refusal)))
	}
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
	until := ""
	if q.Expires != 0 {
		until = " until " + p.exactly(q.Expires)
	}
	p.printf("Granted %s to %s%s, which now has %s available\n", credits(q.Amount), r.Account, until, credits(r.Available))
}

// statement writes the entries between the opening and the closing balance.
func (p *page) statement(r messages.StatementReply, facts map[messages.JobID]jobFacts) {
	p.printf("%s  opening balance %s\n", p.Bold("Account "+r.Account), credits(r.Opening))
	if !p.entries(r.Entries, facts) {
		return
	}
	last := r.Entries[len(r.Entries)-1]
	p.printf("%s balance %s, %v held, %v available\n", p.Bold("Closing"), credits(last.Balance), last.Reserved, last.Balance-last.Reserved)
	p.later(r.More)
}

// part writes those entries of a project that were on one member's word.
func (p *page) part(r messages.StatementReply, member messages.Name, facts map[messages.JobID]jobFacts) {
	p.printf("%s  on the word of %s\n", p.Bold("Account "+r.Account), member)
	if !p.entries(r.Entries, facts) {
		return
	}
	var moved, held messages.Credits
	for _, e := range r.Entries {
		moved += e.Change
		held += e.Hold
	}
	p.printf("%s %s charged, %v more held than before\n", p.Bold("Together"), credits(-moved), held)
	p.later(r.More)
}

func (p *page) later(more bool) {
	if more {
		p.printf("%s\n", p.Dim("There are later entries: see them with --limit."))
	}
}

// entries writes a line for each, and reports whether there are any.
func (p *page) entries(entries []messages.Entry, facts map[messages.JobID]jobFacts) bool {
	if len(entries) == 0 {
		p.printf("  No movements.\n")
		return false
	}
	t := terminal.NewTable(terminal.Right("NO."), terminal.Left("AT"), terminal.Left("WHAT"), terminal.Right("JOB"), terminal.Left("WITH"),
		terminal.Right("CHANGE"), terminal.Right("HELD"), terminal.Right("BALANCE"), terminal.Right("HELD NOW"), terminal.Left("REASON"))
	for _, e := range entries {
		job := ""
		if e.Job != 0 {
			job = e.Job.String()
		}
		t.Row(terminal.Count(e.Number), p.exactly(e.At), e.Kind.String(), job, terminal.Safe(e.Other),
			p.change(e.Change), change(e.Hold), e.Balance.String(), e.Reserved.String(), terminal.Safe(inWords(e, facts)))
	}
	t.Write(p, p.Style, "  ")
	return true
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
