package courier

import (
	"context"
	"strings"

	"github.com/nats-io/nkeys"

	"github.com/candor-grid/candor/bank/clearing"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/bus"
	clearingmsg "github.com/candor-grid/candor/messages/clearing"
	"github.com/candor-grid/candor/messages/money"
)

// serviceVersion is the version of the requests and replies, not of the program.
const serviceVersion = "1.0.0"

// Services returns the services of the bank's leader. The leader serves them while it leads.
func (c *Courier) Services() []bus.Service {
	key := c.config.Signer
	authorisation := func(r *clearing.Result) (clearingmsg.SignedAuthorisation, error) {
		return clearing.SignAuthorisation(key, *r.Authorisation)
	}
	position := func(r *clearing.Result) (clearingmsg.SignedPosition, error) {
		return clearing.SignPosition(key, *r.Position)
	}
	answer := func(r *clearing.Result) (clearingmsg.ClearingReply, error) { return *r.Answer, nil }
	return []bus.Service{{
		Name: "candor-clearing-commands", Version: serviceVersion, Description: "Settlement of site " + c.config.Site + " with other sites",
		Endpoints: []bus.Endpoint{
			command(c, clearingmsg.VerbAuthorise, c.mayAuthorise, func(r *clearingmsg.AuthoriseRequest) clearing.Command { return clearing.Command{Authorise: r} }, authorisation),
			command(c, clearingmsg.VerbRevoke, anybody, func(r *clearingmsg.RevokeRequest) clearing.Command { return clearing.Command{Revoke: r} }, answer),
			command(c, clearingmsg.VerbRemit, c.mayRemit, func(r *clearingmsg.RemitRequest) clearing.Command { return clearing.Command{Remit: r} }, answer),
			command(c, clearingmsg.VerbAccept, c.mayAccept, func(r *clearingmsg.AcceptRequest) clearing.Command { return clearing.Command{Accept: r} }, answer),
			command(c, clearingmsg.VerbCharge, allowed[clearingmsg.ChargeRequest](c.config.Service, "charge authorisations"),
				func(r *clearingmsg.ChargeRequest) clearing.Command { return clearing.Command{Charge: r} }, answer),
			command(c, clearingmsg.VerbPeer, c.mayPeer, func(r *clearingmsg.PeerRequest) clearing.Command { return clearing.Command{Peer: r} },
				func(r *clearing.Result) (clearingmsg.PeerReply, error) { return *r.Peer, nil }),
			command(c, clearingmsg.VerbReserve, allowed[clearingmsg.ReserveRequest](c.config.Operator, "set the reserve"),
				func(r *clearingmsg.ReserveRequest) clearing.Command { return clearing.Command{Reserve: r} },
				func(r *clearing.Result) (money.AccountReply, error) { return *r.Account, nil }),
			command(c, clearingmsg.VerbClose, allowed[clearingmsg.CloseRequest](c.config.Operator, "close cycles"),
				func(r *clearingmsg.CloseRequest) clearing.Command { return clearing.Command{Close: r} }, position),
			command(c, clearingmsg.VerbPart, allowed[clearingmsg.PartRequest](c.config.Operator, "part from peers"),
				func(r *clearingmsg.PartRequest) clearing.Command { return clearing.Command{Part: r} },
				func(r *clearing.Result) (clearingmsg.PartReply, error) { return *r.Parted, nil }),
			endpoint(c, clearingmsg.VerbInstruct, c.instruct),
			command(c, clearingmsg.VerbConfirm, allowed[clearingmsg.ConfirmRequest](c.config.Operator, "confirm the books with a peer"),
				func(r *clearingmsg.ConfirmRequest) clearing.Command { return clearing.Command{Confirm: r} },
				func(r *clearing.Result) (clearingmsg.SignedTotals, error) { return clearing.SignTotals(key, *r.Totals) }),
			command(c, clearingmsg.VerbAdopt, allowed[clearingmsg.AdoptRequest](c.config.Operator, "adopt the books of a peer"),
				func(r *clearingmsg.AdoptRequest) clearing.Command { return clearing.Command{Adopt: r} },
				func(r *clearing.Result) (clearingmsg.Adoption, error) { return *r.Adopted, nil }),
		},
	}, {
		Name: "candor-clearing-queries", Version: serviceVersion, Description: "How site " + c.config.Site + " stands with other sites", Discoverable: true,
		Endpoints: []bus.Endpoint{
			endpoint(c, clearingmsg.VerbPeers, c.listPeers),
			endpoint(c, clearingmsg.VerbLines, c.lines),
			endpoint(c, clearingmsg.VerbTotals, c.totals),
			endpoint(c, clearingmsg.VerbReconcile, c.reconcile),
			endpoint(c, clearingmsg.VerbNet, c.net),
			endpoint(c, clearingmsg.VerbPosition, c.position),
		},
	}}
}

