package backfill

import (
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/candor-grid/candor/auctioneer/mechanism/fifo"
	"github.com/candor-grid/candor/auctioneer/mechanism/rigid"
)

// watchedEasy calls the function in the field `reserved` after each decision. The arguments are the job at the front of
// the queue, and the start that the decision reserved for this job.
type watchedEasy struct {
	*easy
	reserved func(job int, start float64)
}

func (w watchedEasy) Decide(m *rigid.Machine) {
	w.easy.Decide(m)
	if front := w.queue.front(); front < len(w.queue.jobs) {
		job := w.queue.jobs[front]
		w.reserved(job, w.running.Soonest(m.Now, 0, m.Jobs[job].Width))
	}
}

// watchedConservative keeps the start that each job was promised when it arrived.
type watchedConservative struct {
	*conservative
	promised []float64
}

func (w watchedConservative) Arrive(m *rigid.Machine, job int) {
	w.conservative.Arrive(m, job)
	w.promised[job] = w.waiting[len(w.waiting)-1].start
}

// EASY reserves a start time for the first job of its queue: the shadow time. If no run-time estimate is too short, a
// job with a shadow time must start at this time or earlier.
func TestEasyKeepsReservations(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := lasting(t, 1, 1, 1, 2, 5)
		reserved := map[int]float64{}
		e := watchedEasy{newEasy(in), func(job int, start float64) {
			if first, known := reserved[job]; known && start > first {
				t.Fatalf("job %d was to start at %v, now at %v: %+v", job, first, start, in)
			}
			reserved[job] = start
		}}
		s, err := rigid.Run(in, e)
		if err != nil {
			t.Fatal(err)
		}
		for job, start := range reserved {
			if s.Start[job] > start {
				t.Fatalf("job %d starts at %v, not by %v: %+v", job, s.Start[job], start, in)
			}
		}
	})
}

// No job may start after its first promised start. If all estimates are exact, each job must start exactly at this
// time.
func TestConservativeKeepsPromises(t *testing.T) {
	for name, factors := range map[string][]float64{"exact": {1}, "long": {1, 1, 2, 5}} {
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				in := lasting(t, factors...)
				promised := make([]float64, len(in.Jobs))
				s, err := rigid.Run(in, watchedConservative{newConservative(in), promised})
				if err != nil {
					t.Fatal(err)
				}
				for i, start := range s.Start {
					if start > promised[i] || name == "exact" && start != promised[i] {
						t.Fatalf("job %d was promised %v, starts at %v: %+v", i, promised[i], start, in)
					}
				}
			})
		})
	}
}

// The schedule of the first n jobs is computed twice: without later jobs, and with all later jobs. All estimates are
// exact. In both schedules, these n jobs must start at the same times.
func TestLaterArrivalsDelayNobodyPromised(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := lasting(t, 1)
		slices.SortStableFunc(in.Jobs, func(a, b rigid.Job) int { return int(a.Submit - b.Submit) })
		all, err := Schedule(in, Conservative)
		if err != nil {
			t.Fatal(err)
		}
		n := rapid.IntRange(1, len(in.Jobs)).Draw(t, "n")
		some, err := Schedule(&rigid.Instance{Nodes: in.Nodes, Jobs: in.Jobs[:n], Weights: in.Weights}, Conservative)
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(all.Start[:n], some.Start) {
			t.Fatalf("starts %v, with later jobs %v: %+v", some.Start, all.Start[:n], in)
		}
	})
}

// If all jobs have width 1, they start at the same times under easy backfill, under conservative backfill, and in
// package fifo.
func TestSerialJobsAreFirstComeFirstServed(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := lasting(t, 1, 2)
		for i := range in.Jobs {
			in.Jobs[i].Width = 1
		}
		want, err := fifo.Schedule(in)
		if err != nil {
			t.Fatal(err)
		}
		for _, v := range []Variant{EASY, Conservative} {
			if got, err := Schedule(in, v); err != nil || !slices.Equal(got.Start, want.Start) {
				t.Fatalf("%s: %v, %v, want %v: %+v", v, got, err, want, in)
			}
		}
	})
}

