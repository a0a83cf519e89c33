package clearing

import (
	"cmp"
	"strings"

	"github.com/candor-grid/candor/bank/ledger"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/clearing"
	moneymsg "github.com/candor-grid/candor/messages/money"
)

// issued is an authorisation of this site that has not ended. Its fields are exported because images encode only
// exported fields.
type issued struct {
	clearing.Authorisation
	Revoking bool           // the peer was asked to give the authorisation up
	Job      messages.JobID // the job to pay for; 0 means unknown
	By       messages.Time  // when the credits are freed, if this is before the end of the authorisation; otherwise 0
}

func (i *issued) entry() (id, owner string, site messages.Name, until messages.Time) {
	return i.ID, i.Account, i.Peer, i.freed()
}

// freed returns when the credits that are held for the authorisation become free again. This happens even if the peer
// sends no message.
func (i *issued) freed() messages.Time {
	if i.By != 0 {
		return min(i.By, i.Frees())
	}
	return i.Frees()
}

// Some holds are made by users' requests. Their identifiers consist of a prefix and the key of the request. The ledger
// never forgets an identifier, so no key is used twice.
const (
	authorisationHold = clearing.AuthorisationHold
	remittanceHold    = TransferPrefix + "remittance/"
)

// issuer issues authorisations of this site, and pays the charges of peers.
type issuer struct {
	issued register[issued, *issued] // authorisations that have not ended; the ledger frees their credits at their end
	peers  *peers
	money  *money
}

// authorise reserves credits that a peer may charge, and returns the authorisation.
func (is *issuer) authorise(by messages.Name, rank ledger.Rank, r *clearing.AuthoriseRequest) (*clearing.Authorisation, *Rejected) {
	p, err := is.peers.find(r.Peer)
	if err != nil {
		return nil, err
	}
	a := is.draft(by, r)
	if err := cmp.Or(malformed(a.Validate()), users(a.Account)); err != nil {
		return nil, err
	}
	if first := is.issued.find(a.ID); first != nil {
		return first.again(&a)
	}
	if !is.money.books.Done(authorisationHold + a.ID) {
		if err := cmp.Or(is.bounded(by, rank, &a), is.peers.trades(p), is.peers.credible(p), is.issued.room(a.Account)); err != nil {
			return nil, err
		}
	}
	hold := moneymsg.Transfer{
		ID: authorisationHold + a.ID, Kind: moneymsg.Hold, Debit: a.Account, Credit: PeerAccount(p.Name), Member: a.Member,
		Amount: a.Amount, Expires: a.Frees(), Job: r.Job, Reason: clip("for site " + p.Name + ": " + r.Reason),
	}
	fresh, err := is.money.once(by, a.Account, hold)
	if err != nil {
		return nil, err
	}
	if !fresh {
		return nil, ordinary(messages.Errorf(messages.Ended, "key %q: its authorisation was charged, given back or freed before: choose another key", r.Key))
	}
	is.issued.add(issued{Authorisation: a, Job: r.Job})
	return &a, nil
}

// The method bounded refuses authorisations by a project's member who has no limit. Such a member could authorise other
// sites for months, and so bind the project's credits. If a service requests the authorisation for such a member,
// bounded permits it, because such an authorisation ends with the job.
func (is *issuer) bounded(by messages.Name, rank ledger.Rank, a *clearing.Authorisation) *Rejected {
	if rank != ledger.User || !messages.ValidName(by) || is.money.books.Owns(a.Member, a.Account) || is.money.books.Limited(a.Member, a.Account) {
		return nil
	}
	return ordinary(messages.Errorf(messages.PermissionDenied, "%q must have a limit in account %q to authorise other sites: ask an owner of the account for a limit", clip(a.Member), clip(a.Account)))
}

// margin is how long an authorisation is kept after its end: clocks may differ by MaxClockSkew, and a site may be cut
// off for a week.
const margin = clearing.MaxClockSkew + 7*24*3600_000_000_000

// draft returns the authorisation that a new request would get now.
func (is *issuer) draft(by messages.Name, r *clearing.AuthoriseRequest) clearing.Authorisation {
	member := cmp.Or(r.Member, by)
	return clearing.Authorisation{
		Issuer: is.peers.site, Peer: r.Peer, ID: by + "/" + r.Key, Account: cmp.Or(r.Account, member), Member: member, Amount: r.Amount,
		Issued: is.money.books.Now(), Interval: r.Interval, Margin: margin,
	}
}

func (i *issued) again(a *clearing.Authorisation) (*clearing.Authorisation, *Rejected) {
	first := i.Authorisation
	a.Issued = first.Issued
	if *a != first {
		return nil, ordinary(messages.Errorf(messages.Conflict, "authorisation %q was given before with other content: choose another key", a.ID))
	}
	return &first, nil
}

func users(account messages.Name) *Rejected {
	if Reserved(account) {
		return ordinary(messages.Errorf(messages.PermissionDenied, "account %q is the bank's own", account))
	}
	return nil
}

