package deadlineaware

// Schedule says when each job runs. Except for Order, each slice has one element for each job. Times are in seconds
// from now.
type Schedule struct {
	Order      []int     // the jobs, in the order in which they get slots
	Target     []float64 // when the job completes if its work and the work of all jobs before it are divided equally among the slots
	Level      []float64 // the job's utility at Target
	Start      []float64 // when the first task of the job starts
	Completion []float64 // when the last task of the job ends
	Utility    []float64 // the job's utility at Completion
	GivenUp    []bool    // the job would complete too late to have any utility
}

// New schedules the jobs of a problem.
func New(p *Problem) (*Schedule, error) {
	q, err := newPlanner(p)
	if err != nil {
		return nil, err
	}
	n := len(p.Jobs)
	flat := make([]float64, 5*n)
	s := &Schedule{Order: make([]int, 0, n), Target: flat[:n:n], Level: flat[n : 2*n : 2*n], Start: flat[2*n : 3*n : 3*n],
		Completion: flat[3*n : 4*n : 4*n], Utility: flat[4*n:], GivenUp: make([]bool, n)}
	served := q.serve(nil)
	order := q.order(served)
	m := newMachine(p)
	work := 0.0
	for _, j := range order {
		x, job := &q.items[j], &p.Jobs[j]
		work += x.work
		s.Order = append(s.Order, int(j))
		s.Target[j] = work/q.slots + x.spill
		s.Level[j] = x.at(work / q.slots)
		s.GivenUp[j] = x.work > 0 && !served[j]
		s.Start[j], s.Completion[j] = m.place(int(j), job)
		s.Utility[j] = job.Valuation.At((job.Elapsed + s.Completion[j]) * grace)
	}
	return s, nil
}

// Order returns only the Order of the schedule. It does not compute slots.
func Order(p *Problem) ([]int, error) {
	q, err := newPlanner(p)
	if err != nil {
		return nil, err
	}
	order := make([]int, 0, len(p.Jobs))
	for _, j := range q.order(q.serve(nil)) {
		order = append(order, int(j))
	}
	return order, nil
}

// order returns all jobs in the order of the schedule: first the jobs without work, then the jobs that are served, then
// the jobs that are given up. Among the jobs that are given up, the one with the least work comes first.
func (q *planner) order(served []bool) []int32 {
	order := append(make([]int32, 0, len(q.items)), q.idle...)
	order = q.appendPeeled(order, q.pick(q.byTop, served, true))
	return append(order, q.pick(q.byWork, served, false)...)
}

// pick returns the jobs that are served if `want` is true, and the jobs that are not served if `want` is false.
func (q *planner) pick(jobs []int32, served []bool, want bool) []int32 {
	picked := make([]int32, 0, len(jobs))
	for _, j := range jobs {
		if served[j] == want {
			picked = append(picked, j)
		}
	}
	return picked
}

// appendPeeled appends jobs to `order`, in the order in which the schedule gives them slots. The argument `jobs` must
// be sorted as the method byTop sorts.
func (q *planner) appendPeeled(order, jobs []int32) []int32 {
	layers := q.peel(jobs, 0)
	for k := len(layers) - 1; k >= 0; k-- {
		order = append(order, layers[k].job)
	}
	return order
}
