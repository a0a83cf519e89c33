package book

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"reflect"
	"slices"
	"strconv"
	"testing"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/agent"
	"github.com/candor-grid/candor/messages/clearing"
	"github.com/candor-grid/candor/messages/job"
	"github.com/candor-grid/candor/messages/market"
)

// seeds returns the range of seeds to try: CANDOR_SEEDS seeds from CANDOR_FIRST_SEED on.
func seeds(t *testing.T, usual uint64) (first, end uint64) {
	t.Helper()
	from := func(name string, usual uint64) uint64 {
		if os.Getenv(name) == "" {
			return usual
		}
		n, err := strconv.ParseUint(os.Getenv(name), 10, 64)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		return n
	}
	first = from("CANDOR_FIRST_SEED", 1)
	return first, first + from("CANDOR_SEEDS", usual)
}

// twins are two books that apply the same commands. The second book is sometimes restored from an image, or replays the
// log.
type twins struct {
	rng      *rand.Rand
	at       messages.Time
	one      *Book
	two      *Book
	log      [][]byte
	sessions [3]uint64 // session of each node
	seqs     [3]uint64
	attempts []messages.Attempt
	late     *lateImage
}

// lateImage is an image that is written while commands are applied.
type lateImage struct {
	image  *Image
	want   []byte
	is     chan []byte
	steps  int  // number of commands until the image must be complete
	during bool // write the image while the commands are applied, not afterwards
}

func (l *lateImage) write() {
	var buf bytes.Buffer
	_, _ = l.image.WriteTo(&buf) // writing to a buffer cannot fail
	l.is <- buf.Bytes()
}

const (
	twinSteps  = 250
	twinRetain = 2 // low, so that the book soon forgets ended jobs
)

// TestTwins applies commands to a book. Some commands are valid, and others are late or make no sense. A second book
// gets to the same state in another way, for example by an image. Both books must have the same bytes and give the same
// answers. Nothing may panic.
func TestTwins(t *testing.T) {
	retaining(t, twinRetain)
	whole(t, twinRetain/2)
	forgotten := 0
	first, end := seeds(t, 60)
	for seed := first; seed < end; seed++ {
		w := &twins{rng: rand.New(rand.NewPCG(seed, 7)), one: New(), two: New()}
		for step := range twinSteps {
			if err := w.step(); err != nil {
				t.Fatalf("seed %d, step %d: %v", seed, step, err)
			}
		}
		forgotten += int(w.one.index.lastJob) - w.one.jobs.byID.count - len(w.one.remote.remoteJobs)
	}
	if forgotten == 0 && end-first > 20 {
		t.Error("no job was ever forgotten: the test does not try what it is for")
	}
}

func (w *twins) step() error {
	_, err := w.do(w.command())
	return err
}

func (w *twins) do(c Command) (answer any, err error) {
	w.at += messages.Time(w.rng.IntN(4))
	if w.chance(10) {
		c.Leap = messages.Duration(w.rng.IntN(9000))
		w.at += messages.Time(w.rng.IntN(9))
	}
	c.At = w.at
	if w.chance(2) {
	}
	data, err := c.Encode()
	if err != nil {
		return nil, err
	}
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v", p)
		}
	}()
	w.log = append(w.log, data)
	one := apply(w.one, data)
	later := mostUnread
	mostUnread = 1 // so that each change of tariffs meters all jobs at once
	two := apply(w.two, data)
	mostUnread = later
	if !reflect.DeepEqual(one, two) {
		return nil, fmt.Errorf("%s: one answers %v, the other %v", data, one, two)
	}
	if grants, ok := one.([]agent.Grant); ok {
		for _, g := range grants {
			w.attempts = append(w.attempts, g.Attempt)
		}
	}
	if ended := w.one.jobs.ended; c.Confirm != nil && len(ended) > retainEnded && !w.one.effects.speaks(ended[0]) && (w.one.Job(ended[0]) == nil || !w.one.Job(ended[0]).claimed()) {
		return nil, fmt.Errorf("%d ended jobs are remembered, and nothing needs the oldest", len(ended))
	}
	image, twin := imageOf(w.one), imageOf(w.two)
	if !bytes.Equal(image, twin) {
		return nil, fmt.Errorf("after %s the twins differ", data)
	}
	if err := w.writeLate(image); err != nil {
		return nil, err
	}
	switch w.rng.IntN(24) {
	case 0, 1, 2:
		w.two = New()
		if err := w.two.Restore(bytes.NewReader(twin)); err != nil {
			return nil, err
		}
	case 3:
		w.two = New()
		for _, data := range w.log {
			apply(w.two, data)
		}
	}
	for _, b := range []*Book{w.one, w.two} {
		if err := sound(b); err != nil {
			return nil, err
		}
	}
	return one, nil
}

