package abacus

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/candor-grid/candor/auctioneer/mechanism/proportional"
	"github.com/candor-grid/candor/messages/heap"
)

const (
	mapClass = iota
	reduceClass
	classes
)

// user submits jobs of one kind, by a Poisson process.
type user struct {
	budget  float64          // budget of each job
	weights [classes]float64 // weights that the user reports
	tasks   [classes]int
	seconds [classes]float64 // mean time of a task
	between float64          // seconds between submissions, on average
}

type cluster struct {
	users []user
	slots [classes]int
	alpha float64
	fifo  bool // the earliest job gets everything that it can use, without an auction
	// levels is nil if jobs have no deadlines. If they have deadlines (the paper's service levels), levels is the
	// random generator that chooses among jobs outside the pool.
	levels *rand.Rand
	hadoop
}

// mapReduce is a job with map tasks and reduce tasks. A reduce task runs only after all map tasks have ended.
type mapReduce struct {
	user      int
	submitted float64
	durations [classes][]float64
	next      [classes]int // number of started tasks
	left      [classes]int // number of tasks that have not ended
	running   [classes]int
	shares    [classes]float64
	early     int           // reduces may take slots when at most this many maps have not ended
	held      []float64     // durations of reduces that have slots and wait for maps
	data      [][copies]int // nodes with the data of each map
	budget    float64

	// The following fields are used only for jobs with deadlines.

	deadline float64
	outside  bool // the job is not in the pool of jobs that the auction serves
}

// waits reports whether the job has a task that can start on a slot of a class.
func (j *mapReduce) waits(class int) bool {
	return j.next[class] < len(j.durations[class]) && (class == mapClass || j.left[mapClass] <= j.early)
}

// draw draws the jobs that are submitted until a time, and returns them in the order of submission. The jobs of one
// user do not depend on the other users. The time of each task differs from the mean by at most a fifth of the mean.
func (c *cluster) draw(until float64, seed uint64) []*mapReduce {
	var jobs []*mapReduce
	for i, u := range c.users {
		r := rand.New(rand.NewPCG(seed, uint64(i)))
		for at := u.between * r.ExpFloat64(); at < until; at += u.between * r.ExpFloat64() {
			jobs = append(jobs, c.job(i, at, r))
		}
	}
	slices.SortStableFunc(jobs, bySubmission)
	c.spread(jobs, seed)
	return jobs
}

func (c *cluster) job(i int, at float64, r *rand.Rand) *mapReduce {
	u := &c.users[i]
	j := &mapReduce{user: i, submitted: at, left: u.tasks, budget: u.budget}
	for class := range classes {
		for range u.tasks[class] {
			j.durations[class] = append(j.durations[class], u.seconds[class]*(1-taskSpread+2*taskSpread*r.Float64()))
		}
	}
	return j
}

func bySubmission(a, b *mapReduce) int { return cmp.Compare(a.submitted, b.submitted) }

// ending is a running task with the time of its end.
type ending struct {
	at    float64
	job   *mapReduce
	class int
	node  int // the node on which a map runs; not used if nodes are all alike
}

var byEnd = heap.Order[ending]{Before: func(a, b ending) bool { return a.at < b.at }}

type course struct {
	*cluster
	solver proportional.Solver
	now    float64
	free   [classes]int
	idle   []int        // the nodes of the free map slots; not used if nodes are all alike
	active []*mapReduce // jobs that have not ended, in the order of submission
	ends   []ending     // running tasks, as a heap ordered by byEnd
	sums   []float64    // sums of response times, by user
	counts []int
	profit float64
	maps   int // number of started maps; not used if nodes are all alike
	strays int // number of these maps that started on nodes without their data
}

// served has the results of a run. The list `response` has the mean response time of each user, in seconds. `total` is
// the end of the last job. `profit` is the sum of the budgets of the jobs that ended in time. `away` is the fraction of
// map tasks that ran on a node without their data.
type served struct {
	response []float64
	total    float64
	profit   float64
	away     float64
}

