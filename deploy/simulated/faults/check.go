package faults

import (
	"fmt"

	"github.com/candor-grid/candor/auctioneer/book"
	"github.com/candor-grid/candor/bank/ledger"
	"github.com/candor-grid/candor/messages"
)

// tally keeps the bank's books a second time, by plain addition of what was
// committed.
type tally struct {
	balance, reserved map[messages.Name]messages.Credits
	known             map[string]bool
	holds             map[string]messages.Transfer // pending
	resolved          map[string]bool
	charged           map[messages.JobID]messages.Credits
}

func newTally() *tally {
	return &tally{map[messages.Name]messages.Credits{}, map[messages.Name]messages.Credits{}, map[string]bool{},
		map[string]messages.Transfer{}, map[string]bool{}, map[messages.JobID]messages.Credits{}}
}

func (t *tally) add(x messages.Transfer, came messages.TransferResult) error {
	if came.Error != nil || t.known[x.ID] {
		return nil
	}
	t.known[x.ID] = true
	if x.Kind == messages.Hold {
		t.holds[x.ID] = x
		t.reserved[x.Debit] += x.Amount
		return nil
	}
	if x.Pending != "" {
		h, pending := t.holds[x.Pending]
		if !pending || t.resolved[x.Pending] {
			return fmt.Errorf("invariant 1: hold %s is resolved by %s, and was not pending", x.Pending, x.ID)
		}
		if came.Amount > h.Amount {
			return fmt.Errorf("invariant 2: %s takes %v of a hold of %v", x.ID, came.Amount, h.Amount)
		}
		t.resolved[x.Pending] = true
		t.reserved[h.Debit] -= h.Amount
		x.Debit = h.Debit
	}
	if x.Kind == messages.Void {
		return nil
	}
	if x.Job != 0 {
		if _, twice := t.charged[x.Job]; twice {
			return fmt.Errorf("invariant 2: job %d is charged twice, the second time by %s", x.Job, x.ID)
		}
		t.charged[x.Job] = came.Amount
	}
	t.balance[x.Debit] -= came.Amount
	t.balance[x.Credit] += came.Amount
	return nil
}

// seenBank takes what the bank committed, and compares the books.
func (w *World) seenBank(data []byte, state automaton, result any) error {
	came, ok := result.(ledger.Result)
	if !ok {
		return nil
	}
	t := w.tally
	for i, x := range w.asked[string(data)] {
		if err := t.add(x, came.Transfers[i]); err != nil {
			return err
		}
	}
	var sum, held, issued messages.Credits
	books := state.(*bankState)
	for _, a := range books.Accounts() {
		sum, held, issued = sum+a.Balance, held+a.Reserved, issued+a.Granted
		if a.Account == messages.IssuerAccount {
			continue
		}
		if want := a.Granted + t.balance[a.Account]; a.Balance != want || a.Reserved != t.reserved[a.Account] {
			return fmt.Errorf("invariant 1: %s has %v with %v reserved, and by what was committed %v with %v", a.Account, a.Balance, a.Reserved, want, t.reserved[a.Account])
		}
		if a.Balance < a.Reserved {
			return fmt.Errorf("invariant 1: %s has %v, and %v of it reserved", a.Account, a.Balance, a.Reserved)
		}
	}
	if totals := books.Totals(); sum != 0 || held != totals.Held || totals.Issued != issued {
		return fmt.Errorf("invariant 1: balances sum to %v, %v is held and %v on holds, %v issued and %v granted", sum, held, totals.Held, totals.Issued, issued)
	}
	return nil
}

// witness remembers what the book has said for good.
type witness struct {
	w        *World
	accepted map[messages.TaskRef]uint32
	attempts map[messages.TaskRef]uint32
}

func newWitness() witness {
	return witness{accepted: map[messages.TaskRef]uint32{}, attempts: map[messages.TaskRef]uint32{}}
}

func (s *witness) book(_ []byte, state automaton, _ any) error {
	b := state.(*bookState)
	s.w = b.World
	if err := s.claims(b.Book); err != nil {
		return err
	}
	holds := map[string]messages.JobID{}
	for _, j := range jobs(b.Book) {
		if other, twice := holds[j.Hold]; twice {
			return fmt.Errorf("invariant 2: jobs %d and %d are one submission under one hold", other, j.ID)
		}
		holds[j.Hold] = j.ID
		if err := s.job(j); err != nil {
			return err
		}
	}
	return nil
}

// claims holds every task to at most one claim, that of its latest attempt.
func (s *witness) claims(b *book.Book) error {
	by := map[messages.TaskRef]messages.Name{}
	for _, n := range b.Nodes() {
		for r, h := range n.Claims {
			if other, twice := by[r]; twice {
				return fmt.Errorf("invariant 2: task %v is claimed by %s and %s", r, min(other, n.Name), max(other, n.Name))
			}
			by[r] = n.Name
			if j := b.Job(r.Job); j != nil && j.Stages[0].Tasks[r.Index].Attempt != h.Attempt {
				return fmt.Errorf("invariant 2: %s holds attempt %d of task %v, whose last is %d", n.Name, h.Attempt, r, j.Stages[0].Tasks[r.Index].Attempt)
			}
		}
	}
	return nil
}

func (s *witness) job(j *book.Job) error {
	if j.Refused != "" {
		return fmt.Errorf("invariant 1: job %d was held for, and its charge refused: %s", j.ID, j.Refused)
	}
	if j.Charged > j.Held || j.Charged != 0 && j.Charged != j.Owed {
		return fmt.Errorf("invariant 2: job %d owes %v of its hold of %v, and paid %v", j.ID, j.Owed, j.Held, j.Charged)
	}
	for k := range j.Stages[0].Tasks {
		t, r := &j.Stages[0].Tasks[k], messages.TaskRef{Job: j.ID, Index: uint32(k)}
		if t.Attempt < s.attempts[r] {
			return fmt.Errorf("invariant 2: task %v was at attempt %d, and is at %d", r, s.attempts[r], t.Attempt)
		}
		s.attempts[r] = t.Attempt
		first, was := s.accepted[r]
		switch {
		case was && (t.Phase != book.Done || t.Attempt != first):
			return fmt.Errorf("invariant 2: attempt %d of task %v was accepted, and now is attempt %d %v", first, r, t.Attempt, t.Phase)
		case t.Phase == book.Done && !s.w.exits[messages.Attempt{Task: r, Number: t.Attempt}]:
			return fmt.Errorf("invariant 2: attempt %d of task %v is accepted, and never ended well", t.Attempt, r)
		case t.Phase == book.Done:
			s.accepted[r] = t.Attempt
		}
	}
	return nil
}

// healed says what must be true once all is well again for long enough; nil if
// it is.
func (w *World) healed() error {
	b := w.books.reference.(*bookState)
	for _, u := range w.users {
		j := b.ByKey(u.name, u.key)
		switch {
		case u.over:
		case u.job == 0:
			return fmt.Errorf("job %s/%s was never answered", u.name, u.key)
		case j == nil || j.ID != u.job:
			return fmt.Errorf("invariant 3: job %d was acknowledged, and is gone", u.job)
		case j.State != j.Outcome || j.Active():
			return fmt.Errorf("job %d is %v still", j.ID, j.State)
		}
	}
	for _, j := range jobs(b.Book) {
		if w.tally.charged[j.ID] != j.Charged {
			return fmt.Errorf("invariant 2: job %d paid %v by the book, and %v by the bank", j.ID, j.Charged, w.tally.charged[j.ID])
		}
	}
	return nil
}
