package book

import (
	"fmt"
	"maps"
	"math"
	"reflect"
	"runtime/debug"
	"slices"
	"testing"
	"time"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/agent"
	"github.com/candor-grid/candor/messages/clearing"
	"github.com/candor-grid/candor/messages/job"
	"github.com/candor-grid/candor/messages/market"
)

// crowd is a book that has many of everything: n accounts, n nodes, n removed nodes, n tokens, n quotes, n notices and
// n effects. Each account has six jobs in different states: one waits for slots, one waits for a time, one waits for
// another job, one runs, one has ended, and one is at another site. There is one more job with n tasks that were given
// back, n tasks that run, and n tasks that were cancelled.
type crowd struct {
	*Book
	t       *testing.T
	n       int
	at      messages.Time
	keys    int
	seqs    map[messages.Name]uint64
	grants  map[messages.Name]agent.Grant // by node: the grant of its first task
	awaited messages.JobID
	big     messages.JobID
	waiting []messages.JobID
	remote  []messages.JobID
}

func (w *crowd) do(c *Command) any {
	w.t.Helper()
	c.At = w.at
	result := w.Apply(c)
	if err, refused := result.(error); refused {
		w.t.Fatalf("%+v: %v", c, err)
	}
	return result
}

func (w *crowd) submission(change func(*Submit)) *Command {
	w.keys++
	account := messages.Name(fmt.Sprint("user", w.keys%w.n))
	s := &Submit{Account: account, Key: fmt.Sprint("key", w.keys), Payer: account, Hold: fmt.Sprint("hold", w.keys), Held: 1000,
		Spec: &job.JobSpec{Market: "main", Budget: 1000, Stages: []job.Stage{mapStage(1)}}}
	if change != nil {
		change(s)
	}
	return &Command{Submit: s}
}

func (w *crowd) submit(change func(*Submit)) messages.JobID {
	w.t.Helper()
	return w.do(w.submission(change)).(Receipt).Job
}

func (w *crowd) register(name messages.Name) {
	w.t.Helper()
	w.do(&Command{Register: &Register{Node: name, Session: 1, Slots: []job.ClassSlots{{Class: "map", Slots: 8}}}})
}

func (w *crowd) exchange(name messages.Name, finished []agent.Finished, claims ...Claim) *Command {
	w.seqs[name]++
	return &Command{Exchange: &Exchange{Node: name, Session: 1, Seq: w.seqs[name], Finished: finished, Claims: claims}}
}

func (w *crowd) claim(name messages.Name, slots int, job messages.JobID) []agent.Grant {
	w.t.Helper()
	g := w.do(w.exchange(name, nil, Claim{Class: "map", Slots: slots, Jobs: []messages.JobID{job}})).([]agent.Grant)
	if len(g) == 0 {
		w.t.Fatalf("node %s gets no task of job %d", name, job)
	}
	return g
}

func node(i int) messages.Name { return fmt.Sprint("node", i) }

func (w *crowd) settling() messages.JobID {
	w.t.Helper()
	id := w.submit(nil)
	w.do(&Command{Cancel: &Cancel{Job: id, By: "operator"}})
	return id
}

func (w *crowd) charging() uint64 {
	w.t.Helper()
	w.do(&Command{Settle: &Settle{Job: w.settling()}})
	return w.LastEffect()
}

