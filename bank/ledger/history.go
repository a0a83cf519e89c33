package ledger

import "github.com/candor-grid/candor/messages"

// History is a ledger's journal at one moment. It may be used by other
// goroutines while the ledger changes.
type History struct{ journal journal }

// History returns the journal as it is now. It costs a few words.
func (l *Ledger) History() History { return History{l.journal.prefix()} }

// Count is how many records there are.
func (h *History) Count() uint64 { return h.journal.count }

// Head is the hash of all of them.
func (h *History) Head() Head { return h.journal.chain.head }

// Record returns the record of a number from 1 to Count, in its canonical
// bytes, which must not be changed.
func (h *History) Record(number uint64) ([]byte, error) { return h.journal.at(number) }

// Standings lists what every account has, by name; at most so many.
func (l *Ledger) Standings(most int) ([]messages.Standing, error) {
	if len(l.order) > most {
		return nil, messages.Errorf(messages.TooLarge, "there are %d accounts, more than one reply lists: verify the bank's directory instead, with --history", len(l.order))
	}
	list := make([]messages.Standing, 0, len(l.order))
	l.names.after("", func(name messages.Name) bool {
		a := l.accounts[name]
		list = append(list, messages.Standing{Account: name, Balance: a.balance, Reserved: a.reserved})
		return true
	})
	return list, nil
}
