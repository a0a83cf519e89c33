package demo

import (
	"fmt"
	"slices"
	"strings"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/money"
)

// AccountLine sums up an account's statement during the demo.
type AccountLine struct {
	Account  messages.Name    `json:"account"`
	Opening  messages.Credits `json:"opening"`  // balance after grants, before the first job
	Holds    messages.Credits `json:"holds"`    // sum of the amounts that were held for jobs
	Charges  messages.Credits `json:"charges"`  // sum of the amounts that were charged for jobs
	Refunds  messages.Credits `json:"refunds"`  // sum of the amounts that were held and given back
	Earnings messages.Credits `json:"earnings"` // paid to the account for jobs
	Reserved messages.Credits `json:"reserved"` // still held at the end
	Closing  messages.Credits `json:"closing"`
}

type statement struct {
	account messages.Name
	entries []money.Entry
}

// The method line returns the totals of an account's statement. It returns an error if the balance of an entry is not
// the balance of the entry before it plus the entry's change.
func (s *statement) line() (AccountLine, error) {
	line := AccountLine{Account: s.account}
	var balance, reserved messages.Credits
	for _, e := range s.entries {
		balance, reserved = balance+e.Change, reserved+e.Hold
		if e.Balance != balance || e.Reserved != reserved {
			return line, fmt.Errorf("%s: entry %d has the balance %v with %v held, but the entries up to this one add up to %v with %v held",
				s.account, e.Number, e.Balance, e.Reserved, balance, reserved)
		}
		line.add(&e)
	}
	line.Closing, line.Reserved = balance, reserved
	return line, line.check()
}

func (l *AccountLine) add(e *money.Entry) {
	switch {
	case e.Kind == money.Posted && e.Job == 0:
		l.Opening += e.Change
	case e.Change > 0:
		l.Earnings += e.Change
	default:
		l.Charges -= e.Change
	}
	switch {
	case e.Hold > 0:
		l.Holds += e.Hold
	case e.Hold < 0:
		l.Refunds -= e.Hold - e.Change // the part of the hold that was not charged
	}
}

func (l *AccountLine) check() error {
	if l.Opening-l.Charges+l.Earnings != l.Closing {
		return fmt.Errorf("%s: the closing balance must be the opening balance %v minus the charges %v plus the earnings %v, but it is %v",
			l.Account, l.Opening, l.Charges, l.Earnings, l.Closing)
	}
	if l.Holds-l.Charges-l.Refunds != l.Reserved {
		return fmt.Errorf("%s: holds of %v minus charges of %v and refunds of %v are not equal to the credits still held, %v",
			l.Account, l.Holds, l.Charges, l.Refunds, l.Reserved)
	}
	return nil
}

// Books is the result of two checks of the bank's books: the demo's own check, and in the field Bank the check that the
// bank made itself.
type Books struct {
	Bank     money.BooksReply `json:"bank"`
	Accounts []AccountLine    `json:"accounts"` // all accounts except the issuer's, by name
	Sum      messages.Credits `json:"sum"`      // sum of their closing balances
	Issued   messages.Credits `json:"issued"`   // issued credits, according to the issuer's statement
	Entries  int              `json:"entries"`  // number of entries that were read
	Balanced bool             `json:"balanced"`
	Problem  string           `json:"problem,omitempty"` // the reason, if the books do not balance
}

// addUp sums up all statements. It compares them with the bank's own check, and with the argument `charged`: the
// charges of the jobs as the auctioneer states them.
func addUp(bank money.BooksReply, statements []statement, charged map[messages.JobID]messages.Credits) *Books {
	b := &Books{Bank: bank}
	if err := b.read(statements, charged); err != nil {
		b.Problem = err.Error()
	}
	b.Balanced = b.Problem == ""
	return b
}

func (b *Books) read(statements []statement, charged map[messages.JobID]messages.Credits) error {
	for _, s := range statements {
		line, err := s.line()
		if err != nil {
			return err
		}
		b.Entries += len(s.entries)
		if s.account == money.IssuerAccount {
			b.Issued = -line.Closing
			continue
		}
		b.Accounts = append(b.Accounts, line)
		b.Sum += line.Closing
	}
	slices.SortFunc(b.Accounts, func(x, y AccountLine) int { return compareNames(x.Account, y.Account) })
	if err := compareCharges(statements, charged); err != nil {
		return err
	}
	return b.compare()
}

func (b *Books) compare() error {
	switch bank := &b.Bank; {
	case b.Sum != b.Issued:
		return fmt.Errorf("the accounts add up to %s, and %v were issued", b.Sum.Words(), b.Issued)
	case !bank.Balanced:
		return fmt.Errorf("the bank says: %s", bank.Message)
	case bank.Issued != b.Issued || bank.Balances != b.Sum:
		return fmt.Errorf("the bank counts %v credits issued and %v in accounts; the statements say %v and %v credits",
			bank.Issued, bank.Balances, b.Issued, b.Sum)
	case bank.Holds != 0 || bank.Held != 0:
		return fmt.Errorf("%d holds of %s are left over after all jobs ended", bank.Holds, bank.Held.Words())
	}
	return nil
}

// compareCharges compares the charges with the auctioneer's statements. Each job must have been charged once, with the
// amount that the auctioneer states. No charge may be above the job's hold.
func compareCharges(statements []statement, charged map[messages.JobID]messages.Credits) error {
	paid := map[messages.JobID]messages.Credits{}
	for _, s := range statements {
		for _, e := range s.entries {
			paid[e.Job] += max(-e.Change, 0)
			if e.Kind == money.Post && e.Change < e.Hold && e.Change < 0 {
				return fmt.Errorf("job %v was charged %v, but only %v was held for the job", e.Job, -e.Change, -e.Hold)
			}
		}
	}
	for job, amount := range charged {
		if paid[job] != amount {
			return fmt.Errorf("job %v states a charge of %v, but the statements have %v for the job", job, amount, paid[job])
		}
	}
	return nil
}

// compareNames orders accounts by name. The site's own accounts begin with "$", and must come last. So compareNames
// replaces "$" by "~", which comes after all letters.
func compareNames(a, b messages.Name) int {
	return strings.Compare(strings.Replace(a, "$", "~", 1), strings.Replace(b, "$", "~", 1))
}
