package book

import (
	"fmt"
	"math"
	"runtime/debug"
	"testing"
	"time"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/agent"
	"github.com/candor-grid/candor/messages/job"
)

// A function of the type `measured` builds a book with n elements, for example n jobs. It returns how long one command
// on this book takes.
type measured func(t *testing.T, n int) time.Duration

// growth returns how many times longer a command takes with ten times as many elements. It compares the smallest
// measurement of each size, because other work on the machine only makes a measurement larger.
func growth(t *testing.T, n int, of measured) (times float64) {
	defer debug.SetGCPercent(debug.SetGCPercent(-1)) // a garbage collection would make some commands slower, at random
	few, many := math.Inf(1), math.Inf(1)
	for round := range 12 {
		few, many = min(few, of(t, n).Seconds()), min(many, of(t, 10*n).Seconds())
		if times = many / few; round >= 2 && times < 2 {
			break
		}
	}
	return times
}

// Each measurement is repeated with ten times as many elements. It may then take at most 5 times longer. A scan of all
// elements would take 10 times longer. Data that no longer fit in the processor's cache took 3.6 times longer.
const most = 5

// The time that each of these commands takes must not grow with the number of elements. In earlier versions, each of
// them scanned a list.
func TestCommandsCostNoMoreAmongMore(t *testing.T) {
	whole(t, 10)
	retaining(t, 10)
	for name, of := range map[string]measured{
		"tasks that were given back are cancelled": func(t *testing.T, n int) time.Duration { // measures the time for each task
			s := newSite(t)
			s.register("n", 1, n)
			id := s.submit("k", mapStage(n))
			s.claim("n", 1, 1, n, id)
			s.apply(Command{Lost: &Lost{Node: "n", Session: 1}})
			began := time.Now()
			if done := s.cancelTasks(id, fmt.Sprintf("0-%d", n-1)); done != n {
				t.Fatalf("cancelled %v of %d tasks", done, n)
			}
			return time.Since(began) / time.Duration(n)
		},
		"a node ends some of the tasks that it was told to": func(t *testing.T, n int) time.Duration {
			s := newSite(t)
			s.register("n", 1, n)
			id := s.submit("k", mapStage(n))
			x := &Exchange{Node: "n", Session: 1, Seq: 2}
			for _, g := range s.claim("n", 1, 1, n, id)[:1000] {
				x.Finished = append(x.Finished, agent.Finished{Attempt: g.Attempt, Outcome: agent.Stopped})
			}
			s.apply(Command{Cancel: &Cancel{Job: id, By: "alice"}})
			began := time.Now()
			s.Apply(&Command{At: s.at, Exchange: x})
			took := time.Since(began)
			if left := len(s.Node("n").Stop); left != n-1000 {
				t.Fatalf("%d tasks are to be stopped still", left)
			}
			return took
		},
		"a task fails at once, among removed nodes": func(t *testing.T, n int) time.Duration {
			s := newSite(t)
			for i := range n {
				name := fmt.Sprint("gone", i)
				s.Apply(&Command{Register: &Register{Node: name, Session: 1, Slots: []job.ClassSlots{{Class: "map", Slots: 1}}}})
				s.Apply(&Command{Lost: &Lost{Node: name, Session: 1}})
				s.Apply(&Command{Drain: &Drain{Node: name, Remove: true}})
			}
			const tasks = 100
			s.register("n", 1, tasks)
			x := &Exchange{Node: "n", Session: 1, Seq: 2}
			for _, g := range s.claim("n", 1, 1, tasks, s.submit("k", mapStage(tasks))) {
				x.Finished = append(x.Finished, agent.Finished{Attempt: g.Attempt, Outcome: agent.Unstartable})
			}
			began := time.Now()
			s.Apply(&Command{At: s.at, Exchange: x})
			return time.Since(began) / tasks
		},
		"a job ends, and older ones wait": func(t *testing.T, n int) (spent time.Duration) {
			b, key := New(), 0
			b.Archive(func(Ended) {})
			submit := func() messages.JobID {
				key++
				return b.Apply(&Command{At: 1, Submit: &Submit{Account: "alice", Key: fmt.Sprint(key), Payer: "alice", Hold: "h", Held: 100,
					Spec: &job.JobSpec{Market: "main", Budget: 100, Stages: []job.Stage{mapStage(1)}}}}).(Receipt).Job
			}
			for range 4 * n {
				submit()
			}
			const ends = 200
			for range ends {
				id := submit()
				b.Apply(&Command{At: 1, Cancel: &Cancel{Job: id, By: "alice"}})
				b.Apply(&Command{At: 1, Settle: &Settle{Job: id}})
				for range 2 {
					c := &Command{At: 1, Confirm: &Confirm{Effects: []Confirmation{{Effect: b.LastEffect()}}}}
					began := time.Now()
					b.Apply(c)
					spent += time.Since(began)
				}
			}
			return spent / ends
		},
	} {
		t.Run(name, func(t *testing.T) {
			if times := growth(t, 2_000, of); times >= most {
				t.Errorf("among ten times as many it costs %.1f times as much", times)
			}
		})
	}
}
