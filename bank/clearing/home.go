package clearing

import (
	"cmp"
	"strings"

	"github.com/candor-grid/candor/messages"
)

// issued is an authorisation of this site that is pending.
type issued struct {
	messages.Authorisation
	revoking bool           // its peer was asked to give it up
	job      messages.JobID // that it is for, 0: not said
}

// Prefixes of the identifiers that users' requests give their holds. The
// ledger remembers them for ever, so that a key is never used twice.
const (
	authorisationHold = TransferPrefix + "authorisation/"
	remittanceHold    = TransferPrefix + "remittance/"
)

// authorise sets credits aside for a peer to charge.
func (s *State) authorise(by messages.Name, r *messages.AuthoriseRequest) (*messages.Authorisation, *Rejected) {
	p, err := s.peer(r.Peer)
	if err != nil {
		return nil, err
	}
	a := s.draft(by, r)
	if err := malformed(a.Validate()); err != nil {
		return nil, err
	}
	if err := users(a.Account); err != nil {
		return nil, err
	}
	if first := s.issued.find(a.ID); first != nil {
		return first.again(&a)
	}
	if !s.books.Done(authorisationHold + a.ID) {
		if err := s.credible(p); err != nil {
			return nil, err
		}
		if err := s.issued.room(a.Account); err != nil {
			return nil, err
		}
	}
	hold := messages.Transfer{
		ID: authorisationHold + a.ID, Kind: messages.Hold, Debit: a.Account, Credit: PeerAccount(p.name), Member: a.Member,
		Amount: a.Amount, Expires: a.Frees(), Job: r.Job, Reason: clip("for site " + p.name + ": " + r.Reason),
	}
	fresh, err := s.once(by, a.Account, hold)
	if err != nil {
		return nil, err
	}
	if !fresh {
		return nil, ordinary(messages.Errorf(messages.Ended, "key %q: its authorisation was charged, given back or freed before: choose another key", r.Key))
	}
	s.issued.add(a.ID, a.Account, a.Frees(), issued{Authorisation: a, job: r.Job})
	return &a, nil
}

// margin is how long after its end an authorisation is kept: clocks may be
// MaxClockSkew apart, and a site may be cut off for a week.
const margin = messages.MaxClockSkew + 7*24*3600_000_000_000

// draft is the authorisation that a request would get now.
func (s *State) draft(by messages.Name, r *messages.AuthoriseRequest) messages.Authorisation {
	member := cmp.Or(r.Member, by)
	return messages.Authorisation{
		Issuer: s.site, Peer: r.Peer, ID: by + "/" + r.Key, Account: cmp.Or(r.Account, member), Member: member, Amount: r.Amount,
		Issued: s.books.Now(), Interval: r.Interval, Margin: margin,
	}
}

// again answers a repeated request with the first authorisation.
func (i *issued) again(a *messages.Authorisation) (*messages.Authorisation, *Rejected) {
	first := i.Authorisation
	a.Issued = first.Issued
	if *a != first {
		return nil, ordinary(messages.Errorf(messages.Conflict, "authorisation %q was given before with other content: choose another key", a.ID))
	}
	return &first, nil
}

// users refuses to touch an account that is the bank's own.
func users(account messages.Name) *Rejected {
	if Reserved(account) {
		return ordinary(messages.Errorf(messages.PermissionDenied, "account %q is the bank's own", account))
	}
	return nil
}

// once makes a hold under an identifier that its user chose, and reports
// whether it was made now, and not before: only then is more set aside.
func (s *State) once(by, account messages.Name, hold messages.Transfer) (bool, *Rejected) {
	before, _ := s.books.Account(account) // an account that is not there has nothing set aside
	if _, err := s.move(by, hold); err != nil {
		return false, err
	}
	now, err := s.books.Account(account)
	return now.Reserved != before.Reserved, ordinary(err)
}

// revoke asks the peer to give an authorisation up.
func (s *State) revoke(by messages.Name, r *messages.RevokeRequest) (*messages.ClearingReply, *Rejected) {
	a := s.issued.find(r.ID)
	if a == nil || a.Member != by && !strings.HasPrefix(a.ID, by+"/") {
		return nil, ordinary(messages.Errorf(messages.NotFound, "no authorisation %q of %q is pending: it was charged, given back or freed, or never made", clip(r.ID), clip(by)))
	}
	p, err := s.peer(a.Peer)
	if err != nil {
		return nil, err
	}
	if a.revoking {
		return &messages.ClearingReply{}, nil
	}
	if err := s.room(p); err != nil {
		return nil, err
	}
	a.revoking = true
	number := p.send(item{instruction: messages.Instruction{Kind: messages.InstructRevoke, ID: a.ID, Expires: a.Ends()}})
	return &messages.ClearingReply{Number: number}, nil
}

// remit sets credits aside and instructs the peer to pay them out.
func (s *State) remit(by messages.Name, r *messages.RemitRequest) (*messages.ClearingReply, *Rejected) {
	p, err := s.peer(r.Peer)
	if err != nil {
		return nil, err
	}
	account := r.Account
	if account == "" {
		account = by
	}
	if !messages.ValidName(by) {
		return nil, ordinary(messages.Errorf(messages.PermissionDenied, "%q is no user: only users remit", clip(by)))
	}
	if err := users(account); err != nil {
		return nil, err
	}
	id := remittanceHold + by + "/" + r.Key
	if !s.books.Done(id) { // what was done is not refused for what has changed since
		if err := s.credible(p); err != nil {
			return nil, err
		}
		if err := s.room(p); err != nil {
			return nil, err
		}
	}
	hold := messages.Transfer{
		ID: id, Kind: messages.Hold, Debit: account, Credit: PeerAccount(p.name), Member: by,
		Amount: r.Amount, Reason: "to " + r.Payee + " at site " + p.name + ": " + r.Reason,
	}
	fresh, err := s.once(by, account, hold)
	if err != nil || !fresh {
		return &messages.ClearingReply{Number: p.numberOf(hold.ID)}, err
	}
	number := p.send(item{
		instruction: messages.Instruction{Kind: messages.InstructPay, Account: r.Payee, Amount: r.Amount, Reason: r.Reason}, hold: hold.ID, held: r.Amount,
	})
	return &messages.ClearingReply{Number: number}, nil
}

// numberOf finds the instruction that waits with a hold, 0 if none does.
func (p *peer) numberOf(hold string) uint64 {
	for i := range p.outbox {
		if p.outbox[i].hold == hold {
			return p.out.total.Number + uint64(i) + 1
		}
	}
	return 0
}
