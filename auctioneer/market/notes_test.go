package market

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/candor-grid/candor/auctioneer/book"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/job"
	"github.com/candor-grid/candor/messages/market"
)

// The method bid submits a job to a market with deadlines. Time is divided into units of 10 s. The job needs a slot for
// `units` of them. It must end within `within` units from the start of the next unit on.
func (f *floor) bid(value messages.Credits, units, within int) messages.JobID {
	const unit = messages.Duration(10e9)
	f.keys++
	value *= messages.Credit
	next := messages.Time((int64(f.now)/10e6 + 1) * 10e6)
	spec := job.JobSpec{Market: f.t.Config.Name, Value: value, Budget: value, Length: messages.Duration(units) * unit, Deadline: next.Add(messages.Duration(within) * unit),
		Stages: []job.Stage{{Name: "main", Class: "cpu", Tasks: 1, Command: []string{"true"}}}}
	f.apply(book.Command{Submit: &book.Submit{Account: "alice", Key: messages.JobID(f.keys).String(), Payer: "alice", Spec: &spec, Hold: "h", Held: value}})
	return messages.JobID(f.keys)
}

// decide lets the market decide. If `lost` is true, the leader is lost before the decision is committed. If `relieved`
// is true, the leader is lost soon after the commit. In both cases a new leader takes over.
func (f *floor) decide(lost, relieved bool) {
	f.look()
	d := f.t.Decide(f.now, func(read func(*book.Book)) { read(f.book) })
	if d != nil && !lost {
		f.apply(book.Command{Decide: d})
		f.t.Committed()
	}
	f.claim() // nodes claim in both cases, because the new vectors have been published
	if !lost && !relieved {
		return
	}
	live, err := Open(f.t.Config)
	if err != nil {
		f.Fatal(err)
	}
	live.Recall(f.book)
	f.t = live
}

// Two jobs of two units compete for one slot, and must end within three units. The leader is lost at random moments.
// The winner must always pay the bid of the other job.
func TestLeaderLostWithItsNotes(t *testing.T) {
	gaps := 0
	rapid.Check(t, func(rt *rapid.T) {
		f := newFloor(rt, market.Market{Name: "due", Mechanism: market.DeadlineBid, Classes: []messages.Name{"cpu"}, Slot: messages.Duration(10e9)}, 1, 1)
		f.now = f.now.Add(messages.Duration(1e9)) // one second after the start of a unit of 10 s
		better, worse := f.bid(20, 2, 3), f.bid(12, 2, 3)
		draw := func(what string) bool { return rapid.Bool().Draw(rt, what) }
		f.now = f.now.Add(messages.Duration(10e9))
		f.decide(draw("lost"), draw("relieved"))
		if len(f.claims(book.Goes)) != 1 || f.claims(book.Goes)[0].Task.Job != better {
			rt.Fatalf("it is not the better one that runs")
		}
		f.now = f.now.Add(messages.Duration(10e9))
		if draw("second unit decided") {
			f.decide(draw("lost"), draw("relieved"))
		} else {
			gaps++
		}
		f.now = f.now.Add(messages.Duration(10e9))
		if draw("decided as it ends") {
			f.decide(draw("lost"), draw("relieved"))
		}
		if f.book.Job(worse).Active() && draw("withdrawn") {
			f.apply(book.Command{Cancel: &book.Cancel{Job: worse, By: "alice"}})
		}
		f.finish(f.claims(book.Goes)[0])
		if draw("lost as it ends") {
			f.decide(true, true)
		}
		f.checkCharge(better, 12*messages.Credit)
	})
	if gaps == 0 {
		t.Error("no unit passed without a decision: this shows nothing of them")
	}
}

// checkCharge settles a job at the earliest possible time, and compares the charge with `want`.
func (f *floor) checkCharge(id messages.JobID, want messages.Credits) {
	s := f.t.Settlement(f.now, f.book, f.book.Job(id))
	if s.At > f.now {
		f.now = s.At
		f.decide(false, false)
	}
	if got := s.Settle(); got.Charge != want {
		f.Fatalf("charged %v, want %v: %s", got.Charge, want, got.Reason)
	}
}
