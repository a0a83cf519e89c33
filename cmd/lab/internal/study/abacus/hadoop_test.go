package abacus

import "testing"

// TestSlowStart, by hand: the first job's maps end at 10 and 30, the second's, on
// the slot free at 10, at 20. Its reduce then runs to 24; but where the first job's
// reduces take both slots at 10 and hold them until its own end at 34, to 38.
func TestSlowStart(t *testing.T) {
	for _, c := range []struct{ slowStart, first, second float64 }{{0, 34, 24}, {0.5, 34, 38}} {
		k := cluster{users: make([]user, 2), slots: [classes]int{2, 2}, fifo: true, hadoop: hadoop{slowStart: c.slowStart}}
		jobs := []*mapReduce{
			{durations: [classes][]float64{{10, 30}, {4, 4}}, left: [classes]int{2, 2}},
			{user: 1, durations: [classes][]float64{{10}, {4}}, left: [classes]int{1, 1}},
		}
		k.spread(jobs, 1)
		s, err := k.run(jobs)
		if err != nil {
			t.Fatal(err)
		}
		if s.response[0] != c.first || s.response[1] != c.second {
			t.Errorf("slow start %v: %v, want %v and %v", c.slowStart, s.response, c.first, c.second)
		}
	}
}

// TestData, by hand: the first node is free first. The first job's data are on the
// second, the second job's on the first, and a map of 10 elsewhere takes 20. First
// in, first out both are so; by turns neither.
func TestData(t *testing.T) {
	for _, c := range []struct {
		fifo, patient bool
		total, away   float64
	}{{true, false, 24, 1}, {true, true, 14, 0}, {false, false, 14, 0}} {
		u := user{budget: 100, weights: [classes]float64{1, 1}}
		k := cluster{users: []user{u, u}, slots: [classes]int{2, 2}, alpha: 0.5, fifo: c.fifo, hadoop: hadoop{away: 2, perNode: 1, patient: c.patient}}
		var jobs []*mapReduce
		for i := range 2 {
			jobs = append(jobs, &mapReduce{user: i, budget: 100, durations: [classes][]float64{{10}, {4}}, left: [classes]int{1, 1}, data: [][copies]int{{1 - i, 8, 9}}})
		}
		s, err := k.run(jobs)
		if err != nil {
			t.Fatal(err)
		}
		if s.total != c.total || s.away != c.away {
			t.Errorf("first in, first out %t, patient %t: %v with %v away, want %v with %v", c.fifo, c.patient, s.total, s.away, c.total, c.away)
		}
	}
}

// TestSpread: a map's data are on different nodes of the cluster.
func TestSpread(t *testing.T) {
	k := public(4, 6)
	k.away = 2
	for _, j := range k.draw(submitSeconds, 3) {
		for _, on := range j.data {
			if len(j.data) != len(j.durations[mapClass]) || max(on[0], on[1], on[2]) >= 6 || on[0] == on[1] || on[1] == on[2] || on[0] == on[2] {
				t.Fatalf("data on %v of 6 nodes", on)
			}
		}
	}
}
