package ledger

import (
	"fmt"
	"slices"
	"strings"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/clearing"
	"github.com/candor-grid/candor/messages/money"
	"github.com/candor-grid/candor/messages/proof"
	"github.com/candor-grid/candor/messages/wire"
)

// requests has the keys and sessions that the ledger trusts, and the request that is being carried out.
type requests struct {
	records *records
	trust   trust
	heard   *record // the statement that is being carried out, until its record is written
	asking  *record // the request that is being carried out, until its record is written
}

// prove returns an error if a command does not prove who made it. Two kinds of command need no proof: Expire, which
// follows from the rules, and commands before the site's first statement of its keys.
func (q *requests) prove(c *Command, raw []byte) *messages.Error {
	now := max(q.records.now, c.At)
	switch {
	case c.Within && q.trust.from != 0:
		return messages.Errorf(messages.Unproven, "a command that is part of another one cannot be applied alone")
	case c.Verb == Expire:
		return nil
	case c.Verb == Keys:
		return q.proveKeys(c)
	case q.trust.from == 0 && q.trust.root != nil:
		return messages.Errorf(messages.Unproven, "the site has not stated its keys, so nothing can be proven yet: ask again in a moment")
	case q.trust.from == 0 && !c.proven():
		return nil
	case q.trust.from == 0:
		return messages.Errorf(messages.Unproven, "the bank of this site does not accept proofs yet: send the request without a proof")
	case q.trust.root == nil:
		return q.rootless()
	case !c.proven():
		return messages.Errorf(messages.Unproven, "nothing proves who asked: use the command candor, or the header that \"candor bank sign\" makes from your credentials")
	case c.Verb == Transfers:
		return q.proveTransfers(c, raw, now)
	}
	rank, err := q.asked(requestNames[c.Verb], c.By, c.Asked, now)
	if err == nil {
		c.Rank, err = lower(c.Rank, rank)
	}
	return err
}

// rootless is called when a command carries a proof, and this replica lacks the keys to check the proof. It stops the
// replica. Otherwise the state of this replica would become different from the states of the other replicas.
func (q *requests) rootless() *messages.Error {
	q.records.fail(fmt.Errorf("its commands carry proofs, and this replica does not have the present keys of the site to check them with: copy the present keys directory of the site to this host"))
	return q.records.refusal()
}

// lower returns an error if the rank in which a leader carries out a request (`said`) differs from the rank that the
// caller's credentials prove (`is`). There is one exception: an operator may send a request in the rank User.
func lower(said, is Rank) (Rank, *messages.Error) {
	if is == said || is == Operator && said == User {
		return said, nil
	}
	return said, messages.Errorf(messages.Unproven, "the request claims another role than its credentials have: use an operator's credentials for requests of operators")
}

func (q *requests) proveKeys(c *Command) *messages.Error {
	if q.trust.root == nil {
		return q.rootless()
	}
	if q.trust.from == 0 && q.records.journal.count > 0 {
		return messages.Errorf(messages.Conflict, "the bank has %d records without proof, because it did not have the site's keys then: begin new books", q.records.journal.count)
	}
	_, err := q.trust.readKeys(c.Asked)
	return err
}

func (q *requests) proveTransfers(c *Command, raw []byte, now messages.Time) *messages.Error {
	s, err := q.trust.session(c.Proof.Session, c.By, now)
	if err != nil {
		return err
	}
	if c.Rank, err = lower(c.Rank, s.rank); err != nil {
		return err
	}
	exchange := q.trust.exchange()
	switch {
	case exchange == nil && q.trust.root.Unread:
		return nil
	case exchange == nil:
		return q.rootless()
	}
	seen := q.trust.root.Seen
	key := seen.key(q.trust.root, raw)
	if seen.has(key) {
		return nil
	}
	marker, err := s.open(q.trust.root.Site, exchange)
	if err != nil {
		return err
	}
	var before *proof.Mark
	for i := range c.Transfers {
		mark := c.mark(i)
		if !proof.Equal(mark, marker.Bytes(before, c.texts[i])) {
			return messages.Errorf(messages.Unproven, "transfer %q: its mark was not made by %q for this content: the transfer was altered, or was marked in another session", clip(c.Transfers[i].ID), clip(c.By))
		}
		before = nil
		if c.Transfers[i].Linked {
			before = &mark
		}
	}
	seen.add(key)
	return nil
}

// asked checks the proof of a request that is about to be carried out, and returns the rank of the user who made the
// request.
func (q *requests) asked(verb string, by messages.Name, r *messages.SignedRequest, now messages.Time) (Rank, *messages.Error) {
	if q.trust.root == nil {
		return User, q.rootless()
	}
	if r == nil {
		return User, messages.Errorf(messages.Unproven, "nothing proves who asked: use the command candor, or the header that \"candor bank sign\" makes from your credentials")
	}
	token, rank, err := q.trust.vouch(verb, by, r, now)
	if err != nil {
		return rank, err
	}
	if err := entitled(verb, rank); err != nil {
		return rank, err
	}
	asking := &record{what: requested, by: by, verb: verb, rank: rank, signed: *r, token: token}
	if !slices.Contains(keyed, verb) {
		asking.digest = digestOf(verb, by, r)
		if until, used := q.trust.used[asking.digest]; used && until >= now {
			return rank, messages.Errorf(messages.Conflict, "this signed request was carried out before: to ask again, sign a new request")
		}
	}
	q.asking = asking
	return rank, nil
}

