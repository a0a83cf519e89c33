package bank

import (
	"context"
	"encoding/hex"
	"time"

	"go.uber.org/zap"

	"github.com/candor-grid/candor/bank/history"
	"github.com/candor-grid/candor/bank/ledger"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/bus"
)

// archive is where a replica keeps its journal, and the checkpoints of it.
type archive struct {
	files       history.Files  // nil: in memory
	store       *history.Store // nil: in memory
	checkpoints *history.Checkpoints
}

func openArchive(c *Config) (*archive, error) {
	checkpoints, err := history.ReadCheckpoints(c.History)
	if err != nil {
		return nil, err
	}
	a := &archive{files: c.History, checkpoints: checkpoints}
	if c.History != nil {
		a.store = history.New(c.History, c.SegmentBytes, fetcher(c))
	}
	return a, nil
}

// ledger returns an empty ledger with its journal in the archive.
func (a *archive) ledger() *ledger.Ledger {
	if a.store == nil {
		return ledger.New()
	}
	return ledger.Open(a.store)
}

// saveTail leaves the end of the journal to those who read the files.
func (a *archive) saveTail(img *ledger.Image) error {
	if a.store == nil {
		return nil
	}
	return a.store.SaveTail(img.Tail())
}

func (a *archive) close() error {
	if a.store == nil {
		return nil
	}
	return a.store.Close()
}

// fetchWithin bounds the fetching of one segment's file, of some megabytes.
const fetchWithin = time.Minute

// fetcher gets segments from the replica that leads.
func fetcher(c *Config) func(ledger.Sum) ([]byte, error) {
	subject := messages.Subject(c.Site, messages.Bank, messages.VerbSegment, messages.ServiceIdentity(messages.Bank))
	return func(sum ledger.Sum) ([]byte, error) {
		ctx, cancel := context.WithTimeout(context.Background(), fetchWithin)
		defer cancel()
		var file []byte
		for {
			r, err := bus.Call[messages.SegmentReply](ctx, c.Bus, subject, messages.SegmentRequest{First: sum.First, Offset: int64(len(file))})
			if err != nil {
				return nil, err
			}
			file = append(file, r.Data...)
			if len(r.Data) == 0 || int64(len(file)) >= r.Size {
				c.Log.Info("fetched a part of the history", zap.Uint64("first", sum.First), zap.Int("bytes", len(file)))
				return file, nil
			}
		}
	}
}

// pageBytes bounds the history in one reply; a NATS server takes 1 MiB.
const pageBytes = 512 << 10

// journal answers with a page of the journal.
func (b *Bank) journal(ctx context.Context, caller messages.Name, r messages.JournalRequest) (messages.JournalReply, error) {
	if err := b.mayAudit(ctx, caller, "read the journal", r.Validate()); err != nil {
		return messages.JournalReply{}, err
	}
	var h ledger.History
	var reply messages.JournalReply
	var err error
	b.machine.read(func(l *ledger.Ledger) {
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
	return reply, page(&reply, &h, r)
}

// maxStandings is how many accounts fit into a reply beside the records.
const maxStandings = 4000

func page(reply *messages.JournalReply, h *ledger.History, r messages.JournalRequest) error {
	reply.Records = []messages.JournalRecord{}
	size := 0
	for number := r.After + 1; number <= reply.Count; number++ {
		record, err := h.Record(number)
		if err != nil {
			return messages.Errorf(messages.Internal, "%v", err)
		}
		// As numbers and lengths take at most 16 bytes more.
		if size += len(record) + 16; len(reply.Records) > 0 && (size > pageBytes || len(reply.Records) == r.Limit) {
			reply.More = true
			return nil
		}
		reply.Records = append(reply.Records, messages.JournalRecord{Number: number, Data: record})
	}
	return nil
}

// mayAudit lets through operators and services whose request is valid.
func (b *Bank) mayAudit(ctx context.Context, caller messages.Name, what string, invalid error) error {
	if !b.seesAll(caller) && caller != messages.ServiceIdentity(messages.Bank) {
		return messages.Errorf(messages.PermissionDenied, "account %q may not %s: ask an operator of the site", caller, what)
	}
	if invalid != nil {
		return invalid
	}
	return b.verify(ctx)
}

// maxCheckpoints is the most checkpoints that one reply lists.
const maxCheckpoints = 1000

// listCheckpoints answers with signed checkpoints, and signs one if it is asked to.
func (b *Bank) listCheckpoints(ctx context.Context, caller messages.Name, r messages.CheckpointsRequest) (messages.CheckpointsReply, error) {
	if err := b.mayAudit(ctx, caller, "see the checkpoints", r.Validate()); err != nil {
		return messages.CheckpointsReply{}, err
	}
	if r.Sign {
		if err := b.checkpoint(); err != nil {
			return messages.CheckpointsReply{}, err
		}
	}
	if r.Limit == 0 || r.Limit > maxCheckpoints {
		r.Limit = maxCheckpoints
	}
	var reply messages.CheckpointsReply
	reply.Checkpoints, reply.More = b.archive.checkpoints.After(r.After, r.Limit)
	return reply, nil
}

// checkpoint signs the journal as it stands.
func (b *Bank) checkpoint() error {
	if b.config.Signer == nil {
		return messages.Errorf(messages.NotFound, "this bank has no key to sign with: it runs without the site's identity")
	}
	var h ledger.History
	var now messages.Time
	b.machine.read(func(l *ledger.Ledger) { h, now = l.History(), l.Now() })
	if last, ok := b.archive.checkpoints.Last(); h.Count() == 0 || ok && last.Records >= h.Count() {
		return nil
	}
	head := h.Head()
	c, err := history.Sign(b.config.Signer, messages.Checkpoint{Site: b.config.Site, Records: h.Count(), Head: hex.EncodeToString(head[:]), At: now})
	if err != nil {
		return err
	}
	return b.archive.checkpoints.Add(c)
}

// checkpointEvery is after how many records a replica signs by itself.
const checkpointEvery = 10_000

// checkpointIfDue signs if much was written since the last time.
func (b *Bank) checkpointIfDue() {
	if b.config.Signer == nil {
		return
	}
	var count uint64
	b.machine.read(func(l *ledger.Ledger) { count = l.Totals().Records })
	if last, _ := b.archive.checkpoints.Last(); count < last.Records+checkpointEvery {
		return
	}
	if err := b.checkpoint(); err != nil {
		b.config.Log.Warn("cannot sign a checkpoint; will try again", zap.Error(err))
	}
}

// segment answers with a part of a full segment's file.
func (b *Bank) segment(ctx context.Context, caller messages.Name, r messages.SegmentRequest) (reply messages.SegmentReply, err error) {
	if err := b.mayAudit(ctx, caller, "read the journal's files", r.Validate()); err != nil {
		return reply, err
	}
	if b.archive.files == nil {
		return reply, messages.Errorf(messages.NotFound, "this bank keeps its journal in memory: read it with %s", messages.VerbJournal)
	}
	reply.Data, reply.Size, err = history.Part(b.archive.files, r.First, r.Offset, pageBytes)
	return reply, err
}
