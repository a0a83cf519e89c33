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
	Account(name messages.Name) (messages.AccountReply, error)
	Done(transfer string) bool
	Now() messages.Time
}

// State is the clearing of one site. Make one with New.
type State struct {
	site   messages.Name
	books  Books
	verify Verify

	peers map[messages.Name]*peer
	order []messages.Name // of the peers, ascending

	// The authorisations that this site issued and that are pending, until the
	// ledger frees them, and those of other sites that it accepted, until they
	// can no longer be charged.
	issued   register[issued]
	accepted register[accepted]

	cycle   uint64 // the latest that was closed
	serial  uint64 // numbers the clearing's own transfers
	refused [refusals]uint64
	fault   string // the first thing that the ledger should not have refused
	rules   uint64 // of the command that is carried out
}

// New returns the clearing of a site that has no peers. What it does to the
// ledger must be done by it alone and in the order of the commands: the two
// are one replicated state.
func New(site messages.Name, books Books, verify Verify) *State {
	return &State{
		site: site, books: books, verify: verify,
		peers: map[messages.Name]*peer{}, issued: newRegister[issued](), accepted: newRegister[accepted](),
	}
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
	Refused       Refusal                 // why, where that is counted
	Error         *messages.Error
}

// Apply carries out an encoded command. A command that is refused changes
// nothing but the time, the count of refusals, and what the ledger remembers of
// a transfer that it refused; one that cannot be read, not even the time.
func (s *State) Apply(command []byte) Result {
	c, err := decode(command)
	if err == nil {
		s.rules = c.Rules
		s.advance(c.At)
		err = s.Screen(&c)
	}
	if err != nil {
		return s.refuse(err)
	}
	asks, err := s.prove(&c)
	if err != nil {
		return s.refuse(err)
	}
	var r Result
	err = s.carryOut(&c, &r)
	if asks {
		s.books.Finish(err == nil)
	}
	if err != nil {
		return s.refuse(err)
	}
	return r
}

func (s *State) refuse(err *Rejected) Result {
	s.refused[err.Reason]++
	return Result{Refused: err.Reason, Error: err.Err}
}

// carryOut does what a command that was screened asks for.
func (s *State) carryOut(c *Command, r *Result) (err *Rejected) {
	switch {
	case c.Peer != nil:
		r.Peer, err = s.setPeer(c.Peer)
	case c.Reserve != nil:
		r.Account, err = s.setReserve(c.Reserve)
	case c.Authorise != nil:
		r.Authorisation, err = s.authorise(c.By, c.Authorise)
	case c.Revoke != nil:
		r.Answer, err = s.revoke(c.By, c.Revoke)
	case c.Remit != nil:
		r.Answer, err = s.remit(c.By, c.Remit)
	case c.Accept != nil:
		r.Answer, err = s.accept(c.Accept)
	case c.Charge != nil:
		r.Answer, err = s.charge(c.Charge)
	case c.Instructions != nil:
		r.Receipt, err = s.receive(&c.Instructions.Instructions)
	case c.Receipt != nil:
		err = s.learn(&c.Receipt.Receipt)
	case c.Close != nil:
		r.Position, err = s.close(c.Close)
	}
	return err
}

// advance lets time pass: holds lapse in the ledger, and authorisations here.
func (s *State) advance(at messages.Time) {
	c := ledger.Command{Verb: ledger.Expire, At: at, Within: true}
	s.books.ApplyOwn(c.Encode())
	now := s.books.Now()
	for e := s.issued.due(now); e != nil; e = s.issued.due(now) {
		s.issued.drop(e.id)
	}
	for e := s.accepted.due(now); e != nil; e = s.accepted.due(now) {
		if !s.expire(e.id, &e.value) {
			return // under the first rules alone
		}
	}
}

// Due is the next time at which something expires, 0 if nothing will: the
// leader proposes the passing of time then.
func (s *State) Due() messages.Time {
	issued, accepted := s.issued.next(), s.accepted.next()
	if accepted == 0 || issued != 0 && issued < accepted {
		return issued
	}
	return accepted
}

// peer finds a peer by its name.
func (s *State) peer(name messages.Name) (*peer, *Rejected) {
	if p := s.peers[name]; p != nil {
		return p, nil
	}
	return nil, ordinary(messages.Errorf(messages.NotFound, "site %q is no peer of %q: there are %v", clip(name), s.site, s.order))
}

// Knows reports whether a site is a peer.
func (s *State) Knows(name messages.Name) bool { return s.peers[name] != nil }

// Cycle is the latest that was closed, 0 if none was.
func (s *State) Cycle() uint64 { return s.cycle }

// Names returns the names of the peers, ascending.
func (s *State) Names() []messages.Name { return slices.Clone(s.order) }

// Outstanding is how many instructions the peers have not answered.
func (s *State) Outstanding() (n int) {
	for _, p := range s.peers {
		n += len(p.outbox)
	}
	return n
}

// Peers describes every peer, what waits, and what was refused.
func (s *State) Peers() messages.PeersReply {
	r := messages.PeersReply{Site: s.site, Peers: []messages.PeerReply{}, Refused: []messages.RefusalTally{}, Cycle: s.cycle, Fault: s.fault}
	for _, name := range s.order {
		r.Peers = append(r.Peers, s.describe(s.peers[name]))
	}
	r.Settled, r.Reserve = s.settlements()
	for reason, n := range s.refused {
		if n > 0 && Refusal(reason) != Ordinary {
			r.Refused = append(r.Refused, messages.RefusalTally{Reason: Refusal(reason).String(), Count: n})
		}
	}
	return r
}

// Refused returns how often a command was refused for a reason.
func (s *State) Refused(r Refusal) uint64 { return s.refused[r] }

// Fault is the first step that the ledger refused though the clearing's rules
// had made sure of it: empty, unless somebody else moved what is the
// clearing's own.
func (s *State) Fault() string { return s.fault }

// addPeer enters a peer in order.
func (s *State) addPeer(p *peer) {
	s.peers[p.name] = p
	i, _ := slices.BinarySearch(s.order, p.name)
	s.order = slices.Insert(s.order, i, p.name)
}
