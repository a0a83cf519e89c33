package ledger

import (
	"fmt"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/money"
)

// audit checks a journal only by adding up its amounts, independently of the ledger's rules. It stores the first fault
// that it finds.
type audit struct {
	accounts  map[messages.Name]*standing
	pending   map[string]messages.Credits
	credit    map[messages.Name]messages.Credits // by account: the highest credit limit that it has had
	transfers uint64
	fault     string
	trails    map[messages.Name]*trail
	chain     chain
}

// Audit recomputes the books from the image's first record, and compares the result with the records and the accounts.
// It costs about a microsecond for each record.
func (img *Image) Audit() money.BooksReply {
	a := newAudit()
	err := img.journal.each(1, func(number uint64, raw []byte) error {
		a.add(number, raw)
		return nil
	})
	if err != nil {
		a.note("the history cannot be read: %v", err)
	}
	if a.chain.head != img.journal.chain.head {
		a.note("the hash of the records differs from the journal's head")
	}
	a.compare(img)
	return a.report(img)
}

func newAudit() *audit {
	a := &audit{
		accounts: map[messages.Name]*standing{}, pending: map[string]messages.Credits{},
		credit: map[messages.Name]messages.Credits{}, trails: map[messages.Name]*trail{},
	}
	for _, own := range []messages.Name{money.IssuerAccount, money.SiteAccount} {
		a.accounts[own], a.trails[own] = &standing{}, &trail{}
	}
	return a
}

func (a *audit) note(format string, args ...any) {
	if a.fault == "" {
		a.fault = fmt.Sprintf(format, args...)
	}
}

func (a *audit) add(number uint64, raw []byte) {
	a.chain.add(raw)
	rec, ok := decodeRecord(raw)
	switch {
	case !ok:
		a.note("record %d cannot be read", number)
	case rec.what == opened:
		a.accounts[rec.account], a.trails[rec.account] = &standing{}, &trail{}
	case rec.what == done:
		a.transfers++
		a.move(number, &rec)
	case rec.what == lapsed:
		a.move(number, &rec)
	case rec.what == changed && rec.change.setting == creditLimit:
		name := rec.change.account
		a.credit[name] = max(a.credit[name], messages.Credits(rec.change.number))
	}
}

// move adds one transfer to the sums of its two accounts. Then it compares these sums with the balances in the record.
func (a *audit) move(number uint64, rec *record) {
	o := &rec.outcome
	debit, credit := a.accounts[o.debit], a.accounts[o.credit]
	if debit == nil || (credit == nil && o.credit != "") {
		a.note("record %d names an account that was not opened", number)
		return
	}
	debit.balance -= o.amount
	debit.reserved += o.held
	a.resolve(number, rec)
	if credit != nil {
		credit.balance += o.amount
		a.expect(number, o.credit, *credit, o.creditAfter)
		a.follow(number, o.credit, rec.creditLink, o.amount != 0)
	}
	a.expect(number, o.debit, *debit, o.debitAfter)
	a.follow(number, o.debit, rec.debitLink, o.amount != 0 || o.held != 0)
}

// follow checks a link from a record to the earlier entries of an account's statement. A record that changes neither
// the balance nor the holds of the account is no entry, and must have no link.
func (a *audit) follow(number uint64, name messages.Name, written link, entry bool) {
	var is link
	if entry {
		is = a.trails[name].extend(number)
	}
	if is != written {
		a.note("record %d does not link to the earlier entries of account %q", number, name)
	}
}

// resolve adds a new hold, or removes a resolved one. A hold may be resolved only once.
func (a *audit) resolve(number uint64, rec *record) {
	o := &rec.outcome
	switch rec.asked.Kind {
	case money.Hold:
		if _, twice := a.pending[rec.asked.ID]; twice || o.held <= 0 {
			a.note("record %d makes hold %q twice, or with amount 0", number, rec.asked.ID)
		}
		a.pending[rec.asked.ID] = o.held
	case money.Post, money.Void:
		held, pending := a.pending[rec.asked.Pending]
		if !pending || o.held != -held || o.amount < 0 || o.amount > held {
			a.note("record %d resolves hold %q, which is not pending or has only %v credits", number, rec.asked.Pending, held)
		}
		delete(a.pending, rec.asked.Pending)
	}
}

// expect compares two standings of an account: the standing that the audit has computed, and the standing in the
// record. It also checks that the account does not exceed its limit. A record with a chain of transfers is checked
// after each transfer.
func (a *audit) expect(number uint64, name messages.Name, is, written standing) {
	if is != written {
		a.note("record %d leaves account %q with balance %v and %v reserved, and the record says %v and %v",
			number, name, is.balance, is.reserved, written.balance, written.reserved)
	}
	if name != money.IssuerAccount && (is.available() < -a.credit[name] || is.reserved < 0) {
		a.note("record %d takes account %q below its limit: balance %v, reserved %v", number, name, is.balance, is.reserved)
	}
}

// compare checks each account of the image against the sums of the records.
func (a *audit) compare(img *Image) {
	if img.totals.Accounts != len(a.accounts) {
		a.note("the image has %d accounts, and its records open %d", img.totals.Accounts, len(a.accounts))
	}
	for stands := range img.each {
		is := a.accounts[stands.name]
		if is == nil {
			a.note("account %q was never opened", stands.name)
		} else if *is != stands.standing {
			a.note("account %q has balance %v and %v reserved, and its records sum to %v and %v",
				stands.name, stands.balance, stands.reserved, is.balance, is.reserved)
		}
	}
	if t := img.totals; t.Holds != len(a.pending) || t.Transfers != a.transfers {
		a.note("%d holds are pending after %d transfers, and the records have %d after %d", t.Holds, t.Transfers, len(a.pending), a.transfers)
	}
}

// sums returns the totals of the records. The reply's Message describes the first disagreement between records, or is
// "". If the records are correct, no sum can overflow: no balance is negative, and the issued amount is within range.
func (a *audit) sums() money.BooksReply {
	r := money.BooksReply{
		Issued: -a.accounts[money.IssuerAccount].balance, Holds: len(a.pending),
		Accounts: len(a.accounts) - 1, Transfers: a.transfers,
	}
	for name, s := range a.accounts {
		if name != money.IssuerAccount {
			r.Balances += s.balance
			r.Held += s.reserved
		}
	}
	var pending messages.Credits
	for _, held := range a.pending {
		pending += held
	}
	switch {
	case r.Balances != r.Issued:
		r.Message = fmt.Sprintf("the balances sum to %v, and %v were issued", r.Balances, r.Issued)
	case pending != r.Held:
		r.Message = fmt.Sprintf("%v are reserved, and the pending holds sum to %v", r.Held, pending)
	}
	return r
}

// report returns the sums of the audit. It notes a fault if the holds do not sum to the total that the image gives for
// them.
func (a *audit) report(img *Image) money.BooksReply {
	reply := a.sums()
	switch {
	case reply.Message != "":
		a.note("%s", reply.Message)
	case img.totals.Held != reply.Held:
		a.note("%v are reserved, and the pending holds sum to %v", reply.Held, img.totals.Held)
	}
	reply.Balanced, reply.Message = a.fault == "", a.fault
	if reply.Balanced {
		reply.Message = fmt.Sprintf("recomputed from %d records: the balances sum to what was issued, and every hold is backed", img.journal.count)
	}
	return reply
}
