package bank

import (
	"context"
	"encoding/hex"

	"github.com/candor-grid/candor/bank/ledger"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/money"
)

// pageBytes is the maximum size of the records in one reply; a NATS server accepts 1 MiB.
const pageBytes = 512 << 10

func (q *queries) journal(ctx context.Context, caller messages.Name, r money.JournalRequest) (money.JournalReply, error) {
	if err := q.mayAudit(ctx, caller, "read the journal", r.Validate()); err != nil {
		return money.JournalReply{}, err
	}
	var h ledger.History
	var reply money.JournalReply
	var err error
	q.machine.read(func(l *ledger.Ledger) {
		h = l.History()
		if r.Standings {
			reply.Standings, err = l.Standings(maxStandings)
		}
	})
	if err != nil {
		return reply, err
	}
	head := h.Head()
	reply.Count, reply.Head = h.Count(), hex.EncodeToString(head[:])
	before, err := h.HeadAfter(min(r.After, reply.Count))
	if err != nil {
		return reply, messages.Errorf(messages.Internal, "%v", err)
	}
	reply.Before = hex.EncodeToString(before[:])
	return reply, page(&reply, &h, r)
}

// maxStandings is the maximum number of accounts that fit in a reply together with the records.
const maxStandings = 4000

func page(reply *money.JournalReply, h *ledger.History, r money.JournalRequest) error {
	reply.Records = []money.JournalRecord{}
	size := 0
	for after := r.After; after < reply.Count; after++ { // with <=, After + 1 could overflow
		number := after + 1
		record, err := h.Record(number)
		if err != nil {
			return messages.Errorf(messages.Internal, "%v", err)
		}
		// For each record, the reply also has the record's number and length, which take at most 16 bytes.
		if size += len(record) + 16; len(reply.Records) > 0 && (size > pageBytes || len(reply.Records) == r.Limit) {
			reply.More = true
			return nil
		}
		reply.Records = append(reply.Records, money.JournalRecord{Number: number, Data: record})
	}
	return nil
}

// mayAudit returns an error if the caller is neither an operator nor a service, or if the request is invalid.
func (q *queries) mayAudit(ctx context.Context, caller messages.Name, what string, invalid error) error {
	if !q.callers.seesAll(caller) && caller != messages.ServiceIdentity(messages.Bank) {
		return messages.Errorf(messages.PermissionDenied, "account %q may not %s: ask an operator of the site", caller, what)
	}
	if invalid != nil {
		return invalid
	}
	return q.group.verify(ctx)
}

const maxCheckpoints = 1000

// checkpoints returns signed checkpoints, and signs a new one on request.
func (q *queries) checkpoints(ctx context.Context, caller messages.Name, r money.CheckpointsRequest) (money.CheckpointsReply, error) {
	if err := q.mayAudit(ctx, caller, "see the checkpoints", r.Validate()); err != nil {
		return money.CheckpointsReply{}, err
	}
	if r.Seen != nil {
		return money.CheckpointsReply{Checkpoints: []money.Checkpoint{}}, q.alarm.check(ctx, r.Replica, r.Seen)
	}
	if err := q.alarm.refusal(); err != nil {
		return money.CheckpointsReply{}, err
	}
	if r.Sign {
		if err := q.archive.sign(); err != nil {
			return money.CheckpointsReply{}, err
		}
	}
	if r.Limit == 0 || r.Limit > maxCheckpoints {
		r.Limit = maxCheckpoints
	}
	var reply money.CheckpointsReply
	reply.Checkpoints, reply.More = q.archive.checkpoints.After(r.After, r.Limit)
	return reply, nil
}

func (q *queries) segment(ctx context.Context, caller messages.Name, r money.SegmentRequest) (reply money.SegmentReply, err error) {
	if err := q.mayAudit(ctx, caller, "read the journal's files", r.Validate()); err != nil {
		return reply, err
	}
	if q.archive.files == nil {
		return reply, messages.Errorf(messages.NotFound, "this bank keeps its journal in memory: read it with %s", money.VerbJournal)
	}
	return q.archive.part(r)
}