// writeLate writes an image while later commands change the book. The image must have the same bytes as an image that
// is written completely before the first of these commands.
func (w *twins) writeLate(now []byte) error {
	if w.late == nil {
		if !w.chance(4) {
			return nil
		}
		w.late = &lateImage{image: w.one.Capture(), want: now, is: make(chan []byte, 1), steps: 1 + w.rng.IntN(12)}
		if w.late.during = w.chance(2); w.late.during {
			go w.late.write()
		}
		return nil
	}
	if w.late.steps--; w.late.steps > 0 {
		return nil
	}
	late := w.late
	w.late = nil
	if !late.during {
		late.write()
	}
	if !bytes.Equal(<-late.is, late.want) {
		return errors.New("an image that is written late is not the state when it was captured")
	}
	return nil
}

func apply(b *Book, data []byte) any {
	c, err := Decode(data)
	if err != nil {
		return err
	}
	return b.Apply(c)
}

func imageOf(b *Book) []byte {
	var buf bytes.Buffer
	if _, err := b.Capture().WriteTo(&buf); err != nil {
		panic(err)
	}
	return buf.Bytes()
}

// sound runs all checks of a book, and returns the first error or nil. The checks also hold for a book that has
// forgotten ended jobs.
func sound(b *Book) error {
	for _, check := range []func(*Book) error{claimed, accounted, covered, effective, indexed, counted} {
		if err := check(b); err != nil {
			return err
		}
	}
	return nil
}

// covered returns an error if a job's hold does not cover the job's payments and debts.
func covered(b *Book) error {
	for id, j := range b.every {
		if j.Paid < 0 || j.Gained < 0 || j.Drawn > j.Paid || j.Paid+j.Owed > j.Held || j.Charged > j.Owed {
			return fmt.Errorf("job %d: held %v, owes %v, paid %v (%v drawn), gained %v, charged %v", id, j.Held, j.Owed, j.Paid, j.Drawn, j.Gained, j.Charged)
		}
	}
	return nil
}

// effective returns an error if the waiting effects are out of order or refer to missing jobs.
func effective(b *Book) error {
	spoken, frees := map[messages.JobID]int{}, map[string]bool{}
	last := uint64(0)
	for e := range b.EachEffect {
		spoken[e.Job]++
		for _, l := range e.Legs {
			spoken[l.From]++
			spoken[l.To]++
		}
		if e.Kind == Release {
			frees[e.Hold] = true
		}
		if e.ID <= last {
			return fmt.Errorf("effect %d comes after %d", e.ID, last)
		}
		if last = e.ID; !b.Names(&e) {
			return fmt.Errorf("effect %d speaks of a job that was forgotten: %+v", e.ID, e)
		}
	}
	if !maps.Equal(spoken, b.effects.spoken) || !maps.Equal(frees, b.effects.frees) {
		return fmt.Errorf("effects speak of %v and free %v; noted are %v and %v", spoken, frees, b.effects.spoken, b.effects.frees)
	}
	return nil
}

