package clearing

import (
	"strconv"
	"strings"

	"github.com/candor-grid/candor/bank/ledger"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/clearing"
	moneymsg "github.com/candor-grid/candor/messages/money"
)

// These are the accounts of the clearing in the ledger. They are not accounts of peers: the name of a site begins with
// a letter, and these names do not.
//
// SettlementAccount stands for all other sites together. Its balance is the amount of this site's debts that the peers
// have accepted as settled.
const SettlementAccount messages.Name = clearing.PeerAccountPrefix + "-settlement"

// SettledAccount returns the account for debts that a peer has settled and not yet paid outside the ledgers. If these
// debts are 5 credits, the balance of the account is -5. The balance is never below minus the peer's share of the
// reserve. The name of the account is cut at 63 bytes, the longest name of an account.
func SettledAccount(peer messages.Name) messages.Name {
	name := clearing.PeerAccountPrefix + "-" + peer
	return name[:min(len(name), 63)]
}

// CorrectionAccount is used after this bank was restored from a backup. The bank may then have lost instructions, and
// CorrectionAccount has the transfers that correct the bank's books. A negative balance means that users got credits
// back although peers were paid.
const CorrectionAccount messages.Name = clearing.PeerAccountPrefix + "-correction"

// PaidOutside reports whether an account has settlements that must be paid outside the ledgers.
func PaidOutside(name messages.Name) bool {
	return strings.HasPrefix(name, clearing.PeerAccountPrefix+"-")
}

// maker is recorded as the caller of transfers that the clearing itself makes, and not a user.
const maker = "$clearing"

// PeerAccount returns the account of a peer's bank in this site's ledger.
func PeerAccount(peer messages.Name) messages.Name { return clearing.PeerAccountPrefix + peer }

// Reserved reports whether an account name, for example "clearing-west", belongs to the clearing. Users may not have
// such a name.
func Reserved(name messages.Name) bool { return strings.HasPrefix(name, clearing.PeerAccountPrefix) }

// TransferPrefix begins the identifiers of the clearing's transfers. Only the clearing may choose an identifier with
// this prefix, or resolve a hold with such an identifier.
const TransferPrefix = ledger.ClearingPrefix

type money struct {
	books  Books
	serial uint64 // number of the clearing's latest transfer
	fault  string // the first transfer of the clearing that the ledger refused; this never happens if the clearing keeps its rules
}

// mint returns a new identifier for a transfer that the clearing itself makes.
func (m *money) mint() string {
	m.serial++
	return TransferPrefix + strconv.FormatUint(m.serial, 10)
}

// move carries out all of the transfers, or none. It returns the amount moved or reserved.
func (m *money) move(by messages.Name, chain ...moneymsg.Transfer) (messages.Credits, *Rejected) {
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

// must carries out transfers that cannot fail if the clearing keeps its own rules. If they still fail, it records the
// fault.
func (m *money) must(chain ...moneymsg.Transfer) {
	if _, err := m.move(maker, chain...); err != nil && m.fault == "" {
		m.fault = clip(err.Error())
	}
}

// line opens an account for another site, or for several other sites together, if the account does not exist. It also
// sets the account's credit, which is the most that these sites may owe.
func (m *money) line(account messages.Name, title string, limit messages.Credits) (moneymsg.AccountReply, *Rejected) {
	if _, err := m.books.Brief(account); err != nil {
		p := moneymsg.ProjectRequest{Account: account, Title: title}
		if r := m.manage(ledger.Command{Verb: ledger.Project, Project: p}); r.Error != nil {
			return moneymsg.AccountReply{}, ordinary(r.Error)
		}
	}
	c := moneymsg.CreditRequest{Account: account, Credit: limit, Reason: title}
	r := m.manage(ledger.Command{Verb: ledger.Credit, Credit: c})
	if r.Error != nil {
		return moneymsg.AccountReply{}, ordinary(r.Error)
	}
	return r.Account, nil
}

func (m *money) manage(c ledger.Command) ledger.Result {
	c.At, c.By, c.Rank, c.Within = m.books.Now(), maker, ledger.Clearing, true
	return m.books.ApplyOwn(c.Encode())
}

// owed returns how much this site owes to the other sites of an account, which is the balance of the account. It is
// negative if they owe this site. An account of the clearing belongs to one other site, or to several. The result
// `room` is how much can still be taken from the account.
func (m *money) owed(account messages.Name) (owed, room messages.Credits) {
	a, err := m.books.Brief(account)
	if err != nil {
		return 0, 0
	}
	return a.Balance, a.Available + a.Credit
}

// once makes a hold with an identifier that a user chose. It returns true if this call has made the hold, and false if
// an earlier call with the same identifier has.
func (m *money) once(by, account messages.Name, hold moneymsg.Transfer) (bool, *Rejected) {
	before, _ := m.books.Brief(account) // an unknown account has no holds, so the error does not matter
	if _, err := m.move(by, hold); err != nil {
		return false, err
	}
	now, err := m.books.Brief(account)
	return now.Reserved != before.Reserved, ordinary(err)
}
