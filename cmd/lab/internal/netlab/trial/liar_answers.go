package trial

import (
	"context"
	"errors"
	"math"
	"time"

	"github.com/candor-grid/candor/bank/clearing"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/bus"
	clearingmsg "github.com/candor-grid/candor/messages/clearing"
	"github.com/candor-grid/candor/messages/job"
	"github.com/candor-grid/candor/messages/market"
	"github.com/candor-grid/candor/messages/money"
)

func (l *liar) listen() error {
	return errors.Join(
		l.Answer(messages.Bank, map[string]bus.Handler{
			clearingmsg.VerbInstruct: bus.Handle(clearingmsg.VerbInstruct, l.instructed),
			clearingmsg.VerbPosition: bus.Handle(clearingmsg.VerbPosition, l.position),
		}),
		l.Answer(messages.Auctioneer, map[string]bus.Handler{
			clearingmsg.VerbPeerSubmit: bus.Handle(clearingmsg.VerbPeerSubmit, l.submitted),
			clearingmsg.VerbPeerQuote:  bus.Handle(clearingmsg.VerbPeerQuote, l.quoted),
			clearingmsg.VerbPeerJob:    bus.Handle(clearingmsg.VerbPeerJob, l.job),
			clearingmsg.VerbPeerWhy:    bus.Handle(clearingmsg.VerbPeerWhy, l.why),
		}))
}

// instructed answers the victim that the liar has carried out all its instructions. If the liar must be silent, it
// returns an error instead.
func (l *liar) instructed(_ context.Context, _ messages.Name, signed clearingmsg.SignedInstructions) (clearingmsg.SignedReceipt, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	m := &signed.Instructions
	if !l.answers {
		return clearingmsg.SignedReceipt{}, messages.Errorf(messages.Unavailable, "not now %s", ill)
	}
	r := clearingmsg.Receipt{From: l.Name, To: l.To, First: l.out.Number + 1, Outcomes: []money.TransferResult{}, At: messages.TimeOf(time.Now())}
	for n := r.First; n < m.First+uint64(len(m.List)); n++ {
		i := &m.List[n-m.First]
		o := money.TransferResult{Amount: i.Amount}
		r.Outcomes, l.out = append(r.Outcomes, o), clearing.After(l.out, i, &o)
	}
	r.Total = l.out
	return clearing.SignReceipt(l.Key, r)
}

// position answers a request for the liar's position in a cycle, which is the sum of its payments. The answer says that
// the liar has paid more credits than exist, to sites with impossible names.
func (l *liar) position(_ context.Context, _ messages.Name, r clearingmsg.CycleRequest) (clearingmsg.SignedPosition, error) {
	return clearing.SignPosition(l.Key, clearingmsg.Position{Site: l.Name, Cycle: r.Cycle, Complete: true, Net: math.MinInt64, At: math.MaxInt64,
		Legs: []clearingmsg.Leg{{Peer: l.To, Paid: math.MaxInt64, Received: math.MinInt64, Volume: math.MaxInt64, Final: true}, {Peer: ill, Paid: math.MinInt64}}})
}

// The text `ill` is invalid on a terminal, in JSON, and as a name. The time `late` is valid but absurd.
const (
	ill  = "\x1b[2J\x1b]0;mine\x07 \u009b31m \r\nSTATE \u202e\xff\x00"
	late = messages.Time(100_000_000_000_000_000) // in the year 5138
)

// summary returns the liar's statement that a job is complete. The other fields are invalid.
func summary(id messages.JobID) job.JobSummary {
	return job.JobSummary{Job: id, Account: ill, Name: ill, Market: ill, State: job.Completed, Reason: ill, Message: ill, Payer: ill,
		Submitted: math.MinInt64, Started: math.MaxInt64, Charged: math.MaxInt64, Tasks: math.MaxInt, Running: math.MaxInt, Done: math.MinInt}
}

func (l *liar) submitted(_ context.Context, _ messages.Name, r clearingmsg.PeerSubmitRequest) (clearingmsg.PeerSubmitReply, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.trusted == nil {
		l.trusted = &r
	}
	if r.Job != l.trusted.Job {
		l.breaks("job %d was sent to %s, which offered to complete it in 1970", r.Job, l.Name)
		return clearingmsg.PeerSubmitReply{}, messages.Errorf(messages.Invalid, "%s", ill)
	}
	return clearingmsg.PeerSubmitReply{Job: summary(r.Job)}, nil
}

// The method quoted returns three false offers: one that ends in 1970 for free, one with impossible numbers, and one
// that ends in 5138.
func (l *liar) quoted(context.Context, messages.Name, clearingmsg.PeerQuoteRequest) (clearingmsg.PeerQuoteReply, error) {
	return clearingmsg.PeerQuoteReply{Offers: []clearingmsg.Offer{
		{Site: l.Name, Market: "main", Mechanism: ill, Completion: 1, Basis: ill},
		{Site: l.Name, Market: ill, Completion: math.MaxInt64, Price: math.MinInt64, Value: math.NaN()},
		{Site: l.Name, Market: "late", Mechanism: ill, Completion: late, Low: math.MinInt64, High: math.MaxInt64, Price: messages.Credit, Basis: ill, Contract: ill, Value: math.Inf(1)},
	}}, nil
}

func (l *liar) job(_ context.Context, _ messages.Name, r job.JobRequest) (job.JobDetail, error) {
	return job.JobDetail{JobSummary: summary(r.Job)}, nil
}

func (l *liar) why(_ context.Context, _ messages.Name, r job.JobRequest) (market.WhyReply, error) {
	return market.WhyReply{Job: r.Job, Reason: ill, Message: ill, Change: []string{ill, ill},
		Shares: []job.ClassShare{{Class: ill}}, Prices: []market.ClassPrice{{Class: ill}}}, nil
}
