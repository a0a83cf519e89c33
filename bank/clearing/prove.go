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
		return messages.VerbPeer, fresh(&c.Peer)
	case c.Reserve != nil:
		return messages.VerbReserve, fresh(&c.Reserve)
	case c.Authorise != nil:
		return messages.VerbAuthorise, fresh(&c.Authorise)
	case c.Revoke != nil:
		return messages.VerbRevoke, fresh(&c.Revoke)
	case c.Remit != nil:
		return messages.VerbRemit, fresh(&c.Remit)
	case c.Accept != nil:
		return messages.VerbAccept, fresh(&c.Accept)
	case c.Charge != nil:
		return messages.VerbCharge, fresh(&c.Charge)
	case c.Close != nil:
		return messages.VerbClose, fresh(&c.Close)
	case c.Part != nil:
		return messages.VerbPart, fresh(&c.Part)
	case c.Repair != nil:
		return messages.VerbRepair, fresh(&c.Repair)
	}
	return "", nil
}

// fresh puts an empty request in the place of another.
func fresh[Request any](place **Request) *Request {
	*place = new(Request)
	return *place
}