// Some state of the book is derived from other state, for example its indices. indexed computes the derived state
// again, and returns an error if it differs.
func indexed(b *Book) error {
	lists := map[messages.Name][]messages.JobID{}
	enter := func(account messages.Name, id messages.JobID) {
		lists[account], lists[""] = append(lists[account], id), append(lists[""], id)
	}
	for id, j := range b.every {
		enter(j.Account, id)
		if ordered := j.Active() && j.Order != nil; ordered != b.jobs.ordered[id] {
			return fmt.Errorf("job %d is in the timetable: %v", id, !ordered)
		}
	}
	for id, r := range b.remote.remoteJobs {
		enter(r.Account, id)
	}
	for _, n := range b.nodes.inOrder {
		var halted []messages.Attempt
		for _, r := range n.claimed() {
			if h := n.Claims[r]; h.halts() {
				halted = append(halted, messages.Attempt{Task: r, Number: h.Attempt})
			}
		}
		if !slices.Equal(halted, n.Halted()) {
			return fmt.Errorf("node %s has halted %v, its list says %v", n.Name, halted, n.Halted())
		}
	}
	waits := func(id messages.JobID) bool {
		j := b.Job(id)
		return j != nil && j.Active() && j.Blocked > 0
	}
	for _, list := range []waiters{b.dependencies.waiters, b.dependencies.starts} {
		for id, ids := range list {
			for waiter := range ids.All() {
				if !waits(waiter) {
					return fmt.Errorf("job %d is said to wait for job %d", waiter, id)
				}
			}
		}
	}
	for j := range b.Jobs {
		ends, starts := b.Awaited(j)
		awaits := len(ends) + len(starts)
		for d := range b.dependencies.delayed.all {
			if d.job == j.ID {
				awaits++
			}
		}
		if j.Paired && !j.Admitted {
			awaits++
		}
		if other := b.Job(j.Spec.AfterEach); j.Active() && j.Paired != (other != nil && other.Active()) {
			return fmt.Errorf("job %d waits for tasks of job %d: %v, and that one runs: %v", j.ID, j.Spec.AfterEach, j.Paired, other != nil && other.Active())
		}
		if j.Active() && j.Blocked != awaits {
			return fmt.Errorf("job %d waits for the end of %v and the start of %v, and counts %d", j.ID, ends, starts, j.Blocked)
		}
	}
	for d := range b.dependencies.delayed.all {
		if !waits(d.job) {
			return fmt.Errorf("job %d is said to wait for %v", d.job, d.at)
		}
	}
	for _, ids := range lists {
		slices.Sort(ids)
	}
	listed := map[messages.Name][]messages.JobID{}
	for name, ids := range b.index.listed {
		listed[name] = slices.Collect(ids.All())
	}
	if !reflect.DeepEqual(lists, listed) {
		return fmt.Errorf("accounts have the jobs %v, the lists say %v", lists, listed)
	}
	return nil
}

func (w *twins) chance(n int) bool { return w.rng.IntN(n) == 0 }

// The method job returns a random number among the ten latest job numbers.
func (w *twins) job() messages.JobID {
	return messages.JobID(max(0, int(w.one.index.lastJob)+1-w.rng.IntN(10)))
}

func (w *twins) account() messages.Name { return pick(w.rng, "alice", "bob") }

func (w *twins) market() messages.Name { return pick(w.rng, "main", "night") }

func (w *twins) attempt() messages.Attempt {
	if len(w.attempts) == 0 || w.chance(12) {
		return messages.Attempt{Task: messages.TaskRef{Job: w.job(), Stage: w.rng.Uint32N(3), Index: w.rng.Uint32N(4)}, Number: w.rng.Uint32N(4)}
	}
	return w.attempts[len(w.attempts)-1-w.rng.IntN(min(12, len(w.attempts)))]
}

func pick[T any](rng *rand.Rand, of ...T) T { return of[rng.IntN(len(of))] }

