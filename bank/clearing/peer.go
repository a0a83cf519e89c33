package clearing

import (
	"slices"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/clearing"
	moneymsg "github.com/candor-grid/candor/messages/money"
	"github.com/candor-grid/candor/messages/spelling"
)

const maxPeers = 256

// peer is the state of this site's relation to the bank of another site.
type peer struct {
	relation
	outbox []item // instructions without an outcome, from number Out.Total.Number+1 on
	counts        // counts of the outbox

	// remembered is how many of the peer's authorisations this site remembers, and open is how many of these are open.
	remembered, open int
}

// counts has sums over all instructions in an outbox, so that no command must read the whole outbox.
type counts struct {
	charges int               // instructions that charge or release an authorisation
	offers  int               // offers to settle cycles
	offered uint64            // the latest offered cycle; 0 means none
	asked   messages.Credits  // sum of the amounts of all instructions
	numbers map[string]uint64 // by hold: number of the last payment; by chargeKey: number of the last charge
}

// count adds an instruction to the counts if the argument `by` is 1, and removes it if the argument is -1.
func (c *counts) count(it *item, number uint64, by int) {
	c.asked += messages.Credits(by) * it.Instruction.Amount
	key := it.Hold
	switch it.Instruction.Kind {
	case clearing.InstructCharge:
		c.charges += by
		key = chargeKey(it.Instruction.ID)
	case clearing.InstructSettle:
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

// relation is the part of a peer's state that the stored image of the ledger contains. Its fields are exported only
// because the encoder of images needs this. New fields are added at the end.
type relation struct {
	Name     messages.Name
	Keys     []string
	Heard    messages.Time             // the latest time in its signed messages
	Out      book                      // this site's instructions, up to the last one with a known outcome
	In       book                      // the peer's instructions
	Outcomes []moneymsg.TransferResult // outcomes of the peer's last instructions
	Known    uint64                    // the peer has received the outcomes up to this number
	Cycles   []cycle                   // the latest cycles, at most keptCycles, in ascending order
	Counted  messages.Credits          // the volume of the book Out when the latest cycle was closed
	Dispute  string
	Waiting  int              // in an image: the number of outbox items that follow
	Share    messages.Credits // share of the reserve that an operator set
	Stated   bool
	Retired  []string      // keys that are never trusted again
	Turned   messages.Time // when the peer first signed with the last of its keys; 0 means that it has not yet

	Standing clearing.PeerStanding
	Since    messages.Time    // when the standing began
	Lost     messages.Credits // the written-off part of the peer's debt
	Leaving  bool             // this site has told the peer that this site parts
	Left     bool             // the peer has told this site that the peer parts

	Incarnation uint64           // incarnation in the latest message that it signed
	Compared    uint64           // the incarnation of this site in which the books of both banks were compared and found equal
	Above       uint64           // incarnation to sign for this peer, if later than the site's own
	Confirmed   *clearing.Totals // totals that an operator confirmed, for the peer to adopt; nil means none
	Adopted     messages.Time    // when this site last adopted the peer's totals; 0 means never
	Forgotten   messages.Credits // the most that the peer may charge, since Adopted, with authorisations that this bank lost
	Began       messages.Time    // when the books began again after a one-sided parting
}

// item is an instruction that the peer has not answered yet, and the hold for it. When the peer answers, the held
// credits are moved, or the hold is voided. Fields are exported only because an image contains items.
type item struct {
	Instruction clearing.Instruction
	Hold        string           // "" if nothing is reserved
	Held        messages.Credits // amount of the hold; at least the amount of the instruction
	Payee       messages.Name    // for a charge: the account that gets the amount
}

func (p *peer) last() uint64 { return p.Out.Total.Number + uint64(len(p.outbox)) }

// send adds an instruction to the outbox and returns its number.
func (p *peer) send(it item) uint64 {
	p.outbox = append(p.outbox, it)
	p.count(&it, p.last(), 1)
	return p.last()
}

// These constants limit how long, and for how many keys, this bank remembers the old keys of a peer that has changed
// its keys.
const (
	turnsWithin = clearing.MaxClockSkew // messages signed with an old key arrive within this time
	maxRetired  = 1024
)

// trusted returns the keys with which a peer may sign. The last key in the list is the newest. When a peer first signs
// with the newest key, the older keys stay trusted for turnsWithin after that.
func (p *peer) trusted(now messages.Time) []string {
	if p.Turned != 0 && now > p.Turned.Add(turnsWithin) {
		return p.Keys[len(p.Keys)-1:]
	}
	return p.Keys
}

// trust replaces the keys of a peer. An old key that is not in the new list is retired: the peer can never use it
// again.
func (p *peer) trust(keys []string) {
	for _, key := range p.Keys {
		if !slices.Contains(keys, key) && !slices.Contains(p.Retired, key) {
			p.Retired = append(p.Retired, key)
		}
	}
	p.Keys, p.Turned = slices.Clone(keys), 0
}

// trustable checks the list of keys in an operator's request. It returns a refusal if the list has a retired key. It
// also refuses a list without one of the peer's present keys, unless the request asks to retire this key.
func (p *peer) trustable(r *clearing.PeerRequest) *Rejected {
	for _, key := range r.Keys {
		if slices.Contains(p.Retired, key) {
			return ordinary(messages.Errorf(messages.Invalid, "keys: key %s of site %q was retired and can never be trusted again: give the key that its bank signs with now", key, p.Name))
		}
	}
	for _, key := range p.Keys {
		if !slices.Contains(r.Keys, key) && !r.Retire {
			return ordinary(messages.Errorf(messages.Conflict, "keys: key %s of site %q would be retired for ever: add this key to the request, or allow the retirement with --retire", key, p.Name))
		}
	}
	if len(p.Retired)+len(p.Keys) > maxRetired {
		return ordinary(messages.Errorf(messages.Exhausted, "keys: %d keys of site %q were retired, the maximum", len(p.Retired), p.Name))
	}
	return nil
}

// answered removes the first n instructions from the outbox, after they were entered in the book.
func (p *peer) answered(n int) {
	for i := range p.outbox[:n] {
		p.count(&p.outbox[i], p.Out.Total.Number-uint64(n-1-i), -1)
	}
	clear(p.outbox[:n])
	if p.outbox = p.outbox[n:]; len(p.outbox) == 0 {
		p.outbox = nil
	}
}

// disputes stores the first disagreement with the peer's bank, and returns a refusal.
func (p *peer) disputes(err *Rejected) *Rejected {
	if p.Dispute == "" {
		p.Dispute = clip(err.Err.Message)
	}
	return err
}

type peers struct {
	site        messages.Name // name of this site
	incarnation uint64        // this site's incarnation; each restore from a backup raises it
	since       messages.Time // the restored backup has everything up to this time; 0 means unknown
	backup      messages.Time // when the backup of the last restore began
	byName      map[messages.Name]*peer
	order       []messages.Name // names of the peers, in ascending order
	money       *money
}

func (ps *peers) find(name messages.Name) (*peer, *Rejected) {
	if p := ps.byName[name]; p != nil {
		return p, nil
	}
	return nil, ordinary(messages.Errorf(messages.NotFound, "site %q is not a peer of %q; its peers: %s", clip(name), ps.site, spelling.List(ps.order)))
}

func (ps *peers) add(p *peer) {
	ps.byName[p.Name] = p
	i, _ := slices.BinarySearch(ps.order, p.Name)
	ps.order = slices.Insert(ps.order, i, p.Name)
}

// room returns a refusal if too many instructions wait for the peer's answer. Charges and releases do not count, because
// their places were reserved earlier.
func (ps *peers) room(p *peer) *Rejected {
	waiting := len(p.outbox) - p.charges
	if waiting < MaxOutstanding {
		return nil
	}
	return ordinary(messages.Errorf(messages.Exhausted, "%d instructions wait for the bank of %q to answer, the most there may be: try again later", waiting, p.Name))
}

// credible returns a refusal if the two banks disagree. Then neither bank may accept new debts or authorisations from
// the other.
func (ps *peers) credible(p *peer) *Rejected {
	if p.Dispute == "" {
		return nil
	}
	return reject(Disputed, messages.PermissionDenied, "the books with site %q do not agree: nothing is given on credit until operators have compared them with candor peer reconcile", p.Name)
}

// covers returns a refusal of an amount that exceeds a peer's limit. The ledger would also refuse it, but it would
// write a record each time, and so a peer could fill the journal.
func (ps *peers) covers(p *peer, amount messages.Credits) *Rejected {
	if _, room := ps.money.owed(PeerAccount(p.Name)); room < amount {
		return ordinary(messages.Errorf(messages.Insufficient, "site %q would owe more than it may: %s are left of its limit, and %v are needed", p.Name, max(0, room).Words(), amount))
	}
	return nil
}

// heardEvery is how much later the time of a peer's clock must be than the last recorded one, so that a message without
// other news is recorded.
const heardEvery = messages.Duration(10 * 60e9)

// hear stores the latest time that a peer's clock has shown, but at most this site's time plus MaxClockSkew. Without
// this limit, all later times of the peer would look old if its clock was once far ahead. hear also ends the suspension
// of a peer in two cases: the message has something new (`news` is true), or no instruction waits for the peer's
// answer.
func (ps *peers) hear(p *peer, at messages.Time, news bool) {
	if p.Standing == clearing.PeerSuspended && (news || len(p.outbox) == 0) {
		p.Standing, p.Since = clearing.PeerOpen, ps.money.books.Now()
	}
	at = min(at, ps.money.books.Now().Add(clearing.MaxClockSkew))
	if news && at > p.Heard || at >= p.Heard.Add(heardEvery) {
		p.Heard = at
	}
}

// knowledge is the part of a peer's state that messages of the peer may change.
type knowledge struct {
	in, out, known, incarnation uint64
	heard, turned               messages.Time
	standing                    clearing.PeerStanding
	keys                        int
	dispute                     string
	confirmed                   *clearing.Totals
}

func (p *peer) known() (k knowledge) {
	if p == nil {
		return k
	}
	return knowledge{in: p.In.Total.Number, out: p.Out.Total.Number, known: p.Known, incarnation: p.Incarnation,
		heard: p.Heard, turned: p.Turned, standing: p.Standing, keys: len(p.Keys), dispute: p.Dispute, confirmed: p.Confirmed}
}
