package ledger

import (
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/proof"
)

// requestNames are the requests of which a command can be the carrying out.
var requestNames = map[Verb]string{
	Grant: messages.VerbGrant, Member: messages.VerbMember, Project: messages.VerbProject, Pay: messages.VerbPay,
	Freeze: messages.VerbFreeze, Credit: messages.VerbCredit, Withdraw: messages.VerbWithdraw, Correct: messages.VerbCorrect,
	Session: messages.VerbSession,
}

// RequestName is the verb of the request that a command with a verb carries out.
func RequestName(v Verb) string { return requestNames[v] }

// operators are the requests that only operators may make.
var operators = []string{
	messages.VerbGrant, messages.VerbProject, messages.VerbCredit, messages.VerbWithdraw, messages.VerbCorrect,
	messages.VerbPeer, messages.VerbReserve, messages.VerbClose,
}

// keyed are the requests that have an identifier of their own, so that one that
// comes again changes nothing.
var keyed = []string{
	messages.VerbGrant, messages.VerbPay, messages.VerbWithdraw, messages.VerbCorrect,
	messages.VerbAuthorise, messages.VerbRemit, messages.VerbAccept, messages.VerbCharge, messages.VerbRevoke,
}

// prove refuses a command that does not prove who asked for it. What needs no
// proof is the passing of time, whose consequences follow from the rules, and
// all of it before the site signed its first statement.
func (l *Ledger) prove(c *Command, raw []byte) *messages.Error {
	now := max(l.now, c.At)
	switch {
	case c.Within && l.trust.from != 0:
		return messages.Errorf(messages.Unproven, "a command within another one cannot stand alone")
	case c.Verb == Expire:
		return nil
	case c.Verb == Keys:
		return l.proveKeys(c)
	case l.trust.from == 0 && l.trust.root != nil && l.trust.root.From == 1:
		return messages.Errorf(messages.Unproven, "the site wanted proofs from the first record on, and has not said which keys are its own")
	case l.trust.from == 0 && !c.proven():
		return nil
	case l.trust.from == 0:
		return messages.Errorf(messages.Unproven, "the bank of this site takes no proofs yet: ask again without")
	case l.trust.root == nil:
		return l.rootless()
	case !c.proven():
		return messages.Errorf(messages.Unproven, "nothing proves who asked: use the command candor, or the header that \"candor bank sign\" makes from your credentials")
	case c.Verb == Transfers:
		return l.proveTransfers(c, raw, now)
	}
	rank, err := l.Asked(requestNames[c.Verb], c.By, c.Asked, now)
	if err == nil {
		c.Rank, err = lower(c.Rank, rank)
	}
	return err
}

// rootless stops a replica that cannot tell who asked, for it would come to
// another state than those that can.
func (l *Ledger) rootless() *messages.Error {
	l.fail(fmt.Errorf("its commands carry proofs, and this replica has none of the site's keys to check them with: give it the site's keys directory"))
	return l.refuseBroken().Error
}

// lower takes the leader's word for a rank only if it is no higher than the one
// that is proven.
func lower(said, is Rank) (Rank, *messages.Error) {
	if is == said || is == Operator && said == User {
		return said, nil
	}
	return said, messages.Errorf(messages.Unproven, "the credentials are of another role than the one in which this is asked: use an operator's for what operators do")
}

func (l *Ledger) proveKeys(c *Command) *messages.Error {
	if l.trust.root == nil {
		return l.rootless()
	}
	if c.Fresh && l.trust.from == 0 && l.journal.count > 0 {
		return messages.Errorf(messages.Conflict, "the bank has %d records without proofs: an operator says from when on they are needed", l.journal.count)
	}
	_, err := proof.ReadKeys(l.trust.root.Site, l.trust.root.Account, c.Asked.Payload, c.Asked.Proof.Signature)
	return err
}

// Asked checks the proof of a request that the ledger, or what is composed with
// it, is about to carry out, and returns the rank of who made it. The record of
// the proof stands before the first record of what comes of it.
func (l *Ledger) Asked(verb string, by messages.Name, r *messages.SignedRequest, now messages.Time) (Rank, *messages.Error) {
	if l.trust.root == nil {
		return User, l.rootless()
	}
	if r == nil {
		return User, messages.Errorf(messages.Unproven, "nothing proves who asked: use the command candor, or the header that \"candor bank sign\" makes from your credentials")
	}
	token, rank, err := l.trust.vouch(verb, by, r, now)
	if err != nil {
		return rank, err
	}
	if err := entitled(verb, rank); err != nil {
		return rank, err
	}
	asking := &record{what: requested, by: by, verb: verb, rank: rank, signed: *r, token: token}
	if !slices.Contains(keyed, verb) {
		asking.digest = digestOf(verb, by, r)
		if until, used := l.trust.used[asking.digest]; used && until >= now {
			return rank, messages.Errorf(messages.Conflict, "this very request was carried out before: sign it anew to make it again")
		}
	}
	l.asking = asking
	return rank, nil
}

// entitled refuses credentials of a role that may not make a request.
func entitled(verb string, rank Rank) *messages.Error {
	service := verb == messages.VerbSession || verb == messages.VerbAccept || verb == messages.VerbCharge
	if slices.Contains(operators, verb) && rank != Operator || service && rank == User {
		return messages.Errorf(messages.Unproven, "%q is not for %v: use the credentials of who may ask it", clip(verb), rank)
	}
	return nil
}

