package ledger

import (
	"errors"
	"maps"
	"slices"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/money"
)

// Verifier recomputes a journal from its records, in order, and trusts nobody. It computes the head, adds up all
// amounts and, unless it is quick, replays the records under the ledger's rules.
type Verifier struct {
	audit *audit
	count uint64
	again *replay // nil if the records are not replayed
}

// NewVerifier returns a verifier that has read no records yet. If a store is given, the verifier also replays the
// records in a ledger of its own, and writes the journal of this ledger to the store. The store must be empty.
func NewVerifier(s Store) *Verifier {
	v := &Verifier{audit: newAudit()}
	if s != nil {
		v.again = replayInto(Open(s))
	}
	return v
}

// Trust makes the verifier also check that signed requests explain each record. The root of trust must not come from
// the journal. The verifier replays the records in a ledger of its own: the function `settles` returns the Settler of
// this ledger, and may be nil. A verifier that does not replay the records ignores Trust.
func (v *Verifier) Trust(r *Root, settles func(*Ledger) Settler) {
	if v.again != nil {
		v.again.derived(r, settles)
	}
}

// Follows checks a succession of keys of the site's account. It reports whether the succession has all keys that the
// verified records say are valid.
func (v *Verifier) Follows(s []messages.Succession) bool {
	return v.again == nil || v.again.ledger.Follows(s, v.count)
}

// Proofs returns how many of the verified records follow from each kind of cause, for example a signed request.
func (v *Verifier) Proofs() ProofReport {
	if v.again == nil {
		return ProofReport{}
	}
	r := v.again.report
	r.From = v.again.ledger.Proven()
	return r
}

// Add adds the next record. An error names the first fault that was found. The fault may be in an earlier record of the
// same chain of transfers. After an error, no more records may be added. After Add has returned, the caller may use the
// slice for other bytes.
func (v *Verifier) Add(record []byte) error {
	v.count++
	v.audit.add(v.count, record)
	if v.audit.fault != "" {
		return messages.Errorf(messages.Internal, "%s", v.audit.fault)
	}
	if v.again == nil {
		return nil
	}
	return broken(v.again.add(record))
}

// End is called after the last record. If the records are incomplete, the error says what is missing: the last records
// of a chain, or records that must follow the last one.
func (v *Verifier) End() error {
	if v.again == nil {
		return nil
	}
	return broken(v.again.end())
}

func broken(err error) error {
	if err == nil {
		return nil
	}
	kind := messages.Internal
	if errors.Is(err, errCause) || errors.Is(err, errFirst) {
		kind = messages.Unproven
	}
	return messages.Errorf(kind, "replayed under the bank's rules: %v", err)
}

// Count returns the number of records added.
func (v *Verifier) Count() uint64 { return v.count }

// Head returns the hash of the records added.
func (v *Verifier) Head() Head { return v.audit.chain.head }

// Standings returns the recomputed balance and reserve of each account.
func (v *Verifier) Standings() []money.Standing {
	var list []money.Standing
	for _, name := range slices.Sorted(maps.Keys(v.audit.accounts)) {
		s := v.audit.accounts[name]
		list = append(list, money.Standing{Account: name, Balance: s.balance, Reserved: s.reserved})
	}
	return list
}

// Totals returns the recomputed totals: the issued amount, the sum of the other accounts, and the number and sum of the
// holds.
func (v *Verifier) Totals() money.BooksReply {
	r := v.audit.sums()
	r.Balanced = r.Message == ""
	return r
}
