package clearing

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/clearing"
	moneymsg "github.com/candor-grid/candor/messages/money"
)

// checker checks something about all banks that must be true after every step.
type checker struct {
	name  string
	holds func(*world) error
}

// checkers has all checkers. The first checker is tested in package ledger. For each other checker, there is an
// inserted bug that only this checker finds; see TestRingFindsPlantedBugs.
var checkers = []checker{
	{"ledgers", each((*bank).checkLedger)},
	{"holds", each((*bank).checkHolds)},
	{"accounts", each((*bank).checkAccounts)},
	{"mirrors", func(w *world) error { _, err := w.inFlight(); return err }},
	{"wealth", (*world).checkWealth},
	{"observer", func(w *world) error { return w.seen.fault }},
}

func (w *world) check() error {
	for _, c := range w.checkers {
		if err := c.holds(w); err != nil {
			return fmt.Errorf("%s: %w", c.name, err)
		}
	}
	return nil
}

func each(f func(*bank) error) func(*world) error {
	return func(w *world) error {
		for _, b := range w.banks {
			if err := f(b); err != nil {
				return fmt.Errorf("%s: %w", b.site, err)
			}
		}
		return nil
	}
}

func (b *bank) checkLedger() error {
	var sum, held messages.Credits
	for _, a := range b.ledger.Accounts() {
		sum += a.Balance
		held += a.Reserved
		own := strings.HasPrefix(a.Account, clearing.PeerAccountPrefix) || a.Account == moneymsg.IssuerAccount
		if !own && a.Available < 0 || a.Reserved < 0 {
			return fmt.Errorf("account %s has balance %v and %v reserved", a.Account, a.Balance, a.Reserved)
		}
	}
	if sum != 0 || held != b.ledger.Totals().Held {
		return fmt.Errorf("the balances sum to %v, %v is reserved, and holds are of %v", sum, held, b.ledger.Totals().Held)
	}
	return nil
}

// checkHolds adds up the holds in a ledger, and the amounts that are pending by the clearing's records. It compares the
// two sums.
func (b *bank) checkHolds() error {
	if held, expected := b.ledger.Totals().Held, b.expectedHolds(); held != expected {
		return fmt.Errorf("holds are of %v, and what is pending of %v", held, expected)
	}
	return nil
}

// checkWealth adds up the credits of users at all banks, and the credits in transfers between banks that are not
// complete. The total must equal the credits that were granted.
func (w *world) checkWealth() error {
	var wealth messages.Credits
	for _, b := range w.banks {
		for _, a := range b.ledger.Accounts() {
			if a.Account != moneymsg.IssuerAccount && !strings.HasPrefix(a.Account, clearing.PeerAccountPrefix) {
				wealth += a.Balance
			}
		}
	}
	if flight, _ := w.inFlight(); wealth+flight != w.granted {
		return fmt.Errorf("users have %v, %v is in flight, and %v was issued", wealth, flight, w.granted)
	}
	return nil
}

func (b *bank) expectedHolds() (sum messages.Credits) {
	for _, e := range b.state.issuer.issued.byID {
		sum += e.value.Amount
	}
	for _, e := range b.state.acceptor.accepted.byID {
		if e.value.Closed == open {
			sum += e.value.Amount
		}
	}
	for _, p := range b.state.peers.byName {
		for _, it := range p.outbox {
			sum += it.Held
		}
	}
	return sum
}

// checkAccounts checks two things in the ledger. The balances of the peers' accounts must agree with the running totals
// of the instructions. The settlement account must agree with the cycles.
func (b *bank) checkAccounts() error {
	if fault := b.state.Fault(); fault != "" {
		return fmt.Errorf("a step was refused by the ledger: %s", fault)
	}
	var paid messages.Credits
	for _, p := range b.state.peers.byName {
		var received messages.Credits
		owed, _ := b.state.money.owed(PeerAccount(p.Name))
		if is := p.Out.Total.Owed - p.In.Total.Owed; owed != is {
			return fmt.Errorf("the account of %s says that %v is owed, and the running totals %v", p.Name, owed, is)
		}
		if -owed > ringLimit {
			return fmt.Errorf("%s owes %v, above the highest limit there was", p.Name, -owed)
		}
		if p.Dispute != "" {
			return fmt.Errorf("honest banks disagree: %s", p.Dispute)
		}
		for _, c := range p.Cycles {
			paid += c.Paid
			received += c.Received
		}
		if is, _ := b.state.money.owed(SettledAccount(p.Name)); is != -received || received > ringReserve {
			return fmt.Errorf("the account of settled debts of %s says %v, the cycles %v, and the reserve is %v", p.Name, is, received, ringReserve)
		}
	}
	if is, _ := b.state.money.owed(SettlementAccount); is != paid {
		return fmt.Errorf("the settlement account says %v, and the cycles %v", is, paid)
	}
	return nil
}

