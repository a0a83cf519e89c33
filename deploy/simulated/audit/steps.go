package audit

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/candor-grid/candor/deploy/simulated/core"
	"github.com/candor-grid/candor/deploy/simulated/grid"
	"github.com/candor-grid/candor/deploy/simulated/rules"
	"github.com/candor-grid/candor/deploy/simulated/workload"
	"github.com/candor-grid/candor/messages/job"
	"github.com/candor-grid/candor/messages/market"
)

// longest is the largest number of steps in a sequence.
const longest = 4

// step is one deviation from an agent's honest behaviour. Its function `do` changes what the agent submits, and what
// the agent does with its jobs. The function returns nil if the step is not possible.
type step struct {
	words string
	do    func(told []entry, p *core.Problem) []entry
}

// plan is a sequence of steps, given by their positions in the list of steps.
type plan []int

func (s plan) words(of []step) string {
	var out []string
	for _, k := range s {
		out = append(out, of[k].words)
	}
	return strings.Join(out, "; ")
}

func (s plan) build(truth entry, of []step, p *core.Problem) []entry {
	truth.owner = &grid.Owner{}
	told := []entry{truth}
	for _, k := range s {
		if told = of[k].do(told, p); told == nil {
			return nil
		}
	}
	return told
}

func draw(rng *rand.Rand, of []step, n int) plan { return rng.Perm(len(of))[:min(n, len(of))] }

// neighbour returns a plan that differs from s in at most one step: one step is added, removed or replaced.
func (s plan) neighbour(rng *rand.Rand, of []step) plan {
	out, at, k := slices.Clone(s), rng.IntN(len(s)), rng.IntN(len(of))
	switch {
	case slices.Contains(s, k) && len(s) > 1:
		return slices.Delete(out, at, at+1)
	case slices.Contains(s, k):
		return out
	case len(s) < longest && rng.IntN(2) == 0:
		return slices.Insert(out, at, k)
	}
	out[at] = k
	return out
}

// stepsOf returns the steps that an owner can take in a market. A step with a false declaration is among them only if
// the market claims that the truth is best.
func stepsOf(m *rules.Market) []step {
	out := slices.Concat(outs(), ends(), waits(m), shapes(), accounts()) // false declarations come after these steps, at the end of the list
	switch m.Mechanism {
	case rules.Proportional:
		for _, n := range []int{8, 64} {
			out = append(out, owners(fmt.Sprintf("%d tasks that nobody needs", n), func(o *grid.Owner) { o.Idle = n }))
		}
	case rules.Contract:
		out = append(out, owners("asks for 3 menus", func(o *grid.Owner) { o.Quotes = 3 }), owners("asks for 10 menus", func(o *grid.Owner) { o.Quotes = 10 }), straddles())
	case rules.Karma:
		out = append(out, absent(m))
	}
	return append(out, declarations(m)...)
}

func every(words string, change func(e *entry, p *core.Problem)) step {
	return step{words, func(told []entry, p *core.Problem) []entry {
		for k := range told {
			change(&told[k], p)
		}
		return told
	}}
}

func owners(words string, change func(o *grid.Owner)) step {
	return every(words, func(e *entry, _ *core.Problem) { change(e.owner) })
}

func acts(words string, of ...grid.Act) step {
	return owners(words, func(o *grid.Owner) { o.Acts = append(o.Acts, of...) })
}

// outs returns steps with which an owner can try to gain. In each step, the owner ends the job in an unusual way after
// its result was printed. An owner who wants a retry must ask for several attempts, because by default a task whose
// program fails does not run again.
func outs() []step {
	return []step{
		owners("exits with 1, once, and the retry is over at once", func(o *grid.Owner) { o.Exits, o.Attempts, o.Quick = 1, 3, true }),
		owners("exits with 1, once, and runs again in full", func(o *grid.Owner) { o.Exits, o.Attempts = 1, 3 }),
		owners("exits with 1 in each of 3 attempts", func(o *grid.Owner) { o.Exits, o.Attempts = 3, 3 }),
		owners("exits with 1 in its only attempt", func(o *grid.Owner) { o.Exits, o.Attempts = 1, 1 }),
		acts("cancels when the result is printed", grid.Act{Do: grid.Cancel, When: grid.Printed}),
		owners("requeues when the result is printed", func(o *grid.Owner) { // the program still runs at this time
			o.Stays, o.Acts = o.Stays+1, append(o.Acts, grid.Act{Do: grid.Requeue, When: grid.Printed})
		}),
	}
}

