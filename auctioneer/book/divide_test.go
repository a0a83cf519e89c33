package book

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/agent"
	"github.com/candor-grid/candor/messages/job"
)

// turns has a book with one node. Tasks run on the slots of the node one after another. To check the book, turns itself
// counts the slot time of the tasks of each job.
type turns struct {
	*site
	rng   *rand.Rand
	seq   uint64
	jobs  []messages.JobID
	runs  []turn // by slot: the tasks of the slot; empty means idle
	ahead []agent.Grant
	ended []agent.Finished
	had   map[messages.JobID]messages.Time // by job: slot time of the job's tasks
	owes  map[messages.JobID]int64         // by job: cost of this time at the price of each moment
	price int64
}

type turn struct {
	grant agent.Grant
	since messages.Time
}

func newTurns(t *testing.T, seed uint64, slots, jobs int) *turns {
	w := &turns{site: newSite(t), rng: rand.New(rand.NewPCG(seed, 3)), runs: make([]turn, slots),
		had: map[messages.JobID]messages.Time{}, owes: map[messages.JobID]int64{}}
	w.at = 1000
	w.register("n1", 7, slots)
	for i := range jobs {
		w.jobs = append(w.jobs, w.submit(fmt.Sprint(i), job.Stage{Class: "map", Tasks: 100_000}))
	}
	return w
}

func (w *turns) pass(micros messages.Time) {
	w.at += micros
	for _, r := range w.runs {
		if id := r.grant.Attempt.Task.Job; id != 0 {
			w.had[id] += micros
			w.owes[id] += int64(micros) * w.price
		}
	}
}

// leap sets the clock ahead by a number of microseconds, while no task runs.
func (w *turns) leap(micros messages.Time) {
	w.at += micros - 1
	w.apply(Command{Leap: messages.Duration(micros) * 1000, Begin: &Begin{}})
	for _, f := range w.ended {
		if f.Next != nil {
			f.Next.At += micros
		}
	}
}

// end ends the task on a slot, and gives the slot to the first task that was claimed in advance.
func (w *turns) end(slot int) {
	f := agent.Finished{Attempt: w.runs[slot].grant.Attempt}
	w.runs[slot] = turn{}
	if len(w.ahead) > 0 {
		next := w.ahead[0]
		w.ahead = w.ahead[1:]
		w.runs[slot] = turn{next, w.at}
		f.Next = &agent.Successor{Attempt: next.Attempt, At: w.at}
	}
	w.ended = append(w.ended, f)
}

// say sends an exchange in the name of the agent. The exchange has the ended tasks, and one claim for each of the given
// jobs. No time passes. The argument `sent` is the time at which the agent sent the exchange.
func (w *turns) say(sent messages.Time, jobs ...messages.JobID) {
	w.t.Helper()
	x := &Exchange{Node: "n1", Session: 7, Seq: w.seq + 1, Sent: sent, Finished: w.ended}
	w.seq, w.ended = w.seq+1, nil
	for _, id := range jobs {
		x.Claims = append(x.Claims, Claim{Class: "map", Slots: 1, Jobs: []messages.JobID{id}, Ahead: 8})
	}
	w.at-- // because apply adds 1 to the time
	grants := w.apply(Command{Exchange: x}).([]agent.Grant)
	for _, g := range grants {
		if g.Ahead {
			w.ahead = append(w.ahead, g)
			continue
		}
		for slot := range w.runs {
			if w.runs[slot].grant.Attempt.Task.Job == 0 {
				w.runs[slot] = turn{g, w.at}
				break
			}
		}
	}
}

func (w *turns) tariff(price int64) {
	w.at--
	w.apply(Command{Decide: &Decide{Market: "main", Tariffs: []Tariff{{Class: "map", Price: messages.Credits(price)}}}})
	w.price = price
}

func (w *turns) check() {
	w.t.Helper()
	for _, id := range w.jobs {
		cost, had := w.Used(w.Job(id), w.at)
		if want := w.had[id]; had != messages.Duration(want)*1000 {
			w.t.Fatalf("job %d had its slots for %v by the book, and for %d us", id, had, want)
		}
		if want := w.owes[id]; int64(cost) != (want+500_000)/1_000_000 && want%1_000_000 != 500_000 {
			w.t.Fatalf("job %d owes %v by the book, and %d millionths of a microcredit", id, cost, want)
		}
	}
}

