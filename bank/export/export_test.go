package export

import (
	"bytes"
	"encoding/csv"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/candor-grid/candor/bank/ledger"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/money"
)

var update = flag.Bool("update", false, "write the golden files anew")

// story returns the journal of a small bank. Its reasons contain characters with a meaning in the formats.
func story(t testing.TB) (*ledger.Ledger, []ledger.Line) {
	l := ledger.New()
	at := messages.Time(1_790_000_000_000_000)
	apply := func(c ledger.Command) {
		c.At, at = at, at+60_000_000
		if r := l.Apply(c.Encode()); r.Error != nil {
			t.Fatal(r.Error)
		}
	}
	transfer := func(ts ...money.Transfer) {
		apply(ledger.Command{Verb: ledger.Transfers, By: "$auctioneer", Rank: ledger.Service, Transfers: ts})
	}
	apply(ledger.Command{Verb: ledger.Grant, By: "ops", Grant: money.GrantRequest{Key: "k", Account: "ada", Amount: 100 * messages.Credit, Reason: `spring; "allocation", 50% [2026-01-01] date:2020-01-01 \ ü`}})
	apply(ledger.Command{Verb: ledger.Grant, By: "ops", Grant: money.GrantRequest{Key: "k2", Account: "lab_2", Amount: 1}})
	transfer(money.Transfer{ID: "h1", Kind: money.Hold, Debit: "ada", Member: "ada", Amount: 10_500_000, Job: 7, Reason: "job 7"})
	transfer(money.Transfer{ID: "h1/charge", Kind: money.Post, Pending: "h1", Credit: money.SiteAccount, Amount: 4_000_001, Job: 7, Reason: "budget of a completed job; labels Xa.b=,run=7"})
	transfer(money.Transfer{ID: "h2", Kind: money.Hold, Debit: "ada", Member: "ada", Amount: messages.Credit, Expires: at + 90_000_000})
	transfer(money.Transfer{ID: "h2/void", Kind: money.Void, Pending: "h2"})
	transfer(money.Transfer{ID: "h3", Kind: money.Hold, Debit: "ada", Member: "ada", Amount: messages.Credit, Expires: at + 30_000_000})
	apply(ledger.Command{Verb: ledger.Expire})
	transfer(money.Transfer{ID: "no", Kind: money.Posted, Debit: "lab_2", Credit: "ada", Amount: messages.Credit})
	transfer(money.Transfer{ID: "p1", Kind: money.Posted, Debit: "ada", Credit: money.SiteAccount, Amount: 2, Linked: true},
		money.Transfer{ID: "p2", Kind: money.Posted, Debit: money.SiteAccount, Credit: "lab_2", Amount: 2})
	return l, lines(t, l)
}

func lines(t testing.TB, l *ledger.Ledger) (all []ledger.Line) {
	history := l.History()
	for n := uint64(1); n <= history.Count(); n++ {
		record, err := history.Record(n)
		if err != nil {
			t.Fatal(err)
		}
		line, err := ledger.ReadLine(n, record)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, line)
	}
	return all
}