// ends returns steps in addition to the steps of the function outs. In these steps too, attempts and jobs end in
// unusual ways.
func ends() []step {
	return []step{
		owners("keeps its slot for 10 minutes more when the result is printed", func(o *grid.Owner) { o.Stays += 600 }),
		owners("keeps its slot for an hour more when the result is printed", func(o *grid.Owner) { o.Stays += 3600 }),
		acts("requeues a minute after the start", grid.Act{Do: grid.Requeue, When: grid.Started, After: 60}),
		acts("cancels after 10 minutes", grid.Act{Do: grid.Cancel, After: 600}),
		acts("cancels a minute after the start", grid.Act{Do: grid.Cancel, When: grid.Started, After: 60}),
		again600(false), again600(true), twice(false), twice(true),
	}
}

// waits returns possible steps of an owner that delay a job. The owner submits the job later, or its tasks may start
// only later.
func waits(m *rules.Market) (out []step) {
	for _, x := range []float64{60, 600, 3600} {
		d := fmt.Sprintf("%.0f min", x/60)
		out = append(out,
			every("submits "+d+" later", func(e *entry, _ *core.Problem) { e.job.Submit += x }),
			owners("begins "+d+" later (--begin)", func(o *grid.Owner) { o.Begin += x }),
			owners("on hold for "+d+" (--hold, release)", func(o *grid.Owner) {
				o.Hold, o.Acts = true, append(o.Acts, grid.Act{Do: grid.Release, After: x})
			}),
			acts("holds after a minute, and releases after "+d, grid.Act{Do: grid.Hold, After: 60}, grid.Act{Do: grid.Release, After: 60 + x}))
	}
	ahead := func(how string, o func(o *grid.Owner)) step {
		return every("submits an hour before it has the job, "+how, func(e *entry, _ *core.Problem) {
			e.job.Submit -= 3600
			o(e.owner)
		})
	}
	out = append(out, ahead("on hold until then", func(o *grid.Owner) {
		o.Hold, o.Acts = true, append(o.Acts, grid.Act{Do: grid.Release, After: 3600})
	}), ahead("with --begin", func(o *grid.Owner) { o.Begin += 3600 }), behind())
	tick := m.Slot.Seconds()
	if m.Mechanism == rules.Reservation {
		tick = float64(m.T) * m.Granule.Seconds()
	}
	if tick > 0 {
		out = append(out, every("submits when the next tick has passed", func(e *entry, _ *core.Problem) {
			e.job.Submit = math.Floor(e.job.Submit/tick)*tick + tick + 1
		}))
	}
	return out
}

// behind is a step of an owner. The owner first submits another job of one second, and then the job itself, which waits
// for the other job (--after).
func behind() step {
	return step{"after a job of a second (--after)", func(told []entry, _ *core.Problem) []entry {
		first := told[0].rated(0.01)
		first.ghost, first.owner, first.job.Runtime, first.bid.Length, first.job.Width = true, &grid.Owner{}, 1, 1, 1
		for k := range told {
			told[k].job.Submit++
			told[k].owner.After = first.owner
		}
		return append(told, first)
	}}
}

