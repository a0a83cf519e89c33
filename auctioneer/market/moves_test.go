package market

import (
	"reflect"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/candor-grid/candor/auctioneer/book"
	"github.com/candor-grid/candor/auctioneer/mechanism"
	"github.com/candor-grid/candor/messages"
)

// TestWhichMarketsMove: of each mechanism it is known whether its markets can go to another
// auctioneer.
func TestWhichMarketsMove(t *testing.T) {
	stay := []messages.Name{messages.DeadlineBid, messages.ContractMenu, messages.BatchQueue, messages.Reservation}
	for _, name := range Mechanisms() {
		if got := Movable(&messages.Market{Mechanism: name}); got == slices.Contains(stay, name) {
			t.Errorf("a market of %s moves: %v", name, got)
		}
	}
	if Movable(&messages.Market{Mechanism: messages.HighestBid, Price: messages.PricePivot}) {
		t.Error("a market of pivot prices moves")
	}
}

// TestMarketsMove: whatever jobs came and tasks ended, under each mechanism that can move a
// market is at another auctioneer as it would be with a new leader: its jobs have come as far
// and owe as much, and it decides the same.
func TestMarketsMove(t *testing.T) {
	for _, name := range Mechanisms() {
		m := messages.Market{Name: "spot", Mechanism: name, Classes: []messages.Name{"cpu"}}
		if !Movable(&m) {
			continue
		}
		if name == messages.Karma {
			m.Slot = messages.Duration(1e9)
		}
		t.Run(name, func(t *testing.T) {
			ran, owed := 0, 0
			rapid.Check(t, func(rt *rapid.T) {
				nodes, slots := rapid.IntRange(1, 3).Draw(rt, "nodes"), rapid.IntRange(1, 2).Draw(rt, "slots")
				f := newFloor(rt, m, nodes, slots)
				f.apply(book.Command{Apply: &book.Apply{Markets: []messages.Market{m}}})
				for range rapid.IntRange(1, 15).Draw(rt, "events") {
					f.event()
				}
				f.now = f.now.Add(messages.Duration(1e9))
				to := newFloor(rt, m, nodes, slots)
				to.now = f.now
				f.moveTo(to)
				here, there := f.begun(), to.begun()
				if !reflect.DeepEqual(here, there) {
					rt.Fatalf("it is\n%+v\nand was\n%+v", there, here)
				}
				for _, j := range here.Jobs {
					ran += j.Done
					owed += min(int(j.Owed), 1)
				}
			})
			if ran == 0 || owed == 0 {
				t.Errorf("%d tasks had ended, %d jobs owed something: this shows little", ran, owed)
			}
		})
	}
}

// event has a job come, end or lose a task, and the market decide.
func (f *floor) event() {
	f.now = f.now.Add(messages.Duration(rapid.IntRange(1, 2000).Draw(f.T, "milliseconds")) * 1e6)
	running := f.claims(book.Goes)
	switch {
	case len(running) > 0 && rapid.Bool().Draw(f.T, "end"):
		f.finish(running[rapid.IntRange(0, len(running)-1).Draw(f.T, "which")])
	case len(running) > 0 && rapid.IntRange(0, 9).Draw(f.T, "cancel") == 0:
		f.apply(book.Command{Cancel: &book.Cancel{Job: running[0].Task.Job, By: f.book.Job(running[0].Task.Job).Account}})
		f.obey()
	default:
		f.keys++
		rate, account := messages.Credits(rapid.IntRange(1, 6).Draw(f.T, "rate"))*messages.Credit, rapid.SampledFrom([]messages.Name{"alice", "bob"}).Draw(f.T, "account")
		spec := messages.JobSpec{Market: f.t.Config.Name, Rate: rate, Budget: 1000 * rate, Length: messages.Duration(10e9),
			Utility: &messages.Utility{Form: messages.Linear, Weights: messages.Weights{{Class: "cpu", Weight: 1}}},
			Stages:  []messages.Stage{{Name: "main", Class: "cpu", Tasks: rapid.IntRange(1, 4).Draw(f.T, "tasks"), Command: []string{"true"}}}}
		f.apply(book.Command{Submit: &book.Submit{Account: account, Key: messages.JobID(f.keys).String(), Payer: account, Spec: &spec, Hold: "h", Held: spec.Budget}})
	}
	for range rapid.IntRange(1, 3).Draw(f.T, "decisions") {
		f.look()
		if d := f.t.Decide(f.now, func(read func(*book.Book)) { read(f.book) }); d != nil {
			f.apply(book.Command{Decide: d})
			f.t.Committed()
			f.obey()
			f.look()
		}
		f.claim()
	}
}

// moveTo hands the market over.
func (f *floor) moveTo(to *floor) {
	markets := []messages.Market{f.t.Config}
	f.apply(book.Command{Apply: &book.Apply{Markets: markets, Move: &book.Moving{To: "there", Markets: markets}}})
	f.obey()
	f.apply(book.Command{Withdraw: &book.Withdraw{Move: 1}})
	f.obey()
	var done book.Confirm
	for j := range f.book.Jobs {
		if j.State == messages.Settling && !j.Settled {
			f.apply(book.Command{Settle: &book.Settle{Job: j.ID}})
		}
	}
	for e := range f.book.EachEffect {
		done.Effects = append(done.Effects, book.Confirmation{Effect: e.ID})
	}
	f.apply(book.Command{Confirm: &done})
	f.apply(book.Command{Seal: &book.Seal{Move: 1}})
	var cargo book.Cargo
	for !cargo.Look(f.book) {
	}
	for taken := 0; ; {
		next, err := cargo.Next(f.book, taken)
		if err != nil {
			f.Fatal(err)
		}
		if most := rapid.IntRange(1, 4).Draw(f.T, "items"); len(next.Items) > most {
			next.Items, next.Last = next.Items[:most], false
		}
		next.From, next.Applied = "here", markets
		a := to.apply(book.Command{TakeOver: next}).(book.Arrival)
		if taken = a.Taken; a.Done {
			return
		}
	}
}

// state is a market with its jobs.
type state struct {
	Jobs    map[messages.JobID]jobState
	Decided *book.Decide
	Orders  Orders
	Tariffs []book.Tariff
	Notes   []book.Note // before it decides
	Next    []messages.NextJob
}

type jobState struct {
	Progress
	Owed   messages.Credits
	Had    messages.Duration
	Shares []messages.ClassShare
	Why    mechanism.Explanation
}

// begun is the market as a new leader has it, once it has decided.
func (f *floor) begun() state {
	live, err := Open(f.t.Config)
	if err != nil {
		f.Fatal(err)
	}
	live.Recall(f.book)
	f.t = live
	f.look()
	s := state{Notes: f.book.Notes(f.t.Config.Name), Jobs: map[messages.JobID]jobState{}, Decided: live.Decide(f.now, func(read func(*book.Book)) { read(f.book) }), Orders: live.Orders(),
		Tariffs: f.book.Tariffs(f.t.Config.Name), Next: live.SeenBy("", true).Next()}
	for j := range f.book.Jobs {
		if j.Active() {
			x := jobState{Progress: live.ProgressOf(j), Shares: live.Shares(f.now, j.ID)}
			x.Owed, x.Had = f.book.Used(j, f.now)
			x.Why, _ = live.Explain(f.now, j.ID)
			s.Jobs[j.ID] = x
		}
	}
	return s
}