// revokes reports whether a caller may revoke an authorisation. These callers may: the account that asked for it, the
// member for whom it was issued, an owner of the account, and an operator.
func (is *issuer) revokes(by messages.Name, rank ledger.Rank, a *issued) bool {
	return a.Member == by || strings.HasPrefix(a.ID, by+"/") || rank == ledger.Operator || is.money.books.Owns(by, a.Account)
}

func (is *issuer) revoke(by messages.Name, rank ledger.Rank, r *clearing.RevokeRequest) (*clearing.ClearingReply, *Rejected) {
	a := is.issued.find(r.ID)
	if a == nil || !is.revokes(by, rank, a) {
		return nil, ordinary(messages.Errorf(messages.NotFound, "no authorisation %q of %q is pending: it was charged, given back or freed, or never made", clip(r.ID), clip(by)))
	}
	if r.Ended {
		return is.conclude(by, a)
	}
	p, err := is.peers.find(a.Peer)
	if err != nil {
		return nil, err
	}
	if a.Revoking {
		return &clearing.ClearingReply{}, nil
	}
	if err := is.peers.room(p); err != nil {
		return nil, err
	}
	a.Revoking = true
	number := p.send(item{Instruction: clearing.Instruction{Kind: clearing.InstructRevoke, ID: a.ID, Expires: a.Ends()}})
	return &clearing.ClearingReply{Number: number}, nil
}

// conclude shortens the time in which an authorisation can be charged, after the peer reported that the job ended. Only
// the service that made the authorisation may conclude it. If users could do so, they could take back the payment for
// work that is still running.
func (is *issuer) conclude(by messages.Name, a *issued) (*clearing.ClearingReply, *Rejected) {
	if messages.ValidName(by) || !strings.HasPrefix(a.ID, by+"/") {
		return nil, ordinary(messages.Errorf(messages.PermissionDenied, "account %q may not say that %q has ended: only the service that made the authorisation may", clip(by), clip(a.ID)))
	}
	if a.By == 0 {
		ended := *a
		ended.By = is.money.books.Now().Add(clearing.ChargeWithin)
		is.issued.drop(a.ID)
		is.issued.add(ended)
	}
	return &clearing.ClearingReply{}, nil
}

// lapse removes an authorisation whose time is over. Usually the ledger has freed its credits already. One case is
// different: the peer said that the job has ended, but did not charge in time. The credits are then still held, and
// lapse frees them.
func (is *issuer) lapse(a *issued) {
	if a.Frees() > is.money.books.Now() {
		is.money.must(moneymsg.Transfer{Kind: moneymsg.Void, Pending: authorisationHold + a.ID,
			Reason: clip("site " + a.Peer + " says that the job has ended, and did not charge it in time")})
	}
	is.issued.drop(a.ID)
}

// Freed returns when the credits of a hold are freed if the peer does not answer. It returns 0 if the clearing has no
// such hold, or if the hold has its own expiry in the ledger.
func (s *State) Freed(hold string) messages.Time {
	if id, is := strings.CutPrefix(hold, authorisationHold); is {
		if a := s.issuer.issued.find(id); a != nil && a.By != 0 {
			return a.freed()
		}
	}
	return 0
}

// honour pays what a peer charges for an authorisation, and frees the other credits of its hold. From then on, this
// site owes the paid amount to the peer.
func (is *issuer) honour(p *peer, i *clearing.Instruction) (messages.Credits, *Rejected) {
	a := is.issued.find(i.ID)
	if a == nil && i.Amount == 0 {
		return 0, nil // the authorisation has ended, and its credits are already free
	}
	if a == nil {
		return is.remembered(p, i)
	}
	if a.Peer != p.Name {
		return 0, reject(Poached, messages.PermissionDenied, "authorisation %q is not for site %q", clip(i.ID), p.Name)
	}
	if i.Amount > a.Amount {
		return 0, reject(Amount, messages.Insufficient, "authorisation %q is of %v credits: %v cannot be charged", clip(i.ID), a.Amount, i.Amount)
	}
	t := moneymsg.Transfer{Kind: moneymsg.Post, Pending: authorisationHold + a.ID, Credit: PeerAccount(p.Name), Amount: i.Amount, Job: a.Job,
		Reason: clip("charged by site " + p.Name + ": " + i.Reason)}
	if i.Amount == 0 {
		t.Kind, t.Credit = moneymsg.Void, ""
	}
	if _, err := is.money.move(maker, t); err != nil {
		return 0, err
	}
	if a.Issued <= p.Adopted { // the restored backup had this authorisation, so it was not lost
		p.Forgotten -= min(p.Forgotten, a.Amount)
	}
	is.issued.drop(i.ID)
	return i.Amount, nil
}

func (is *issuer) free(p *peer, i *clearing.Instruction, o *moneymsg.TransferResult) {
	a := is.issued.find(i.ID)
	if a == nil {
		return // the authorisation was released or freed meanwhile
	}
	if o.Error != nil {
		a.Revoking = false
		return
	}
	is.money.must(moneymsg.Transfer{Kind: moneymsg.Void, Pending: authorisationHold + a.ID, Reason: "given up by site " + p.Name})
	is.issued.drop(i.ID)
}
