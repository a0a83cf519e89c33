package book

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/agent"
	"github.com/candor-grid/candor/messages/job"
	"github.com/candor-grid/candor/messages/market"
)

// walk takes random steps: jobs come and end, nodes claim, are lost, drain and come back, replicas start from images.
type walk struct {
	*site
	rng      *rand.Rand
	step     int
	nodes    map[string]*walked
	jobs     []messages.JobID
	licensed bool // stages need licences
	bounded  bool // accounts and projects have bounds
	lowered  bool // the last step lowered the number of licences, or the bounds

	bounds market.AtOnce

	started, resumed, waited int // how many wide tasks started, how many tasks were resumed, and how many jobs waited for a licence
	together                 int // how often a heterogeneous job started
	lent                     int // how often a task used slots that a node kept free for another task
}

type walked struct {
	session, seq uint64
	held         []messages.Attempt
}

// The nodes of this test have two classes of slots, which share the processors of each node.
var (
	walkNames   = []string{"n1", "n2", "n3"}
	walkClasses = []messages.Name{"map", "reduce"}
	walkUnits   = []job.Resources{{CPUs: 1, Memory: 2}, {CPUs: 3, GPUs: 1}}
	walkHas     = job.Resources{CPUs: 10, Memory: 12, GPUs: 2}
)

func newWalk(t *testing.T, seed uint64, licensed bool) *walk {
	w := &walk{site: newSite(t), rng: rand.New(rand.NewPCG(seed, 49)), nodes: map[string]*walked{}, licensed: licensed}
	if licensed {
		w.setLicenses(4, 2)
	}
	return w
}

func (w *walk) bound() {
	some := func() market.Bound {
		return market.Bound{Slots: 2 + w.rng.IntN(8), GPUs: w.rng.IntN(3), Tasks: w.rng.IntN(5)}
	}
	a := market.AtOnce{Account: some(), Project: some()}
	w.bounds = a
	w.apply(Command{SetBounds: &SetBounds{Markets: []MarketBounds{{"main", a}}}})
}

func (w *walk) setLicenses(matlab, ansys int) {
	w.apply(Command{SetLicenses: &SetLicenses{Totals: job.Licenses{{Name: "ansys", Count: ansys}, {Name: "matlab", Count: matlab}}}})
}

func (w *walk) register(name string, session uint64, running ...messages.Attempt) {
	slots := []job.ClassSlots{{Class: walkClasses[0], Slots: 8}, {Class: walkClasses[1], Slots: 3}}
	w.apply(Command{Register: &Register{Node: name, Session: session, Slots: slots, Running: running, Resources: &walkHas, Units: walkUnits}})
}

func (w *walk) next() {
	rng, name := w.rng, walkNames[w.rng.IntN(len(walkNames))]
	w.step++
	w.lowered = false
	if w.bounded && rng.IntN(40) == 0 {
		w.lowered = true
		w.bound()
	}
	n, session := w.nodes[name], uint64(w.step)
	switch at := rng.IntN(40); {
	case at == 14 && w.licensed:
		w.lowered = true
		w.setLicenses(2+rng.IntN(4), 1+rng.IntN(2))
	case at == 15: // a replica that starts from an image continues
		again := New()
		copyInto(w.t.(*testing.T), w.Book, again)
		w.Book = again
	case n == nil:
		w.nodes[name] = &walked{session: session}
		w.register(name, session)
	case at < 4:
		w.submitNext()
	case at < 6 && len(w.jobs) > 0:
		w.apply(Command{Cancel: &Cancel{Job: w.jobs[rng.IntN(len(w.jobs))], By: "alice"}})
	case at < 8:
		w.apply(Command{Lost: &Lost{Node: name, Session: n.session}})
		delete(w.nodes, name)
	case at < 10: // the agent comes back with the tasks that it still runs
		n.session, n.seq = session, 0
		w.register(name, n.session, n.held...)
	case at < 12 && len(n.held) > 0:
		w.decide(name, n)
	case at < 14:
		w.apply(Command{Drain: &Drain{Node: name, Until: messages.Time(rng.IntN(2)) * (w.at + 100)}})
	case at == 16 && len(w.jobs) > 0:
		w.apply(Command{Requeue: &Requeue{Job: w.jobs[rng.IntN(len(w.jobs))]}})
	default:
		w.exchange(name, n)
	}
}

