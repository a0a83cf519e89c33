package clearing

import (
	"slices"

	"github.com/candor-grid/candor/messages"
)

// maxPeers bounds the sites that one bank settles with.
const maxPeers = 256

// peer is the bank of another site.
type peer struct {
	name  messages.Name
	keys  []string
	heard messages.Time // the latest time that it signed

	out    book   // of our instructions, up to those whose outcome we know
	outbox []item // numbers out.total.Number+1 on

	in       book                      // of its instructions
	outcomes []messages.TransferResult // of numbers known+1 on
	known    uint64                    // it keeps the outcomes up to this number

	cycles  []cycle          // ascending, the latest keptCycles
	counted messages.Credits // volume of out when the latest cycle was closed
	dispute string

	share  messages.Credits // of the reserve, as an operator stated it
	stated bool

	// How many of its authorisations are remembered here, how many of them are
	// open, and how many instructions of the outbox charge or release one.
	remembered, open, charges int
}

// item is an instruction that waits for its outcome, and the hold that
// becomes a transfer or is voided then.
type item struct {
	instruction messages.Instruction
	hold        string           // "": it sets nothing aside
	held        messages.Credits // by the hold: at least what is asked
	payee       messages.Name    // of a charge
}

// last is the number of the last instruction.
func (p *peer) last() uint64 { return p.out.total.Number + uint64(len(p.outbox)) }

// room refuses what would make more outstanding than may be. A charge or release
// has its place since its authorisation was accepted, and takes none of others.
func (s *State) room(p *peer) *Rejected {
	waiting := len(p.outbox) - p.charges
	if s.rules == firstRules {
		waiting = len(p.outbox)
	}
	if waiting < MaxOutstanding {
		return nil
	}
	return ordinary(messages.Errorf(messages.Exhausted, "%d instructions wait for the bank of %q to answer, the most there may be: try again later", waiting, p.name))
}

// send adds an instruction to the outbox and returns its number.
func (p *peer) send(it item) uint64 {
	p.outbox = append(p.outbox, it)
	if it.instruction.Kind == messages.InstructCharge {
		p.charges++
	}
	return p.last()
}

// answered takes the first instructions from the outbox.
func (p *peer) answered(n int) {
	for i := range p.outbox[:n] {
		if p.outbox[i].instruction.Kind == messages.InstructCharge {
			p.charges--
		}
	}
	p.outbox = append([]item(nil), p.outbox[n:]...)
}

// credible refuses whatever would have the peer owe more, or users here trust it
// with more, while the banks do not agree.
func (s *State) credible(p *peer) *Rejected {
	if p.dispute == "" || s.rules == firstRules {
		return nil
	}
	return reject(Disputed, messages.PermissionDenied, "the books with site %q do not agree: nothing is given on credit until operators have compared them with candor peer reconcile", p.name)
}

// hear notes the peer's clock, no further ahead than clocks may differ: a peer
// whose clock was once far ahead is not to be refused for years.
func (s *State) hear(p *peer, at messages.Time) {
	p.heard = max(p.heard, min(at, s.books.Now().Add(messages.MaxClockSkew)))
}

// disputes notes the first thing on which the banks do not agree, and refuses it.
func (p *peer) disputes(err *Rejected) *Rejected {
	if p.dispute == "" {
		p.dispute = clip(err.Err.Message)
	}
	return err
}

// covers refuses what a peer's limit does not cover, before the ledger does: that
// one writes down what it refuses, and a peer is not to fill its journal.
func (s *State) covers(p *peer, amount messages.Credits) *Rejected {
	if _, room := s.owed(PeerAccount(p.name)); room < amount && s.rules != firstRules {
		return ordinary(messages.Errorf(messages.Insufficient, "site %q would owe more than it may: %v credits are left of its limit, and %v are needed", p.name, max(0, room), amount))
	}
	return nil
}

// setPeer opens a peer's account or changes the terms. An operator who sets
// them also declares a dispute to be settled; who only lowers the limit does not.
func (s *State) setPeer(r *messages.PeerRequest) (*messages.PeerReply, *Rejected) {
	p, account := s.peers[r.Peer], PeerAccount(r.Peer)
	before, _ := s.books.Account(account) // of a new peer there is none
	if p == nil {
		if len(s.peers) >= maxPeers {
			return nil, ordinary(messages.Errorf(messages.Exhausted, "there are %d peers, the most there can be", maxPeers))
		}
		if _, err := s.books.Account(account); err == nil {
			return nil, ordinary(messages.Errorf(messages.Conflict, "account %q is somebody's already, and is to be the peer's: give that one another name", account))
		}
	}
	if p == nil && r.Peer == "settlement" { // its account of settled debts would be that of all sites
		return nil, reject(Malformed, messages.Invalid, "peer: no site can be called %q: it must have another name", r.Peer)
	}
	s.divide() // by the terms so far
	if _, err := s.line(account, "the bank of site "+r.Peer, r.Limit); err != nil {
		return nil, err
	}
	if p == nil {
		p = &peer{name: r.Peer, out: newBook(s.site, r.Peer), in: newBook(r.Peer, s.site)}
		s.addPeer(p)
	}
	if s.rules == firstRules || r.Limit >= before.Credit || !slices.Equal(p.keys, r.Keys) {
		p.dispute = ""
	}
	p.keys = slices.Clone(r.Keys)
	if r.Share != nil {
		p.share, p.stated = *r.Share, true
	}
	s.divide()
	reply := s.describe(p)
	return &reply, nil
}

// describe is the peer as operators see it.
func (s *State) describe(p *peer) messages.PeerReply {
	r := messages.PeerReply{
		Peer: p.name, Keys: slices.Clone(p.keys), Outstanding: len(p.outbox),
		Sent: p.out.total, Received: p.in.total, Heard: p.heard, Dispute: p.dispute,
	}
	if a, err := s.books.Account(PeerAccount(p.name)); err == nil {
		r.Limit, r.Owed, r.Held = a.Credit, a.Balance, a.Reserved
	}
	if a, err := s.books.Account(SettledAccount(p.name)); err == nil {
		r.Share, r.Settled = a.Credit, -a.Balance
	} else {
		r.Share = s.wanted(p) // of a state of the first rules, until it is needed
	}
	for i := range p.outbox {
		r.Waiting += p.outbox[i].instruction.Amount
	}
	return r
}
