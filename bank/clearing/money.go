package clearing

import (
	"strconv"
	"strings"

	"github.com/candor-grid/candor/bank/ledger"
	"github.com/candor-grid/candor/messages"
)

// Accounts of the clearing in the ledger. A site's name begins with a letter,
// so these are no peers'.
//
// SettlementAccount stands for all the other sites together: what this site
// owed a peer, and that peer took as settled.
const SettlementAccount messages.Name = messages.PeerAccountPrefix + "-settlement"

// SettledAccount stands for what a peer owed and settled, until it is paid
// outside the ledgers: below zero by that, and at most by the peer's share of
// the reserve. Names have at most 63 bytes.
func SettledAccount(peer messages.Name) messages.Name {
	name := messages.PeerAccountPrefix + "-" + peer
	return name[:min(len(name), 63)]
}

// CorrectionAccount has what was booked because this bank was restored and lost numbers:
// below zero by what its users have back though peers were paid.
const CorrectionAccount messages.Name = messages.PeerAccountPrefix + "-correction"

// PaidOutside reports whether payments outside the ledgers are booked on an account.
func PaidOutside(name messages.Name) bool {
	return strings.HasPrefix(name, messages.PeerAccountPrefix+"-")
}

// maker is who the clearing's own transfers are by.
const maker = "$clearing"

// PeerAccount is the account of a peer's bank in this site's ledger.
func PeerAccount(peer messages.Name) messages.Name { return messages.PeerAccountPrefix + peer }

// Reserved reports whether an account is one of the clearing's own, or could
// become one: nobody else may have such a name.
func Reserved(name messages.Name) bool { return strings.HasPrefix(name, messages.PeerAccountPrefix) }

// TransferPrefix begins the identifier of every transfer that the clearing
// makes; nobody else may choose or resolve such.
const TransferPrefix = ledger.ClearingPrefix

// money moves credits in the ledger, and sets them aside there.
type money struct {
	books  Books
	serial uint64 // numbers the clearing's own transfers
	fault  string // the first thing that the ledger should not have refused
}

// mint makes an identifier for a transfer of the clearing's own.
func (m *money) mint() string {
	m.serial++
	return TransferPrefix + strconv.FormatUint(m.serial, 10)
}

// move carries out transfers, all or none, and returns what they moved or set
// aside.
func (m *money) move(by messages.Name, chain ...messages.Transfer) (messages.Credits, *Rejected) {
	for i := range chain {
		chain[i].Linked = i < len(chain)-1
		if chain[i].ID == "" {
			chain[i].ID = m.mint()
		}
	}
	c := ledger.Command{Verb: ledger.Transfers, At: m.books.Now(), By: by, Rank: ledger.Clearing, Within: true, Transfers: chain}
	result := m.books.ApplyOwn(c.Encode())
	if result.Error != nil {
		return 0, ordinary(result.Error)
	}
	last := result.Transfers[len(result.Transfers)-1]
	if last.Error != nil {
		return 0, ordinary(last.Error)
	}
	return last.Amount, nil
}

// must carries out what the clearing's rules made sure of.
func (m *money) must(chain ...messages.Transfer) {
	if _, err := m.move(maker, chain...); err != nil && m.fault == "" {
		m.fault = clip(err.Error())
	}
}

// line opens an account if it does not exist, and sets its credit: how much the
// sites that the account stands for may owe.
func (m *money) line(account messages.Name, title string, limit messages.Credits) (messages.AccountReply, *Rejected) {
	if _, err := m.books.Brief(account); err != nil {
		p := messages.ProjectRequest{Account: account, Title: title}
		if r := m.manage(ledger.Command{Verb: ledger.Project, Project: p}); r.Error != nil {
			return messages.AccountReply{}, ordinary(r.Error)
		}
	}
	c := messages.CreditRequest{Account: account, Credit: limit, Reason: title}
	r := m.manage(ledger.Command{Verb: ledger.Credit, Credit: c})
	if r.Error != nil {
		return messages.AccountReply{}, ordinary(r.Error)
	}
	return r.Account, nil
}

func (m *money) manage(c ledger.Command) ledger.Result {
	c.At, c.By, c.Rank, c.Within = m.books.Now(), maker, ledger.Clearing, true
	return m.books.ApplyOwn(c.Encode())
}

// owed is what this site owes whom an account stands for, by what was done;
// negative: is owed. Room is what can still be taken from the account.
func (m *money) owed(account messages.Name) (owed, room messages.Credits) {
	a, err := m.books.Brief(account)
	if err != nil {
		return 0, 0
	}
	return a.Balance, a.Available + a.Credit
}

// once makes a hold under an identifier that its user chose, and reports
// whether it was made now, and not before: only then is more set aside.
func (m *money) once(by, account messages.Name, hold messages.Transfer) (bool, *Rejected) {
	before, _ := m.books.Brief(account) // an account that is not there has nothing set aside
	if _, err := m.move(by, hold); err != nil {
		return false, err
	}
	now, err := m.books.Brief(account)
	return now.Reserved != before.Reserved, ordinary(err)
}
