package clearing

import (
	"fmt"
	"slices"
	"strings"

	"github.com/candor-grid/candor/bank/ledger"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/proof"
)

// verbReceipt names a signed receipt in the journal: peers answer with it, and no request does.
const verbReceipt = "receipt"

// Witness checks by a journal alone what peers' banks signed: each signature is by a key
// that an operator named, each movement to or from a peer's account follows from an instruction
// or an outcome that the peer signed, and none follows twice. It does not know from when on
// a bank took only the last of several keys.
type Witness struct {
	site  messages.Name
	peers map[messages.Name]*heard
	heard bool          // a statement: from then on every movement has one
	last  messages.Name // whose statement came last; "": a request did
	asked string        // the verb of that request
}

// heard is what a peer signed, as far as it may still move credits.
type heard struct {
	keys    []string
	in, out uint64 // the last numbers of the peer's instructions, and of its outcomes, that were taken
	items   []heardItem
}

// heardItem is an instruction of a peer, or what one of this site came to.
type heardItem struct {
	most    messages.Credits
	exact   bool
	account messages.Name // that a payment is for; "": any
}

// NewWitness returns the witness of a site, which knows no peer.
func NewWitness(site messages.Name) *Witness {
	return &Witness{site: site, peers: map[messages.Name]*heard{}}
}

var _ ledger.Peers = (*Witness)(nil)

// Asked implements [ledger.Peers]: the keys of peers, and the authorisations that this site
// accepted.
func (w *Witness) Asked(verb string, payload []byte) error {
	w.last, w.asked = "", verb
	switch verb {
	case messages.VerbPeer:
		var r messages.PeerRequest
		if err := read(payload, &r); err != nil {
			return err
		}
		p := w.peers[r.Peer]
		if p == nil || !slices.ContainsFunc(r.Keys, func(key string) bool { return slices.Contains(p.keys, key) }) {
			p = &heard{} // of a new peering, whose books begin with number 1
			w.peers[r.Peer] = p
		}
		p.keys = r.Keys
	case messages.VerbAccept:
		var r messages.AcceptRequest
		if err := read(payload, &r); err != nil {
			return err
		}
		a := &r.Authorisation.Authorisation
		if p := w.peers[a.Issuer]; p != nil && !verifyAny(proof.Verified, p.keys, domainAuthorisation, a, r.Authorisation.Signature) {
			return fmt.Errorf("authorisation %q is not under a signature of site %s", clip(a.ID), clip(a.Issuer))
		}
	}
	return nil
}

func read(payload []byte, into any) error {
	return messages.Unmarshal(payload, messages.Detect(payload, ""), into)
}

// Said implements [ledger.Peers].
func (w *Witness) Said(by messages.Name, verb string, statement []byte) error {
	name := strings.TrimPrefix(by, "$")
	w.last, w.asked, w.heard = name, "", true
	p := w.peers[name]
	if p == nil {
		return nil // its operator named its keys before the site wanted proofs
	}
	p.items = nil
	switch verb {
	case messages.VerbInstruct:
		var m messages.SignedInstructions
		if err := read(statement, &m); err != nil {
			return err
		}
		i := &m.Instructions
		if i.From != name || i.To != w.site || !verifyAny(proof.Verified, p.keys, domainInstructions, i, m.Signature) {
			return fmt.Errorf("the instructions from number %d on are not under a signature of site %s", i.First, clip(name))
		}
		for k := range i.List {
			if i.First+uint64(k) > p.in {
				p.items = append(p.items, heardItem{i.List[k].Amount, i.List[k].Kind != messages.InstructSettle, payee(&i.List[k])})
			}
		}
		p.in = max(p.in, i.First+uint64(len(i.List))-1)
	case verbReceipt:
		var m messages.SignedReceipt
		if err := read(statement, &m); err != nil {
			return err
		}
		r := &m.Receipt
		if r.From != name || r.To != w.site || !verifyAny(proof.Verified, p.keys, domainReceipt, r, m.Signature) {
			return fmt.Errorf("the outcomes from number %d on are not under a signature of site %s", r.First, clip(name))
		}
		for k := range r.Outcomes {
			if r.First+uint64(k) > p.out {
				p.items = append(p.items, heardItem{most: r.Outcomes[k].Amount, exact: true})
			}
		}
		p.out = max(p.out, r.First+uint64(len(r.Outcomes))-1)
	default:
		return fmt.Errorf("a statement of site %s is a %q, which none is", clip(name), clip(verb))
	}
	return nil
}

func payee(i *messages.Instruction) messages.Name {
	if i.Kind == messages.InstructPay {
		return i.Account
	}
	return ""
}

// Moved implements [ledger.Peers].
func (w *Witness) Moved(t *messages.Transfer, debit, credit messages.Name, amount messages.Credits) (bool, error) {
	if w.asked == messages.VerbPart || w.asked == messages.VerbRepair { // at the word of an operator, who states it
		return true, nil
	}
	p := w.peers[w.last]
	switch {
	case !w.heard || w.last != "" && p == nil:
		return false, nil
	case p == nil || debit != PeerAccount(w.last) && credit != PeerAccount(w.last):
		return false, fmt.Errorf("transfer %q moves %s from %q to %q, and no statement of a site leads to it", clip(t.ID), amount.Words(), clip(debit), clip(credit))
	}
	for k, i := range p.items {
		if (amount == i.most || !i.exact && amount < i.most) && (i.account == "" || i.account == credit) {
			p.items = slices.Delete(p.items, k, k+1)
			return true, nil
		}
	}
	return false, fmt.Errorf("transfer %q moves %s from %q to %q, and site %s signed nothing that leads to it", clip(t.ID), amount.Words(), clip(debit), clip(credit), clip(w.last))
}
