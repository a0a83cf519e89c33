package bank

import (
	"context"
	"time"

	"github.com/candor-grid/candor/bank/ledger"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/bus"
	"github.com/candor-grid/candor/messages/proof"
)

// serviceVersion is that of the requests and replies, not of the program.
const serviceVersion = "1.0.0"

// commandConcurrency is how many commands may wait for the log at once; they
// share its entries, so many make it no slower.
const commandConcurrency = 1024

// commands is what the leader alone may answer.
func (b *Bank) commands() bus.Service {
	return bus.Service{
		Name: "candor-bank-commands", Version: serviceVersion, Description: "Changes to the accounts of site " + b.config.Site,
		Concurrency: commandConcurrency,
		Endpoints: []bus.Endpoint{
			endpoint(b, messages.VerbTransfer, b.transfer),
			endpoint(b, messages.VerbGrant, b.grant),
			endpoint(b, messages.VerbMember, b.member),
			endpoint(b, messages.VerbProject, b.project),
			endpoint(b, messages.VerbPay, b.pay),
			endpoint(b, messages.VerbFreeze, b.freeze),
			endpoint(b, messages.VerbCredit, b.credit),
			endpoint(b, messages.VerbWithdraw, b.takeBack),
			endpoint(b, messages.VerbCorrect, b.correct),
			endpoint(b, messages.VerbReplica, b.regroup),
			endpoint(b, messages.VerbSession, b.session),
			endpoint(b, messages.VerbProve, b.begin),
		},
	}
}

// endpoint makes one of a function on typed requests, and times it.
func endpoint[Req, Rep any](b *Bank, verb string, f func(context.Context, messages.Name, Req) (Rep, error)) bus.Endpoint {
	seconds := b.metrics.requests.WithLabelValues(verb)
	handle := bus.Handle(verb, func(ctx context.Context, caller messages.Name, request Req) (Rep, error) {
		began := time.Now()
		reply, err := f(ctx, caller, request)
		seconds.Observe(time.Since(began).Seconds())
		b.metrics.refuseRequest(verb, err)
		return reply, err
	})
	return bus.Endpoint{Name: verb, Subject: messages.Subject(b.config.Site, messages.Bank, verb, "*"), Handle: handle}
}

// transfer carries out transfers in order. A request that is long is committed
// in several commands; if one of them fails after others, the outcome of the
// request is not known.
func (b *Bank) transfer(ctx context.Context, caller messages.Name, r messages.TransferRequest) (messages.TransferReply, error) {
	rank := b.rank(caller)
	if rank == ledger.User {
		return messages.TransferReply{}, messages.Errorf(messages.PermissionDenied, "account %q may not transfer: only services of the site and operators may", caller)
	}
	var off map[int]*messages.Error
	if b.provenFrom() == 0 {
		off = guardTransfers(r.Transfers) // the ledger does it where transfers are proven
		r.Proof = nil
	} else if err := checkMarks(&r); err != nil {
		return messages.TransferReply{}, err
	}
	pieces, err := split(r.Transfers)
	if err != nil {
		return messages.TransferReply{}, err
	}
	reply := messages.TransferReply{Results: make([]messages.TransferResult, 0, len(r.Transfers))}
	for _, piece := range pieces {
		c := ledger.Command{Verb: ledger.Transfers, By: caller, Rank: rank, Transfers: piece}
		if r.Proof != nil {
			from := proof.MarkSize * len(reply.Results)
			c.Proof = &messages.TransferProof{Session: r.Proof.Session, Marks: r.Proof.Marks[from : from+proof.MarkSize*len(piece)]}
		}
		result, err := b.propose(ctx, &c)
		if err != nil {
			return messages.TransferReply{}, afterSome(len(reply.Results), len(r.Transfers), err)
		}
		for i := range result.Transfers {
			if e := off[len(reply.Results)+i]; e != nil {
				result.Transfers[i].Error = e
			}
			if refusal := result.Transfers[i].Error; refusal != nil {
				b.metrics.refuseRequest(messages.VerbTransfer, refusal)
			}
		}
		reply.Results = append(reply.Results, result.Transfers...)
	}
	return reply, nil
}

// afterSome is the error of a piece of a request of which pieces before it were
// answered: that they were not done would not be true.
func afterSome(answered, of int, err error) error {
	if answered == 0 || messages.KindOf(err) == messages.Unknown {
		return err
	}
	return messages.Errorf(messages.Unknown, "the first %d of %d transfers were carried out, and the others not yet: %s; ask again with the same identifiers", answered, of, messages.AsError("", err).Message)
}

// checkMarks refuses transfers of which not each has a mark.
func checkMarks(r *messages.TransferRequest) *messages.Error {
	switch {
	case r.Proof == nil || r.Proof.Session == 0:
		return messages.Errorf(messages.Unproven, "the transfers carry no marks of a session: ask as candor's own clients do, which open one")
	case len(r.Proof.Marks) != proof.MarkSize*len(r.Transfers):
		return messages.Errorf(messages.Invalid, "proof: has %d bytes of marks for %d transfers, of which each needs %d", len(r.Proof.Marks), len(r.Transfers), proof.MarkSize)
	}
	return nil
}

// Bounds on a command in bytes: a piece of a request is closed where it
// reaches pieceBytes, and a chain, which cannot be divided, may have
// chainBytes, or messages.MaxLegs transfers if these take less than 768 bytes
// each. A mailbox takes commands of at least 1 MiB.
const (
	pieceBytes = 128 << 10
	chainBytes = 768 << 10
)

// split divides transfers into commands, never within a chain.
func split(transfers []messages.Transfer) ([][]messages.Transfer, error) {
	if len(transfers) > ledger.MaxBatch {
		return nil, messages.Errorf(messages.TooLarge, "%d transfers in one request: send at most %d", len(transfers), ledger.MaxBatch)
	}
	var pieces [][]messages.Transfer
	start, size, chain := 0, 0, 0
	for i := range transfers {
		size += ledger.Size(&transfers[i])
		chain += ledger.Size(&transfers[i])
		if chain > chainBytes {
			return nil, messages.Errorf(messages.TooLarge, "transfer %d: its chain takes more than %d bytes; make shorter ones", i, chainBytes)
		}
		if transfers[i].Linked {
			continue
		}
		chain = 0
		if size >= pieceBytes {
			pieces, start, size = append(pieces, transfers[start:i+1]), i+1, 0
		}
	}
	if start < len(transfers) {
		pieces = append(pieces, transfers[start:])
	}
	return pieces, nil
}

// operator refuses whoever is not one.
func (b *Bank) operator(caller messages.Name, what string) error {
	if b.operators[caller] {
		return nil
	}
	return messages.Errorf(messages.PermissionDenied, "account %q may not %s: ask an operator of the site", caller, what)
}

// grant issues credits.
func (b *Bank) grant(ctx context.Context, caller messages.Name, r messages.GrantRequest) (messages.AccountReply, error) {
	if err := b.operator(caller, "grant credits"); err != nil {
		return messages.AccountReply{}, err
	}
	if err := ledger.CheckGrant(&r); err != nil {
		return messages.AccountReply{}, err
	}
	result, err := b.propose(ctx, &ledger.Command{Verb: ledger.Grant, By: caller, Grant: r})
	return result.Account, err
}
