package clearing

import (
	"slices"

	"github.com/candor-grid/candor/bank/ledger"
	"github.com/candor-grid/candor/messages"
)

// Books is the ledger as the clearing uses it; a [ledger.Ledger] is one. The
// clearing keeps no credits of its own: what it moves or sets aside, it moves
// and sets aside here.
type Books interface {
	// ApplyOwn carries out what the clearing itself makes.
	ApplyOwn(command []byte) ledger.Result
	// Proven says from which record on requests need a proof, 0 if none does;
	// Asked checks one, and Finish ends the carrying out of what was asked.
	Proven() uint64
	Asked(verb string, by messages.Name, r *messages.SignedRequest, now messages.Time) (ledger.Rank, *messages.Error)
	Finish(carriedOut bool)
	// Hear takes what a peer signed, until Finish.
	Hear(by messages.Name, verb string, statement []byte)
	// Brief is an account without the lists of its members and expiring grants, which no
	// command goes through.
	Brief(name messages.Name) (messages.AccountReply, error)
	// Owns reports whether a user may pay from an account, and Limited whether it is a member
	// of it with a limit.
	Owns(user, account messages.Name) bool
	Limited(user, account messages.Name) bool
	Done(transfer string) bool
	Now() messages.Time
}

// State is the clearing of one site. Make one with New. Each part has a piece of the
// state, and knows those before it and no others.
type State struct {
	money    *money    // what is moved and set aside in the ledger
	peers    *peers    // the banks of other sites, and what they are trusted with
	screen   *screen   // what is refused whatever the books say
	terms    *terms    // the peers' limits and shares of the reserve
	issuer   *issuer   // authorisations that this site issued
	acceptor *acceptor // authorisations of other sites
	cycles   *cycles   // what is offered and taken as a cycle ends
	outgoing *outgoing // what this bank asks of peers
	incoming *incoming // what peers ask of this bank
	partings *partings // from peers
	restored *restored // what this bank lost
}

// New returns the clearing of a site that has no peers. What it does to the
// ledger must be done by it alone and in the order of the commands: the two
// are one replicated state.
func New(site messages.Name, books Books, verify Verify) *State {
	s := &State{money: &money{books: books}}
	s.peers = &peers{site: site, byName: map[messages.Name]*peer{}, money: s.money}
	s.screen = &screen{verify: verify, peers: s.peers}
	s.terms = &terms{peers: s.peers, money: s.money}
	s.issuer = &issuer{issued: newRegister[issued](), peers: s.peers, money: s.money}
	s.acceptor = &acceptor{accepted: newRegister[accepted](), peers: s.peers, money: s.money}
	s.cycles = &cycles{peers: s.peers, money: s.money, terms: s.terms}
	s.outgoing = &outgoing{peers: s.peers, money: s.money, issuer: s.issuer, cycles: s.cycles}
	s.incoming = &incoming{peers: s.peers, money: s.money, issuer: s.issuer, acceptor: s.acceptor, cycles: s.cycles}
	s.partings = &partings{peers: s.peers, money: s.money, terms: s.terms, issuer: s.issuer, acceptor: s.acceptor}
	s.restored = &restored{peers: s.peers, money: s.money, terms: s.terms, issuer: s.issuer, acceptor: s.acceptor}
	return s
}

// Result is what a command came to: the field that belongs to it is set, or
// Error is.
type Result struct {
	Authorisation *messages.Authorisation // of Authorise; to be signed
	Answer        *messages.ClearingReply // of Revoke, Remit, Accept and Charge
	Receipt       *messages.Receipt       // of Instructions; to be signed
	Position      *messages.Position      // of Close; to be signed
	Peer          *messages.PeerReply     // of Peer
	Account       *messages.AccountReply  // of Reserve
	Parted        *messages.PartReply     // of Part
	Totals        *messages.Totals        // of Confirm; to be signed
	Adopted       *messages.Adoption      // of Adopt
	Refused       Refusal                 // why, where that is counted
	Error         *messages.Error
}

