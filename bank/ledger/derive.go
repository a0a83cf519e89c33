package ledger

import (
	"bytes"
	"errors"

	"github.com/candor-grid/candor/messages"
)

// Settler carries out again what settles with other sites. It is composed with the ledger
// of a replay, and its own state follows from the journal as the ledger's does.
type Settler interface {
	// Again carries out what a cause leads to, with all checks of its proof.
	Again(c *Cause) *messages.Error
}

// Cause is a record that others follow from: what somebody of the site signed, or what was
// said without a request.
type Cause struct {
	Said    bool // by the bank of a peer; with no By, by the clearing as time passes
	Verb    string
	By      messages.Name
	At      messages.Time
	Request messages.SignedRequest
}

// ProofReport says what of a journal is derived, and from what.
type ProofReport struct {
	From     uint64 // the record in which the site said first which keys are its own; 0: none
	Keys     uint64 // statements of the site of its keys
	Requests uint64 // that were signed
	Followed uint64 // records that follow from these
	Marked   uint64 // transfers under the marks of sessions
	Unread   uint64 // of these, marks that need the site's keys to be checked
	Forced   uint64 // records that the rules force as time passes
	Said     uint64 // statements that peers' banks signed
	Settled  uint64 // records that follow from these
	Passed   uint64 // moments at which something between sites ended by a rule, and what followed
	Found    uint64 // findings of the replica that led, and what followed
}

var (
	errCause = errors.New("follows from nothing that anybody signed, and from no rule")
	errFirst = errors.New("stands before the site has said which keys are its own")
)

// derived has a replay into an empty ledger derive each record; see derive.
func (p *replay) derived(r *Root, settles func(*Ledger) Settler) {
	p.ledger.Trust(r)
	if settles != nil {
		p.settler = settles(p.ledger)
	}
}

// derive takes the next record of a journal whose root of trust is known. It carries out
// only what a record proves that somebody asked for, and what the rules force as time
// passes, on the state that the records before came to. What the ledger writes then is
// what the journal must have, byte by byte, and nothing else.
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

// lead carries out what a record leads to, which is the record itself first of all.
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
		return messages.Errorf(messages.Unproven, "it settles with another site, and nothing here carries that out again")
	}
	return p.settler.Again(rec.cause())
}

func (r *record) cause() *Cause {
	return &Cause{Said: r.what == said, Verb: r.verb, By: r.by, At: r.at, Request: r.signed}
}

// verbOf is the command that a request is, 0 if it is none of the ledger's.
func verbOf(name string) Verb {
	for verb, is := range requestNames {
		if is == name {
			return verb
		}
	}
	return 0
}

// said is where a statement is counted, and what follows from it.
func (r *ProofReport) said(rec *record) (itself, following *uint64) {
	switch {
	case rec.by != "":
		return &r.Said, &r.Settled
	case len(rec.signed.Payload) == 0:
		return &r.Passed, &r.Passed
	}
	return &r.Found, &r.Found
}

// begin has the next record counted for itself, and those behind it as following.
func (p *replay) begin(itself, following *uint64) {
	*itself++
	*following-- // the record itself is counted as it is found
	p.basis = following
}

// found counts a record that was found.
func (p *replay) found() {
	if p.basis != nil {
		*p.basis++
	}
}