func (w *twins) command() Command {
	switch n := w.rng.IntN(100); {
	case n < 14:
		return Command{Submit: w.submission()}
	case n < 17:
		return Command{Cancel: &Cancel{Job: w.job(), By: w.account(), Window: messages.Duration(w.rng.IntN(9))}}
	case n < 23:
		return Command{Register: w.registration()}
	case n < 26:
		i := w.rng.IntN(3)
		return Command{Lost: &Lost{Node: fmt.Sprint("n", i), Session: w.session(i), Stopped: w.chance(2)}}
	case n < 36:
		return Command{Settle: w.settlement()}
	case n < 48:
		return Command{Confirm: w.confirmation()}
	case n < 60:
		return Command{Decide: w.decision()}
	case n < 61:
		return Command{Disband: &Disband{Job: w.job(), Stage: w.rng.Uint32N(2), Since: w.at - messages.Time(w.rng.IntN(6))}}
	case n < 63:
		return Command{Drain: &Drain{Node: fmt.Sprint("n", w.rng.IntN(4)), Until: messages.Time(w.rng.IntN(2)), Evict: w.chance(2), Reason: pick(w.rng, "", "new disk"), Remove: w.chance(4)}}
	case n < 64 && w.chance(3):
		return Command{Warn: &Warn{Job: w.job()}}
	case n < 64:
		return Command{ChangeWindows: w.window()}
	case n < 65:
		return Command{Quote: &Quote{Account: w.account(), Market: w.market(), Contracts: make([]job.Contract, 1), Expires: w.at + messages.Time(w.rng.IntN(30))}}
	case n < 66:
		return Command{ApplyMarkets: &ApplyMarkets{Markets: []market.Market{{Name: w.market(), Classes: []messages.Name{"map"}}}, MarketsVersion: pick(w.rng, 0, w.one.markets.version+1, 99)}}
	case n < 68:
		return Command{Admit: &Admit{Issue: &messages.TokenState{ID: fmt.Sprint(w.rng.IntN(3)), Expires: w.at + 9}}}
	case n < 69:
		return Command{Admit: &Admit{Use: &messages.TokenUse{ID: fmt.Sprint(w.rng.IntN(4)), Key: w.account()}}}
	case n < 72:
		return Command{EnterRemote: &EnterRemote{Account: w.account(), Key: fmt.Sprint(w.rng.IntN(40)), Payer: "p", Spec: roamSpec(), Peer: "east"}}
	case n < 78:
		return Command{Advance: w.travel()}
	case n < 79:
		return Command{}
	case n < 80:
		r := &Requeue{Job: w.job()}
		if a := w.attempt(); w.chance(2) {
			r.Job, r.Tasks = a.Task.Job, []messages.TaskRef{a.Task, {Job: a.Task.Job, Stage: w.rng.Uint32N(3), Index: w.rng.Uint32N(4)}}[:1+w.rng.IntN(2)]
		}
		return Command{Requeue: r}
	case n < 81:
		return Command{Change: w.change()}
	case n < 82:
		first := w.rng.Int64N(5)
		return Command{CancelTasks: &CancelTasks{Job: w.job(), Stage: w.rng.IntN(3), By: w.account(), Window: 5, Tasks: job.Array{{First: first, Last: first + w.rng.Int64N(3), Step: 1}}}}
	case n < 84:
		return Command{Park: &Park{Job: w.job(), By: w.account(), Operator: w.chance(3), Release: w.chance(2)}}
	}
	return Command{Exchange: w.exchange()}
}

func (w *twins) window() *ChangeWindows {
	if w.chance(3) {
		return &ChangeWindows{Remove: w.rng.Uint32N(6)}
	}
	from := w.at + messages.Time(w.rng.IntN(40))
	c := &ChangeWindows{Add: &market.Window{Nodes: []messages.Name{fmt.Sprint("n", w.rng.IntN(3)), fmt.Sprint("n", w.rng.IntN(4))}, From: from, To: from + messages.Time(w.rng.IntN(30))}}
	if w.chance(2) {
		c.Add.Notice = new(messages.Duration(w.rng.IntN(9)) * 1000)
	}
	return c
}

func (w *twins) change() *Change {
	c := &Change{Job: w.job(), Key: fmt.Sprint(w.rng.IntN(9)), Budget: messages.Credits(w.rng.IntN(300)), Unstarted: w.chance(2)}
	if j := w.one.Job(c.Job); j != nil && w.chance(2) {
		to := *j.Spec
		to.Name, to.Rate = "other", messages.Credits(w.rng.IntN(5))
		if w.chance(2) && j.Spec.AfterEach == 0 {
			to.WaitFor(&job.Conditions{AfterOK: w.earlier(j.ID), AfterStart: w.earlier(j.ID)})
		}
		c.To, c.Version, c.Unstarted = &to, j.Changes, true
	}
	return c
}

// earlier returns a list with one random job. The list is empty if this job was submitted after the job `than`.
func (w *twins) earlier(than messages.JobID) []messages.JobID {
	if id := w.job(); id < than {
		return []messages.JobID{id}
	}
	return nil
}