// run serves the jobs until all have ended. It changes the jobs. All events of the same time happen before slots are
// given out.
func (c *cluster) run(jobs []*mapReduce) (*served, error) {
	r := &course{cluster: c, free: c.slots, idle: c.nodes(), sums: make([]float64, len(c.users)), counts: make([]int, len(c.users))}
	for len(jobs) > 0 || len(r.ends) > 0 {
		r.now = math.Inf(1)
		if len(jobs) > 0 {
			r.now = jobs[0].submitted
		}
		if len(r.ends) > 0 {
			r.now = min(r.now, r.ends[0].at)
		}
		changed := false
		for len(r.ends) > 0 && r.ends[0].at == r.now {
			changed = r.end(byEnd.Pop(&r.ends)) || changed
		}
		for ; len(jobs) > 0 && jobs[0].submitted == r.now; jobs = jobs[1:] {
			r.active, changed = append(r.active, jobs[0]), true
		}
		if changed && !c.fifo {
			if err := r.auction(); err != nil {
				return nil, err
			}
		}
		r.start()
	}
	s := &served{total: r.now, profit: r.profit, away: float64(r.strays) / max(1, float64(r.maps))}
	for i, sum := range r.sums {
		s.response = append(s.response, sum/math.Max(1, float64(r.counts[i])))
	}
	return s, nil
}

// end ends a task, and reports whether this was the last task of its job.
func (r *course) end(e ending) bool {
	r.free[e.class]++
	e.job.running[e.class]--
	e.job.left[e.class]--
	if e.class == mapClass {
		if r.away > 0 {
			r.idle = append(r.idle, e.node)
		}
		if e.job.left[mapClass] == 0 {
			for _, d := range e.job.held {
				byEnd.Push(&r.ends, ending{at: r.now + d, job: e.job, class: reduceClass})
			}
		}
	}
	if e.job.left[mapClass]+e.job.left[reduceClass] > 0 {
		return false
	}
	r.sums[e.job.user] += r.now - e.job.submitted
	r.counts[e.job.user]++
	if r.now <= e.job.deadline {
		r.profit += e.job.budget
	}
	r.active = slices.DeleteFunc(r.active, func(j *mapReduce) bool { return j == e.job })
	return true
}

func (r *course) auction() error {
	if r.levels != nil {
		return r.pool()
	}
	_, err := r.share(r.active)
	return err
}

// start gives each free slot to a job that has a task for it. It chooses the job that has the smallest part of the
// slots that it should have.
func (r *course) start() {
	for class := range classes {
		for r.free[class] > 0 {
			var j *mapReduce
			if class == mapClass && r.away > 0 {
				j = r.place()
			} else {
				j = r.pick(class, nil)
			}
			if j == nil {
				break
			}
			r.begin(j, class)
		}
	}
}

func (r *course) begin(j *mapReduce, class int) {
	d := j.durations[class][j.next[class]]
	j.next[class]++
	j.running[class]++
	r.free[class]--
	if class == reduceClass && j.left[mapClass] > 0 {
		j.held = append(j.held, d)
		return
	}
	e := ending{at: r.now + d, job: j, class: class}
	if class == mapClass && r.away > 0 {
		e.node, r.idle = r.idle[0], r.idle[1:]
	}
	byEnd.Push(&r.ends, e)
}

// pick returns the job that gets the free slot of the given class. If the function `fit` is given, only jobs for which
// it returns true may get the slot.
func (r *course) pick(class int, fit func(*mapReduce) bool) *mapReduce {
	var best *mapReduce
	least := math.Inf(1)
	for _, j := range r.active {
		if !j.waits(class) || j.outside || fit != nil && !fit(j) {
			continue
		}
		if r.fifo {
			return j
		}
		if part := float64(j.running[class]+1) / j.shares[class]; best == nil || part < least {
			best, least = j, part
		}
	}
	if best == nil && r.levels != nil {
		return r.leftover(class)
	}
	return best
}
