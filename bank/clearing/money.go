package clearing

import (
	"strconv"
	"strings"

	"github.com/candor-grid/candor/bank/ledger"
	"github.com/candor-grid/candor/messages"
)

// Accounts of the clearing in the ledger. A site's name begins with a letter,
// so SettlementAccount is no peer's.
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

// Settles reports whether an account is one of those that payments outside the
// ledgers are booked on.
func Settles(name messages.Name) bool {
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

// mint makes an identifier for a transfer of the clearing's own.
func (s *State) mint() string {
	s.serial++
	return TransferPrefix + strconv.FormatUint(s.serial, 10)
}

// move carries out transfers, all or none, and returns what they moved or set
// aside.
func (s *State) move(by messages.Name, chain ...messages.Transfer) (messages.Credits, *Rejected) {
	for i := range chain {
		chain[i].Linked = i < len(chain)-1
		if chain[i].ID == "" {
			chain[i].ID = s.mint()
		}
	}
	c := ledger.Command{Verb: ledger.Transfers, At: s.books.Now(), By: by, Rank: ledger.Clearing, Within: true, Transfers: chain}
	result := s.books.ApplyOwn(c.Encode())
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
func (s *State) must(chain ...messages.Transfer) {
	if _, err := s.move(maker, chain...); err != nil && s.fault == "" {
		s.fault = clip(err.Error())
	}
}

// line opens an account if need be, and says how far below zero it may go:
// how much whoever it stands for may owe.
func (s *State) line(account messages.Name, title string, limit messages.Credits) (messages.AccountReply, *Rejected) {
	if _, err := s.books.Account(account); err != nil {
		p := messages.ProjectRequest{Account: account, Title: title}
		if r := s.manage(ledger.Command{Verb: ledger.Project, Project: p}); r.Error != nil {
			return messages.AccountReply{}, ordinary(r.Error)
		}
	}
	c := messages.CreditRequest{Account: account, Credit: limit, Reason: title}
	r := s.manage(ledger.Command{Verb: ledger.Credit, Credit: c})
	if r.Error != nil {
		return messages.AccountReply{}, ordinary(r.Error)
	}
	return r.Account, nil
}

func (s *State) manage(c ledger.Command) ledger.Result {
	c.At, c.By, c.Rank, c.Within = s.books.Now(), maker, ledger.Clearing, true
	return s.books.ApplyOwn(c.Encode())
}

// owed is what this site owes whom an account stands for, by what was done;
// negative: is owed. Room is what can still be taken from the account.
func (s *State) owed(account messages.Name) (owed, room messages.Credits) {
	a, err := s.books.Account(account)
	if err != nil {
		return 0, 0
	}
	return a.Balance, a.Available + a.Credit
}
