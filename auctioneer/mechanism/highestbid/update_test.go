package highestbid

import (
	"reflect"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/candor-grid/candor/auctioneer/mechanism"
	"github.com/candor-grid/candor/messages"
)

// Jobs, slots and budgets change at random, and jobs follow directives at once or late. After each change, Update must
// make the same decision as a new mechanism that sees the whole view, and give the same explanations. Update asks to be
// woken at a certain time. The new mechanism must not ask for an earlier time, except for rounding.
func TestUpdateAgainstAFreshMechanism(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rule := Rule{rapid.SampledFrom([]Algorithm{HB, NPHB, WSEPT}).Draw(t, "algorithm"),
			rapid.SampledFrom([]Price{First, Kth}).Draw(t, "price"), rapid.Bool().Draw(t, "capped")}
		w := &world{widest: rapid.SampledFrom([]int{0, 3}).Draw(t, "widest"), T: t, mechanism: live(t, rule, "cpu", "gpu"), weights: map[messages.JobID][]float64{}, owed: map[messages.JobID]float64{}}
		w.view = mechanism.View{Now: second, Charge: func(j *mechanism.Job) { j.Accrued, _ = messages.RoundCredits(w.owed[j.Job]) },
			Classes: []mechanism.Class{{Name: "cpu", Slots: 2}, {Name: "gpu", Slots: 1}}}
		for range rapid.IntRange(1, 30).Draw(t, "instants") {
			w.pass(rapid.IntRange(0, 3).Draw(t, "seconds"))
			for range rapid.IntRange(0, 3).Draw(t, "events") {
				w.event()
			}
			w.decide()
		}
	})
}

// world is a live market for a test. Its jobs are charged by the market's tariffs.
type world struct {
	*rapid.T
	mechanism *Mechanism
	view      mechanism.View
	owed      map[messages.JobID]float64
	tariffs   []mechanism.Tariff
	changed   []*mechanism.Job
	gone      []messages.JobID
	weights   map[messages.JobID][]float64
	wake      messages.Time
	next      messages.JobID
	widest    int // largest width of a task; 0 and 1 mean that all tasks have one slot
}

func (w *world) n(what string, least, most int) int {
	return rapid.IntRange(least, most).Draw(w.T, what)
}

// slots draws a number of tasks, at most `most`, and returns how many slots this number of tasks of the job takes.
func (w *world) slots(j *mechanism.Job, what string, most int) int {
	return w.n(what, 0, most) * max(j.Alone, 1)
}

// pass moves the clock on by a number of seconds, but not beyond the time for which the mechanism asked to be called.
func (w *world) pass(seconds int) {
	until := w.view.Now + messages.Time(seconds)*second
	if w.wake != 0 {
		until = min(until, w.wake)
	}
	passed := (until - w.view.Now).Sub(0).Seconds()
	w.view.Now = until
	for _, j := range w.view.Jobs {
		for k, t := range w.tariffs {
			price := w.mechanism.rule.PriceOf(t, w.mechanism.reserve, j.Rate, j.Length)
			w.owed[j.Job] += price * passed * float64(j.Running[k])
		}
	}
}

// event lets a job arrive, leave or have other tasks, or changes the number of slots.
func (w *world) event() {
	switch kind := w.n("kind", 0, 5); {
	case kind == 0:
		w.view.Classes[w.n("class", 0, 1)].Slots = w.n("slots", 0, 4)
	case kind <= 2 || len(w.view.Jobs) == 0:
		w.next++
		j := &mechanism.Job{Bid: &mechanism.Bid{Job: w.next, Arrived: w.view.Now, Rate: messages.Credits(w.n("rate", 1, 4)) * credit,
			Budget: messages.Credits(w.n("budget", 1, 30)) * credit, Length: messages.Duration(1<<w.n("length", 0, 2)) * 1e9, Alone: w.n("width", 0, w.widest)}}
		j.Pending, j.Running = []int{w.slots(j, "tasks", 3), w.slots(j, "tasks", 1)}, []int{0, 0}
		w.view.Jobs = append(w.view.Jobs, j)
		w.changed = append(w.changed, j)
	case kind == 3:
		i := w.n("which", 0, len(w.view.Jobs)-1)
		j := w.view.Jobs[i]
		w.view.Jobs = slices.Delete(w.view.Jobs, i, i+1)
		w.changed = slices.DeleteFunc(w.changed, func(x *mechanism.Job) bool { return x == j })
		w.gone = append(w.gone, j.Job)
	default:
		j := w.view.Jobs[w.n("which", 0, len(w.view.Jobs)-1)]
		k := w.n("class", 0, 1)
		width := max(j.Alone, 1)
		j.Running[k] = w.slots(j, "running", j.Running[k]/width)
		if j.Suspended != nil {
			j.Stuck = []int{w.slots(j, "stuck", j.Suspended[0]/width), w.slots(j, "stuck", j.Suspended[1]/width)}
		}
		if j.Nowhere = nil; w.widest > 1 {
			j.Nowhere = []int{w.slots(j, "nowhere", j.Pending[0]/width), w.slots(j, "nowhere", j.Pending[1]/width)}
		}
		w.changed = append(w.changed, j)
	}
}