func (w *twins) submission() *Submit {
	held := messages.Credits(w.rng.IntN(200))
	stage := mapStage(1 + w.rng.IntN(3))
	stage.Gang, stage.Attempts = w.chance(4), w.rng.IntN(3)
	if !stage.Gang && w.chance(2) {
		stage.OnFailure = job.GoOn
	}
	spec := &job.JobSpec{Market: w.market(), Budget: held, Rate: 3, Length: 7, Stages: []job.Stage{stage}, Hold: w.chance(12)}
	if w.chance(3) {
		spec.Stages = append(spec.Stages, job.Stage{Name: "last", Class: "map", Tasks: 2, After: []string{"map"}, MaxRunning: 1})
	}
	if stage.Gang && w.chance(2) { // make a heterogeneous job
		other := job.Stage{Name: "other", Class: "map", Tasks: 1 + w.rng.IntN(2), Gang: true, Allocation: true}
		spec.Stages, spec.Together = []job.Stage{stage, other}, true
		spec.Stages[0].Allocation = true
	}
	if w.chance(5) {
		spec.AfterJobs = []messages.JobID{w.job()}
	}
	if w.chance(5) {
		spec.AfterOK = []messages.JobID{w.job()}
	}
	if w.chance(5) {
		spec.AfterFailed = []messages.JobID{w.job()}
	}
	if w.chance(4) {
		spec.AfterStart = []messages.JobID{w.job()}
		spec.StartDelay = messages.Duration(w.rng.IntN(20)) * 1000
	}
	spec.AfterAny = w.chance(3)
	if w.chance(4) {
		spec.AfterEach = w.job()
	}
	s := &Submit{Account: w.account(), Key: fmt.Sprint(w.rng.IntN(60)), Payer: "p", Hold: "h", Held: held, Spec: spec, Most: w.rng.IntN(30)}
	switch w.rng.IntN(8) {
	case 0:
		s.Account = messages.VisitorName(s.Account, "west")
		s.Visit = &Visit{job.Visit{Home: "west", Job: messages.JobID(w.rng.IntN(9))}, "a", w.at + 99}
	case 1:
		s.Quote = uint64(w.rng.IntN(4))
	case 2:
		s.Deposit = held / 4
	case 3:
		s.MarketsVersion = w.rng.Uint64N(3)
	}
	return s
}

// session returns the present session of a node, or sometimes an earlier or later one.
func (w *twins) session(i int) uint64 {
	if w.chance(10) {
		return w.rng.Uint64N(w.sessions[i] + 2)
	}
	return w.sessions[i]
}

func (w *twins) registration() *Register {
	i := w.rng.IntN(3)
	session := w.session(i)
	if session == w.sessions[i] && w.chance(2) {
		session++
	}
	if session > w.sessions[i] {
		w.sessions[i], w.seqs[i] = session, 0
	}
	r := &Register{Node: fmt.Sprint("n", i), Session: session, Slots: []job.ClassSlots{{Class: "map", Slots: 1 + w.rng.IntN(4)}}, MostSuspended: w.rng.IntN(3)}
	if w.chance(9) {
		r.Slots = []job.ClassSlots{{Class: "other", Slots: 1}}
	}
	if n := w.one.Node(r.Node); n != nil {
		for _, ref := range n.claimed() {
			if !w.chance(3) {
				r.Running = append(r.Running, messages.Attempt{Task: ref, Number: n.Claims[ref].Attempt})
			}
		}
	}
	for range w.rng.IntN(2) {
		r.Running = append(r.Running, w.attempt())
	}
	return r
}

func (w *twins) exchange() *Exchange {
	i := w.rng.IntN(3)
	if !w.chance(8) {
		w.seqs[i]++
	}
	x := &Exchange{Node: fmt.Sprint("n", i), Session: w.session(i), Seq: w.seqs[i]}
	for range w.rng.IntN(3) {
		c := Claim{Class: pick(w.rng, "map", "map", "map", "other", "none"), Slots: w.rng.IntN(4) - 1, Jobs: []messages.JobID{w.job(), w.job(), w.job()}}
		if w.chance(2) {
			c.Ahead = w.rng.IntN(4)
		}
		if w.chance(4) {
			c.Most = []int{w.rng.IntN(3), w.rng.IntN(3)}
		}
		x.Claims = append(x.Claims, c)
	}
	if n := w.one.Node(x.Node); n != nil {
		for _, ref := range n.claimed() {
			if w.chance(3) {
				x.Finished = append(x.Finished, w.finish(messages.Attempt{Task: ref, Number: n.Claims[ref].Attempt}))
			}
		}
	}
	for range w.rng.IntN(2) {
		x.Finished = append(x.Finished, w.finish(w.attempt()))
	}
	w.passOn(x)
	return x
}

// passOn changes an exchange at random. For some ended tasks, the changed exchange says that the slot was given to
// another task on the node, mostly to one that was claimed in advance.
func (w *twins) passOn(x *Exchange) {
	n := w.one.Node(x.Node)
	if n == nil {
		return
	}
	x.Sent = w.at
	for _, ref := range n.claimed() {
		h := n.Claims[ref]
		if i := w.rng.IntN(len(x.Finished) + 1); i < len(x.Finished) && (h.Halt == Ahead || w.chance(9)) {
			x.Finished[i].Next = &agent.Successor{Attempt: messages.Attempt{Task: ref, Number: h.Attempt}, At: w.at - messages.Time(w.rng.IntN(9)-2)}
		}
	}
}

