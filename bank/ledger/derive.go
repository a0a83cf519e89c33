package ledger

import (
	"bytes"
	"errors"

	"github.com/candor-grid/candor/messages"
)

// Settler repeats what a bank settled with other sites, when a journal is replayed. The replay derives both the ledger
// and the state of the settlements from that journal.
type Settler interface {
	// Again checks the proof in a cause. Then it repeats the changes that follow from the cause.
	Again(c *Cause) *messages.Error
}

// Cause is a record that leads to later records: a user's signed request, a statement that a peer's bank signed, or a
// step of the clearing because time passed.
type Cause struct {
	Said    bool // the bank of a peer, By, signed it; By "" means that time passed
	Verb    string
	By      messages.Name
	At      messages.Time
	Request messages.SignedRequest
}

// ProofReport counts the records that were derived from a journal, by their causes.
type ProofReport struct {
	From     uint64 // number of the first record in which the site states its keys; 0 means none
	Keys     uint64 // statements of the site about its keys
	Requests uint64 // signed requests
	Followed uint64 // records that follow from Keys and Requests
	Marked   uint64 // transfers with the mark of a session
	Unread   uint64 // marked transfers that cannot be checked without the site's keys
	Forced   uint64 // lapsed holds and expired grants
	Said     uint64 // statements signed by peers' banks
	Settled  uint64 // records that follow from Said
	Passed   uint64 // steps of the clearing because time passed, and the records that follow
	Found    uint64 // facts that the leading replica found, and the records that follow
}

var (
	errCause = errors.New("has no cause that was signed, and no rule requires it")
	errFirst = errors.New("comes before the record that names the site's keys")
)

// After a call of derived, a replay does not copy the records of the journal. It derives each record from the request
// or rule that caused it; see derive. The argument r is the root of trust. The function `settles` makes the ledger's
// Settler, which repeats what the bank settled with other sites. It may be nil.
func (p *replay) derived(r *Root, settles func(*Ledger) Settler) {
	p.ledger.Trust(r)
	if settles != nil {
		p.settler = settles(p.ledger)
	}
}

// derive processes the next record of a journal whose root of trust is known. It does not copy the record into the
// ledger: it carries out the proven requests, and the steps that the rules require at a given time. The ledger must
// then write the same records as the journal, byte by byte.
func (p *replay) derive(rec *record, raw []byte) error {
	if len(p.group) > 0 && !p.continues(rec) {
		if err := p.carryOut(p.count - 1); err != nil {
			return err
		}
	}
	if len(p.group) == 0 && len(p.ahead) > 0 {
		return p.expect(p.count, raw, nil)
	}
	if rec.stamp.session != 0 {
		p.basis = &p.report.Marked
		if p.ledger.requests.trust.exchange() == nil {
			p.report.Unread++
		}
		p.group, p.raw = append(p.group, *rec), append(p.raw, bytes.Clone(raw))
		if p.awaits() {
			return nil
		}
		return p.carryOut(p.count)
	}
	if p.ledger.requests.trust.from == 0 && rec.what != trusted {
		return p.fault(p.count, errFirst)
	}
	return p.lead(rec, raw)
}

// lead replays a record that has a cause, such as a request: it carries out the cause in the verifier's own ledger.
// Then it compares the record with the first record that this ledger writes.
func (p *replay) lead(rec *record, raw []byte) error {
	var why *messages.Error
	command := Command{At: rec.at, By: rec.by, Rank: rec.rank}
	switch rec.what {
	case trusted:
		command.Verb, command.Asked = Keys, &rec.signed
		p.begin(&p.report.Keys, &p.report.Keys)
		why = reason(p.ledger.Apply(command.Encode()))
	case requested:
		p.begin(&p.report.Requests, &p.report.Followed)
		if command.Verb = verbOf(rec.verb); command.Verb == 0 {
			why = p.settle(rec)
			break
		}
		command.Asked = &rec.signed
		why = reason(p.ledger.Apply(command.Encode()))
	case said:
		p.begin(p.report.said(rec))
		why = p.settle(rec)
	default:
		if rec.what != lapsed && (rec.what != done || originOf(rec.asked.ID) != returned) || rec.by != "" {
			return p.fault(p.count, errCause)
		}
		p.begin(&p.report.Forced, &p.report.Forced)
		command = Command{Verb: Expire, At: rec.at}
		why = reason(p.ledger.Apply(command.Encode()))
	}
	return p.expect(p.count, raw, why)
}

func (p *replay) settle(rec *record) *messages.Error {
	if p.settler == nil {
		return messages.Errorf(messages.Unproven, "the record is a settlement with another site, and this replay cannot carry out settlements")
	}
	return p.settler.Again(rec.cause())
}

func (r *record) cause() *Cause {
	return &Cause{Said: r.what == said, Verb: r.verb, By: r.by, At: r.at, Request: r.signed}
}

// verbOf returns the verb of a request, or 0 if the request is not for the ledger.
func verbOf(name string) Verb {
	for verb, is := range requestNames {
		if is == name {
			return verb
		}
	}
	return 0
}

// Some records come from a statement that a peer has signed. This method returns two counters: the first for the record
// of the statement, the second for the records that follow from the statement.
func (r *ProofReport) said(rec *record) (itself, following *uint64) {
	switch {
	case rec.by != "":
		return &r.Said, &r.Settled
	case len(rec.signed.Payload) == 0:
		return &r.Passed, &r.Passed
	}
	return &r.Found, &r.Found
}

// Records are counted by the kind of their cause. begin counts a record in the first counter. Records that follow from
// it, up to the next call, are counted in the second counter.
func (p *replay) begin(itself, following *uint64) {
	*itself++
	*following-- // because found also counts the record itself
	p.basis = following
}

// found counts a record that both the ledger and the journal have.
func (p *replay) found() {
	if p.basis != nil {
		*p.basis++
	}
}