// Apply carries out an encoded command. A command that is refused changes
// nothing but the time, the count of refusals, and what the ledger remembers of
// a transfer that it refused; one that cannot be read, not even the time.
func (s *State) Apply(command []byte) Result {
	c, err := decode(command)
	if err == nil {
		s.advance(&c)
		err = s.Screen(&c)
	}
	if err != nil {
		return s.refuse(err)
	}
	signed := s.hear(&c)
	rank, err := s.prove(&c)
	if err != nil {
		s.money.books.Finish(false)
		return s.refuse(err)
	}
	from := s.peers.byName[c.from()]
	before := from.known()
	s.turn(&c)
	var r Result
	err = s.carryOut(&c, rank, &r)
	proceeds := err == nil && s.partings.next() != nil
	if proceeds {
		s.partings.proceed()
	}
	// What a peer signed is written down for what it changes, also where it is refused: it
	// may say until when the peer was heard, or what is disputed.
	if signed {
		s.money.books.Finish(proceeds || from.known() != before)
	} else {
		s.money.books.Finish(err == nil)
	}
	if err != nil {
		return s.refuse(err)
	}
	if r.Parted != nil {
		r.Parted.Peer = s.terms.describe(s.peers.byName[r.Parted.Peer.Peer])
	}
	return r
}

// turn notes that a peer signs with the last of several keys, and retires the others
// when nothing that was signed with them before can come any more.
func (s *State) turn(c *Command) {
	if !s.turns(c) {
		return
	}
	p, now := s.peers.byName[c.from()], s.money.books.Now()
	if len(p.trusted(now)) == 1 {
		p.trust(p.trusted(now))
	} else {
		p.Turned = now
	}
}

// turns reports whether a command of a peer has turn change something.
func (s *State) turns(c *Command) bool {
	p := s.peers.byName[c.from()]
	if p == nil || len(p.Keys) < 2 {
		return false
	}
	if len(p.trusted(s.money.books.Now())) == 1 {
		return true
	}
	last := p.Keys[len(p.Keys)-1:]
	if c.Receipt != nil {
		return p.Turned == 0 && verifyAny(s.screen.verify, last, domainReceipt, &c.Receipt.Receipt, c.Receipt.Signature)
	}
	return p.Turned == 0 && verifyAny(s.screen.verify, last, domainInstructions, &c.Instructions.Instructions, c.Instructions.Signature)
}

func (s *State) refuse(err *Rejected) Result {
	s.incoming.refused[err.Reason]++
	return Result{Refused: err.Reason, Error: err.Err}
}

// carryOut does what a command that was screened asks for.
func (s *State) carryOut(c *Command, rank ledger.Rank, r *Result) (err *Rejected) {
	switch {
	case c.Peer != nil:
		r.Peer, err = s.terms.setPeer(c.Peer)
	case c.Reserve != nil:
		r.Account, err = s.terms.setReserve(c.Reserve)
	case c.Authorise != nil:
		r.Authorisation, err = s.issuer.authorise(c.By, rank, c.Authorise)
	case c.Revoke != nil:
		r.Answer, err = s.issuer.revoke(c.By, rank, c.Revoke)
	case c.Remit != nil:
		r.Answer, err = s.outgoing.remit(c.By, rank, c.Remit)
	case c.Accept != nil:
		r.Answer, err = s.acceptor.accept(c.Accept)
	case c.Charge != nil:
		r.Answer, err = s.acceptor.charge(c.Charge)
	case c.Instructions != nil:
		r.Receipt, err = s.incoming.receive(c.Instructions)
	case c.Receipt != nil:
		err = s.outgoing.learn(c.Receipt)
	case c.Close != nil:
		r.Position, err = s.cycles.close(c.Close)
	case c.Part != nil:
		r.Parted, err = s.partings.part(c.By, c.Part)
	case c.Silent != "":
		err = s.partings.suspend(c.Silent)
	case c.Incarnation != 0:
		s.peers.incarnation, s.peers.since, s.peers.backup = max(s.peers.incarnation, c.Incarnation), c.Since, c.Since
	case c.Compared != "":
		err = s.peers.compared(c.Compared, c.Known)
	case c.Confirm != nil:
		r.Totals, err = s.restored.confirm(c.Confirm)
	case c.Adopt != nil:
		r.Adopted, err = s.restored.adopt(c.Adopt)
	}
	return err
}

