package trial

import (
	"context"
	"errors"
	"math"
	"time"

	"github.com/candor-grid/candor/bank/clearing"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/bus"
)

func (l *liar) listen() error {
	return errors.Join(
		l.Answer(messages.Bank, map[string]bus.Handler{
			messages.VerbInstruct: bus.Handle(messages.VerbInstruct, l.instructed),
			messages.VerbPosition: bus.Handle(messages.VerbPosition, l.position),
		}),
		l.Answer(messages.Auctioneer, map[string]bus.Handler{
			messages.VerbPeerSubmit: bus.Handle(messages.VerbPeerSubmit, l.submitted),
			messages.VerbPeerQuote:  bus.Handle(messages.VerbPeerQuote, l.quoted),
			messages.VerbPeerJob:    bus.Handle(messages.VerbPeerJob, l.job),
			messages.VerbPeerWhy:    bus.Handle(messages.VerbPeerWhy, l.why),
		}))
}

// instructed answers that it has carried out the victim's instructions, unless the liar is silent.
func (l *liar) instructed(_ context.Context, _ messages.Name, signed messages.SignedInstructions) (messages.SignedReceipt, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	m := &signed.Instructions
	if !l.answers {
		return messages.SignedReceipt{}, messages.Errorf(messages.Unavailable, "not now %s", ill)
	}
	r := messages.Receipt{From: l.Name, To: l.To, First: l.out.Number + 1, Outcomes: []messages.TransferResult{}, At: messages.TimeOf(time.Now())}
	for n := r.First; n < m.First+uint64(len(m.List)); n++ {
		i := &m.List[n-m.First]
		o := messages.TransferResult{Amount: i.Amount}
		r.Outcomes, l.out = append(r.Outcomes, o), clearing.After(l.out, i, &o)
	}
	r.Total = l.out
	return clearing.SignReceipt(l.Key, r)
}

// position returns a position in a cycle: the liar has paid more credits than exist, to sites with impossible names.
func (l *liar) position(_ context.Context, _ messages.Name, r messages.CycleRequest) (messages.SignedPosition, error) {
	return clearing.SignPosition(l.Key, messages.Position{Site: l.Name, Cycle: r.Cycle, Complete: true, Net: math.MinInt64, At: math.MaxInt64,
		Legs: []messages.Leg{{Peer: l.To, Paid: math.MaxInt64, Received: math.MinInt64, Volume: math.MaxInt64, Final: true}, {Peer: ill, Paid: math.MinInt64}}})
}

// Texts and numbers that are invalid for a terminal, for JSON or for a job.
const (
	ill  = "\x1b[2J\x1b]0;mine\x07 \u009b31m \r\nSTATE \u202e\xff\x00"
	late = messages.Time(100_000_000_000_000_000) // in the year 5138
)

// summary returns the liar's statement about a job: it is complete. There is no charge yet.
func summary(id messages.JobID) messages.JobSummary {
	return messages.JobSummary{Job: id, Account: ill, Name: ill, Market: ill, State: messages.Completed, Reason: ill, Message: ill, Payer: ill,
		Submitted: math.MinInt64, Started: math.MaxInt64, Charged: math.MaxInt64, Tasks: math.MaxInt, Running: math.MaxInt, Done: math.MinInt}
}

func (l *liar) submitted(_ context.Context, _ messages.Name, r messages.PeerSubmitRequest) (messages.PeerSubmitReply, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.trusted == nil {
		l.trusted = &r
	}
	if r.Job != l.trusted.Job {
		l.breaks("job %d was sent to %s, which offered to complete it in 1970", r.Job, l.Name)
		return messages.PeerSubmitReply{}, messages.Errorf(messages.Invalid, "%s", ill)
	}
	return messages.PeerSubmitReply{Job: summary(r.Job)}, nil
}

// quoted returns three offers: one that ends in 1970 for free, one without numbers, and one that ends much later.
func (l *liar) quoted(context.Context, messages.Name, messages.PeerQuoteRequest) (messages.PeerQuoteReply, error) {
	return messages.PeerQuoteReply{Offers: []messages.Offer{
		{Site: l.Name, Market: "main", Mechanism: ill, Completion: 1, Basis: ill},
		{Site: l.Name, Market: ill, Completion: math.MaxInt64, Price: math.MinInt64, Value: math.NaN()},
		{Site: l.Name, Market: "late", Mechanism: ill, Completion: late, Low: math.MinInt64, High: math.MaxInt64, Price: messages.Credit, Basis: ill, Contract: ill, Value: math.Inf(1)},
	}}, nil
}

func (l *liar) job(_ context.Context, _ messages.Name, r messages.JobRequest) (messages.JobDetail, error) {
	return messages.JobDetail{JobSummary: summary(r.Job)}, nil
}

func (l *liar) why(_ context.Context, _ messages.Name, r messages.JobRequest) (messages.WhyReply, error) {
	return messages.WhyReply{Job: r.Job, Reason: ill, Message: ill, Change: []string{ill, ill},
		Shares: []messages.ClassShare{{Class: ill}}, Prices: []messages.ClassPrice{{Class: ill}}}, nil
}