func crowded(t *testing.T, n int) *crowd {
	w := &crowd{Book: New(), t: t, n: n, at: 1, seqs: map[messages.Name]uint64{}, grants: map[messages.Name]agent.Grant{}}
	w.Archive(func(Ended) {})
	w.do(&Command{Decide: &Decide{Market: "main", Tariffs: []Tariff{{Class: "map", Price: 3}}}})
	w.awaited = w.submit(nil)
	for range n { // these effects come first, and so delay the effects of all jobs that end later
		w.charging()
	}
	for i := range n {
		w.waiting = append(w.waiting, w.submit(nil))
		w.submit(func(s *Submit) { s.Spec.Begin = messages.Time(1e15 + 1e9*int64(i)) })
		w.submit(func(s *Submit) { s.Spec.AfterJobs = []messages.JobID{w.awaited} })
		w.register(node(i))
		running := w.submit(func(s *Submit) {
			s.Spec.Notify = []job.Notify{{To: s.Account, On: []string{job.NotifyStart}}}
		})
		w.grants[node(i)] = w.claim(node(i), 1, running)[0]
		gone := messages.Name(fmt.Sprint("gone", i))
		w.register(gone)
		w.do(&Command{Lost: &Lost{Node: gone, Session: 1}})
		w.do(&Command{Drain: &Drain{Node: gone, Remove: true}})
		w.keys++
		account := messages.Name(fmt.Sprint("user", i))
		w.do(&Command{EnterRemote: &EnterRemote{Account: account, Key: fmt.Sprint("key", w.keys), Payer: account, Peer: "west",
			Spec: &job.JobSpec{Market: "main", Budget: 10, Stages: []job.Stage{mapStage(1)}}}})
		w.remote = append(w.remote, w.LastJob())
		w.do(&Command{Admit: &Admit{Issue: &messages.TokenState{ID: fmt.Sprint("token", i), Node: node(i), Expires: math.MaxInt64}}})
		w.do(&Command{Quote: &Quote{Account: account, Market: "main", Expires: messages.Time(1e15 + 1e9*int64(i))}})
		w.do(&Command{Decide: &Decide{Market: "main", Notes: []Note{{Job: w.remote[i], Numbers: []int64{1}}}}})
	}
	w.big = w.submit(func(s *Submit) {
		s.Spec.Stages = []job.Stage{mapStage(4 * n)}
		s.Spec.Stages[0].Attempts = 100
	})
	w.register("back")
	w.do(&Command{Register: &Register{Node: "back", Session: 2, Slots: []job.ClassSlots{{Class: "map", Slots: 2 * n}}}})
	w.do(&Command{Exchange: &Exchange{Node: "back", Session: 2, Seq: 1, Claims: []Claim{{Class: "map", Slots: 2 * n, Jobs: []messages.JobID{w.big}}}}})
	w.do(&Command{Lost: &Lost{Node: "back", Session: 2}})
	for i := range n {
		w.claim(node(i), 1, w.big)
	}
	w.do(&Command{CancelTasks: &CancelTasks{Job: w.big, By: "operator", Tasks: job.Array{{First: int64(3 * n), Last: int64(4*n - 1), Step: 1}}}})
	return w
}

