package bank

import (
	"context"

	"github.com/candor-grid/candor/bank/ledger"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/money"
	"github.com/candor-grid/candor/messages/proof"
)

// transfer carries out transfers in order. A long request becomes several commands. If one command fails after earlier
// commands succeeded, the outcome of the request is unknown.
func (cs *commands) transfer(ctx context.Context, caller messages.Name, r money.TransferRequest) (money.TransferReply, error) {
	rank := cs.callers.rank(caller)
	if rank == ledger.User {
		return money.TransferReply{}, messages.Errorf(messages.PermissionDenied, "account %q may not transfer: only services of the site and operators may", caller)
	}
	if err := cs.founding.await(parties(r.Transfers)...); err != nil {
		return money.TransferReply{}, err
	}
	if cs.group.provenFrom() == 0 {
		r.Proof = nil
	} else if err := checkMarks(&r); err != nil {
		return money.TransferReply{}, err
	}
	pieces, err := split(r.Transfers)
	if err != nil {
		return money.TransferReply{}, err
	}
	reply := money.TransferReply{Results: make([]money.TransferResult, 0, len(r.Transfers))}
	for _, piece := range pieces {
		c := ledger.Command{Verb: ledger.Transfers, By: caller, Rank: rank, Transfers: piece}
		if r.Proof != nil {
			from := proof.MarkSize * len(reply.Results)
			c.Proof = &messages.TransferProof{Session: r.Proof.Session, Marks: r.Proof.Marks[from : from+proof.MarkSize*len(piece)]}
		}
		result, err := cs.group.propose(ctx, &c)
		if err != nil {
			return money.TransferReply{}, afterSome(len(reply.Results), len(r.Transfers), err)
		}
		for i := range result.Transfers {
			if refusal := result.Transfers[i].Error; refusal != nil {
				cs.metrics.refuseRequest(messages.VerbTransfer, refusal)
			}
		}
		reply.Results = append(reply.Results, result.Transfers...)
	}
	return reply, nil
}

// A request may consist of several commands. afterSome returns the error for a request if one command failed after
// earlier commands were carried out. The error must not say that nothing was done.
func afterSome(answered, of int, err error) error {
	if answered == 0 || messages.KindOf(err) == messages.Unknown {
		return err
	}
	return messages.Errorf(messages.Unknown, "the first %d of %d transfers were carried out, and the other transfers not yet: %s; ask again with the same identifiers", answered, of, messages.Detail(err))
}

func checkMarks(r *money.TransferRequest) *messages.Error {
	switch {
	case r.Proof == nil || r.Proof.Session == 0:
		return unmarked()
	case len(r.Proof.Marks) != proof.MarkSize*len(r.Transfers):
		return messages.Errorf(messages.Invalid, "proof: has %d bytes of marks for %d transfers; each transfer needs %d bytes", len(r.Proof.Marks), len(r.Transfers), proof.MarkSize)
	}
	return nil
}

// These are the limits of a command, in bytes. When a command has reached pieceBytes, the next transfer begins a new
// command. A chain cannot be divided, so a command with a chain may have chainBytes. This is enough for money.MaxLegs
// transfers of less than 768 bytes each. A mailbox accepts commands of up to 1 MiB or more.
const (
	pieceBytes = 128 << 10
	chainBytes = 768 << 10
)

// split divides transfers into commands, but never inside a chain.
func split(transfers []money.Transfer) ([][]money.Transfer, error) {
	if len(transfers) > ledger.MaxBatch {
		return nil, messages.Errorf(messages.TooLarge, "%d transfers in one request: send at most %d", len(transfers), ledger.MaxBatch)
	}
	var pieces [][]money.Transfer
	start, size, chain := 0, 0, 0
	for i := range transfers {
		size += ledger.Size(&transfers[i])
		chain += ledger.Size(&transfers[i])
		if chain > chainBytes {
			return nil, messages.Errorf(messages.TooLarge, "transfer %d: the chain of linked transfers takes more than %d bytes; link fewer transfers", i, chainBytes)
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
