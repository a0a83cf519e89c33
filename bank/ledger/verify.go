package ledger

import (
	"errors"
	"maps"
	"slices"

	"github.com/candor-grid/candor/messages"
)

// Verifier recomputes a journal from its records, which it takes in order.
// It trusts nobody: it runs the chain, adds everything up, and, unless it is to be quick,
// carries out again under the ledger's rules what the records say was asked.
type Verifier struct {
	audit *audit
	count uint64
	again *replay // nil: nothing is carried out again
}

// NewVerifier returns one that has seen no record. With a store, which must be
// empty, it carries the records out again and keeps its own journal there.
func NewVerifier(s Store) *Verifier {
	v := &Verifier{audit: newAudit()}
	if s != nil {
		v.again = replayInto(Open(s))
	}
	return v
}

// Trust has each record derived from what was signed, against what is known of the site
// without the journal. Settles makes what settles with other sites on a ledger; nil:
// nothing does. A verifier that carries nothing out again derives nothing.
func (v *Verifier) Trust(r *Root, settles func(*Ledger) Settler) {
	if v.again != nil {
		v.again.derived(r, settles)
	}
}

// Follows reports whether a succession has the keys of the site's account that were in
// force after the records so far.
func (v *Verifier) Follows(s []messages.Succession) bool {
	return v.again == nil || v.again.ledger.Follows(s, v.count)
}

// Proofs says what was derived, and from what.
func (v *Verifier) Proofs() ProofReport {
	if v.again == nil {
		return ProofReport{}
	}
	r := v.again.report
	r.From = v.again.ledger.Proven()
	return r
}

// Add takes the next record. The error names the first thing that is wrong, which
// may be an earlier record of the same chain; after it nothing more is to be
// added. The bytes may be used again.
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

// End says that there are no more records. The error names what is missing: the
// rest of a chain, or what the records lead to.
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
	return messages.Errorf(kind, "carried out again under the bank's rules: %v", err)
}

// Count is how many records were added, Head the hash of all of them.
func (v *Verifier) Count() uint64 { return v.count }

// Head is the hash of the records that were added.
func (v *Verifier) Head() Head { return v.audit.chain.head }

// Standings lists what the records come to, by account.
func (v *Verifier) Standings() []messages.Standing {
	var list []messages.Standing
	for _, name := range slices.Sorted(maps.Keys(v.audit.accounts)) {
		s := v.audit.accounts[name]
		list = append(list, messages.Standing{Account: name, Balance: s.balance, Reserved: s.reserved})
	}
	return list
}

// Totals sums up: what was issued, what the other accounts have together, what
// is held of it, and in how many holds.
func (v *Verifier) Totals() messages.BooksReply {
	r := v.audit.sums()
	r.Balanced = r.Message == ""
	return r
}
