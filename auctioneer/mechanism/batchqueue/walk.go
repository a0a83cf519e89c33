package batchqueue

// insertion is how many terms added up cost as much as a job put into schedules.
const insertion = 32

// walk enumerates the profiles of whole types in queue order, as a tree: the
// schedules of the first jobs are drawn up once for all profiles that begin so.
type walk struct {
	q     *Queue
	types [][]Point
	left  *steps
	tiers []schedules // by depth: of the jobs before
	j     int         // who is as announced
	value float64     // of the front job
	sum   float64
}

func (w *walk) run() ([]float64, error) {
	out := make([]float64, len(w.q.Jobs))
	for range len(w.q.Jobs) + 1 {
		w.tiers = append(w.tiers, newSchedules(w.q))
	}
	for j := range out {
		w.j, w.sum = j, 0
		if err := w.from(0, 1, 0, 0); err != nil {
			return nil, err
		}
		out[j] = w.sum
	}
	return out, nil
}

// from goes through the types of job i and those behind it. So far: the
// probability, what the delay costs all, and all but j.
func (w *walk) from(i int, p, all, others float64) error {
	if i == len(w.q.Jobs) {
		w.leaf(p, all, others)
		return nil
	}
	if i == w.j {
		return w.branch(i, &w.q.Jobs[i], p, all, others)
	}
	for k := range w.types[i] {
		point := &w.types[i][k]
		if err := w.branch(i, &point.Type, p*point.P, all, others); err != nil {
			return err
		}
	}
	return nil
}

func (w *walk) branch(i int, t *Job, p, all, others float64) error {
	if err := w.left.spend(insertion); err != nil {
		return err
	}
	w.tiers[i+1].copy(w.tiers[i])
	cost := inserted(w.tiers[i+1], *t, i == 0)
	if i == 0 {
		w.value = t.Value
	}
	all += cost
	if i != w.j {
		others += cost
	}
	return w.from(i+1, p, all, others)
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