func (w *twins) finish(a messages.Attempt) agent.Finished {
	return agent.Finished{Attempt: a, Outcome: agent.Outcome(max(0, w.rng.IntN(12)-7)), ExitCode: w.rng.IntN(8) / 7, CPU: messages.Duration(w.rng.Int64N(1 << 62))}
}

// settlement returns a random settlement, mostly for a job that waits to be settled.
func (w *twins) settlement() *Settle {
	s := &Settle{Job: w.job(), Charge: messages.Credits(w.rng.IntN(220) - 10), Shares: []Share{{Class: "map", Allocated: 1}}}
	for id := range w.one.Listed("").All() {
		if j := w.one.Job(id); j != nil && j.State == job.Settling && !j.Settled && !w.chance(3) {
			s.Job, s.Charge = id, min(s.Charge, j.Left())
			break
		}
	}
	return s
}

// confirmation answers some of the waiting effects, in any order.
func (w *twins) confirmation() *Confirm {
	c := &Confirm{}
	for e := range w.one.EachEffect {
		if rare := 1 + w.rng.IntN(2); e.Kind == Observe && !w.chance(1+2*rare) || w.chance(4) { // observations may wait for long
			continue
		}
		o := Confirmation{Effect: e.ID}
		switch {
		case w.chance(8):
			o.Refused = "no"
		case e.Kind == Charge:
			o.Amount = w.one.Job(e.Job).Owed
		}
		c.Effects = append(c.Effects, o)
	}
	if w.chance(4) {
		c.Effects = append(c.Effects, Confirmation{Effect: w.rng.Uint64N(w.one.effects.last + 3)})
		c.Effects = slices.CompactFunc(c.Effects, func(a, b Confirmation) bool { return a.Effect == b.Effect })
	}
	w.rng.Shuffle(len(c.Effects), func(i, j int) { c.Effects[i], c.Effects[j] = c.Effects[j], c.Effects[i] })
	return c
}

func (w *twins) decision() *Decide {
	d := &Decide{Market: w.market()}
	for range w.rng.IntN(3) {
		switch w.rng.IntN(3) {
		case 0:
			d.Suspend = append(d.Suspend, w.attempt())
		case 1:
			d.Resume = append(d.Resume, w.attempt())
		default:
			d.Requeue = append(d.Requeue, w.attempt())
		}
	}
	var legs []Leg
	for range w.rng.IntN(3) {
		legs = append(legs, Leg{From: w.job(), To: w.job(), Amount: messages.Credits(w.rng.IntN(60) - 1)})
	}
	switch w.rng.IntN(6) {
	case 0:
		d.Start = []Starting{{Job: w.job(), Order: Order{Class: "map", Slots: 1, At: w.at}, Fixed: &Fixed{Amount: messages.Credits(w.rng.IntN(90))}, Legs: legs}}
	case 1, 2:
		d.Discard = []Discarding{{Job: w.job(), Reason: "Outbid", Legs: legs}}
	case 3:
		d.Tariffs = []Tariff{{Class: "map", Price: messages.Credits(w.rng.IntN(5)), OwnBid: w.chance(2), Length: messages.Duration(w.rng.IntN(3)), Capped: w.chance(2)}}
	case 4:
		d.Notes, d.Forget = []Note{{Job: w.job(), Numbers: []int64{w.rng.Int64()}}}, w.chance(2)
	}
	return d
}

func (w *twins) travel() *Advance {
	t := &Advance{}
	for range 1 + w.rng.IntN(3) {
		s := Step{Job: w.job()}
		for id := range w.one.Listed("").All() {
			if r := w.one.remote.remoteJobs[id]; r != nil && r.Phase != Over && w.chance(2) {
				s.Job = id
			}
		}
		summary := &job.JobSummary{State: job.State(w.rng.IntN(7)), Reason: "r", Done: w.rng.IntN(3)}
		switch w.rng.IntN(8) {
		case 0, 1:
			s.Authorised = &clearing.SignedAuthorisation{Signature: []byte{1}}
		case 2:
			s.Arrived = summary
		case 3, 4:
			s.Status = summary
		case 5:
			s.Refused = messages.Errorf(messages.Invalid, "no")
		case 6:
			s.Cancel = w.account()
		default:
			s.Told, s.Released = w.chance(2), true
			if s.Told {
				s.Released = false
			}
		}
		t.Steps = append(t.Steps, s)
	}
	return t
}

func (b *Book) every(yield func(messages.JobID, *Job) bool) {
	b.Jobs(func(j *Job) bool { return yield(j.ID, j) })
}
