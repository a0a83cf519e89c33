package clearing

import (
	"github.com/candor-grid/candor/bank/ledger"
	"github.com/candor-grid/candor/messages"
)

// prove checks the proof of who asked for a command, where the books want proofs,
// and reports whether it is somebody's request. What was signed is what is carried
// out, whatever stands beside it. What a peer's bank asks is under that bank's
// signature, and the passing of time needs none.
func (s *State) prove(c *Command) (asks bool, err *Rejected) {
	if s.money.books.Proven() == 0 {
		return false, nil
	}
	verb, into := c.request()
	if verb == "" {
		return false, nil
	}
	rank, refusal := s.money.books.Asked(verb, c.By, c.Asked, s.money.books.Now())
	if refusal != nil {
		return false, reject(Signature, refusal.Kind, "%s", refusal.Message)
	}
	if e := messages.Unmarshal(c.Asked.Payload, messages.Detect(c.Asked.Payload, ""), into); e != nil {
		s.money.books.Finish(false)
		return false, malformed(e)
	}
	if err := s.Screen(c); err != nil {
		s.money.books.Finish(false)
		return false, err
	}
	if r := c.Authorise; r != nil && r.Member != "" && r.Member != c.By && rank == ledger.User {
		s.money.books.Finish(false)
		return false, ordinary(messages.Errorf(messages.PermissionDenied, "account %q may not set aside credits on the word of others", clip(c.By)))
	}
	return true, nil
}

// request is the request that a command carries out for its maker, fresh, to be
// read from what was signed; "" for what nobody of this site asks.
func (c *Command) request() (verb string, into any) {
	switch {
	case c.Peer != nil:
		c.Peer = new(messages.PeerRequest)
		return messages.VerbPeer, c.Peer
	case c.Reserve != nil:
		c.Reserve = new(messages.ReserveRequest)
		return messages.VerbReserve, c.Reserve
	case c.Authorise != nil:
		c.Authorise = new(messages.AuthoriseRequest)
		return messages.VerbAuthorise, c.Authorise
	case c.Revoke != nil:
		c.Revoke = new(messages.RevokeRequest)
		return messages.VerbRevoke, c.Revoke
	case c.Remit != nil:
		c.Remit = new(messages.RemitRequest)
		return messages.VerbRemit, c.Remit
	case c.Accept != nil:
		c.Accept = new(messages.AcceptRequest)
		return messages.VerbAccept, c.Accept
	case c.Charge != nil:
		c.Charge = new(messages.ChargeRequest)
		return messages.VerbCharge, c.Charge
	case c.Close != nil:
		c.Close = new(messages.CloseRequest)
		return messages.VerbClose, c.Close
	}
	return "", nil
}
