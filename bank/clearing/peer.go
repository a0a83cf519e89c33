package clearing

import (
	"slices"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/spelling"
)

// maxPeers is the maximum of sites that one bank settles with.
const maxPeers = 256

// peer is the bank of another site.
type peer struct {
	relation
	outbox []item // instructions from number Out.Total.Number+1 on
	counts        // counts of the outbox

	// How many of its authorisations this site remembers, and how many of them are open.
	remembered, open int
}

// counts has sums over an outbox, so that no command scans it.
type counts struct {
	charges int               // instructions that charge or release an authorisation
	offers  int               // offers of cycles
	offered uint64            // the latest offered cycle; 0: none
	asked   messages.Credits  // by all instructions
	numbers map[string]uint64 // number of the last payment by its hold, and of the last charge by its key
}

// count adds by, 1 or -1, to the counts for an instruction.
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

// chargeKey returns the key of a charge in counts.numbers. No hold has such a key.
func chargeKey(id string) string { return "\x00" + id }

// relation is the part of a peer that an image has. Its fields are exported for the image only,
// and only ever added at the end.
type relation struct {
	Name     messages.Name
	Keys     []string
	Heard    messages.Time             // the latest time in its signed messages
	Out      book                      // our instructions, up to the last one whose outcome we know
	In       book                      // its instructions
	Outcomes []messages.TransferResult // instructions of the peer
	Known    uint64                    // it has the outcomes up to this number
	Cycles   []cycle                   // the latest keptCycles, ascending
	Counted  messages.Credits          // volume of Out when the latest cycle was closed
	Dispute  string
	Waiting  int              // in an image: the number of outbox items that follow
	Share    messages.Credits // its share of the reserve, as an operator set it
	Stated   bool
	Retired  []string      // keys that are never trusted again
	Turned   messages.Time // when it began to sign with the last of its keys; 0: as far as we know it has not

	Standing messages.PeerStanding
	Since    messages.Time    // when the standing began
	Lost     messages.Credits // part of its debt that was written off
	Leaving  bool             // we told it that we part
	Left     bool             // it told us that it parts

	Incarnation uint64           // incarnation in the peer's latest signed message
	Compared    uint64           // the incarnation of this site in which the two books were found equal
	Above       uint64           // the incarnation that this site signs for this peer, if later than its own
	Confirmed   *messages.Totals // totals that an operator confirmed, for the peer to adopt; nil: none
	Adopted     messages.Time    // when this site last adopted the peer's totals
	Forgotten   messages.Credits // the most that it may charge since then, with authorisations that this bank lost
	Began       messages.Time    // when its books began again after a parting
}

// item is an instruction without an outcome, and its hold. The outcome makes the hold a
// transfer or voids it. The fields are exported for the image only.
type item struct {
	Instruction messages.Instruction
	Hold        string           // "": nothing is reserved
	Held        messages.Credits // by the hold; at least the amount asked for
	Payee       messages.Name    // for a charge: the account that gets the amount
}

// last returns the number of the last instruction.
func (p *peer) last() uint64 { return p.Out.Total.Number + uint64(len(p.outbox)) }

// send adds an instruction to the outbox and returns its number.
func (p *peer) send(it item) uint64 {
	p.outbox = append(p.outbox, it)
	p.count(&it, p.last(), 1)
	return p.last()
}

// Limits of a change of keys.
const (
	turnsWithin = messages.MaxClockSkew // messages signed with an old key arrive within this time
	maxRetired  = 1024
)

// trusted returns the keys that a peer may sign with. After it signed with the last of several
// keys, the others are trusted for turnsWithin only.
func (p *peer) trusted(now messages.Time) []string {
	if p.Turned != 0 && now > p.Turned.Add(turnsWithin) {
		return p.Keys[len(p.Keys)-1:]
	}
	return p.Keys
}

// trust replaces the keys. It retires keys that are no longer given.
func (p *peer) trust(keys []string) {
	for _, key := range p.Keys {
		if !slices.Contains(keys, key) && !slices.Contains(p.Retired, key) {
			p.Retired = append(p.Retired, key)
		}
	}
	p.Keys, p.Turned = slices.Clone(keys), 0
}

// trustable refuses retired keys. It also refuses to retire a key unless the operator asks for
// that.
func (p *peer) trustable(r *messages.PeerRequest) *Rejected {
	for _, key := range r.Keys {
		if slices.Contains(p.Retired, key) {
			return ordinary(messages.Errorf(messages.Invalid, "keys: key %s of site %q was retired and can never be trusted again: give the key that its bank signs with now", key, p.Name))
		}
	}
	for _, key := range p.Keys {
		if !slices.Contains(r.Keys, key) && !r.Retire {
			return ordinary(messages.Errorf(messages.Conflict, "keys: key %s of site %q would be retired for ever: give this key too, or ask for its retirement", key, p.Name))
		}
	}
	if len(p.Retired)+len(p.Keys) > maxRetired {
		return ordinary(messages.Errorf(messages.Exhausted, "keys: %d keys of site %q were retired, the maximum", len(p.Retired), p.Name))
	}
	return nil
}

