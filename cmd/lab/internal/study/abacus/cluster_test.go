package abacus

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/candor-grid/candor/cmd/lab/internal/study/studytest"
)

// alone returns a job with two map tasks of 10 seconds, two reduce tasks of 4 seconds, and a budget of 100.
func alone(user int) *mapReduce {
	return &mapReduce{user: user, budget: 100, durations: [classes][]float64{{10, 10}, {4, 4}}, left: [classes]int{2, 2}}
}

// Two equal jobs run on two slots of each class. With first in, first out, the maps of the first job end at 10 s and
// its reduces at 14 s. The second job is 10 s later in both phases. With equal shares, the maps of both jobs end at 20
// s and their reduces at 28 s.
func TestCluster(t *testing.T) {
	for _, c := range []struct {
		fifo          bool
		first, second float64
	}{{true, 14, 24}, {false, 28, 28}} {
		u := user{budget: 100, weights: [classes]float64{1, 1}}
		k := cluster{users: []user{u, u}, slots: [classes]int{2, 2}, alpha: 0.5, fifo: c.fifo}
		s, err := k.run([]*mapReduce{alone(0), alone(1)})
		if err != nil {
			t.Fatal(err)
		}
		if s.response[0] != c.first || s.response[1] != c.second || s.total != c.second {
			t.Errorf("fifo %t: %+v, want %v and %v", c.fifo, s, c.first, c.second)
		}
	}
}

// On one axis of a figure, the number of users grows. Two of its points can be compared only if the other users do not
// change a user's jobs.
func TestUsersJobsDoNotDependOnOthers(t *testing.T) {
	of := func(jobs []*mapReduce) (sum float64, n int) {
		for _, j := range jobs {
			if j.user == 0 {
				sum, n = sum+j.submitted+j.durations[mapClass][0], n+1
			}
		}
		return sum, n
	}
	sum, n := of(private(1).draw(submitSeconds, 5))
	if more, m := of(private(6).draw(submitSeconds, 5)); m != n || math.Abs(more-sum) > 1e-6 || n == 0 {
		t.Errorf("%d jobs of %v alone, %d of %v among others", n, sum, m, more)
	}
}

func TestEfficiencyBearsThePaperOut(t *testing.T) {
	r := studytest.Quick(t, Efficiency, 1)
	studytest.Same(t, r, "A larger budget", "It makes the others", "With less than the others", "A larger α")
}

// With more users, the total time must never be shorter. The test compares two schedulers: the auction, and first in,
// first out. Only the auction prefers nodes that have the data of a job's tasks. This helps if jobs are short and only
// some nodes have their data, so in this case the auction must be faster. In all other cases it must not be faster.
func TestTotalTime(t *testing.T) {
	r := studytest.Quick(t, Time, 1)
	n := r.Numbers.(map[string]both)
	for k := 1; k < len(n["10a"].FIFO); k++ {
		before, b := n["10a"].FIFO[k-1].Total.Mean, n["10a"].FIFO[k].Total.Mean
		if b < before {
			t.Errorf("with %v users all is done at %v, with fewer at %v", n["10a"].FIFO[k].At, b, before)
		}
	}
	for key, faster := range map[string]bool{"plain": false, "slow": false, "short": false, "data-short": true, "data-patient-short": false, "data-slow-short": true} {
		b := n[key+" 10a"]
		if over := b.over(3); faster && over > 0.9 || !faster && over < 1 {
			t.Errorf("%s: with four users the auction takes %v of the time", key, over)
		}
	}
}

// ARIA's bounds estimate that one job alone takes 18.9 seconds, and that two jobs together take 29.4 seconds. If their
// deadlines are earlier than 29.4 seconds, only the job with the larger budget is admitted (it is in the pool). It gets
// all slots first and ends at 14 s, and the other job ends at 24 s. With deadlines of 30 s both jobs share the slots,
// and end at 28 s.
func TestPool(t *testing.T) {
	for _, c := range []struct{ deadline, profit float64 }{{13, 0}, {20, 100}, {23, 100}, {24, 160}, {30, 160}} {
		u := user{weights: [classes]float64{1, 1}, seconds: [classes]float64{10, 4}}
		k := cluster{users: []user{u}, slots: [classes]int{2, 2}, alpha: 0.5, levels: rand.New(rand.NewPCG(1, 1))}
		small, large := alone(0), alone(0)
		small.budget, large.budget = 60, 100
		small.deadline, large.deadline = c.deadline, c.deadline
		s, err := k.run([]*mapReduce{small, large})
		if err != nil {
			t.Fatal(err)
		}
		if s.profit != c.profit {
			t.Errorf("deadline %v: profit %v, want %v", c.deadline, s.profit, c.profit)
		}
	}
}

// A small study must confirm what the paper says about the overall profit. At loads below the capacity, each scheduler
// must earn almost the budgets of all jobs.
func TestSLOBearsThePaperOut(t *testing.T) {
	r := studytest.Quick(t, SLO, 2)
	studytest.Same(t, r, "The overall profit")
	for name, of := range r.Numbers.(sloNumbers) {
		for _, p := range of {
			for s, part := range p.Parts {
				if !(part.Mean > 0 && part.Mean <= 1+1e-12) || p.Rate < 1 && part.Mean < 0.99 {
					t.Errorf("%s, workload %v, %s: %v of the budgets", name, p.Rate, schedulers[s], part)
				}
			}
		}
	}
}