// kinds has a function for each kind of command. The function returns the i-th command of this kind. It also prepares
// the state that the command needs, so that the preparation is not timed.
var kinds = map[string]func(w *crowd, i int) *Command{
	"submit": func(w *crowd, i int) *Command { return w.submission(nil) },
	"submit, to begin": func(w *crowd, i int) *Command {
		return w.submission(func(s *Submit) { s.Spec.Begin = messages.Time(5e14) - messages.Time(i) })
	},
	"submit, to follow": func(w *crowd, i int) *Command {
		return w.submission(func(s *Submit) { s.Spec.AfterJobs = []messages.JobID{w.awaited} })
	},
	"submit, after a quote": func(w *crowd, i int) *Command {
		return w.submission(func(s *Submit) {
			s.Quote = w.do(&Command{Quote: &Quote{Account: s.Account, Market: "main", Expires: 1e15}}).(uint64)
		})
	},
	"cancel": func(w *crowd, i int) *Command { return &Command{Cancel: &Cancel{Job: w.waiting[i], By: "operator"}} },
	"cancel a job that is to begin": func(w *crowd, i int) *Command {
		return &Command{Cancel: &Cancel{Job: w.waiting[i] + 1, By: "operator"}}
	},
	"cancel a job that is to follow": func(w *crowd, i int) *Command {
		return &Command{Cancel: &Cancel{Job: w.waiting[i] + 2, By: "operator"}}
	},
	"cancel a running job": func(w *crowd, i int) *Command {
		return &Command{Cancel: &Cancel{Job: w.grants[node(i)].Attempt.Task.Job, By: "operator"}}
	},
	"cancel jobs": func(w *crowd, i int) *Command {
		return &Command{CancelJobs: &CancelJobs{Jobs: []messages.JobID{w.waiting[i]}, By: "operator"}}
	},
	"register": func(w *crowd, i int) *Command {
		return &Command{Register: &Register{Node: fmt.Sprint("new", i), Session: 1, Slots: []job.ClassSlots{{Class: "map", Slots: 1}}}}
	},
	"register again": func(w *crowd, i int) *Command {
		return &Command{Register: &Register{Node: node(i), Session: 2, Slots: []job.ClassSlots{{Class: "map", Slots: 8}}}}
	},
	"a node is lost": func(w *crowd, i int) *Command { return &Command{Lost: &Lost{Node: node(i), Session: 1}} },
	"drain":          func(w *crowd, i int) *Command { return &Command{Drain: &Drain{Node: node(i), Until: 9}} },
	"add a window": func(w *crowd, i int) *Command {
		for len(w.windows.all) >= market.MaxWindows-1 {
			w.do(&Command{ChangeWindows: &ChangeWindows{Remove: w.windows.all[0].ID}})
		}
		return &Command{ChangeWindows: &ChangeWindows{Add: &market.Window{Nodes: []messages.Name{node(i)}, From: 2e15, To: 3e15}}}
	},
	"remove a window": func(w *crowd, i int) *Command {
		added := w.do(&Command{ChangeWindows: &ChangeWindows{Add: &market.Window{Nodes: []messages.Name{node(i)}, From: 1, To: 3e15}}})
		return &Command{ChangeWindows: &ChangeWindows{Remove: added.(market.Window).ID}}
	},
	"warn": func(w *crowd, i int) *Command { return &Command{Warn: &Warn{Job: w.grants[node(i)].Attempt.Task.Job}} },
	"evict": func(w *crowd, i int) *Command {
		w.do(&Command{Drain: &Drain{Node: node(i), Until: 9}})
		return &Command{Drain: &Drain{Node: node(i), Until: 9, Evict: true}}
	},
	"a task ends": func(w *crowd, i int) *Command {
		return w.exchange(node(i), []agent.Finished{{Attempt: w.grants[node(i)].Attempt, Outcome: agent.Exited}})
	},
	"a task fails at once": func(w *crowd, i int) *Command {
		return w.exchange(node(i), []agent.Finished{{Attempt: w.grants[node(i)].Attempt, Outcome: agent.Unstartable}})
	},
	"a task is claimed": func(w *crowd, i int) *Command {
		return w.exchange(node(i), nil, Claim{Class: "map", Slots: 1, Jobs: []messages.JobID{w.waiting[i]}})
	},
	"a task is claimed again": func(w *crowd, i int) *Command {
		return w.exchange(node(i), nil, Claim{Class: "map", Slots: 1, Jobs: []messages.JobID{w.big}})
	},
	"a task is claimed again, before one that avoids the node": func(w *crowd, i int) *Command {
		if j := w.jobs.own(w.big); j.Doubts == nil { // the first task to be claimed again has failed on these nodes
			d := &Doubt{}
			for k := range uint32(50) {
				at, _ := w.Position(node(i + int(k)))
				d.Nodes = append(d.Nodes, at)
			}
			j.Doubts = map[[2]uint32]*Doubt{{0, j.Stages[0].Again[0]}: d}
		}
		return w.exchange(node(i), nil, Claim{Class: "map", Slots: 1, Jobs: []messages.JobID{w.big}})
	},
	"settle": func(w *crowd, i int) *Command { return &Command{Settle: &Settle{Job: w.settling()}} },
	"confirm": func(w *crowd, i int) *Command {
		return &Command{Confirm: &Confirm{Effects: []Confirmation{{Effect: w.charging()}}}}
	},
	"tariffs": func(w *crowd, i int) *Command {
		return &Command{Decide: &Decide{Market: "main", Tariffs: []Tariff{{Class: "map", Price: messages.Credits(i)}}}}
	},
	"notes": func(w *crowd, i int) *Command {
		return &Command{Decide: &Decide{Market: "main", Notes: []Note{{Job: w.waiting[i], Numbers: []int64{1}}}}}
	},
	"suspend": func(w *crowd, i int) *Command {
		return &Command{Decide: &Decide{Market: "main", Suspend: []messages.Attempt{w.grants[node(i)].Attempt}}}
	},
	"resume": func(w *crowd, i int) *Command {
		w.do(&Command{Decide: &Decide{Market: "main", Suspend: []messages.Attempt{w.grants[node(i)].Attempt}}})
		return &Command{Decide: &Decide{Market: "main", Resume: []messages.Attempt{w.grants[node(i)].Attempt}}}
	},
	"preempt": func(w *crowd, i int) *Command {
		return &Command{Decide: &Decide{Market: "main", Requeue: []messages.Attempt{w.grants[node(i)].Attempt}}}
	},
	"start": func(w *crowd, i int) *Command {
		return &Command{Decide: &Decide{Market: "main", Start: []Starting{{Job: w.waiting[i], Legs: []Leg{{From: w.waiting[i], To: w.waiting[i+1], Amount: 1}}}}}}
	},
	"discard": func(w *crowd, i int) *Command {
		return &Command{Decide: &Decide{Market: "main", Discard: []Discarding{{Job: w.waiting[i]}}}}
	},
	"disband": func(w *crowd, i int) *Command {
		id := w.submit(func(s *Submit) { s.Spec.Stages[0].Tasks, s.Spec.Stages[0].Gang = 2, true })
		w.claim(node(i), 1, id)
		return &Command{Disband: &Disband{Job: id, Since: w.at}}
	},
	"quote": func(w *crowd, i int) *Command {
		return &Command{Quote: &Quote{Account: fmt.Sprint("user", i), Market: "main", Expires: 1e15}}
	},
	"apply markets": func(w *crowd, i int) *Command {
		return &Command{ApplyMarkets: &ApplyMarkets{Markets: []market.Market{{Name: "main"}}}}
	},
	"issue a token": func(w *crowd, i int) *Command {
		return &Command{Admit: &Admit{Issue: &messages.TokenState{ID: fmt.Sprint("another", i), Expires: math.MaxInt64}}}
	},
	"use a token": func(w *crowd, i int) *Command {
		return &Command{Admit: &Admit{Use: &messages.TokenUse{ID: fmt.Sprint("token", w.n-1-i), Key: "key"}}}
	},
	"revoke a token": func(w *crowd, i int) *Command { return &Command{Admit: &Admit{Revoke: fmt.Sprint("token", w.n-1-i)}} },
	"submit to another site": func(w *crowd, i int) *Command {
		return &Command{EnterRemote: &EnterRemote{Account: "alice", Key: fmt.Sprint(i), Peer: "west", Spec: &job.JobSpec{Stages: []job.Stage{mapStage(1)}}}}
	},
	"a job at another site ends": func(w *crowd, i int) *Command {
		w.do(&Command{Advance: &Advance{Steps: []Step{{Job: w.remote[i], Authorised: &clearing.SignedAuthorisation{}}}}})
		return &Command{Advance: &Advance{Steps: []Step{{Job: w.remote[i], Status: &job.JobSummary{State: job.Completed}}}}}
	},
	"park":   func(w *crowd, i int) *Command { return &Command{Park: &Park{Job: w.waiting[i], By: "operator"}} },
	"change": func(w *crowd, i int) *Command { return &Command{Change: &Change{Job: w.waiting[i], Budget: 2000}} },
	"requeue": func(w *crowd, i int) *Command {
		return &Command{Requeue: &Requeue{Job: w.big, Tasks: []messages.TaskRef{{Job: w.big, Index: w.runs(i)}}}}
	},
	"cancel a task that was given back": func(w *crowd, i int) *Command {
		s := &w.Job(w.big).Stages[0]
		at := slices.IndexFunc(s.Again[len(s.Again)/2:], func(index uint32) bool { return s.Tasks[index].Phase == Pending })
		return w.cancelTask(s.Again[len(s.Again)/2+at])
	},
	"cancel a task that runs": func(w *crowd, i int) *Command { return w.cancelTask(w.runs(i)) },
	"cancel a task that was not claimed": func(w *crowd, i int) *Command {
		return w.cancelTask(uint32(3*w.n - 1 - i))
	},
	"notified": func(w *crowd, i int) *Command {
		return &Command{Notified: &Notified{Outcomes: []NoticeOutcome{{Notice: uint64(1 + w.n/2 + i)}}}}
	},
	"time passes, and a job begins": func(w *crowd, i int) *Command {
		w.at = max(w.at, messages.Time(1e15+1e9*int64(i)))
		return &Command{Begin: &Begin{}}
	},
	"set licences": func(w *crowd, i int) *Command {
		return &Command{SetLicenses: &SetLicenses{Totals: job.Licenses{{Name: "matlab", Count: 1 + i}}}}
	},
	"claim a task with licences": func(w *crowd, i int) *Command {
		w.do(&Command{SetLicenses: &SetLicenses{Totals: job.Licenses{{Name: "matlab", Count: 1000}}}})
		id := w.submit(func(s *Submit) { s.Spec.Stages[0].Licenses = job.Licenses{{Name: "matlab", Count: 1}} })
		return w.exchange(node(i), nil, Claim{Class: "map", Slots: 1, Jobs: []messages.JobID{id}})
	},
	"set bounds": func(w *crowd, i int) *Command {
		return &Command{SetBounds: &SetBounds{Markets: []MarketBounds{{"main", market.AtOnce{Account: market.Bound{Slots: 9 + i}}}}}}
	},
	"claim a task with bounds": func(w *crowd, i int) *Command {
		w.do(&Command{SetBounds: &SetBounds{Markets: []MarketBounds{{"main", market.AtOnce{Account: market.Bound{Slots: 1000}}}}}})
		id := w.submit(nil)
		return w.exchange(node(i), nil, Claim{Class: "map", Slots: 1, Jobs: []messages.JobID{id}})
	},
	"restored": func(w *crowd, i int) *Command { return &Command{Restored: &Restored{Backup: messages.Time(i)}} },
}