// Tasks of 1 ms and of 20 ms share one slot. Their jobs must pay in proportion to their run times, even if the agent
// exchanges messages with the leader only after several ends.
func TestSlotTimeIsDividedByRunTimes(t *testing.T) {
	for name, every := range map[string]int{"one exchange for each end": 1, "for three": 3, "for seven": 7} {
		t.Run(name, func(t *testing.T) {
			w := newTurns(t, 1, 1, 2)
			short, long := w.jobs[0], w.jobs[1]
			w.tariff(3_000_000)
			w.say(w.at, short, long, short, long, short, long, short, long)
			for i := range 400 {
				took := messages.Time(1000)
				if w.runs[0].grant.Attempt.Task.Job == long {
					took = 20_000
				}
				w.pass(took)
				if w.end(0); i%every == 0 {
					w.say(w.at, short, long, short, long, short, long, short, long)
				}
			}
			w.say(w.at)
			w.check()
			for id, want := range map[messages.JobID]messages.Duration{short: 1e6, long: 20e6} {
				_, had := w.Used(w.Job(id), w.at)
				if n := w.Job(id).Stages[0].Done; n < 3 || had != messages.Duration(n)*want || w.Job(id).Stages[0].SlotTime != had {
					t.Errorf("%d tasks of %v had their slot for %v, and by their stage for %v", n, want, had, w.Job(id).Stages[0].SlotTime)
				}
			}
		})
	}
}

// Tasks end, agents make exchanges, tariffs change and the clock leaps, in random order. For each microsecond of slot
// time, the job must pay the price that the slot had in this microsecond.
func TestDividedTimeIsExact(t *testing.T) {
	first, end := seeds(t, 60)
	for seed := first; seed < end; seed++ {
		w := newTurns(t, seed, 3, 4)
		for range 200 {
			w.pass(messages.Time(w.rng.IntN(2000)))
			switch slot := w.rng.IntN(len(w.runs)); {
			case w.rng.IntN(12) == 0:
				w.leap(messages.Time(w.rng.IntN(86_400_000_000)))
			case w.rng.IntN(9) == 0:
				w.tariff(w.rng.Int64N(5_000_000))
			case w.rng.IntN(3) > 0 && w.runs[slot].grant.Attempt.Task.Job != 0 && (len(w.ahead) > 0 || w.rng.IntN(4) == 0):
				idles := len(w.ahead) == 0
				if w.end(slot); idles { // a task that no other task follows keeps its slot until the exchange
					w.say(w.at, w.some()...)
				}
			case w.rng.IntN(2) == 0:
				w.say(w.at, w.some()...)
			}
		}
		w.say(w.at)
		if w.check(); t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}

func (w *turns) some() (jobs []messages.JobID) {
	for range w.rng.IntN(7) {
		jobs = append(jobs, pick(w.rng, w.jobs...))
	}
	return jobs
}

// An agent reports absurd times. All jobs together must still be charged for exactly the time and the price of the
// slots.
func TestAbsurdTimesMoveNoMoreThanTheSlotHad(t *testing.T) {
	first, end := seeds(t, 60)
	for seed := first; seed < end; seed++ {
		w := newTurns(t, seed, 2, 3)
		w.tariff(2_000_000)
		for range 100 {
			w.pass(messages.Time(w.rng.IntN(2000)))
			for slot := range w.runs {
				if w.runs[slot].grant.Attempt.Task.Job != 0 && w.rng.IntN(2) == 0 {
					w.end(slot)
				}
			}
			for i := range w.ended {
				if next := w.ended[i].Next; next != nil {
					next.At = pick(w.rng, math.MinInt64, math.MaxInt64, 0, -1, w.at, w.at-1<<40, w.at+1<<40, messages.Time(w.rng.Uint64()))
				}
			}
			w.say(pick(w.rng, w.at, 0, math.MinInt64, math.MaxInt64, messages.Time(w.rng.Uint64())), w.some()...)
			if got, want := w.sums(); got != want {
				t.Fatalf("seed %d: jobs had %d us for %d, slots with tasks were there for %d us and cost %d", seed, got[0], got[1], want[0], want[1])
			}
		}
	}
}

// sums adds up the slot time and the cost of all jobs. The result `got` is what the book says, and the result `want` is
// what really happened.
func (w *turns) sums() (got, want [2]uint64) {
	for _, id := range w.jobs {
		m := w.Job(id).Stages[0].Meter
		w.meters.read(w.Job(id), 0, w.at, &m)
		got[0], got[1] = got[0]+m.Micros, got[1]+m.Lo
		want[0], want[1] = want[0]+uint64(w.had[id]), want[1]+uint64(w.owes[id])
	}
	return got, want
}

// In one exchange, an agent says that the task of a job still has its slot. In the next exchange, a millisecond later,
// the agent says that another task has had this slot for an hour. This contradicts the earlier exchange, so the other
// task must get only one millisecond.
func TestAnExchangeMovesNoTimeOfEarlierOnes(t *testing.T) {
	w := newTurns(t, 1, 1, 2)
	w.say(w.at, w.jobs[0])
	w.pass(3600e6)
	w.say(w.at, w.jobs[1])
	w.pass(1000)
	w.end(0)
	w.ended[0].Next.At -= 3600e6
	w.say(w.at)
	if _, had := w.Used(w.Job(w.jobs[1]), w.at); had != 1e6 {
		t.Errorf("the task was given %v, want 1ms", had)
	}
}
