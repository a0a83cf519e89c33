package clearing

import (
	"github.com/candor-grid/candor/bank/ledger"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/clearing"
)

// prove checks the signature of a command's caller, if the books require signatures. It returns the caller's proven
// rank, and replaces the command by the signed content. A peer's message needs only the signature of the peer's bank. A
// command that only sets the time needs none.
func (s *State) prove(c *Command) (ledger.Rank, *Rejected) {
	verb, _ := c.request()
	if verb == "" || s.money.books.Proven() == 0 {
		return ledger.User, nil
	}
	rank, refusal := s.money.books.Asked(verb, c.By, c.Asked, s.money.books.Now())
	if refusal != nil {
		return rank, reject(Signature, refusal.Kind, "%s", refusal.Message)
	}
	if e := read(c.Asked.Payload, c.place(verb)); e != nil {
		return rank, malformed(e)
	}
	if err := s.Screen(c); err != nil {
		return rank, err
	}
	if r := c.Authorise; r != nil && r.Member != "" && r.Member != c.By && rank == ledger.User {
		return rank, ordinary(messages.Errorf(messages.PermissionDenied, "account %q may not name another account in the field member: only services may", clip(c.By)))
	}
	return rank, nil
}

// request returns the request in a command that came from a caller of this site, and the request's verb. It returns ""
// if the command has no such request.
func (c *Command) request() (verb string, r any) {
	switch {
	case c.Peer != nil:
		return clearing.VerbPeer, c.Peer
	case c.Reserve != nil:
		return clearing.VerbReserve, c.Reserve
	case c.Authorise != nil:
		return clearing.VerbAuthorise, c.Authorise
	case c.Revoke != nil:
		return clearing.VerbRevoke, c.Revoke
	case c.Remit != nil:
		return clearing.VerbRemit, c.Remit
	case c.Accept != nil:
		return clearing.VerbAccept, c.Accept
	case c.Charge != nil:
		return clearing.VerbCharge, c.Charge
	case c.Close != nil:
		return clearing.VerbClose, c.Close
	case c.Part != nil:
		return clearing.VerbPart, c.Part
	case c.Confirm != nil:
		return clearing.VerbConfirm, c.Confirm
	case c.Adopt != nil:
		return clearing.VerbAdopt, c.Adopt
	}
	return "", nil
}

// place makes an empty request for a verb, stores it in the command's field for this verb, and returns it. The decoder
// then fills the request. For an unknown verb, place returns nil.
func (c *Command) place(verb string) any {
	switch verb {
	case clearing.VerbPeer:
		return fresh(&c.Peer)
	case clearing.VerbReserve:
		return fresh(&c.Reserve)
	case clearing.VerbAuthorise:
		return fresh(&c.Authorise)
	case clearing.VerbRevoke:
		return fresh(&c.Revoke)
	case clearing.VerbRemit:
		return fresh(&c.Remit)
	case clearing.VerbAccept:
		return fresh(&c.Accept)
	case clearing.VerbCharge:
		return fresh(&c.Charge)
	case clearing.VerbClose:
		return fresh(&c.Close)
	case clearing.VerbPart:
		return fresh(&c.Part)
	case clearing.VerbConfirm:
		return fresh(&c.Confirm)
	case clearing.VerbAdopt:
		return fresh(&c.Adopt)
	}
	return nil
}

func fresh[Request any](place **Request) *Request {
	*place = new(Request)
	return *place
}
