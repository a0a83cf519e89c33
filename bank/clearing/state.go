package clearing

import (
	"slices"

	"github.com/candor-grid/candor/bank/ledger"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/clearing"
	moneymsg "github.com/candor-grid/candor/messages/money"
)

// Books is a bank's ledger as the clearing uses it. A [ledger.Ledger] implements it.
type Books interface {
	// ApplyOwn carries out a command that the clearing has made.
	ApplyOwn(command []byte) ledger.Result
	// Proven returns the number of the first record after which requests need a signature, or 0 if no request needs
	// one. Asked checks the signature of a user's request and begins to carry out the request. After Asked or Hear,
	// Finish must be called when the request or statement has been carried out.
	Proven() uint64
	Asked(verb string, by messages.Name, r *messages.SignedRequest, now messages.Time) (ledger.Rank, *messages.Error)
	Finish(carriedOut bool)
	// Hear tells the journal which statement a peer signed. Until Finish is called, the journal records this statement
	// as the cause of its next records.
	Hear(by messages.Name, verb string, statement []byte)
	// Brief returns an account without its members and expiring grants. Its cost does not depend on their number.
	Brief(name messages.Name) (moneymsg.AccountReply, error)
	// Owns reports whether a user may pay from an account. Limited reports whether a user is a member with a limit.
	Owns(user, account messages.Name) bool
	Limited(user, account messages.Name) bool
	Done(transfer string) bool
	Now() messages.Time
}

// State is the clearing of one site. New creates it. Each field below is a part with its own piece of the state. A part
// uses only the parts above it.
type State struct {
	money    *money    // moves and reserves credits in the ledger
	peers    *peers    // the banks of other sites, and their keys
	screen   *screen   // refuses messages that are wrong whatever the books contain
	terms    *terms    // the peers' limits and shares of the reserve
	issuer   *issuer   // authorisations that this site issued
	acceptor *acceptor // authorisations of other sites
	cycles   *cycles   // closes cycles, and accepts offers
	outgoing *outgoing // instructions to peers
	incoming *incoming // carries out the instructions of peers
	partings *partings // ends relations to peers
	restored *restored // continues after a restore of this bank
}

// New returns the clearing of a site without peers. Only this clearing may change the peers' accounts in the ledger:
// the two are one replicated state.
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

// Result is the result of a command. One of its fields is set.
type Result struct {
	Authorisation *clearing.Authorisation // for Authorise; the caller signs it
	Answer        *clearing.ClearingReply // for Revoke, Remit, Accept and Charge
	Receipt       *clearing.Receipt       // for Instructions; the caller signs it
	Position      *clearing.Position      // for Close; the caller signs it
	Peer          *clearing.PeerReply     // for Peer
	Account       *moneymsg.AccountReply  // for Reserve
	Parted        *clearing.PartReply     // for Part
	Totals        *clearing.Totals        // for Confirm; the caller signs it
	Adopted       *clearing.Adoption      // for Adopt
	Refused       Refusal                 // the reason, if the refusal was counted
	Error         *messages.Error
}

// Apply carries out an encoded command. A refused command changes only three things: the time, the count of refusals,
// and the refused transfers that the ledger remembers. A command that cannot be decoded changes nothing.
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
	// A refused message gets a record only if it has changed something. For example, it may have begun a dispute.
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

// turn is called for a command that a peer signed. A peer that changes its key has several valid keys for some time.
// When the peer first signs with its last key, turn stores the time. Messages that were signed with the other keys may
// still arrive. So turn retires these keys only when the time for such messages is over.
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

// advance sets the time. Holds and authorisations that have expired then end. A peer that is parting from the site may
// then get its next step, such as the instruction to part.
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

// Due returns when something expires next or a parting can advance, or 0 for never. The leader then proposes a command
// that sets the time.
func (s *State) Due() messages.Time {
	if s.partings.next() != nil { // operators may have booked a payment after which a parting can advance
		return s.money.books.Now()
	}
	issued, accepted := s.issuer.issued.next(), s.acceptor.accepted.next()
	if accepted == 0 || issued != 0 && issued < accepted {
		return issued
	}
	return accepted
}

// Knows reports whether a site is a peer from which this site has not parted.
func (s *State) Knows(name messages.Name) bool { return slices.Contains(s.Names(), name) }

// Standing returns a peer's standing. An unknown peer counts as open.
func (s *State) Standing(name messages.Name) clearing.PeerStanding {
	if p := s.peers.byName[name]; p != nil {
		return p.Standing
	}
	return clearing.PeerOpen
}

// Position returns this site's position in a cycle. If the cycle is still open, the position has only what happened
// until now.
func (s *State) Position(number uint64) (*clearing.Position, *Rejected) {
	return s.cycles.position(number)
}

// Cycle returns the number of the latest closed cycle, or 0 if there is none.
func (s *State) Cycle() uint64 { return s.cycles.latest }

// Names returns the names of the peers that this site has not parted from, in ascending order.
func (s *State) Names() []messages.Name {
	return slices.DeleteFunc(slices.Clone(s.peers.order), func(name messages.Name) bool {
		return s.peers.byName[name].Standing == clearing.PeerParted
	})
}

// Outstanding returns how many instructions the peers have not answered.
func (s *State) Outstanding() (n int) {
	for _, p := range s.peers.byName {
		n += len(p.outbox)
	}
	return n
}

// Peers describes every peer, the waiting instructions, and the counts of refusals.
func (s *State) Peers() clearing.PeersReply {
	r := clearing.PeersReply{Site: s.peers.site, Peers: []clearing.PeerReply{}, Refused: []clearing.RefusalTally{}, Cycle: s.cycles.latest, Fault: s.money.fault, Incarnation: s.peers.incarnation}
	for _, name := range s.peers.order {
		r.Peers = append(r.Peers, s.terms.describe(s.peers.byName[name]))
	}
	r.Settled, r.Reserve = s.terms.settlements()
	r.Correction, _ = s.money.owed(CorrectionAccount)
	for reason, n := range s.incoming.refused {
		if n > 0 && Refusal(reason) != Ordinary {
			r.Refused = append(r.Refused, clearing.RefusalTally{Reason: Refusal(reason).String(), Count: n})
		}
	}
	return r
}

// The clearing makes only transfers that the ledger must accept. If the ledger has refused such a transfer, Fault
// returns the first refusal, otherwise "". A refusal shows that another actor moved credits of the clearing.
func (s *State) Fault() string { return s.money.fault }