// decide checks that the mechanism decides the same as a new mechanism with the same view. Then it follows some of the
// mechanism's directives.
func (w *world) decide() {
	was := slices.Clone(w.changed)
	d := w.mechanism.Update(&w.view, w.changed, w.gone)
	w.changed, w.gone = nil, nil
	for i, j := range d.Jobs {
		w.weights[j.Job] = d.Weights[i]
	}
	fresh := &Mechanism{rule: w.mechanism.rule, reserve: w.mechanism.reserve}
	a := fresh.Allocate(&w.view)
	if !sameDirectives(d.Directives, a.Directives) || !reflect.DeepEqual(d.Tariffs, a.Tariffs) || !slices.Equal(d.Prices, a.Prices) {
		w.Fatalf("%+v\nmade anew %+v\nafter %d changes", d, a, len(was))
	}
	for i, j := range w.view.Jobs {
		if got := w.weights[j.Job]; !slices.Equal(got, a.Weights[i]) && (got != nil || slices.Max(a.Weights[i]) > 0) {
			w.Fatalf("job %d has weights %v, made anew %v", j.Job, got, a.Weights[i])
		}
	}
	if (d.Wake == 0) != (a.Wake == 0) || d.Wake > a.Wake+4 || d.Wake != 0 && d.Wake <= w.view.Now {
		w.Fatalf("at %v: wakes at %v, made anew at %v", w.view.Now, d.Wake, a.Wake)
	}
	for _, j := range w.view.Jobs {
		if is, anew := w.mechanism.Explain(&w.view, j), fresh.Explain(&w.view, j); !reflect.DeepEqual(is, anew) {
			w.Fatalf("job %d: %+v, made anew %+v", j.Job, is, anew)
		}
	}
	w.tariffs, w.wake = d.Tariffs, d.Wake
	for _, o := range d.Directives {
		if o.Action == mechanism.Suspend || o.Action != mechanism.Discard && w.n("follow", 0, 3) > 0 {
			j := w.view.Jobs[slices.IndexFunc(w.view.Jobs, func(j *mechanism.Job) bool { return j.Job == o.Job })]
			w.follow(j, o)
			w.changed = append(w.changed, j)
		}
	}
}

func (w *world) follow(j *mechanism.Job, o mechanism.Directive) {
	if j.Suspended == nil {
		j.Suspended = []int{0, 0}
	}
	k := o.Class
	switch o.Action {
	case mechanism.Suspend:
		j.Running[k], j.Suspended[k] = j.Running[k]-o.Slots, j.Suspended[k]+o.Slots
	case mechanism.Resume:
		if j.Running[k], j.Suspended[k] = j.Running[k]+o.Slots, j.Suspended[k]-o.Slots; j.Stuck != nil && j.Stuck[k] > j.Suspended[k] {
			w.Fatalf("of %d suspended tasks of job %d, %d were stuck, and %d were to resume", j.Suspended[k]+o.Slots, j.Job, j.Stuck[k], o.Slots)
		}
	case mechanism.Start:
		if j.Running[k], j.Pending[k] = j.Running[k]+o.Slots, j.Pending[k]-o.Slots; j.Nowhere != nil && j.Nowhere[k] > j.Pending[k] {
			w.Fatalf("%d slots of job %d start, and for %d of %d there is no node", o.Slots, j.Job, j.Nowhere[k], j.Pending[k]+o.Slots)
		}
	}
}