// again600 is a step in which the owner's program cancels the job after ten minutes and submits it again. If the
// program already has the job's result by then, it does neither.
func again600(other bool) step {
	words := "cancels after 10 minutes and submits again, unless it has the result"
	if other {
		words += ", from another account"
	}
	return step{words, func(told []entry, _ *core.Problem) []entry {
		for _, e := range told {
			second := e.with(e.copy + 1)
			second.job.Submit += 601
			second.owner.Unless = e.owner
			if other {
				second.name++
			}
			e.owner.Acts = append(e.owner.Acts, grid.Act{Do: grid.Cancel, After: 600})
			told = append(told, second)
		}
		return told
	}}
}

// twice returns a step in which a job is submitted twice. When one of the two jobs has its result, the other job is
// cancelled. If `other` is true, another account submits the second job.
func twice(other bool) step {
	words := "submits twice, and cancels the other when one has the result"
	if other {
		words += ", from another account"
	}
	return step{words, func(told []entry, _ *core.Problem) []entry {
		for _, e := range told {
			second := e.with(e.copy + 1)
			if other {
				second.name++
			}
			second.owner.Acts = append(second.owner.Acts, grid.Act{Do: grid.Cancel, When: grid.Printed, Of: e.owner})
			e.owner.Acts = append(e.owner.Acts, grid.Act{Do: grid.Cancel, When: grid.Printed, Of: second.owner})
			told = append(told, second)
		}
		return told
	}}
}

// with returns a copy of the entry e with a given number. An owner can submit the same work several times, each time as
// one entry; the field `copy` numbers these entries.
func (e entry) with(copy int) entry {
	own := *e.owner
	own.Acts = slices.Clone(own.Acts)
	e.owner, e.copy = &own, copy
	return e
}

// shapes returns steps that an owner can try: to divide the same work into other jobs, tasks or stages. Dividing a task
// does not make it faster, because its parts run one after the other.
func shapes() (out []step) {
	for _, k := range []int{2, 4} {
		out = append(out,
			step{fmt.Sprintf("in %d jobs", k), func(told []entry, _ *core.Problem) []entry { return divided(told, k, false) }},
			step{fmt.Sprintf("in %d jobs, from as many accounts", k), func(told []entry, _ *core.Problem) []entry { return divided(told, k, true) }},
			owners(fmt.Sprintf("in %d stages", k), func(o *grid.Owner) { o.Stages = k }))
	}
	return append(out, array(4), packs("4 tasks", 4), packs("all tasks", job.MaxTasks), sideBySide(4))
}

// sideBySide returns a lie about the width of tasks: each task takes k slots and does the work of k tasks at the same
// time. The lie is only tried in proportional markets, in which jobs share slot time. There the audit uses nodes of
// several slots.
func sideBySide(k int) step {
	return step{fmt.Sprintf("packs %d tasks side by side into one of %d slots", k, k), func(told []entry, p *core.Problem) []entry {
		if p.Market.Mechanism != rules.Proportional || p.Work.Parallel == workload.Wide {
			return nil
		}
		for at := range told {
			told[at].owner.Wide = min(k, told[at].job.Width)
		}
		return told
	}}
}

// array is a step in which the job does the same work as an array of k times as many tasks, which are shorter. The
// number of tasks that run at the same time does not change. The step is not possible in markets in which each task is
// a separate job on a site.
func array(k int) step {
	return step{fmt.Sprintf("in an array of %d times as many tasks", k), func(told []entry, p *core.Problem) []entry {
		if grid.Gangs(p.Market.Mechanism) || p.Market.Mechanism == rules.Deadline || p.Market.Price == market.PricePivot {
			return nil
		}
		for at := range told {
			e, x := &told[at], float64(k)
			e.owner.Most = e.job.Width
			e.job.Width, e.job.Runtime, e.bid.Length = k*e.job.Width, e.job.Runtime/x, max(1, math.Ceil(e.bid.Length/x))
		}
		return told
	}}
}

// packs is a step that does the same work in fewer and longer tasks: k tasks become one.
func packs(words string, k int) step {
	return every("packs "+words+" into one", func(e *entry, _ *core.Problem) {
		few := max(1, e.job.Width/k)
		x := float64(e.job.Width) / float64(few)
		e.job.Width, e.job.Runtime, e.bid.Length = few, x*e.job.Runtime, x*e.bid.Length
	})
}