func write(t testing.TB, format string, all []ledger.Line) string {
	t.Helper()
	var out bytes.Buffer
	w, err := New(format, &out, "west")
	if err != nil {
		t.Fatal(err)
	}
	for i := range all {
		if err := w.Line(&all[i]); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// TestGolden compares exports with stored files. "hledger check --strict" accepted the stored hledger file; CI checks a
// new file in each run.
func TestGolden(t *testing.T) {
	_, all := story(t)
	for format, name := range map[string]string{"hledger": "story.journal", "csv": "story.csv"} {
		path := filepath.Join("testdata", name)
		got := write(t, format, all)
		if *update {
			if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if got != string(want) {
			t.Errorf("%s: got\n%s", path, got)
		}
	}
}

var postingLine = regexp.MustCompile(`(?m)^ +(\S+:\S+) +(-?[0-9.]+) CREDIT(?: = (-?[0-9.]+) CREDIT)?$`)

// TestEveryTransactionBalances reads the exported file like hledger: it uses only the syntax of the file. In each
// transaction, the amounts must sum to 0.
func TestEveryTransactionBalances(t *testing.T) {
	l, all := story(t)
	balances, moved := map[string]messages.Credits{}, 0
	for _, entry := range strings.Split(write(t, "hledger", all), "\n\n") {
		var sum messages.Credits
		for _, p := range postingLine.FindAllStringSubmatch(entry, -1) {
			change := parse(t, p[2])
			balances[p[1]] += change
			sum += change
			if p[3] != "" && balances[p[1]] != parse(t, p[3]) {
				t.Errorf("%s is %v: %s", p[1], balances[p[1]], p[0])
			}
			moved++
		}
		if sum != 0 {
			t.Errorf("this does not balance:\n%s", entry)
		}
	}
	if moved < 20 {
		t.Fatalf("only %d postings were read", moved)
	}
	for _, a := range l.Accounts() {
		available, held := balances[hledgerAccount(a.Account, false)], balances[hledgerAccount(a.Account, true)]
		if available != a.Available || held != a.Reserved {
			t.Errorf("%s: %v and %v, want %v and %v", a.Account, available, held, a.Available, a.Reserved)
		}
	}
}

func parse(t testing.TB, s string) messages.Credits {
	t.Helper()
	c, err := messages.ParseCredits(s)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// TestLinesOfNoTransferHaveNoKind: a signed request, a statement of keys and a change of an account are not transfers.
// Their export must not have the kind of transfer whose number is 0.
func TestLinesOfNoTransferHaveNoKind(t *testing.T) {
	all := []ledger.Line{
		{Number: 1, What: "trusted", Note: "the site says which keys are its own"},
		{Number: 2, What: "requested", By: "ops", Note: `ops sent a signed request: "grant"`},
		{Number: 3, What: "said", By: "$east", Note: `the bank of east sent a signed statement: "pay"`},
		{Number: 4, What: "changed", By: "ops", Account: "ada", Note: "account ada may go 5 below zero"},
		{Number: 5, What: "refused", Asked: money.Transfer{ID: "p", Kind: money.Posted}},
		{Number: 6, What: "lapsed", Debit: "ada", Asked: money.Transfer{Pending: "h", Kind: money.Hold}},
	}
	rows, err := csv.NewReader(strings.NewReader(write(t, "csv", all))).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{"kind", "", "", "", "", "posted", "hold"} {
		if rows[i][4] != want {
			t.Errorf("line %d has kind %q, want %q: %v", i, rows[i][4], want, rows[i])
		}
	}
}

// TestCSVIsEnough recomputes every balance from the CSV file, as the package's documentation says.
func TestCSVIsEnough(t *testing.T) {
	l, all := story(t)
	rows, err := csv.NewReader(strings.NewReader(write(t, "csv", all))).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	at := map[string]int{}
	for i, name := range rows[0] {
		at[name] = i
	}
	balance, reserved := map[string]messages.Credits{}, map[string]messages.Credits{}
	for _, row := range rows[1:] {
		cell := func(name string) string { return row[at[name]] }
		if cell("status") != "done" && cell("status") != "lapsed" {
			continue
		}
		debit, credit := cell("debit"), cell("credit")
		balance[debit] -= parse(t, cell("amount"))
		reserved[debit] += parse(t, cell("held"))
		if balance[debit] != parse(t, cell("debit_balance")) || reserved[debit] != parse(t, cell("debit_reserved")) {
			t.Errorf("row %s", cell("number"))
		}
		if credit == "" {
			continue
		}
		balance[credit] += parse(t, cell("amount"))
		if balance[credit] != parse(t, cell("credit_balance")) || reserved[credit] != parse(t, cell("credit_reserved")) {
			t.Errorf("row %s", cell("number"))
		}
	}
	for _, a := range l.Accounts() {
		if balance[a.Account] != a.Balance || reserved[a.Account] != a.Reserved {
			t.Errorf("%s: %v, %v; want %v, %v", a.Account, balance[a.Account], reserved[a.Account], a.Balance, a.Reserved)
		}
	}
}

func TestNamesStayApart(t *testing.T) {
	names := []messages.Name{"a", "ada", "a-da", "a_da", "ax5fda", "ad", "bank", "bank-site", "x", "x2d", "x_", "x5f", "$site", "$issuer", "site", "issuer", "$bank", "available", "held", "z9", "Ada", "a.da", "A.b_c"}
	for i := range 200 {
		names = append(names, fmt.Sprintf("n%d_%d-%d", i%7, i%5, i))
	}
	seen := map[string]messages.Name{}
	for _, name := range names {
		for _, held := range []bool{false, true} {
			account := hledgerAccount(name, held)
			if other, twice := seen[account]; twice {
				t.Errorf("%q and %q are both %s", name, other, account)
			}
			seen[account] = name
		}
	}
}

func TestUnknownFormat(t *testing.T) {
	if _, err := New("qif", &bytes.Buffer{}, "west"); messages.KindOf(err) != messages.Invalid || !strings.Contains(err.Error(), "hledger, csv") {
		t.Errorf("%v", err)
	}
}

type full struct{}

func (full) Write([]byte) (int, error) { return 0, os.ErrClosed }

func TestWriteErrorIsTold(t *testing.T) {
	_, all := story(t)
	for _, format := range formats {
		w, err := New(format, full{}, "west")
		if err != nil {
			t.Fatal(err)
		}
		for i := range all {
			_ = w.Line(&all[i]) // this call or a later one must return the error
		}
		if err := w.Close(); err == nil {
			t.Errorf("%s: nothing was written, and nothing said so", format)
		}
	}
}

// oddities returns a journal of records that an earlier version described wrongly.
func oddities(t *testing.T) []ledger.Line {
	l := ledger.New()
	const at messages.Time = 1_790_000_000_000_000
	for _, c := range []ledger.Command{
		{Verb: ledger.Grant, By: "ops", Grant: money.GrantRequest{Key: "k", Account: "ada", Amount: 50, Reason: "=HYPERLINK(\"http://evil\")"}},
		{Verb: ledger.Withdraw, By: "ops", Withdraw: money.WithdrawRequest{Key: "w", Account: "ada", Amount: 5, Reason: "+1"}},
		{Verb: ledger.Correct, By: "ops", Correct: money.CorrectRequest{Transfer: "$withdraw/ops/w", Reason: "@SUM(A1)"}},
		{Verb: ledger.Transfers, By: "$auctioneer", Rank: ledger.Service, Transfers: []money.Transfer{
			{ID: "=h", Kind: money.Hold, Debit: "ada", Member: "ada", Amount: 5, Timeout: messages.Duration(60_000_000_000), Reason: "-2"},
			{ID: "e1", Kind: money.Extend, Pending: "=h", Timeout: messages.Duration(90_000_000_000)},
			{ID: "e2", Kind: money.Extend, Pending: "=h", Expires: 5},
			{ID: "e3", Kind: money.Extend, Pending: "=h"},
		}},
	} {
		c.At = at
		r := l.Apply(c.Encode())
		for _, one := range r.Transfers {
			if r.Error == nil {
				r.Error = one.Error
			}
		}
		if r.Error != nil {
			t.Fatal(r.Error)
		}
	}
	return lines(t, l)
}

// TestWords checks the descriptions of entries. A correction must not be called a grant. An extension must have its new
// time of expiry. A time that is not set must not be written as a day in 1970.
func TestWords(t *testing.T) {
	text := write(t, "hledger", oddities(t))
	for _, say := range []string{"2026-09-21 * correction\n", "2026-09-21 * withdrawal\n", "2026-09-21 * grant\n"} {
		if strings.Count(text, say) != 1 {
			t.Errorf("%q is there %d times", say, strings.Count(text, say))
		}
	}
	for _, never := range []string{"1970", "to -"} {
		if strings.Contains(text, never) {
			t.Errorf("says %q:\n%s", never, text)
		}
	}
	if !strings.Contains(text, `hold "=h" is extended to 2026-09-21T14:14:50.000000Z`) || !strings.Contains(text, `hold "=h" no longer expires`) {
		t.Errorf("extensions are missing:\n%s", text)
	}
}

func TestNoCellIsAFormula(t *testing.T) {
	rows, err := csv.NewReader(strings.NewReader(write(t, "csv", oddities(t)))).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	escaped := 0
	for _, row := range rows[1:] {
		for i, cell := range row[:14] { // the other columns are amounts
			if cell != "" && strings.IndexByte("=+-@\t\r\n", cell[0]) >= 0 {
				t.Errorf("column %s: %q", rows[0][i], cell)
			}
			if strings.HasPrefix(cell, "'") {
				escaped++
			}
		}
	}
	if escaped != 8 {
		t.Errorf("%d texts begin as formulas do, want 8", escaped)
	}
}
