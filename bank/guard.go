package bank

import (
	"strings"

	"github.com/candor-grid/candor/bank/clearing"
	"github.com/candor-grid/candor/bank/ledger"
	"github.com/candor-grid/candor/messages"
	clearingmsg "github.com/candor-grid/candor/messages/clearing"
)

// guard refuses commands of operators and users that would change accounts of the clearing or correct transfers of the
// clearing. After such a change, this site's books would disagree with the books of the peer. Grants to the settlement
// accounts, and withdrawals from them, are allowed. For ordinary transfers the ledger itself makes this check.
func guard(c *ledger.Command) *messages.Error {
	names := []messages.Name{c.By}
	switch c.Verb {
	case ledger.Correct:
		return guardTransfer(c.Correct.Transfer)
	case ledger.Grant:
		names = append(names, unsettled(c.Grant.Account))
	case ledger.Withdraw:
		names = append(names, unsettled(c.Withdraw.Account))
	case ledger.Pay:
		names = append(names, c.Pay.From, c.Pay.To)
	case ledger.Member:
		names = append(names, c.Member.Account, c.Member.Member)
	case ledger.Project:
		names = append(append(names, c.Project.Account), c.Project.Owners...)
	case ledger.Freeze:
		names = append(names, c.Freeze.Account)
	case ledger.Credit:
		names = append(names, c.Credit.Account)
	}
	return guardNames(names...)
}

// unsettled returns the name of an account. For an account of payments outside the ledgers it returns "", because
// operators may grant credits to it and withdraw them.
func unsettled(name messages.Name) messages.Name {
	if clearing.PaidOutside(name) {
		return ""
	}
	return name
}

func guardTransfer(id string) *messages.Error {
	if strings.HasPrefix(id, clearing.TransferPrefix) {
		return messages.Errorf(messages.PermissionDenied, "transfer %q: identifiers that begin with %q are for settlements with other sites, and only the banks make or resolve such transfers; choose another identifier", id, clearing.TransferPrefix)
	}
	return nil
}

func guardNames(names ...messages.Name) *messages.Error {
	for _, name := range names {
		if clearing.Reserved(name) {
			return messages.Errorf(messages.PermissionDenied, "account %q is reserved for settlements with other sites: to set a peer's limit, send the request %q; to name a user or project, choose another name", name, clearingmsg.VerbPeer)
		}
	}
	return nil
}