func endpoint[Req, Rep any](c *Courier, verb string, f func(context.Context, messages.Name, Req) (Rep, error)) bus.Endpoint {
	return bus.Endpoint{Name: verb, Subject: messages.Subject(c.config.Site, messages.Bank, verb, "*"), Handle: bus.Handle(verb, f)}
}

// command returns the endpoint for requests that become a command of the clearing. The function `may` checks the
// caller, the function `ask` makes the command, and the function `answer` makes the reply from the command's result.
func command[Req, Rep any](c *Courier, verb string, may func(messages.Name, *Req) error, ask func(*Req) clearing.Command, answer func(*clearing.Result) (Rep, error)) bus.Endpoint {
	return endpoint(c, verb, func(ctx context.Context, caller messages.Name, r Req) (reply Rep, err error) {
		if err := may(caller, &r); err != nil {
			return reply, err
		}
		command := ask(&r)
		command.By = caller
		result, err := c.proposer.submit(ctx, command)
		if err != nil {
			return reply, err
		}
		return answer(&result)
	})
}

// anybody allows every caller. This is safe for requests in which the clearing itself checks that the caller acts only
// for itself.
func anybody[Req any](messages.Name, *Req) error { return nil }

// allowed returns a check that refuses a caller if may(caller) is false.
func allowed[Req any](may func(messages.Name) bool, what string) func(messages.Name, *Req) error {
	return func(caller messages.Name, _ *Req) error { return allow(caller, may, what) }
}

func allow(caller messages.Name, may func(messages.Name) bool, what string) error {
	if may(caller) {
		return nil
	}
	return messages.Errorf(messages.PermissionDenied, "account %q may not %s", caller, what)
}

func (c *Courier) mayAuthorise(caller messages.Name, r *clearingmsg.AuthoriseRequest) error {
	if r.Member == "" || r.Member == caller {
		return nil
	}
	return allow(caller, c.config.Service, "name another account in the field member: only services may")
}

// mayRemit returns an error for a remittance that is too small to be worth the work of both banks.
func (c *Courier) mayRemit(_ messages.Name, r *clearingmsg.RemitRequest) error {
	if least := c.config.LeastVisit; 0 < r.Amount && r.Amount < least {
		return messages.Errorf(messages.Invalid, "amount: is %s, but a remittance to another site must be at least %v: send more at once", r.Amount.Words(), least)
	}
	return nil
}

func (c *Courier) mayAccept(caller messages.Name, r *clearingmsg.AcceptRequest) error {
	if err := allow(caller, c.config.Service, "accept authorisations"); err != nil {
		return err
	}
	if amount, least := r.Authorisation.Authorisation.Amount, c.config.LeastVisit; amount < least {
		return messages.Errorf(messages.Insufficient, "authorisation: is %s, and a job of another site needs an authorisation of at least %v: give it a larger budget", amount.Words(), least)
	}
	return nil
}

func (c *Courier) mayPeer(caller messages.Name, r *clearingmsg.PeerRequest) error {
	if err := allow(caller, c.config.Operator, "set the terms of peers"); err != nil {
		return err
	}
	for i, key := range r.Keys {
		if !nkeys.IsValidPublicKey(key) {
			return messages.Errorf(messages.Invalid, "keys[%d]: is no public nkey; take the key that \"candor peer list\" shows to the peer's operator", i)
		}
	}
	return nil
}