// inFlight adds up the amounts of instructions in flight: one bank carried out the instruction, and the other bank has
// not entered its outcome yet.
func (w *world) inFlight() (sum messages.Credits, err error) {
	for _, x := range w.banks {
		for _, y := range w.banks {
			if x == y {
				continue
			}
			moved, fault := flight(x, y)
			if fault != nil {
				err = fmt.Errorf("%s to %s: %w", x.site, y.site, fault)
			}
			sum += moved
		}
	}
	return sum, err
}

func flight(x, y *bank) (sum messages.Credits, err error) {
	p, in := x.state.peers.byName[y.site], &y.state.peers.byName[x.site].In
	entered, ok := in.at(p.Out.Total.Number)
	if !ok || in.Total.Number > p.last() {
		return 0, fmt.Errorf("entered to number %d, carried out to %d, asked to %d", p.Out.Total.Number, in.Total.Number, p.last())
	}
	if !bytes.Equal(entered.Digest, p.Out.Total.Digest) {
		return 0, fmt.Errorf("the books differ at or before number %d", entered.Number)
	}
	for _, l := range in.page(entered.Number+1, MaxOutstanding) {
		it := p.outbox[l.Number-entered.Number-1].Instruction
		if it.Kind != l.Kind || it.Amount != l.Asked {
			return 0, fmt.Errorf("number %d was asked as %v of %v, and carried out as %v of %v", l.Number, it.Kind, it.Amount, l.Kind, l.Asked)
		}
		switch l.Kind {
		case clearing.InstructPay:
			sum -= l.Moved // the payee has the amount, and the payer's hold is not taken yet
		case clearing.InstructCharge:
			sum += l.Moved // the user has paid, and the site does not have the amount yet
		}
	}
	return sum, nil
}

// observer sees every message between banks. Each message says something about a numbered instruction. observer finds a
// bank that later says something else about the same instruction, even after a crash.
type observer struct {
	asked map[string]clearing.Instruction
	came  map[string]moneymsg.TransferResult
	fault error
}

func newObserver() observer {
	return observer{asked: map[string]clearing.Instruction{}, came: map[string]moneymsg.TransferResult{}}
}

func numberKey(from, to messages.Name, n uint64) string { return fmt.Sprint(from, ">", to, "#", n) }

func (o *observer) hear(p *parcel) {
	if p.instructions != nil {
		m := &p.instructions.Instructions
		for i, in := range m.List {
			key := numberKey(m.From, m.To, m.First+uint64(i))
			if first, known := o.asked[key]; known && first != in {
				o.fault = fmt.Errorf("number %s was %+v and is %+v", key, first, in)
			}
			o.asked[key] = in
		}
	}
	if p.receipt != nil {
		o.hearReceipt(&p.receipt.Receipt)
	}
}

func (o *observer) hearReceipt(m *clearing.Receipt) {
	for i, came := range m.Outcomes {
		key := numberKey(m.To, m.From, m.First+uint64(i))
		if first, known := o.came[key]; known && !alike(first, came) {
			o.fault = fmt.Errorf("number %s came to %+v and comes to %+v", key, first, came)
		}
		o.came[key] = came
	}
}

func alike(a, b moneymsg.TransferResult) bool {
	return a.Amount == b.Amount && (a.Error == nil) == (b.Error == nil) && (a.Error == nil || *a.Error == *b.Error)
}

// expected returns the balance that a user should have, by the grants and the messages that the observer saw.
func (w *world) expected(b *bank, user messages.Name) messages.Credits {
	a, err := b.ledger.Account(user)
	if err != nil {
		return 0
	}
	balance := a.Granted
	for key, in := range w.seen.asked {
		came, from, to := w.seen.came[key], key[:strings.IndexByte(key, '>')], key[strings.IndexByte(key, '>')+1:strings.IndexByte(key, '#')]
		switch {
		case in.Kind == clearing.InstructPay && to == b.site && in.Account == user:
			balance += came.Amount
		case in.Kind == clearing.InstructCharge && to == b.site && strings.HasPrefix(in.ID, user+"/"):
			balance -= came.Amount
		case in.Kind == clearing.InstructCharge && from == b.site && user == moneymsg.SiteAccount:
			balance += came.Amount
		}
	}
	return balance - w.remitted(b, user)
}

// A user pays users of other sites. remitted returns the sum of the payments that the other sites have received. It
// takes them from the messages that the observer saw.
func (w *world) remitted(b *bank, user messages.Name) (sum messages.Credits) {
	for key, in := range w.seen.asked {
		if in.Kind == clearing.InstructPay && strings.HasPrefix(key, b.site+">") && in.Reason == user {
			sum += w.seen.came[key].Amount
		}
	}
	return sum
}