// answered removes the first n instructions from the outbox, after they were entered in the
// book.
func (p *peer) answered(n int) {
	for i := range p.outbox[:n] {
		p.count(&p.outbox[i], p.Out.Total.Number-uint64(n-1-i), -1)
	}
	clear(p.outbox[:n])
	if p.outbox = p.outbox[n:]; len(p.outbox) == 0 {
		p.outbox = nil
	}
}

// disputes keeps the first disagreement of the two banks, and refuses the message that shows
// it.
func (p *peer) disputes(err *Rejected) *Rejected {
	if p.Dispute == "" {
		p.Dispute = clip(err.Err.Message)
	}
	return err
}

// peers has all peers of a site.
type peers struct {
	site        messages.Name // name of this site
	incarnation uint64        // incarnation of this site, which a restore from a backup raises
	since       messages.Time // everything up to then is in the backup; 0: unknown
	backup      messages.Time // when the backup of the last restore began
	byName      map[messages.Name]*peer
	order       []messages.Name // names of the peers, ascending
	money       *money
}

func (ps *peers) find(name messages.Name) (*peer, *Rejected) {
	if p := ps.byName[name]; p != nil {
		return p, nil
	}
	return nil, ordinary(messages.Errorf(messages.NotFound, "site %q is not a peer of %q; its peers: %s", clip(name), ps.site, spelling.List(ps.order)))
}

// add inserts a peer.
func (ps *peers) add(p *peer) {
	ps.byName[p.Name] = p
	i, _ := slices.BinarySearch(ps.order, p.Name)
	ps.order = slices.Insert(ps.order, i, p.Name)
}

// room refuses an instruction if too many are outstanding. A charge or release has had its own
// place since its authorisation was accepted.
func (ps *peers) room(p *peer) *Rejected {
	waiting := len(p.outbox) - p.charges
	if waiting < MaxOutstanding {
		return nil
	}
	return ordinary(messages.Errorf(messages.Exhausted, "%d instructions wait for the bank of %q to answer, the most there may be: try again later", waiting, p.Name))
}

// credible refuses, while the banks disagree, what would increase the peer's debt or what users
// here trust it with.
func (ps *peers) credible(p *peer) *Rejected {
	if p.Dispute == "" {
		return nil
	}
	return reject(Disputed, messages.PermissionDenied, "the books with site %q do not agree: nothing is given on credit until operators have compared them with candor peer reconcile", p.Name)
}

// covers refuses an amount that exceeds a peer's limit. The ledger would refuse it too, but
// with a record, and a peer must not fill the journal.
func (ps *peers) covers(p *peer, amount messages.Credits) *Rejected {
	if _, room := ps.money.owed(PeerAccount(p.Name)); room < amount {
		return ordinary(messages.Errorf(messages.Insufficient, "site %q would owe more than it may: %s are left of its limit, and %v are needed", p.Name, max(0, room).Words(), amount))
	}
	return nil
}

// heardEvery is the interval after which a message without news again counts as a sign of life of
// the peer.
const heardEvery = messages.Duration(10 * 60e9)

// hear notes the peer's clock, at most as far ahead as clocks may differ, so that a clock that
// was once wrong does no lasting harm. It ends a suspension, except for a message without news
// from a peer that owes answers.
func (ps *peers) hear(p *peer, at messages.Time, news bool) {
	if p.Standing == messages.PeerSuspended && (news || len(p.outbox) == 0) {
		p.Standing, p.Since = messages.PeerOpen, ps.money.books.Now()
	}
	at = min(at, ps.money.books.Now().Add(messages.MaxClockSkew))
	if news && at > p.Heard || at >= p.Heard.Add(heardEvery) {
		p.Heard = at
	}
}

// knowledge is the part of a peer's state that the peer's own messages may change.
type knowledge struct {
	in, out, known, incarnation uint64
	heard, turned               messages.Time
	standing                    messages.PeerStanding
	keys                        int
	dispute                     string
	confirmed                   *messages.Totals
}

// known returns the knowledge of a peer, the zero value for nil.
func (p *peer) known() (k knowledge) {
	if p == nil {
		return k
	}
	return knowledge{in: p.In.Total.Number, out: p.Out.Total.Number, known: p.Known, incarnation: p.Incarnation,
		heard: p.Heard, turned: p.Turned, standing: p.Standing, keys: len(p.Keys), dispute: p.Dispute, confirmed: p.Confirmed}
}