// instruct carries out the instructions that a peer's bank sends. The caller must be this bank. A committed outcome
// never changes. So if the instructions were carried out before, any replica may answer from its own state, without a
// new entry in the log.
func (c *Courier) instruct(ctx context.Context, caller messages.Name, r clearingmsg.SignedInstructions) (clearingmsg.SignedReceipt, error) {
	if caller != messages.ServiceIdentity(r.Instructions.From) {
		return clearingmsg.SignedReceipt{}, messages.Errorf(messages.PermissionDenied, "caller %q: only the bank of the sender's site may deliver the message", caller)
	}
	from := r.Instructions.From
	if err := c.pace.count(from, 1, c.config.Clock()); err != nil { // limit the rate before the signature is verified
		return clearingmsg.SignedReceipt{}, err
	}
	command := clearing.Command{By: caller, Instructions: &r}
	if err := c.proposer.screen(&command); err != nil {
		return clearingmsg.SignedReceipt{}, err
	}
	var receipt *clearingmsg.Receipt
	var again bool
	var idle []bool
	refused := c.proposer.check(func(s *clearing.State) (err *clearing.Rejected) {
		receipt, err, again = s.Answered(&r)
		idle = s.Idle(&r.Instructions, c.config.LeastVisit)
		return err
	})
	if again {
		c.metrics.repeats.Inc()
		if refused != nil {
			return clearingmsg.SignedReceipt{}, refused
		}
		return clearing.SignReceipt(c.config.Signer, *receipt)
	}
	if err := c.pace.count(from, len(r.Instructions.List)-1, c.config.Clock()); err != nil {
		return clearingmsg.SignedReceipt{}, err
	}
	result, err := c.proposer.propose(ctx, command)
	if err != nil {
		return clearingmsg.SignedReceipt{}, err
	}
	c.pace.owe(from, wasted(idle, result.Receipt.Outcomes)*(paceOfIdle-1), c.config.Clock())
	return clearing.SignReceipt(c.config.Signer, *result.Receipt)
}

// wasted counts two kinds of new instructions in a message: refused instructions, and instructions that change nothing.
// Neither kind is worth a place in the log. The list `idle` marks the instructions that change nothing. The outcomes of
// the new instructions are the last elements of `outcomes`.
func wasted(idle []bool, outcomes []money.TransferResult) (n int) {
	fresh := outcomes[max(0, len(outcomes)-len(idle)):]
	for i := range fresh {
		if idle[i] || fresh[i].Error != nil {
			n++
		}
	}
	return n
}

// listPeers returns what the site knows about each peer. The leader answers, because only it knows how often messages
// were repeated, and which refusals did not reach the log.
func (c *Courier) listPeers(ctx context.Context, caller messages.Name, _ messages.Empty) (reply clearingmsg.PeersReply, err error) {
	if !c.config.Service(caller) {
		if err := allow(caller, c.config.Operator, "see the debts between sites"); err != nil {
			return reply, err
		}
	}
	if err := c.config.Host.Verify(ctx); err != nil {
		return reply, err
	}
	c.config.Host.Read(func(s *clearing.State) { reply = s.Peers() })
	c.sender.addFailures(&reply)
	c.proposer.addRefusals(&reply)
	reply.Key, err = c.config.Signer.PublicKey()
	return reply, err
}

// lines returns a page of the books about a peer to the peer's bank.
func (c *Courier) lines(ctx context.Context, caller messages.Name, r clearingmsg.LinesRequest) (clearingmsg.SignedLines, error) {
	site, isBank := strings.CutPrefix(caller, "$")
	if !isBank {
		return clearingmsg.SignedLines{}, messages.Errorf(messages.PermissionDenied, "account %q may not see the books between banks: only the bank of the peer may", caller)
	}
	if err := c.pace.count(site, paceOfPage, c.config.Clock()); err != nil {
		return clearingmsg.SignedLines{}, err
	}
	if err := c.config.Host.Verify(ctx); err != nil {
		return clearingmsg.SignedLines{}, err
	}
	var page clearingmsg.Lines
	var err error
	c.config.Host.Read(func(s *clearing.State) { page, err = s.Lines(site, r) })
	if err != nil {
		return clearingmsg.SignedLines{}, err
	}
	return clearing.SignLines(c.config.Signer, page)
}
