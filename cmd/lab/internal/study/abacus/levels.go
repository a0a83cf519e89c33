package abacus

import (
	"cmp"
	"math"
	"slices"

	"github.com/candor-grid/candor/auctioneer/mechanism/proportional"
	"github.com/candor-grid/candor/cmd/lab/internal/study/aria"
)

// taskSpread is the largest difference between a task's duration and the mean duration, divided by the mean duration.
const taskSpread = 0.2

// pool divides the active jobs into two groups, as section 6 of the ABACUS paper does. It considers jobs by descending
// budget. A job joins the pool if the estimate says that all jobs of the pool would still meet their deadlines with the
// slots that the auction gives them. Jobs outside the pool get the slots that jobs in the pool cannot use.
func (r *course) pool() error {
	order := slices.Clone(r.active)
	slices.SortStableFunc(order, func(a, b *mapReduce) int { return cmp.Compare(b.budget, a.budget) })
	var members []*mapReduce
	for _, j := range order {
		if j.outside = true; r.now+r.estimate(j, [classes]float64{1, 1}) > j.deadline {
			continue // the job would be late even alone
		}
		fits, err := r.share(append(members, j))
		if err != nil {
			return err
		}
		if fits {
			members, j.outside = append(members, j), false
		}
	}
	_, err := r.share(members)
	return err
}

// share computes the slots that the given jobs get in an auction without other bidders. It returns true if all the
// given jobs are estimated to end in time.
func (r *course) share(members []*mapReduce) (bool, error) {
	if len(members) == 0 {
		return true, nil
	}
	p := &proportional.Problem{Alpha: r.alpha, Classes: classes}
	for _, j := range members {
		p.Budgets, p.Weights = append(p.Budgets, j.budget), append(p.Weights, r.users[j.user].weights[:]...)
	}
	out, err := r.solver.Solve(p)
	if err != nil {
		return false, err
	}
	fits := true
	for i, j := range members {
		copy(j.shares[:], out.Shares[i*classes:])
		fits = fits && r.now+r.estimate(j, j.shares) <= j.deadline
	}
	return fits, nil
}

// estimate returns how long a job still runs with the given shares, as the bounds of ARIA estimate it. Each share of
// the slots is rounded to whole slots.
func (r *course) estimate(j *mapReduce, shares [classes]float64) float64 {
	var phases []aria.Phase
	var slots []int
	for class, tasks := range j.left {
		if tasks == 0 {
			continue
		}
		mean := r.users[j.user].seconds[class]
		phases = append(phases, aria.Phase{Class: class, Tasks: tasks, Mean: mean, Longest: mean * (1 + taskSpread)})
		slots = append(slots, max(1, int(math.Round(shares[class]*float64(r.slots[class])))))
	}
	return aria.Estimate(phases, slots)
}

// leftover returns a random job that has no slots of its own and has a waiting task of the class. It returns nil if
// there is none.
func (r *course) leftover(class int) *mapReduce {
	var waiting []*mapReduce
	for _, j := range r.active {
		if j.outside && j.waits(class) {
			waiting = append(waiting, j)
		}
	}
	if len(waiting) == 0 {
		return nil
	}
	return waiting[r.levels.IntN(len(waiting))]
}