// The start times on a machine with 4 nodes were worked out by hand. In each case, the first job uses nodes from time 0
// to time 10, and the second job waits for these nodes. Some later jobs may start before the second job. Other later
// jobs would delay it, so they must wait.
func TestByHand(t *testing.T) {
	job := func(submit, runtime float64, width int) rigid.Job {
		return rigid.Job{Submit: submit, Runtime: runtime, Estimate: runtime, Width: width}
	}
	for _, c := range []struct {
		what    string
		variant Variant
		jobs    []rigid.Job
		want    []float64
	}{
		{"ends by the shadow time", EASY, []rigid.Job{job(0, 10, 3), job(1, 5, 4), job(2, 8, 1), job(2, 1, 1)}, []float64{0, 10, 2, 15}},
		{"too long", EASY, []rigid.Job{job(0, 10, 3), job(1, 5, 4), job(2, 8.5, 1), job(3, 7, 1)}, []float64{0, 10, 15, 3}},
		{"fits in what is spare", EASY, []rigid.Job{job(0, 10, 3), job(1, 5, 3), job(2, 100, 1)}, []float64{0, 10, 2}},
		{"delays the third", EASY, []rigid.Job{job(0, 10, 3), job(1, 5, 3), job(2, 9, 2), job(3, 100, 1)}, []float64{0, 10, 15, 3}},
		{"delays no job", Conservative, []rigid.Job{job(0, 10, 3), job(1, 5, 3), job(2, 9, 4), job(3, 100, 1), job(3, 4, 1)}, []float64{0, 10, 15, 24, 3}},
		{"ends at the shadow time, and needs no spare node", EASY,
			[]rigid.Job{job(0, 10, 2), job(1, 5, 3), job(2, 8, 1), job(2, 100, 1)}, []float64{0, 10, 2, 2}},
	} {
		s, err := Schedule(&rigid.Instance{Nodes: 4, Jobs: c.jobs}, c.variant)
		if err != nil || !slices.Equal(s.Start, c.want) {
			t.Errorf("%s: %+v, %v, want %v", c.what, s, err, c.want)
		}
	}
}

// When a job runs longer than expected, its expected run time doubles. The first job runs for 10 s, and its estimate is
// 4 s. At 4 s it still runs, and is expected to end at 8 s. So the third job, of length 4 s, starts before the second
// job, which needs both nodes. At 8 s the first job is expected to end at 16 s, so the fourth job, of length 7 s,
// starts.
func TestOutlivedEstimates(t *testing.T) {
	in := &rigid.Instance{Nodes: 2, Jobs: []rigid.Job{
		{Runtime: 10, Estimate: 4, Width: 1}, {Runtime: 1, Estimate: 1, Width: 2},
		{Submit: 1, Runtime: 4, Estimate: 4, Width: 1}, {Submit: 1, Runtime: 7, Estimate: 7, Width: 1}}}
	for _, v := range []Variant{EASY, Conservative} {
		s, err := Schedule(in, v)
		if want := []float64{0, 15, 4, 8}; err != nil || !slices.Equal(s.Start, want) {
			t.Errorf("%s: %+v, %v, want %v", v, s, err, want)
		}
	}
}

// The queue's search in its tree must find the same job as a search through all jobs.
func TestQueueFindsTheFirst(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(0, 40).Draw(t, "n")
		q, needs := newQueue(n), []need{}
		for i := range n {
			x := need{rapid.IntRange(1, 9).Draw(t, "width"), float64(rapid.IntRange(1, 9).Draw(t, "estimate"))}
			q.push(i, x.width, x.estimate)
			needs = append(needs, x)
		}
		for range rapid.IntRange(0, 20).Draw(t, "taken") {
			if n > 0 {
				at := rapid.IntRange(0, n-1).Draw(t, "at")
				q.take(at)
				needs[at] = empty
			}
		}
		w := want{free: rapid.IntRange(0, 9).Draw(t, "free"), spare: rapid.IntRange(0, 9).Draw(t, "spare"),
			now: 3, shadow: float64(rapid.IntRange(3, 12).Draw(t, "shadow"))}
		from := rapid.IntRange(0, n).Draw(t, "from")
		first := -1
		for i := n - 1; i >= from; i-- {
			if x := needs[i]; x.width <= w.free && (x.width <= w.spare || 3+x.estimate <= w.shadow) {
				first = i
			}
		}
		if got := q.find(from, w); got != first {
			t.Fatalf("found %d, want %d: %v %+v", got, first, needs, w)
		}
		front := slices.IndexFunc(needs, func(x need) bool { return x.width != math.MaxInt })
		if front < 0 {
			front = n
		}
		if got := q.front(); got != front {
			t.Fatalf("front %d, want %d", got, front)
		}
	})
}