func entitled(verb string, rank Rank) *messages.Error {
	service := verb == messages.VerbSession || verb == clearing.VerbAccept || verb == clearing.VerbCharge
	if slices.Contains(operators, verb) && rank != Operator || service && rank == User {
		return messages.Errorf(messages.Unproven, "the request %q is not for %v: use the credentials of an account that may send this request", clip(verb), rank)
	}
	return nil
}

// requestNames maps each verb of the ledger to the name of the bank's request that causes it.
var requestNames = map[Verb]string{
	Grant: messages.VerbGrant, Member: messages.VerbMember, Project: money.VerbProject, Pay: money.VerbPay,
	Freeze: money.VerbFreeze, Credit: money.VerbCredit, Withdraw: money.VerbWithdraw, Correct: money.VerbCorrect,
	Session: messages.VerbSession,
}

var operators = []string{
	messages.VerbGrant, money.VerbProject, money.VerbCredit, money.VerbWithdraw, money.VerbCorrect,
	clearing.VerbPeer, clearing.VerbReserve, clearing.VerbClose, clearing.VerbPart, clearing.VerbConfirm, clearing.VerbAdopt,
}

// keyed lists the requests that carry an identifier. If such a request is repeated, it changes nothing.
var keyed = []string{
	messages.VerbGrant, money.VerbPay, money.VerbWithdraw, money.VerbCorrect,
	clearing.VerbAuthorise, clearing.VerbRemit, clearing.VerbAccept, clearing.VerbCharge, clearing.VerbRevoke,
}

// writeAsked writes the record of the request or statement that is carried out now, if it is not written yet. It
// returns the record's number, or 0 if it wrote no such record.
func (q *requests) writeAsked() uint64 {
	if h := q.heard; h != nil {
		q.heard, h.at = nil, q.records.now
		q.records.write(h, nil, nil)
	}
	r := q.asking
	if r == nil {
		return 0
	}
	q.asking = nil
	r.at = q.records.now
	number := q.records.write(r, nil, nil)
	if r.what == requested {
		q.trust.note(r, number)
	}
	return number
}

// hear stores a statement. The record of the statement is written later, before the first record that the statement
// causes.
func (q *requests) hear(by messages.Name, verb string, statement []byte) {
	if q.trust.from != 0 {
		q.heard = &record{what: said, by: by, verb: verb, rank: Clearing, signed: messages.SignedRequest{Payload: statement}}
	}
}

func (q *requests) openSession(c *Command) (messages.SessionReply, *messages.Error) {
	if _, err := proof.NewExchangeKey(c.SessionAsked.Key); err != nil {
		return messages.SessionReply{}, messages.AsError("", err)
	}
	number := q.writeAsked()
	s := q.trust.sessions[number]
	if s == nil {
		return messages.SessionReply{}, messages.Errorf(messages.Invalid, "the session was not opened")
	}
	return messages.SessionReply{Session: number, Expires: s.expires}, nil
}

func (q *requests) learnKeys(c *Command) *messages.Error {
	k, err := q.trust.readKeys(c.Asked)
	if err != nil {
		return err
	}
	if !q.trust.learn(&k) && q.trust.from != 0 {
		return nil
	}
	number := q.records.write(&record{what: trusted, at: q.records.now, signed: *c.Asked}, nil, nil)
	q.trust.succeed(k.Succession, number)
	if q.trust.from == 0 {
		q.trust.from = number
	}
	return nil
}

// note updates the trust from the record of a request: it marks the request as used, and opens a session.
func (t *trust) note(r *record, number uint64) {
	r.by, r.signed.Payload = strings.Clone(r.by), slices.Clone(r.signed.Payload)
	if !slices.Contains(keyed, r.verb) {
		t.spend(digestOf(r.verb, r.by, &r.signed), r.signed.Proof.At.Add(proof.Window), r.at)
	}
	if r.verb != messages.VerbSession {
		return
	}
	var open messages.SessionRequest
	if wire.Unmarshal(r.signed.Payload, wire.Detect(r.signed.Payload, ""), &open) != nil {
		return
	}
	token := r.token
	if token.Key == "" {
		token, _ = proof.ReadToken(r.signed.Proof.Token) // cannot fail: the token was checked before the record was written
	}
	expires := r.at.Add(SessionFor)
	if token.Expires != 0 {
		expires = min(expires, token.Expires)
	}
	t.enter(number, &session{by: r.by, rank: r.rank, key: strings.Clone(token.Key), issuer: strings.Clone(token.Issuer), public: open.Key, expires: expires}, r.at)
}
