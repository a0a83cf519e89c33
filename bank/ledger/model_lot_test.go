package ledger

import (
	"cmp"
	"maps"
	"math/big"
	"slices"
	"strings"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/money"
)

// modelLot identifies an account's part of an expiring grant.
type modelLot struct {
	account messages.Name
	expires messages.Time
	grant   string
}

// sorted returns the lots of an account; the first to expire is first.
func (m *model) sorted(account messages.Name) []modelLot {
	var list []modelLot
	for lot := range m.lots {
		if lot.account == account {
			list = append(list, lot)
		}
	}
	slices.SortFunc(list, byExpiry)
	return list
}

func byExpiry(a, b modelLot) int {
	return cmp.Or(cmp.Compare(a.expires, b.expires), strings.Compare(a.grant, b.grant))
}

func (m *model) take(account messages.Name, amount messages.Credits) map[modelLot]messages.Credits {
	draws := map[modelLot]messages.Credits{}
	for _, lot := range m.sorted(account) {
		part := min(m.lots[lot], amount)
		if part > 0 {
			draws[lot] = part
			m.lots[lot] -= part
			amount -= part
		}
	}
	return draws
}

// modelDue is a time at which a part of an account's credits may expire. The model may have additional such times, at
// which nothing expires.
type modelDue struct {
	at   messages.Time
	name messages.Name
}

func (m *model) give(lot modelLot, amount messages.Credits) {
	m.lots[lot] += amount
	m.dues[modelDue{lot.expires, lot.account}] = true
}

// settle frees the credits that a hold took from lots and did not spend.
func (m *model) settle(draws map[modelLot]messages.Credits, spent messages.Credits) {
	for _, lot := range slices.SortedFunc(maps.Keys(draws), byExpiry) {
		part := min(draws[lot], spent)
		spent -= part
		m.lots[lot] += draws[lot] - part
	}
}

// sweep returns the credits of expired lots to the issuer. It returns no more than the account can pay.
func (m *model) sweep(account messages.Name, by messages.Time) {
	for _, lot := range m.sorted(account) {
		amount := big.NewInt(int64(m.lots[lot]))
		if room := m.room(account); room.Cmp(amount) < 0 {
			amount = room
		}
		if lot.expires <= by && amount.Sign() > 0 {
			m.move(account, money.IssuerAccount, messages.Credits(amount.Int64()))
			m.lots[lot] -= messages.Credits(amount.Int64())
			m.done++
		}
	}
}

func (m *model) sweepAll() {
	for lot := range m.lots {
		m.sweep(lot.account, m.now)
	}
}

// advance moves the clock to the given time. On the way, holds lapse and grants expire, in the order of their times. If
// a hold and a grant have the same time, the hold lapses first.
func (m *model) advance(at messages.Time) {
	m.now = max(m.now, at)
	for {
		h, d := m.nextHold(), m.nextDue()
		switch {
		case h != "" && m.pending[h].expires <= m.now && (d == modelDue{} || m.pending[h].expires <= d.at):
			hold := m.pending[h]
			m.resolve(h, 0, messages.Expired)
			m.sweep(hold.account, hold.expires)
		case d != modelDue{} && d.at <= m.now:
			delete(m.dues, d)
			m.sweep(d.name, d.at)
		default:
			return
		}
	}
}

func (m *model) nextHold() (next string) {
	for id, h := range m.pending {
		old := m.pending[next]
		if h.expires != 0 && (next == "" || h.expires < old.expires || h.expires == old.expires && id < next) {
			next = id
		}
	}
	return next
}

func (m *model) nextDue() (next modelDue) {
	for d := range m.dues {
		if next == (modelDue{}) || d.at < next.at || d.at == next.at && d.name < next.name {
			next = d
		}
	}
	return next
}
