package clearing

import (
	"slices"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/spelling"
)

// maxPeers bounds the sites that one bank settles with.
const maxPeers = 256

// peer is the bank of another site.
type peer struct {
	relation
	outbox []item // numbers Out.Total.Number+1 on
	counts        // of the outbox

	// How many of its authorisations are remembered here, and how many of them are open.
	remembered, open int
}

// counts are worked out from an outbox, so that no command looks through it.
type counts struct {
	charges int               // instructions that charge or release an authorisation
	offers  int               // of cycles
	offered uint64            // the latest of these cycles; 0: none
	asked   messages.Credits  // by all instructions
	numbers map[string]uint64 // of the last payment by its hold, and of the last charge by its key
}

// count adds an instruction to the counts, or with by −1 takes it off.
func (c *counts) count(it *item, number uint64, by int) {
	c.asked += messages.Credits(by) * it.Instruction.Amount
	key := it.Hold
	switch it.Instruction.Kind {
	case messages.InstructCharge:
		c.charges += by
		key = chargeKey(it.Instruction.ID)
	case messages.InstructSettle:
		if c.offers += by; c.offers == 0 {
			c.offered = 0
		} else {
			c.offered = max(c.offered, it.Instruction.Cycle)
		}
		return
	}
	switch {
	case by > 0 && c.numbers == nil:
		c.numbers = map[string]uint64{key: number}
	case by > 0:
		c.numbers[key] = number
	case c.numbers[key] == number:
		delete(c.numbers, key)
	}
}

// chargeKey is the key of a charge in counts.numbers: no hold has a key like it.
func chargeKey(id string) string { return "\x00" + id }

// relation is what an image has of a peer itself: its fields are exported for that
// alone, and only ever added at the end.
type relation struct {
	Name     messages.Name
	Keys     []string
	Heard    messages.Time             // the latest time that it signed
	Out      book                      // of our instructions, up to those whose outcome we know
	In       book                      // of its instructions
	Outcomes []messages.TransferResult // of numbers Known+1 on
	Known    uint64                    // it keeps the outcomes up to this number
	Cycles   []cycle                   // ascending, the latest keptCycles
	Counted  messages.Credits          // volume of Out when the latest cycle was closed
	Dispute  string
	Waiting  int              // in an image: how many instructions of the outbox follow
	Share    messages.Credits // of the reserve, as an operator stated it
	Stated   bool
	Retired  []string      // keys that are never trusted again
	Turned   messages.Time // since when it signs with the last of several keys; 0: it does not, as far as is known

	Standing messages.PeerStanding
	Since    messages.Time    // of the standing
	Lost     messages.Credits // that it owed and that was written off
	Leaving  bool             // we have told it that we part
	Left     bool             // it has told us that it parts

	Incarnation uint64           // of the peer, as it last signed
	Compared    uint64           // the incarnation of this site in which its books were found whole
	Above       uint64           // what this site signs as its incarnation for the peer, if later than its own
	Confirmed   *messages.Totals // that an operator confirmed, for the peer to adopt; nil: none
	Adopted     messages.Time    // when this site last adopted the totals of the peer
	Forgotten   messages.Credits // that it may charge since, by authorisations that this bank lost
	Began       messages.Time    // of its books, if they began anew after a parting
}

// item is an instruction that waits for its outcome, and the hold that
// becomes a transfer or is voided then. Its fields are exported for the image alone.
type item struct {
	Instruction messages.Instruction
	Hold        string           // "": it sets nothing aside
	Held        messages.Credits // by the hold: at least what is asked
	Payee       messages.Name    // of a charge
}

// last is the number of the last instruction.
func (p *peer) last() uint64 { return p.Out.Total.Number + uint64(len(p.outbox)) }

// send adds an instruction to the outbox and returns its number.
func (p *peer) send(it item) uint64 {
	p.outbox = append(p.outbox, it)
	p.count(&it, p.last(), 1)
	return p.last()
}

// Bounds of a change of keys.
const (
	turnsWithin = messages.MaxClockSkew // what was signed with an old key before arrives within that
	maxRetired  = 1024
)

// trusted are the keys that a peer may sign with. Once it has signed with the last of
// several, the others are good for a while only.
func (p *peer) trusted(now messages.Time) []string {
	if p.Turned != 0 && now > p.Turned.Add(turnsWithin) {
		return p.Keys[len(p.Keys)-1:]
	}
	return p.Keys
}

// trust replaces the keys, and retires those that are left out.
func (p *peer) trust(keys []string) {
	for _, key := range p.Keys {
		if !slices.Contains(keys, key) && !slices.Contains(p.Retired, key) {
			p.Retired = append(p.Retired, key)
		}
	}
	p.Keys, p.Turned = slices.Clone(keys), 0
}

