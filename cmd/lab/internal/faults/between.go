package faults

import (
	"fmt"

	"github.com/candor-grid/candor/bank/clearing"
	"github.com/candor-grid/candor/messages"
	clearingmsg "github.com/candor-grid/candor/messages/clearing"
	"github.com/candor-grid/candor/messages/money"
)

// between is the part of a tally about the instructions between this bank and other banks. A tally is a second set of
// books that the test keeps for a bank.
type between struct {
	issued    map[string]clearingmsg.Authorisation // authorisations that have not ended, by identifier
	given     map[string]bool                      // identifiers that were ever issued
	remitted  map[string]bool                      // remittances, by user and key
	payers    map[number]messages.Name             // payers of payments whose outcome is not known yet
	received  map[messages.Name]uint64             // by peer: number of the last instruction of the peer that was carried out
	confirmed map[messages.Name]uint64             // by peer: number of the last instruction that the peer has answered
	charges   map[string]messages.Credits          // charges by authorisations of other sites, by site and identifier
}

type number struct {
	peer messages.Name
	n    uint64
}

func newBetween() between {
	return between{map[string]clearingmsg.Authorisation{}, map[string]bool{}, map[string]bool{}, map[number]messages.Name{},
		map[messages.Name]uint64{}, map[messages.Name]uint64{}, map[string]messages.Credits{}}
}

// clear updates the tally for a command of the clearing. The argument `came` is the result of the command. The tally
// has the amounts that must follow from the committed commands.
func (t *tally) clear(s *site, c *clearing.Command, came *clearing.Result) error {
	b := &t.between
	switch {
	case came.Error != nil:
	case c.Authorise != nil:
		if a := *came.Authorisation; !b.given[a.ID] {
			b.given[a.ID], b.issued[a.ID] = true, a
			t.reserved[a.Account] += a.Amount
		}
	case c.Remit != nil:
		if key := c.By + "/" + c.Remit.Key; !b.remitted[key] {
			b.remitted[key] = true
			b.payers[number{c.Remit.Peer, came.Answer.Number}] = c.By
			t.reserved[c.By] += c.Remit.Amount
		}
	case c.Charge != nil:
		key := c.Charge.Issuer + "/" + c.Charge.ID
		if before, charged := b.charges[key]; charged && before != c.Charge.Amount {
			return fmt.Errorf("invariant 2: authorisation %s was charged %v before, but now %v", key, before, c.Charge.Amount)
		}
		b.charges[key] = c.Charge.Amount
	case c.Instructions != nil:
		return t.obeyed(s, &c.Instructions.Instructions, came.Receipt)
	case c.Receipt != nil:
		t.learned(s, &c.Receipt.Receipt)
	}
	return nil
}

// obeyed handles the outcomes of a peer's instructions at this bank. It counts the outcome of each instruction once.
func (t *tally) obeyed(s *site, m *clearingmsg.Instructions, r *clearingmsg.Receipt) error {
	for i, o := range r.Outcomes {
		n := r.First + uint64(i)
		if n <= t.between.received[m.From] {
			continue
		}
		t.between.received[m.From] = n
		if m.From == south {
			s.liar.obeyed(&m.List[n-m.First], &o)
		}
		if err := t.obey(s, m.From, &m.List[n-m.First], &o); err != nil {
			return err
		}
	}
	return nil
}

func (t *tally) obey(s *site, from messages.Name, in *clearingmsg.Instruction, o *money.TransferResult) error {
	peer, settled := clearing.PeerAccount(from), clearing.SettledAccount(from)
	if o.Error != nil {
		return nil
	}
	switch in.Kind {
	case clearingmsg.InstructPay:
		t.move(peer, in.Account, o.Amount)
	case clearingmsg.InstructCharge:
		a, pending := t.free(in.ID)
		if o.Amount > a.Amount {
			return fmt.Errorf("invariant 2: %v is charged from authorisation %s, but only %v of it is pending", o.Amount, in.ID, a.Amount)
		}
		if pending {
			t.move(a.Account, peer, o.Amount)
		}
	case clearingmsg.InstructSettle:
		t.move(settled, peer, o.Amount)
	}
	return nil
}

func (t *tally) free(id string) (clearingmsg.Authorisation, bool) {
	a, pending := t.between.issued[id]
	if pending {
		delete(t.between.issued, id)
		t.reserved[a.Account] -= a.Amount
	}
	return a, pending
}

// learned handles the outcomes that a peer reports for this bank's instructions. Instructions are numbered, and an
// outcome that is reported twice counts once.
func (t *tally) learned(s *site, r *clearingmsg.Receipt) {
	for i, o := range r.Outcomes {
		n := r.First + uint64(i)
		if n <= t.between.confirmed[r.From] {
			continue
		}
		t.between.confirmed[r.From] = n
		in := s.words.asked[pair{s.name, r.From, n}]
		if r.From == south {
			s.liar.learned(&in, &o)
		}
		t.learn(number{r.From, n}, &in, &o)
	}
}

func (t *tally) learn(n number, in *clearingmsg.Instruction, o *money.TransferResult) {
	peer := clearing.PeerAccount(n.peer)
	switch in.Kind {
	case clearingmsg.InstructPay:
		payer := t.between.payers[n]
		t.reserved[payer] -= in.Amount
		t.move(payer, peer, o.Amount)
	case clearingmsg.InstructCharge:
		t.move(peer, money.SiteAccount, o.Amount)
	case clearingmsg.InstructSettle:
		t.move(peer, clearing.SettlementAccount, o.Amount)
	case clearingmsg.InstructRevoke:
		if o.Error == nil {
			t.free(in.ID)
		}
	}
}
