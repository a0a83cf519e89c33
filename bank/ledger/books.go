package ledger

import (
	"fmt"

	"github.com/candor-grid/candor/messages"
)

// Books returns the bank's running totals: what was issued is minus the
// issuer's balance, what is on the other accounts is added up leg by leg, and
// the books balance while the two agree. It costs nothing; [Image.Audit] is what
// trusts no total.
func (l *Ledger) Books() messages.BooksReply {
	t := l.Totals()
	r := messages.BooksReply{
		Issued: t.Issued, Balances: l.balances, Held: t.Held, Holds: t.Holds,
		Accounts: t.Accounts - 1, Transfers: t.Transfers, Balanced: l.balances == t.Issued,
		Message: fmt.Sprintf("running totals over %d records; an operator can have them recomputed from the first", t.Records),
	}
	if !r.Balanced {
		r.Message = fmt.Sprintf("the balances sum to %v, and %v were issued", r.Balances, r.Issued)
	}
	return r
}