func (w *walk) submitNext() {
	rng := w.rng
	stage := wideStage(1+rng.IntN(5), 1+rng.IntN(6))
	if rng.IntN(3) == 0 {
		stage.Class, stage.Width = "reduce", 1+rng.IntN(2)
	} else if rng.IntN(4) == 0 {
		stage.Width = 1
	} else if stage.Tasks > 1 && stage.Tasks <= len(walkNames) {
		stage.Gang, stage.Allocation = true, true
	}
	if !stage.Gang {
		stage.TimeLimit = messages.Duration(rng.IntN(3)) * 5
	}
	if w.licensed {
		stage.Licenses = [...]job.Licenses{nil, {{Name: "matlab", Count: 1 + rng.IntN(3)}}, {{Name: "ansys", Count: 1}, {Name: "matlab", Count: 1}}}[rng.IntN(3)]
	}
	if w.bounded && rng.IntN(2) == 0 {
		stage.GPUs = rng.IntN(2)
	}
	w.project = [...]messages.Name{"", "physics"}[rng.IntN(2)]
	stages := []job.Stage{stage}
	if rng.IntN(3) == 0 { // a heterogeneous job
		stages = nil
		for i := range 2 + rng.IntN(2) {
			of := allocationStage(1+rng.IntN(2), 1+rng.IntN(4))
			if of.Name = fmt.Sprint("het", i); rng.IntN(3) == 0 {
				of.Class, of.Width = "reduce", 1+rng.IntN(2)
			}
			of.Licenses, of.GPUs = stage.Licenses, stage.GPUs
			stages = append(stages, of)
		}
	}
	w.jobs = append(w.jobs, w.submit(fmt.Sprint("job", len(w.jobs)), stages...))
}

func (w *walk) decide(name string, n *walked) {
	d := &Decide{Market: "main"}
	for _, a := range n.held {
		if w.Node(name).Claims[a.Task].Halt == Suspended {
			d.Resume = append(d.Resume, a)
		} else if w.rng.IntN(2) == 0 {
			d.Suspend = append(d.Suspend, a)
		}
	}
	w.apply(Command{Decide: d})
	for _, a := range d.Resume {
		if h := w.Node(name).Claims[a.Task]; h.Attempt == a.Number && h.Halt == Goes && h.Width > 1 {
			w.resumed++
		}
	}
}

func (w *walk) exchange(name string, n *walked) {
	rng := w.rng
	n.seq++
	x := &Exchange{Node: name, Session: n.session, Seq: n.seq}
	n.held = slices.DeleteFunc(n.held, func(a messages.Attempt) bool {
		ends := rng.IntN(3) == 0
		if ends {
			x.Finished = append(x.Finished, agent.Finished{Attempt: a, Outcome: agent.Outcome(rng.IntN(3))})
		}
		return ends
	})
	if len(w.jobs) > 0 {
		id := w.jobs[rng.IntN(len(w.jobs))]
		if j := w.Job(id); w.licensed && j != nil && j.Claimable(0) > 0 && w.Claimable(j, 0) == 0 {
			w.waited++
		}
		for _, class := range walkClasses {
			x.Claims = append(x.Claims, Claim{Class: class, Slots: 1 + rng.IntN(8), Jobs: []messages.JobID{id, w.jobs[rng.IntN(len(w.jobs))]}, Ahead: rng.IntN(3), Lent: messages.Duration(rng.IntN(2)) * 15})
		}
	}
	for _, g := range w.apply(Command{Exchange: x}).([]agent.Grant) {
		n.held = append(n.held, g.Attempt)
		j := w.Job(g.Attempt.Task.Job)
		if gathered := slices.Clone(w.Node(name).Gatherings); slices.ContainsFunc(gathered, func(o Gathering) bool {
			return o.Class == j.Spec.Stages[0].Class && o.Since < w.at
		}) {
			w.lent++
		}
		if j.Spec.Stages[0].Width > 1 {
			w.started++
		}
		if j.Spec.Together && !j.assembles(0) {
			w.together++
		}
	}
}

