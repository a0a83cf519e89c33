package faults

import (
	"bytes"
	"fmt"

	"github.com/candor-grid/candor/bank/clearing"
	"github.com/candor-grid/candor/messages"
	clearingmsg "github.com/candor-grid/candor/messages/clearing"
	"github.com/candor-grid/candor/messages/money"
)

func (s *site) clearing() *clearing.State { return s.banks.reference.(*bankState).clearing }

// peer returns what the site's bank knows of another site, or false if that site is not a peer.
func (s *site) peer(name messages.Name) (clearingmsg.PeerReply, bool) {
	return peerIn(s.clearing(), name)
}

func peerIn(c *clearing.State, name messages.Name) (clearingmsg.PeerReply, bool) {
	for _, p := range c.Peers().Peers {
		if p.Peer == name {
			return p, true
		}
	}
	return clearingmsg.PeerReply{}, false
}

// mirrored checks the books of the instructions that each pair of banks keeps for each direction. This site's books
// must agree with its own accounts, and with the books of the other sites.
func (s *site) mirrored() error {
	if fault := s.clearing().Fault(); fault != "" {
		return fmt.Errorf("invariant 1: the ledger refused a step of the clearing: %s", fault)
	}
	for _, p := range s.clearing().Peers().Peers {
		if is := p.Sent.Owed - p.Received.Owed; p.Owed != is {
			return fmt.Errorf("invariant 1: according to the account of %s %v is owed, but according to the running totals %v", p.Peer, p.Owed, is)
		}
		most := limit
		if p.Peer == south {
			most = southLimit
		}
		if -p.Owed > most {
			return fmt.Errorf("invariant 1: %s owes %v, above its limit", p.Peer, -p.Owed)
		}
		if p.Dispute != "" && p.Peer != south {
			return fmt.Errorf("invariant 5: honest banks disagree: %s", p.Dispute)
		}
	}
	for _, o := range s.sites {
		if o == s {
			continue
		}
		for _, way := range [][2]*site{{s, o}, {o, s}} {
			moved, err := inFlight(way[0], way[1])
			if err != nil {
				return fmt.Errorf("%w, from %s to %s", err, way[0].name, way[1].name)
			}
			s.flight[way[0].index][way[1].index] = moved
		}
	}
	return nil
}

// inFlight returns the sum of the amounts of the instructions from bank x to bank y that y has carried out, and whose
// outcomes x has not entered yet. It also compares the books of both banks, instruction by instruction.
func inFlight(x, y *site) (sum messages.Credits, err error) {
	sent, known := x.peer(y.name)
	received, too := y.peer(x.name)
	if !known || !too {
		return 0, nil
	}
	out, _ := x.clearing().Outgoing(y.name, 0)
	first, last := sent.Sent.Number, received.Received.Number
	if last < first || last > first+uint64(len(out.List)) {
		return 0, fmt.Errorf("invariant 1: the sender has entered outcomes up to number %d, the receiver has carried out instructions up to %d, and the sender has sent instructions up to %d", first, last, first+uint64(len(out.List)))
	}
	lines, err := y.clearing().Lines(x.name, clearingmsg.LinesRequest{Sender: x.name, From: max(first, 1)})
	if err != nil {
		return 0, err
	}
	for _, l := range lines.List {
		if l.Number == first {
			if !bytes.Equal(l.Digest, sent.Sent.Digest) {
				return 0, fmt.Errorf("invariant 1: the books differ at or before number %d", first)
			}
			continue
		}
		in := &out.List[l.Number-first-1]
		if in.Kind != l.Kind || in.Amount != l.Asked {
			return 0, fmt.Errorf("invariant 1: instruction %d was sent as %v of %v, but carried out as %v of %v", l.Number, in.Kind, in.Amount, l.Kind, l.Asked)
		}
		switch l.Kind {
		case clearingmsg.InstructPay:
			sum -= l.Moved // the payee already has the credits, and the payer's hold is not charged yet
		case clearingmsg.InstructCharge:
			sum += l.Moved // the user has already paid, and the charging site does not have the credits yet
		}
	}
	return sum, nil
}

// wealth returns an error unless all balances and all amounts in flight sum to the issued credits.
func (w *World) wealth() error {
	var have, issued messages.Credits
	for i, s := range w.sites {
		for _, a := range s.banks.reference.(*bankState).ledger.Accounts() {
			switch {
			case a.Account == money.IssuerAccount:
				issued -= a.Balance
			case !foreign(a.Account):
				have += a.Balance
			}
		}
		have -= s.liar.given // south has no bank, so nobody has issued these credits
		for _, moved := range w.flight[i] {
			have += moved
		}
	}
	if have != issued {
		return fmt.Errorf("invariant 1: the accounts of all sites and the instructions in flight have %v together, but %v was issued", have, issued)
	}
	return nil
}
