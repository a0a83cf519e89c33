package clearing

import "github.com/candor-grid/candor/messages"

// Mark is the first byte of every command, by which it is told from those of
// the ledger in one log.
const Mark = 'c'

// Command is one change asked of the clearing. Exactly one of the pointers is
// set; none is the bare passing of time.
type Command struct {
	At messages.Time // the leader's clock
	By messages.Name // the caller on whose request it is made

	Peer         *messages.PeerRequest
	Reserve      *messages.ReserveRequest
	Authorise    *messages.AuthoriseRequest
	Revoke       *messages.RevokeRequest
	Remit        *messages.RemitRequest
	Accept       *messages.AcceptRequest
	Charge       *messages.ChargeRequest
	Instructions *messages.SignedInstructions
	Receipt      *messages.SignedReceipt
	Close        *messages.CloseRequest

	// Rules is by which rules it is carried out: those of the release that
	// proposed it, so that a log comes to the same whenever it is read.
	Rules uint64

	// Asked is the request as it was made, with its proof; nil where it needs none.
	Asked *messages.SignedRequest
}

// The rules of releases. Under the first, all peers shared one reserve, a
// dispute changed nothing, and one peer's full outbox stopped the others'.
const (
	firstRules uint64 = iota
	boundedRules

	currentRules = boundedRules
)

// Encode returns the command's bytes, as Apply takes them, to be carried out by
// the rules of this release.
func (c *Command) Encode() ([]byte, error) { return c.encodeUnder(currentRules) }

func (c *Command) encodeUnder(rules uint64) ([]byte, error) {
	ruled := *c
	ruled.Rules = rules
	body, err := messages.Marshal(&ruled, messages.Msgpack)
	if err != nil {
		return nil, err
	}
	return append([]byte{Mark}, body...), nil
}

// decode reads a command.
func decode(b []byte) (Command, *Rejected) {
	var c Command
	if len(b) < 2 || b[0] != Mark {
		return c, reject(Malformed, messages.Invalid, "command of %d bytes: is none of the clearing's", len(b))
	}
	if err := messages.Unmarshal(b[1:], messages.Msgpack, &c); err != nil {
		return c, malformed(err)
	}
	if c.At < 0 || c.Rules > currentRules {
		return c, reject(Malformed, messages.Invalid, "command: its time is negative, or its rules are of a newer release")
	}
	return c, nil
}

// Screen reports what is wrong with a command whatever the books say: what a
// leader refuses before it proposes it. It changes and counts nothing.
func (s *State) Screen(c *Command) *Rejected {
	switch {
	case c.Peer != nil:
		return s.screenPeer(c.Peer)
	case c.Reserve != nil:
		return malformed(c.Reserve.Validate())
	case c.Authorise != nil:
		return malformed(c.Authorise.Validate())
	case c.Revoke != nil:
		return malformed(c.Revoke.Validate())
	case c.Remit != nil:
		return malformed(c.Remit.Validate())
	case c.Charge != nil:
		return malformed(c.Charge.Validate())
	case c.Accept != nil:
		return s.screenAccept(c.Accept)
	case c.Instructions != nil:
		i := &c.Instructions.Instructions
		return s.screenMessage(i.From, i.To, domainInstructions, i, c.Instructions.Signature, len(i.List), i.First)
	case c.Receipt != nil:
		r := &c.Receipt.Receipt
		return s.screenMessage(r.From, r.To, domainReceipt, r, c.Receipt.Signature, len(r.Outcomes), r.First)
	}
	return nil
}

func (s *State) screenPeer(r *messages.PeerRequest) *Rejected {
	if r.Peer == s.site {
		return reject(Malformed, messages.Invalid, "peer: %q is this site itself", r.Peer)
	}
	return malformed(r.Validate())
}

func (s *State) screenAccept(r *messages.AcceptRequest) *Rejected {
	if err := malformed(r.Validate()); err != nil {
		return err
	}
	a := &r.Authorisation.Authorisation
	return s.screenSigned(a.Issuer, a.Peer, domainAuthorisation, a, r.Authorisation.Signature)
}

func (s *State) screenMessage(from, to messages.Name, domain string, value any, signature []byte, n int, first uint64) *Rejected {
	if err := s.screenSigned(from, to, domain, value, signature); err != nil {
		return err
	}
	if n > messages.MaxInstructions || first == 0 || first > maxNumber {
		return reject(Malformed, messages.Invalid, "%d numbers from %d on: send 1 to %d from 1 on", n, first, messages.MaxInstructions)
	}
	return nil
}

// maxNumber keeps sums of numbers in range; nobody comes so far.
const maxNumber = 1 << 62

// screenSigned is about whom a signed message is for, and of whom it is.
func (s *State) screenSigned(from, to messages.Name, domain string, value any, signature []byte) *Rejected {
	if to != s.site {
		return reject(Misaddressed, messages.PermissionDenied, "it is for site %q, and this is %q", clip(to), s.site)
	}
	p := s.peers[from]
	if p == nil {
		return reject(Stranger, messages.PermissionDenied, "site %q is no peer of %q: an operator can make it one", clip(from), s.site)
	}
	if !verifyAny(s.verify, p.keys, domain, value, signature) {
		return reject(Signature, messages.PermissionDenied, "the signature is not that of %q over what was sent: it was altered, or another key signed", p.name)
	}
	return nil
}
