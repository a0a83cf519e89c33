package faults

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	"github.com/candor-grid/candor/auctioneer/book"
	"github.com/candor-grid/candor/bank/clearing"
	"github.com/candor-grid/candor/bank/ledger"
	"github.com/candor-grid/candor/messages"
	clearingmsg "github.com/candor-grid/candor/messages/clearing"
	"github.com/candor-grid/candor/messages/money"
	"github.com/candor-grid/candor/messages/siteclock"
)

// tally keeps a second copy of a bank's books, added up from the committed commands.
type tally struct {
	balance, reserved map[messages.Name]messages.Credits
	known             map[string]bool
	holds             map[string]money.Transfer
	resolved          map[string]bool
	charged           map[messages.JobID]messages.Credits // by job: what ended jobs have paid to the site
	revenue           messages.Credits                    // income of the site's account from its own jobs
	rounds            map[uint64]messages.Credits         // amount that the site keeps from each round of payments between jobs
	kept              messages.Credits                    // sum of the amounts that the site keeps from committed rounds
	between           between
}

func newTally() *tally {
	return &tally{map[messages.Name]messages.Credits{}, map[messages.Name]messages.Credits{}, map[string]bool{},
		map[string]money.Transfer{}, map[string]bool{}, map[messages.JobID]messages.Credits{}, 0, map[uint64]messages.Credits{}, 0, newBetween()}
}

func (t *tally) move(debit, credit messages.Name, amount messages.Credits) {
	t.balance[debit] -= amount
	t.balance[credit] += amount
}

// expects records how many credits the site must keep from a round of payments between jobs. The amount is what the
// jobs pay to the site now, plus what the site will pay out later, minus what the site pays out now for earlier rounds.
func (t *tally) expects(e book.Effect) bool {
	if _, noted := t.rounds[e.ID]; noted || e.Kind != book.Round && e.Kind != book.Refund {
		return true
	}
	var keeps messages.Credits
	for _, l := range e.Legs {
		if l.From == 0 {
			keeps -= l.Amount
		}
		if l.To == 0 || l.Later {
			keeps += l.Amount
		}
	}
	t.rounds[e.ID] = keeps
	return true
}

// addAll adds to the tally the transfers that were committed as one command, with their results.
func (t *tally) addAll(list []money.Transfer, came []money.TransferResult, now messages.Time) error {
	for i, x := range list {
		if x.Timeout > 0 {
			x.Expires = now.Add(x.Timeout)
		}
		if err := t.add(x, came[i]); err != nil {
			return err
		}
	}
	return nil
}

func (t *tally) add(x money.Transfer, came money.TransferResult) error {
	if came.Error != nil || t.known[x.ID] {
		return nil
	}
	t.known[x.ID] = true
	if h, pending := t.holds[x.Pending]; x.Kind == money.Extend {
		if pending {
			h.Expires = x.Expires
			t.holds[x.Pending] = h
		}
		return nil
	}
	if x.Kind == money.Hold {
		t.holds[x.ID] = x
		t.reserved[x.Debit] += x.Amount
		return nil
	}
	if x.Pending != "" {
		h, pending := t.holds[x.Pending]
		if !pending || t.resolved[x.Pending] {
			return fmt.Errorf("invariant 1: hold %s is resolved by transfer %s, but was not pending", x.Pending, x.ID)
		}
		if x.Kind == money.Post && came.Amount > h.Amount {
			return fmt.Errorf("invariant 2: transfer %s takes %v from a hold of only %v", x.ID, came.Amount, h.Amount)
		}
		t.resolved[x.Pending] = true
		t.reserved[h.Debit] -= h.Amount
		x.Debit = h.Debit
	}
	if x.Kind == money.Void {
		return nil
	}
	t.move(x.Debit, x.Credit, came.Amount)
	return t.count(x, came.Amount)
}

func (t *tally) lapse(now messages.Time) {
	for id, h := range t.holds {
		if h.Expires != 0 && h.Expires <= now && !t.resolved[id] {
			t.resolved[id] = true
			t.reserved[h.Debit] -= h.Amount
		}
	}
}