// trustable refuses keys that were retired, and, where the operator does not say
// so, the retirement of keys.
func (p *peer) trustable(r *messages.PeerRequest) *Rejected {
	for _, key := range r.Keys {
		if slices.Contains(p.Retired, key) {
			return ordinary(messages.Errorf(messages.Invalid, "keys: key %s of site %q was retired and is never trusted again: give the key that its bank signs with now", key, p.Name))
		}
	}
	for _, key := range p.Keys {
		if !slices.Contains(r.Keys, key) && !r.Retire {
			return ordinary(messages.Errorf(messages.Conflict, "keys: key %s of site %q would be retired for ever: give it too, or ask for its retirement", key, p.Name))
		}
	}
	if len(p.Retired)+len(p.Keys) > maxRetired {
		return ordinary(messages.Errorf(messages.Exhausted, "keys: %d keys of site %q were retired, the most there may be", len(p.Retired), p.Name))
	}
	return nil
}

// answered takes the first instructions from the outbox, once they are in the book.
func (p *peer) answered(n int) {
	for i := range p.outbox[:n] {
		p.count(&p.outbox[i], p.Out.Total.Number-uint64(n-1-i), -1)
	}
	clear(p.outbox[:n])
	if p.outbox = p.outbox[n:]; len(p.outbox) == 0 {
		p.outbox = nil
	}
}

// disputes notes the first thing on which the banks do not agree, and refuses it.
func (p *peer) disputes(err *Rejected) *Rejected {
	if p.Dispute == "" {
		p.Dispute = clip(err.Err.Message)
	}
	return err
}

// peers are those of one site.
type peers struct {
	site        messages.Name // whose they are
	incarnation uint64        // of the site: when it was last restored from a backup
	since       messages.Time // what was before is in that backup; 0: it is not known what is
	backup      messages.Time // when the backup began that was restored last
	byName      map[messages.Name]*peer
	order       []messages.Name // of their names, ascending
	money       *money
}

func (ps *peers) find(name messages.Name) (*peer, *Rejected) {
	if p := ps.byName[name]; p != nil {
		return p, nil
	}
	return nil, ordinary(messages.Errorf(messages.NotFound, "site %q is no peer of %q: there are %s", clip(name), ps.site, spelling.List(ps.order)))
}

// add enters a peer in order.
func (ps *peers) add(p *peer) {
	ps.byName[p.Name] = p
	i, _ := slices.BinarySearch(ps.order, p.Name)
	ps.order = slices.Insert(ps.order, i, p.Name)
}

// room refuses what would make more outstanding than may be. A charge or release
// has its place since its authorisation was accepted, and takes none of others.
func (ps *peers) room(p *peer) *Rejected {
	waiting := len(p.outbox) - p.charges
	if waiting < MaxOutstanding {
		return nil
	}
	return ordinary(messages.Errorf(messages.Exhausted, "%d instructions wait for the bank of %q to answer, the most there may be: try again later", waiting, p.Name))
}

// credible refuses whatever would have the peer owe more, or users here trust it
// with more, while the banks do not agree.
func (ps *peers) credible(p *peer) *Rejected {
	if p.Dispute == "" {
		return nil
	}
	return reject(Disputed, messages.PermissionDenied, "the books with site %q do not agree: nothing is given on credit until operators have compared them with candor peer reconcile", p.Name)
}

// covers refuses what a peer's limit does not cover, before the ledger does: that
// one writes down what it refuses, and a peer is not to fill its journal.
func (ps *peers) covers(p *peer, amount messages.Credits) *Rejected {
	if _, room := ps.money.owed(PeerAccount(p.Name)); room < amount {
		return ordinary(messages.Errorf(messages.Insufficient, "site %q would owe more than it may: %s are left of its limit, and %v are needed", p.Name, max(0, room).Words(), amount))
	}
	return nil
}

// heardEvery is after which time a peer that says nothing new counts as heard again.
const heardEvery = messages.Duration(10 * 60e9)

// hear notes the peer's clock, no further ahead than clocks may differ: a peer
// whose clock was once far ahead is not to be refused for years. A peer that was
// suspended for its silence is so no more, unless it says nothing new while it owes answers.
func (ps *peers) hear(p *peer, at messages.Time, news bool) {
	if p.Standing == messages.PeerSuspended && (news || len(p.outbox) == 0) {
		p.Standing, p.Since = messages.PeerOpen, ps.money.books.Now()
	}
	at = min(at, ps.money.books.Now().Add(messages.MaxClockSkew))
	if news && at > p.Heard || at >= p.Heard.Add(heardEvery) {
		p.Heard = at
	}
}

// knowledge is what the messages of a peer change of what this bank knows of it.
type knowledge struct {
	in, out, known, incarnation uint64
	heard, turned               messages.Time
	standing                    messages.PeerStanding
	keys                        int
	dispute                     string
	confirmed                   *messages.Totals
}

// known is what is known of a peer; nothing of nil.
func (p *peer) known() (k knowledge) {
	if p == nil {
		return k
	}
	return knowledge{in: p.In.Total.Number, out: p.Out.Total.Number, known: p.Known, incarnation: p.Incarnation,
		heard: p.Heard, turned: p.Turned, standing: p.Standing, keys: len(p.Keys), dispute: p.Dispute, confirmed: p.Confirmed}
}
