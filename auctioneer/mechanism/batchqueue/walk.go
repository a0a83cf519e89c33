package batchqueue

// insertion is how many steps of an enumeration count for the insertion of a job into the schedules. The number of
// steps is limited.
const insertion = 8

// walk enumerates the profiles in mode Full. A profile has one type for each job. The profiles are a tree with one
// level for each job, in the order of the queue. Profiles that begin with the same types have the same first nodes, and
// the schedules at these nodes are computed only once.
type walk struct {
	q     *Queue
	types [][]Point
	left  *steps
	tiers []schedules // by depth in the tree: the schedules of the jobs before it
	j     int         // position of the job whose announced type is used; the types of the other jobs are enumerated
	value float64     // the front job's value in this profile
	sum   float64
}

func (w *walk) run() ([]float64, error) {
	out := make([]float64, len(w.q.Jobs))
	for j := range out {
		if err := w.left.spend(w.size(j)); err != nil {
			return nil, err
		}
	}
	for range len(w.q.Jobs) + 1 {
		w.tiers = append(w.tiers, newSchedules(w.q))
	}
	for j := range out {
		w.j, w.sum = j, 0
		w.from(0, 1, 0, 0)
		out[j] = w.sum
	}
	return out, nil
}

// size returns how many steps it takes to enumerate all combinations of types, if job j has the type that it announced.
// When the count passes MaxSteps, size stops counting and returns the count so far.
func (w *walk) size(j int) int {
	total, tier := 0, 1
	for i := range w.types {
		if i != j {
			tier *= len(w.types[i])
		}
		if total += tier * insertion; total > MaxSteps {
			return total // return before it can overflow
		}
	}
	return total
}

// This method enumerates the types of job i and of all jobs behind it, in all combinations. The types of the jobs
// before job i are fixed. The argument `p` is the probability of the fixed types. The argument `all` is the cost of
// delay of the jobs before job i, and `others` is this cost without job j.
func (w *walk) from(i int, p, all, others float64) {
	switch i {
	case len(w.q.Jobs):
		w.leaf(p, all, others)
	case w.j:
		w.branch(i, &w.q.Jobs[i], p, all, others)
	default:
		for k := range w.types[i] {
			point := &w.types[i][k]
			w.branch(i, &point.Type, p*point.P, all, others)
		}
	}
}

func (w *walk) branch(i int, t *Job, p, all, others float64) {
	w.tiers[i+1].copy(w.tiers[i])
	cost := inserted(w.tiers[i+1], *t, i == 0)
	if i == 0 {
		w.value = t.Value
	}
	all += cost
	if i != w.j {
		others += cost
	}
	w.from(i+1, p, all, others)
}

func (w *walk) leaf(p, all, others float64) {
	if !worth(w.value, all) {
		return
	}
	if w.j != 0 {
		others -= w.value
	}
	w.sum -= p * others
}