// advance lets time pass: holds lapse in the ledger, and authorisations here. A parting
// goes on with that, or by itself where a command is the bare passing of time.
func (s *State) advance(c *Command) {
	expire := ledger.Command{Verb: ledger.Expire, At: c.At, Within: true}
	s.money.books.ApplyOwn(expire.Encode())
	now := s.money.books.Now()
	due := s.issuer.issued.due(now) != nil || s.acceptor.accepted.due(now) != nil
	if !due && (!c.bare() || s.partings.next() == nil) {
		return
	}
	s.money.books.Hear("", verbPass, nil)
	defer s.money.books.Finish(true)
	defer s.partings.proceed()
	for a := s.issuer.issued.due(now); a != nil; a = s.issuer.issued.due(now) {
		s.issuer.lapse(a)
	}
	for a := s.acceptor.accepted.due(now); a != nil; a = s.acceptor.accepted.due(now) {
		s.acceptor.expire(a)
	}
}

// Due is the next time at which something expires, or at which a parting goes on,
// 0 if nothing will: the leader proposes the passing of time then.
func (s *State) Due() messages.Time {
	if s.partings.next() != nil { // by a payment that operators booked
		return s.money.books.Now()
	}
	issued, accepted := s.issuer.issued.next(), s.acceptor.accepted.next()
	if accepted == 0 || issued != 0 && issued < accepted {
		return issued
	}
	return accepted
}

// Knows reports whether a site is a peer that was not parted from.
func (s *State) Knows(name messages.Name) bool { return slices.Contains(s.Names(), name) }

// Standing is what this bank does with a peer.
func (s *State) Standing(name messages.Name) messages.PeerStanding {
	if p := s.peers.byName[name]; p != nil {
		return p.Standing
	}
	return messages.PeerOpen
}

// Position is how this site comes out of a cycle so far.
func (s *State) Position(number uint64) (*messages.Position, *Rejected) {
	return s.cycles.position(number)
}

// Cycle is the latest that was closed, 0 if none was.
func (s *State) Cycle() uint64 { return s.cycles.latest }

// Names returns the names of the peers that were not parted from, ascending.
func (s *State) Names() []messages.Name {
	return slices.DeleteFunc(slices.Clone(s.peers.order), func(name messages.Name) bool {
		return s.peers.byName[name].Standing == messages.PeerParted
	})
}

// Outstanding is how many instructions the peers have not answered.
func (s *State) Outstanding() (n int) {
	for _, p := range s.peers.byName {
		n += len(p.outbox)
	}
	return n
}

// Peers describes every peer, what waits, and what was refused.
func (s *State) Peers() messages.PeersReply {
	r := messages.PeersReply{Site: s.peers.site, Peers: []messages.PeerReply{}, Refused: []messages.RefusalTally{}, Cycle: s.cycles.latest, Fault: s.money.fault, Incarnation: s.peers.incarnation}
	for _, name := range s.peers.order {
		r.Peers = append(r.Peers, s.terms.describe(s.peers.byName[name]))
	}
	r.Settled, r.Reserve = s.terms.settlements()
	r.Correction, _ = s.money.owed(CorrectionAccount)
	for reason, n := range s.incoming.refused {
		if n > 0 && Refusal(reason) != Ordinary {
			r.Refused = append(r.Refused, messages.RefusalTally{Reason: Refusal(reason).String(), Count: n})
		}
	}
	return r
}

// Fault is the first step that the ledger refused though the clearing's rules
// had made sure of it: empty, unless somebody else moved what is the
// clearing's own.
func (s *State) Fault() string { return s.money.fault }