func (w *crowd) runs(i int) uint32 {
	for r := range w.Node(node(i)).Claims {
		if r.Job == w.big {
			return r.Index
		}
	}
	w.t.Fatalf("node %d runs no task of job %d", i, w.big)
	return 0
}

func (w *crowd) cancelTask(index uint32) *Command {
	return &Command{CancelTasks: &CancelTasks{Job: w.big, By: "operator", Tasks: job.Array{{First: int64(index), Last: int64(index), Step: 1}}}}
}

// Each kind of command may take at most twice as long in a book with ten times as many elements.
func TestEachKindOfCommandCostsNoMoreAmongMore(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(-1)) // a garbage collection would make some commands slower, at random
	whole(t, 10)
	names, tried := slices.Sorted(maps.Keys(kinds)), map[string]bool{}
	const n = 900 // ten times this number is within the limits of quotes, notices and tokens
	ratios := map[string]float64{}
	for try := 0; try < 8 && (try == 0 || len(ratios) > 0); try++ {
		few, many := crowded(t, n), crowded(t, 10*n)
		for k, kind := range names {
			if before, again := ratios[kind]; try == 0 || again {
				times := many.cost(kind, k, tried) / few.cost(kind, k, tried)
				if ratios[kind] = times; try > 0 {
					ratios[kind] = min(times, before)
				}
			}
		}
		maps.DeleteFunc(ratios, func(_ string, times float64) bool { return times < 2 })
		debug.FreeOSMemory()
	}
	for kind, times := range ratios {
		t.Errorf("%s: among ten times as much it costs %.1f times as much", kind, times)
	}
	for k := range reflect.TypeFor[Command]().NumField() {
		if f := reflect.TypeFor[Command]().Field(k); f.Type.Kind() == reflect.Pointer && !tried[f.Name] {
			t.Errorf("no command of kind %s is tried", f.Name)
		}
	}
}

// cost measures several commands of one kind, and returns their median time. Unlike a mean, the median does not change
// if the machine pauses once.
func (w *crowd) cost(kind string, at int, tried map[string]bool) float64 {
	const each = 15
	var all [each]float64
	for i := range all {
		c := kinds[kind](w, at*each+i)
		for k := range reflect.TypeFor[Command]().NumField() {
			if f := reflect.ValueOf(c).Elem().Field(k); f.Kind() == reflect.Pointer && !f.IsNil() {
				tried[reflect.TypeFor[Command]().Field(k).Name] = true
			}
		}
		began := time.Now()
		w.do(c)
		all[i] = time.Since(began).Seconds()
	}
	slices.Sort(all[:])
	return max(all[each/2], 3e-6) // a time below 3 µs counts as 3 µs, because a busy machine can double such short times
}
