package clearing

import (
	"math/bits"

	"github.com/candor-grid/candor/messages"
)

// settlementTitle is that of the account for all the other sites.
const settlementTitle = "settlements with other sites"

// setReserve says what the other sites together may owe by settlements, 0 for
// what their shares come to. A lower reserve makes every share smaller.
func (s *State) setReserve(r *messages.ReserveRequest) (*messages.AccountReply, *Rejected) {
	a, err := s.line(SettlementAccount, settlementTitle, r.Limit)
	if err == nil {
		s.divide()
	}
	return &a, err
}

// divide gives each peer its share of the reserve, which is the credit of its
// account of settled debts: so the ledger itself refuses whatever is beyond. A
// share is what an operator stated, and otherwise the limit.
func (s *State) divide() {
	if s.rules == firstRules {
		return
	}
	reserve := s.reserve()
	var sum uint64
	for _, name := range s.order {
		sum += uint64(s.wanted(s.peers[name]))
	}
	for _, name := range s.order {
		share := s.wanted(s.peers[name])
		if reserve > 0 && sum > uint64(reserve) {
			high, low := bits.Mul64(uint64(share), uint64(reserve))
			quotient, _ := bits.Div64(high, low, sum) // below share, which fits
			share = messages.Credits(quotient)
		}
		s.allot(SettledAccount(name), "settled debts of site "+name, share)
	}
}

// reserve is the bound on all shares together, 0 if there is none. It opens the
// account that has it.
func (s *State) reserve() messages.Credits {
	a, err := s.books.Account(SettlementAccount)
	if err != nil {
		s.allot(SettlementAccount, settlementTitle, 0)
	}
	return a.Credit
}

// wanted is the share that a peer has where the reserve is large enough. A lower
// limit takes nothing of it back that settles what the peer owes already.
func (s *State) wanted(p *peer) messages.Credits {
	if p.stated {
		return p.share
	}
	owing, _ := s.books.Account(PeerAccount(p.name))
	settled, _ := s.books.Account(SettledAccount(p.name)) // 0 of one that is not open
	owes := owing.Reserved - owing.Balance - settled.Balance
	return max(owing.Credit, min(settled.Credit, owes))
}

// allot opens an account, or changes its credit, where that is not what it is.
func (s *State) allot(account messages.Name, title string, credit messages.Credits) {
	if a, err := s.books.Account(account); err == nil && a.Credit == credit {
		return
	}
	if _, err := s.line(account, title, credit); err != nil && s.fault == "" {
		s.fault = clip(err.Error())
	}
}

// settlementOf is the account that owes what a peer's settlements moved. The
// accounts of a state of the first rules are opened when they are needed.
func (s *State) settlementOf(p *peer) messages.Name {
	if s.rules == firstRules {
		return SettlementAccount
	}
	account := SettledAccount(p.name)
	if _, err := s.books.Account(account); err != nil {
		s.divide()
	}
	return account
}

// settlements is what this site owes all the others by settlements, and the
// reserve for what they owe it.
func (s *State) settlements() (owed, reserve messages.Credits) {
	if a, err := s.books.Account(SettlementAccount); err == nil {
		owed, reserve = a.Balance, a.Credit
	}
	var shares messages.Credits
	for _, name := range s.order {
		if a, err := s.books.Account(SettledAccount(name)); err == nil {
			owed, shares = owed+a.Balance, shares+a.Credit
		}
	}
	if reserve == 0 {
		reserve = shares
	}
	return owed, reserve
}