// Finish ends the carrying out of a request that was Asked. One that was carried
// out is written down, whatever it changed.
func (l *Ledger) Finish(carriedOut bool) {
	if carriedOut {
		l.writeAsked()
	}
	l.asking = nil
}

// writeAsked writes down who asks for what is carried out, once. It returns the
// record's number.
func (l *Ledger) writeAsked() uint64 {
	r := l.asking
	if r == nil {
		return 0
	}
	l.asking = nil
	r.at = l.now
	number := l.write(r, nil, nil)
	l.trust.note(r, number)
	return number
}

// note remembers what a record of a request says.
func (t *trust) note(r *record, number uint64) {
	r.by, r.signed.Payload = strings.Clone(r.by), slices.Clone(r.signed.Payload)
	if !slices.Contains(keyed, r.verb) {
		t.spend(digestOf(r.verb, r.by, &r.signed), r.signed.Proof.At.Add(proof.Window), r.at)
	}
	if r.verb != messages.VerbSession {
		return
	}
	var open messages.SessionRequest
	if messages.Unmarshal(r.signed.Payload, messages.Detect(r.signed.Payload, ""), &open) != nil {
		return
	}
	token := r.token
	if token.Key == "" {
		token, _ = proof.ReadToken(r.signed.Proof.Token) // it was read before it was written
	}
	expires := r.at.Add(SessionFor)
	if token.Expires != 0 {
		expires = min(expires, token.Expires)
	}
	t.enter(number, &session{by: r.by, rank: r.rank, key: strings.Clone(token.Key), issuer: strings.Clone(token.Issuer), public: open.Key, expires: expires}, r.at)
}

// openSession opens a session on a request that was proven.
func (l *Ledger) openSession(c *Command) (messages.SessionReply, *messages.Error) {
	if _, err := proof.NewExchangeKey(c.SessionAsked.Key); err != nil {
		return messages.SessionReply{}, messages.AsError("", err)
	}
	number := l.writeAsked()
	s := l.trust.sessions[number]
	if s == nil {
		return messages.SessionReply{}, messages.Errorf(messages.Invalid, "the session was not opened")
	}
	return messages.SessionReply{Session: number, Expires: s.expires}, nil
}

// learnKeys takes over what the site says of its keys.
func (l *Ledger) learnKeys(c *Command) *messages.Error {
	k, err := proof.ReadKeys(l.trust.root.Site, l.trust.root.Account, c.Asked.Payload, c.Asked.Proof.Signature)
	if err != nil {
		return err
	}
	if !l.trust.learn(&k) && l.trust.from != 0 {
		return nil
	}
	number := l.write(&record{what: trusted, at: l.now, signed: *c.Asked}, nil, nil)
	if l.trust.from == 0 {
		l.trust.from = number
	}
	return nil
}

// proveTransfers checks the mark of each transfer.
func (l *Ledger) proveTransfers(c *Command, raw []byte, now messages.Time) *messages.Error {
	s, err := l.trust.session(c.Proof.Session, c.By, now)
	if err != nil {
		return err
	}
	if c.Rank, err = lower(c.Rank, s.rank); err != nil {
		return err
	}
	if l.trust.root.Exchange == nil {
		return l.rootless()
	}
	seen := l.trust.root.Seen
	key := seen.key(l.trust.root, raw)
	if seen.has(key) {
		return nil
	}
	marker, err := s.open(l.trust.root)
	if err != nil {
		return err
	}
	var before *proof.Mark
	for i := range c.Transfers {
		mark := c.mark(i)
		if !proof.Equal(mark, marker.Bytes(before, c.texts[i])) {
			return messages.Errorf(messages.Unproven, "transfer %q: its mark is not that of %q over this transfer: it was altered, or marked in another session", clip(c.Transfers[i].ID), clip(c.By))
		}
		before = nil
		if c.Transfers[i].Linked {
			before = &mark
		}
	}
	seen.add(key)
	return nil
}

// Seen remembers commands whose marks were found right, so that the replicas of
// one process check them once.
type Seen struct {
	mu    sync.Mutex
	keys  map[seenKey]struct{}
	queue []seenKey // the oldest goes for the next
	next  int
}

type seenKey [sha256.Size]byte

// NewSeen returns one that has seen nothing.
func NewSeen() *Seen {
	return &Seen{keys: map[seenKey]struct{}{}, queue: make([]seenKey, 4096)}
}

// key stands for a command of a site. The bytes of a session's number are part
// of the command, and a number is never given twice.
func (s *Seen) key(root *Root, raw []byte) (k seenKey) {
	if s == nil {
		return k
	}
	h := sha256.New()
	h.Write([]byte(root.Account)) //nolint:errcheck // a hash takes everything
	h.Write(raw)                  //nolint:errcheck // a hash takes everything
	h.Sum(k[:0])
	return k
}

func (s *Seen) has(k seenKey) bool {
	if s == nil {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	_, ok := s.keys[k]
	return ok
}

func (s *Seen) add(k seenKey) {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.keys, s.queue[s.next])
	s.queue[s.next] = k
	s.keys[k] = struct{}{}
	s.next = (s.next + 1) % len(s.queue)
}