func divided(told []entry, k int, names bool) (out []entry) {
	for _, e := range told {
		if e.ghost {
			out = append(out, e)
			continue
		}
		for n, p := range parts(e, k, names) {
			if n > 0 {
				p = p.with(p.copy)
			}
			if n > 0 && e.job.Width < k {
				p.job.Submit += float64(n)
				p.owner.After = out[len(out)-1].owner
			}
			out = append(out, p)
		}
	}
	return out
}

func accounts() []step {
	out := []step{owners("from an account at another site", func(o *grid.Owner) { o.Visits = true })}
	for _, x := range []float64{0.01, 1} {
		for _, other := range []bool{false, true} {
			words := fmt.Sprintf("a second job that nobody needs, bidding %g times as much, cancelled after 10 minutes", x)
			if other {
				words += ", from another account"
			}
			out = append(out, step{words, func(told []entry, _ *core.Problem) []entry {
				g := told[0].rated(x)
				if g.ghost, g.owner = true, withdrawn(600); other {
					g.name++
				}
				return append(told, g)
			}})
		}
	}
	return out
}

// straddles is a step for markets with contracts. Such a market draws new surrogates for its menus at fixed times. The
// owner asks for a menu just before such a time, and again just after it.
func straddles() step {
	holds := grid.QuoteHolds.Seconds()
	return every("asks for a menu before and after menus are drawn anew", func(e *entry, _ *core.Problem) {
		e.job.Submit = math.Ceil((e.job.Submit+0.5)/holds)*holds - 0.5
		e.owner.Quotes, e.owner.Pause = max(2, e.owner.Quotes), 1
	})
}

// absent is a step for a karma market. The job is on hold for one second around the end of each of the next hundred
// quanta. So the job is away at the moment when a quantum ends.
func absent(m *rules.Market) step {
	return every("on hold for a second around each tick", func(e *entry, _ *core.Problem) {
		tick := m.Slot.Seconds()
		if tick == 0 {
			tick = 60
		}
		for k := range 100 {
			at := (math.Floor(e.job.Submit/tick)+float64(k+1))*tick - e.job.Submit
			e.owner.Acts = append(e.owner.Acts, grid.Act{Do: grid.Hold, After: max(0, at-0.5)}, grid.Act{Do: grid.Release, After: at + 0.5})
		}
	})
}

// declarations returns the false declarations that a search tries as steps. It returns steps only for markets that
// claim that the truth is the best declaration. For other markets it returns nil.
func declarations(m *rules.Market) (out []step) {
	if m.Price != market.PricePivot && !slices.Contains([]string{rules.Deadline, rules.Contract, rules.BatchQueue, rules.Reservation}, m.Mechanism) {
		return nil
	}
	for _, x := range []float64{0.5, 4} {
		out = append(out, every(fmt.Sprintf("bids %g times the value", x), func(e *entry, _ *core.Problem) { *e = e.rated(x) }))
	}
	unit := max(10, m.Slot.Seconds())
	return append(out,
		acts("raises the budget to 4 times after a minute", grid.Act{Do: grid.RaiseBudget, After: 60, By: 4}),
		acts("raises the rate to twice after a minute", grid.Act{Do: grid.RaiseRate, After: 60, By: 2}),
		every("declares a quarter more length", func(e *entry, _ *core.Problem) { e.bid.Length = math.Ceil(1.25 * e.bid.Length) }),
		every("declares a unit more than is needed", func(e *entry, _ *core.Problem) { e.bid.Length += unit }),
		every("declares a deadline without slack", func(e *entry, _ *core.Problem) {
			e.bid.Deadline = min(e.bid.Deadline, (math.Floor(e.job.Submit/unit)+1+math.Ceil(e.bid.Length/unit))*unit)
		}),
		every("declares a deadline twice as late", func(e *entry, _ *core.Problem) { e.bid.Deadline += e.bid.Deadline - e.job.Submit }))
}
