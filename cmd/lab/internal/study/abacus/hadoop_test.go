package abacus

import "testing"

// The maps of the first job end at 10 and 30. The second job's map gets the slot that is free at 10, and ends at 20.
// The second job's reduce then runs until 24. If slowStart is set, the first job's reduces hold both slots from 10 to
// 34. Then the second job's reduce runs until 38.
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

// The first node has the first free slot. The first job's data is on the second node, and the second job's data is on
// the first node. A map of 10 seconds takes 20 seconds on a node without its data. In the order of arrival, both maps
// run without their data. In an auction, both maps run where their data is. They also do so in the order of arrival if
// jobs wait for the node with their data (the field patient).
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
