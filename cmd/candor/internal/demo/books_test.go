package demo

import (
	"strings"
	"testing"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/money"
)

const credit = messages.Credit

// history builds statements as the bank writes them. A test can then falsify an entry.
type history struct {
	number uint64
	order  []messages.Name
	state  map[messages.Name]*statement
}

func newHistory() *history { return &history{state: map[messages.Name]*statement{}} }

func (h *history) entry(account messages.Name, kind money.TransferKind, job messages.JobID, change, hold messages.Credits) {
	s := h.state[account]
	if s == nil {
		s = &statement{account: account}
		h.state[account], h.order = s, append(h.order, account)
	}
	e := money.Entry{Number: h.number, Kind: kind, Job: job, Change: change, Hold: hold, Balance: change, Reserved: hold}
	if n := len(s.entries); n > 0 {
		e.Balance += s.entries[n-1].Balance
		e.Reserved += s.entries[n-1].Reserved
	}
	s.entries = append(s.entries, e)
}

func (h *history) grant(account messages.Name, amount messages.Credits) {
	h.number++
	h.entry(money.IssuerAccount, money.Posted, 0, -amount, 0)
	h.entry(account, money.Posted, 0, amount, 0)
}

// job adds the entries of a job: a hold, a charge of a part of the held credits, and the return of the remaining
// credits. The entry of the hold has no job number, as in the bank's statements.
func (h *history) job(account messages.Name, job messages.JobID, held, charged messages.Credits) {
	h.number++
	h.entry(account, money.Hold, 0, 0, held)
	h.number++
	h.entry(account, money.Post, job, -charged, -held)
	h.entry(money.SiteAccount, money.Post, job, charged, 0)
}

func (h *history) statements() (all []statement) {
	for _, name := range h.order {
		all = append(all, *h.state[name])
	}
	return all
}

// twoUsers returns three things that agree: a history of transfers, the result of the bank's own check, and the charges
// of the jobs.
func twoUsers() (*history, money.BooksReply, map[messages.JobID]messages.Credits) {
	h := newHistory()
	h.grant("alice", 100*credit)
	h.grant("bob", 50*credit)
	h.job("alice", 1, 10*credit, 10*credit)
	h.job("bob", 2, 20*credit, 5*credit)
	bank := money.BooksReply{Issued: 150 * credit, Balances: 150 * credit, Accounts: 4, Balanced: true}
	return h, bank, map[messages.JobID]messages.Credits{1: 10 * credit, 2: 5 * credit}
}

func TestBooksAddUp(t *testing.T) {
	h, bank, charged := twoUsers()
	books := addUp(bank, h.statements(), charged)
	if !books.Balanced {
		t.Fatal(books.Problem)
	}
	want := []AccountLine{
		{Account: "alice", Opening: 100 * credit, Holds: 10 * credit, Charges: 10 * credit, Closing: 90 * credit},
		{Account: "bob", Opening: 50 * credit, Holds: 20 * credit, Charges: 5 * credit, Refunds: 15 * credit, Closing: 45 * credit},
		{Account: money.SiteAccount, Earnings: 15 * credit, Closing: 15 * credit},
	}
	for i, line := range books.Accounts {
		if line != want[i] {
			t.Errorf("account %d is %+v, want %+v", i, line, want[i])
		}
	}
	if books.Sum != 150*credit || books.Issued != 150*credit {
		t.Errorf("sum %v, issued %v, want 150 each", books.Sum, books.Issued)
	}
}

// TestBooksNotice falsifies the history in one place at a time. The check must find each change.
func TestBooksNotice(t *testing.T) {
	for _, c := range []struct {
		name    string
		falsify func(*history, *money.BooksReply, map[messages.JobID]messages.Credits)
		says    string
	}{
		{"a balance that does not follow", func(h *history, _ *money.BooksReply, _ map[messages.JobID]messages.Credits) {
			h.state["alice"].entries[1].Balance++
		}, "entry 3"},
		{"credits out of nothing", func(h *history, _ *money.BooksReply, _ map[messages.JobID]messages.Credits) {
			h.entry("bob", money.Posted, 0, credit, 0)
		}, "add up to 151"},
		{"a job charged twice", func(h *history, bank *money.BooksReply, _ map[messages.JobID]messages.Credits) {
			h.job("alice", 1, 10*credit, 10*credit)
		}, "job 1"},
		{"a job that says another charge", func(_ *history, _ *money.BooksReply, charged map[messages.JobID]messages.Credits) {
			charged[2] = 6 * credit
		}, "job 2"},
		{"more charged than held", func(h *history, _ *money.BooksReply, charged map[messages.JobID]messages.Credits) {
			h.job("bob", 3, credit, 2*credit)
			charged[3] = 2 * credit
		}, "job 3"},
		{"a hold that is left", func(h *history, bank *money.BooksReply, _ map[messages.JobID]messages.Credits) {
			h.entry("bob", money.Hold, 0, 0, credit)
			bank.Holds, bank.Held = 1, credit
		}, "left over"},
		{"another sum at the bank", func(_ *history, bank *money.BooksReply, _ map[messages.JobID]messages.Credits) {
			bank.Balances++
		}, "the bank counts"},
		{"a bank that says so itself", func(_ *history, bank *money.BooksReply, _ map[messages.JobID]messages.Credits) {
			bank.Balanced, bank.Message = false, "a hold is not backed"
		}, "a hold is not backed"},
	} {
		t.Run(c.name, func(t *testing.T) {
			h, bank, charged := twoUsers()
			c.falsify(h, &bank, charged)
			books := addUp(bank, h.statements(), charged)
			if books.Balanced || !strings.Contains(books.Problem, c.says) {
				t.Errorf("balanced %v, problem %q, want one with %q", books.Balanced, books.Problem, c.says)
			}
		})
	}
}