// count records how much jobs paid, and how much the site got. Payments between jobs go through the site's account, but
// must not stay in it.
func (t *tally) count(x money.Transfer, amount messages.Credits) error {
	switch {
	case x.Job == 0:
		return nil
	case x.Debit == money.SiteAccount:
		t.revenue -= amount
	case x.Credit == money.SiteAccount:
		t.revenue += amount
	}
	if id, of := roundOf(x.ID); of {
		t.kept += t.rounds[id] // the first transfer of a round counts for the whole round
		t.rounds[id] = 0
	}
	if x.Credit != money.SiteAccount || !strings.Contains(x.ID, "/charge") {
		return nil
	}
	if _, twice := t.charged[x.Job]; twice {
		return fmt.Errorf("invariant 2: job %d is charged twice, the second time by transfer %s", x.Job, x.ID)
	}
	t.charged[x.Job] = amount
	return nil
}

// roundOf returns the number of the round of payments between jobs to which a transfer belongs. It returns false if the
// transfer is no payment between jobs. A round is an effect in the book.
func roundOf(transfer string) (effect uint64, of bool) {
	_, number, of := strings.Cut(transfer, "/pays/")
	if !of {
		_, number, of = strings.Cut(transfer, "/gets/")
	}
	effect, err := strconv.ParseUint(number, 10, 64)
	return effect, of && err == nil
}

// taken returns the amount that the bank has taken for a job. It was taken from the job's hold, or, for a visiting job,
// by the authorisation of the home site.
func (t *tally) taken(j *book.Job) messages.Credits {
	if j.Visit != nil {
		return t.between.charges[j.Visit.Home+"/"+j.Visit.Authorisation]
	}
	return t.charged[j.ID]
}

// balanced returns an error unless all payments of jobs went to the right accounts. Payments from one job to another
// may leave credits at the site, but only the amount in t.kept.
func (t *tally) balanced() error {
	due := t.kept
	for _, amount := range t.charged {
		due += amount
	}
	if due != t.revenue {
		return fmt.Errorf("invariant 6: budget balance: the site must have received %v (%v of this from payments between jobs), but received %v", due, t.kept, t.revenue)
	}
	return nil
}

// seenBank handles an entry that a bank committed. It adds the entry to a second copy of the bank's books. Then it
// compares this copy with the bank's books.
func (s *site) seenBank(data []byte, state automaton, result any) error {
	books := state.(*bankState)
	now := books.ledger.Now()
	if most := s.apart()/2 + siteclock.Bound; now.Sub(s.now) > most {
		return fmt.Errorf("invariant 1: the bank's time is ahead by %v, although all clocks except one are ahead by %v at most", now.Sub(s.now), most)
	}
	s.tally.lapse(now)
	switch came := result.(type) {
	case ledger.Result:
		list, _ := s.asked[string(data)].([]money.Transfer)
		if came.Error != nil {
			list = nil
		}
		if err := s.tally.addAll(list, came.Transfers, now); err != nil {
			return err
		}
	case clearing.Result:
		if err := s.tally.clear(s, s.asked[string(data)].(*clearing.Command), &came); err != nil {
			return err
		}
	}
	return cmp.Or(s.tally.compare(books), s.tally.balanced(), s.mirrored(), s.bounded(), s.wealth())
}

// compare compares a ledger with the tally, account by account. The tally has the amounts that follow from the
// committed commands. compare also compares the ledger's totals with the sums over its accounts.
func (t *tally) compare(books *bankState) error {
	var sum, held, issued messages.Credits
	for _, a := range books.ledger.Accounts() {
		sum, held, issued = sum+a.Balance, held+a.Reserved, issued+a.Granted
		if a.Account == money.IssuerAccount {
			continue
		}
		if want := a.Granted + t.balance[a.Account]; a.Balance != want {
			return fmt.Errorf("invariant 1: account %s has %v, but %v according to the committed transfers", a.Account, a.Balance, want)
		}
		if foreign(a.Account) {
			continue
		}
		if a.Reserved != t.reserved[a.Account] {
			return fmt.Errorf("invariant 1: account %s has %v reserved, but %v according to the committed transfers", a.Account, a.Reserved, t.reserved[a.Account])
		}
		if a.Balance < a.Reserved {
			return fmt.Errorf("invariant 1: account %s has only %v, but %v is reserved", a.Account, a.Balance, a.Reserved)
		}
	}
	if totals := books.ledger.Totals(); sum != 0 || held != totals.Held || totals.Issued != issued {
		return fmt.Errorf("invariant 1: the balances must sum to 0, but sum to %v; the accounts have %v reserved, and the totals say %v; %v is issued, and %v is granted", sum, held, totals.Held, totals.Issued, issued)
	}
	return nil
}

func foreign(account messages.Name) bool {
	return strings.HasPrefix(account, clearingmsg.PeerAccountPrefix)
}