func TestNoNodeIsOversold(t *testing.T) {
	first, end := seeds(t, 40)
	started, both, resumed, together, lent := 0, 0, 0, 0, 0
	for seed := first; seed < end; seed++ {
		w := newWalk(t, seed, false)
		for range 400 {
			w.next()
			for _, n := range w.Nodes() {
				left := walkHas
				for k := range n.Used {
					if n.Up && n.Used[k] > n.Slots[k].Slots {
						t.Fatalf("seed %d, step %d: node %s uses %d of %d slots of %s", seed, w.step, n.Name, n.Used[k], n.Slots[k].Slots, walkClasses[k])
					}
					left = left.Less(walkUnits[k].Times(n.Used[k]))
				}
				if left.CPUs < 0 || left.Memory < 0 || left.GPUs < 0 {
					t.Fatalf("seed %d, step %d: of node %s, slots %v in use are more than %v", seed, w.step, n.Name, n.Used, walkHas)
				}
				if len(n.Used) == 2 && n.Used[0] > 0 && n.Used[1] > 0 {
					both++
				}
			}
		}
		started, resumed, together, lent = started+w.started, resumed+w.resumed, together+w.together, lent+w.lent
	}
	if together < 20 {
		t.Errorf("only %d heterogeneous jobs started", together)
	}
	if started < 100 {
		t.Errorf("only %d wide tasks started", started)
	}
	if lent < 10 {
		t.Errorf("only %d tasks used slots that were gathered for another task", lent)
	}
	if resumed == 0 {
		t.Error("no wide task went on after it was suspended")
	}
	if both < 100 {
		t.Errorf("only %d times a node had tasks of both classes", both)
	}
}

// Tasks may never have more licences than the site has, with one exception. If the operator lowers the site's number,
// running tasks keep their licences. While more licences are in use than the site has, no step may raise the number in
// use.
func TestLicencesAreNeverOversold(t *testing.T) {
	first, end := seeds(t, 10)
	all, waited, over := 0, 0, 0
	for seed := first; seed < end; seed++ {
		w := newWalk(t, seed, true)
		for range 400 {
			before := w.Licenses()
			w.next()
			for i, l := range w.Licenses() {
				switch {
				case l.Used > l.Total && !w.lowered && l.Used > before[i].Used:
					t.Fatalf("seed %d, step %d: tasks have %d of %d licences of %s, and had %d", seed, w.step, l.Used, l.Total, l.Name, before[i].Used)
				case l.Used > l.Total:
					over++
				case l.Used == l.Total:
					all++
				}
			}
		}
		waited += w.waited
	}
	if all < 100 || waited < 100 || over == 0 {
		t.Errorf("only %d times all licences were in use, %d times a task waited for one, and %d times there were fewer than tasks had", all, waited, over)
	}
}

// The tasks of an account or a project may never use more than their bound. If the operator lowers a bound, running
// tasks keep what they use, but no further step may raise the use.
func TestNobodyHasMoreAtOnceThanItsBound(t *testing.T) {
	first, end := seeds(t, 20)
	full, over := 0, 0
	for seed := first; seed < end; seed++ {
		w := newWalk(t, seed, false)
		w.bounded = true
		w.bound()
		for range 400 {
			before := maps.Clone(w.Book.bounds.used)
			w.next()
			for o, used := range w.Book.bounds.used {
				for i, d := range dimensions(w.bounds.Find(o.Name, o.Project), used, before[o]) {
					switch {
					case d.Most > 0 && d.Used > d.Most && !w.lowered && d.Used > d.Needs: // here, d.Needs is the use before the step
						t.Fatalf("seed %d, step %d: %v has %d of %d %s, and had %d", seed, w.step, o, d.Used, d.Most, d.What, d.Needs)
					case d.Most > 0 && d.Used > d.Most:
						over++
					case d.Most > 0 && d.Used == d.Most && i == 0:
						full++
					}
				}
			}
		}
	}
	if full < 100 || over == 0 {
		t.Errorf("only %d times an owner had all slots of its bound, and %d times more than a lowered one", full, over)
	}
}
