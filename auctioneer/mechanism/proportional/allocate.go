package proportional

import (
	"cmp"
	"math"
	"slices"

	"github.com/candor-grid/candor/auctioneer/mechanism"
	"github.com/candor-grid/candor/messages"
	jobmsg "github.com/candor-grid/candor/messages/job"
)

// Allocate decides on a complete view. It compares the view with the last view, which costs a few nanoseconds for each
// job. The decision itself costs only as much as the changes need.
func (c *Mechanism) Allocate(view *mechanism.View) *mechanism.Allocation {
	c.meet(view.Jobs)
	if !c.decide() && slices.ContainsFunc(c.scale, func(x float64) bool { return math.Abs(x-1) > shareTolerance }) {
		c.workOutAll()
	}
	c.weights = resize(c.weights, len(c.seats))
	for i, s := range c.seats {
		c.weights[i] = s.shares()
	}
	return &mechanism.Allocation{Weights: c.weights, Prices: c.prices, Tariffs: c.tariffs(view)}
}

// Update applies the changes to the jobs, and then decides as Allocate does.
func (c *Mechanism) Update(view *mechanism.View, changed []*mechanism.Job, gone []messages.JobID) *mechanism.Change {
	for _, id := range gone {
		if i, known := c.find(id); known && !c.seats[i].gone {
			c.leave(c.seats[i])
			c.seats[i].gone = true
			c.left++
		}
	}
	if c.left > len(c.seats)/mostLeft {
		c.seats = slices.DeleteFunc(c.seats, func(s *seat) bool { return s.gone })
		c.left = 0
	}
	for _, job := range changed {
		i, known := c.find(job.Job)
		if !known {
			c.seats = slices.Insert(c.seats, i, c.newSeat())
		}
		if c.seats[i].gone {
			c.seats[i].gone = false
			c.left--
		}
		c.refresh(c.seats[i], job)
	}
	out := &mechanism.Change{Whole: c.decide(), Prices: c.prices, Scale: c.scale, Tariffs: c.tariffs(view)}
	some := c.worked
	if out.Whole {
		some = c.seats
	}
	for _, s := range some {
		out.Jobs = append(out.Jobs, s.job)
		out.Weights = append(out.Weights, s.shares())
	}
	return out
}

func (c *Mechanism) find(id messages.JobID) (int, bool) {
	if n := len(c.seats); n == 0 || c.seats[n-1].job.Job < id {
		return n, false
	}
	return slices.BinarySearchFunc(c.seats, id, func(s *seat, id messages.JobID) int { return cmp.Compare(s.job.Job, id) })
}

// meet compares the mechanism's list of seats with the jobs of a view: afterwards there is one seat for each of these
// jobs. Both lists are ordered by job number.
func (c *Mechanism) meet(jobs []*mechanism.Job) {
	next, old := make([]*seat, 0, len(jobs)+len(jobs)/8), c.seats
	c.left = 0
	for _, job := range jobs {
		for len(old) > 0 && old[0].job.Job < job.Job {
			c.leave(old[0])
			old = old[1:]
		}
		s := (*seat)(nil)
		if len(old) > 0 && old[0].job.Job == job.Job {
			s, old = old[0], old[1:]
			s.gone = false
		} else {
			s = c.newSeat()
		}
		c.refresh(s, job)
		next = append(next, s)
	}
	for _, s := range old {
		c.leave(s)
	}
	c.seats = next
}

func (c *Mechanism) newSeat() *seat {
	m := len(c.classes)
	return &seat{at: -1, numbers: make([]float64, 3*m), parts: make([]part, m)}
}

// refresh updates a seat from the view. A bid depends on the classes in which the job has pending tasks. It does not
// depend on the number of these tasks.
func (c *Mechanism) refresh(s *seat, job *mechanism.Job) {
	same := s.job != nil
	s.job = job
	for j := range c.contention {
		c.join(s, j, s.job.Pending[j]+s.job.Running[j])
	}
	for j, n := range job.Pending {
		same = same && s.parts[j].pending == (n > 0)
	}
	if same {
		return
	}
	c.tally(s, -1)
	s.bids = false
	for j, n := range job.Pending {
		s.parts[j].pending = n > 0
		s.bids = s.bids || n > 0
	}
	c.tally(s, 1)
	s.bid()
	c.changed = append(c.changed, s)
}

// bid sets the seat's weights to 0 in classes without pending tasks. If the declared weights in all classes with
// pending tasks are 0, the seat still spends its budget on these classes.
func (s *seat) bid() {
	any := false
	for j, w := range s.job.Weights {
		s.weights()[j] = 0
		if s.parts[j].pending {
			s.weights()[j] = w
			any = any || w > 0
		}
	}
	if any {
		return
	}
	for j := range s.parts {
		pending := s.parts[j].pending
		if pending {
			s.weights()[j] = 1
		}
	}
}

// tally adds a seat to the mechanism's counts if the argument `by` is 1, and subtracts it if it is −1.
func (c *Mechanism) tally(s *seat, by int) {
	for j := range s.parts {
		pending := s.parts[j].pending
		if pending {
			c.pending[j] += by
		}
	}
	if s.bids && s.job.MinUtility != 0 {
		c.minimum += by
	}
}

func (c *Mechanism) leave(s *seat) {
	c.tally(s, -1)
	for j := range c.contention {
		c.join(s, j, 0)
	}
	s.bids = false
	for j := range s.parts {
		s.parts[j].pending = false
	}
	c.unplace(s)
	c.changed = slices.DeleteFunc(c.changed, func(x *seat) bool { return x == s })
}

// decide solves the market for the present seats. If it returns true, it has computed the shares of all seats. If it
// returns false, it has computed only the shares of the seats in c.worked, because the other seats need no new
// computation. Each of these other seats wants a single class, so its share is its power divided by the total of the
// class. When this total changes, one factor for the class (in c.scale) corrects all these shares.
func (c *Mechanism) decide() bool {
	pooled := c.admitSeats()
	c.market.Refresh()
	whole := pooled || c.market.problem.Alpha == 0 || c.sharesAlone() || !c.rescale()
	if c.worked = append(c.worked[:0], c.changed...); whole {
		c.workOutAll()
	} else {
		c.workOutSome()
	}
	// do not keep the long list of a new leader, for which all jobs are new
	if c.changed = c.changed[:0]; cap(c.changed) > mostKept {
		c.changed, c.worked = nil, slices.Clip(c.worked)
	}
	return whole
}

// The shares of a seat are stored in a row. They are multiplied by a scale for each class, so that a change of the
// class's total does not change the stored shares. rescale computes the scales for the present totals. It returns false
// if a total has changed too much since the rows were computed: then all rows must be computed again.
func (c *Mechanism) rescale() bool {
	near := true
	for j := range c.scale {
		c.scale[j] = 1
		if c.market.bidders(j) > 1 {
			c.scale[j] = c.faced[j] / c.market.solver.newton.fields[j]
			near = near && c.scale[j] < mostScale && c.scale[j] > 1.0/mostScale
		}
	}
	return near
}

// workOutSome computes the shares of the seats whose jobs have changed. The shares of some other seats depend on the
// totals of all classes. If the totals have moved by more than shareTolerance, workOutSome also computes the shares of
// these seats.
func (c *Mechanism) workOutSome() {
	if c.moved() > shareTolerance {
		for s := range c.torn {
			c.worked = append(c.worked, s)
		}
		slices.SortFunc(c.worked, func(x, y *seat) int { return cmp.Compare(x.job.Job, y.job.Job) })
		c.worked = slices.Compact(c.worked)
		copy(c.seen, c.market.solver.newton.fields)
	}
	for _, s := range c.worked {
		c.workOut(s)
	}
}

// admitSeats adds the seats that bid to the market, and removes the seats that no longer bid. If some seats have a
// minimum utility, it admits only seats that can be served together. Normally it handles only the seats that changed.
// It returns true if it handled all seats.
func (c *Mechanism) admitSeats() bool {
	pooled := c.minimum > 0 || c.pooled
	c.pooled = c.minimum > 0
	seats := c.changed
	if pooled {
		seats = c.seats
	}
	for _, s := range seats {
		s.rejected = false
	}
	if c.pooled {
		c.divide()
	}
	for _, s := range seats {
		c.place(s)
	}
	return pooled
}

// A seat has the data of one job in the market. place adds a seat to the market. If the market has the seat already,
// place changes the seat's bid. If the seat no longer bids, place removes it from the market.
func (c *Mechanism) place(s *seat) {
	bids := s.bids && !s.rejected
	if delete(c.torn, s); bids && count(s.weights()) > 1 {
		c.torn[s] = true
	}
	switch {
	case !bids:
		c.unplace(s)
	case s.at < 0:
		s.at = int32(c.market.Len())
		c.placed = append(c.placed, s)
		c.market.Arrive(s.job.Budget.Float(), s.job.Form == jobmsg.Log, s.weights()) // cannot fail, because Admit has checked the bid
	case !slices.Equal(s.weights(), c.market.weightsOf(int(s.at))):
		c.market.Replace(int(s.at), s.weights())
	}
}

func (c *Mechanism) unplace(s *seat) {
	if s.at < 0 {
		return
	}
	c.market.Depart(int(s.at))
	last := c.placed[len(c.placed)-1]
	c.placed = c.placed[:len(c.placed)-1]
	if last != s {
		last.at = s.at
		c.placed[s.at] = last
	}
	s.at = -1
	delete(c.torn, s)
	for j, spent := range s.spends() {
		c.prices[j] -= spent
	}
	clear(s.spends())
	clear(s.shares())
}

// A torn seat is a job that bids on several classes. The shares of all torn seats are computed together. Later, other
// jobs can change the competition in the classes (the fields). Then the shares of a torn seat have an error, even if
// its own bids have not changed. moved returns an upper bound of the relative error.
func (c *Mechanism) moved() float64 {
	most := 0.0
	fields := c.market.solver.newton.fields
	for j, old := range c.seen {
		if c.market.bidders(j) > 1 {
			most = max(most, math.Abs(fields[j]/old-1))
		}
	}
	return most * (1 + sensitivity(c.market.problem.Alpha))
}

// sharesAlone reports whether a class with pending tasks has fewer than two bidding jobs now, or had fewer than two at
// the last call. The market computes no shares for such a class, so this code must compute them.
func (c *Mechanism) sharesAlone() bool {
	before := c.lone
	c.lone = false
	for j, n := range c.pending {
		c.lone = c.lone || n > 0 && (c.market.stale || c.market.bidders(j) < 2)
	}
	return c.lone || before
}

func (c *Mechanism) workOutAll() {
	clear(c.prices)
	clear(c.sharing)
	for j := range c.scale {
		c.scale[j] = 1
	}
	for _, s := range c.seats {
		for j := range s.parts {
			pending := s.parts[j].pending
			if pending && s.at >= 0 {
				c.sharing[j]++
			}
		}
	}
	for _, s := range c.seats {
		clear(s.spends())
		c.workOut(s)
	}
	if fields := c.market.solver.newton.fields; len(fields) > 0 {
		copy(c.faced, fields)
		copy(c.seen, fields)
	}
}

// workOut computes a seat's shares, sub-budgets and part of the prices.
func (c *Mechanism) workOut(s *seat) {
	for j, spent := range s.spends() {
		c.prices[j] -= spent
	}
	clear(s.spends())
	clear(s.shares())
	if s.at >= 0 {
		c.market.Row(int(s.at), s.spends(), s.shares())
		for j, x := range c.scale {
			s.shares()[j] /= x
		}
	}
	for j := range s.parts {
		pending := s.parts[j].pending
		if c.market.bidders(j) < 2 { // a single bidder pays nothing
			s.spends()[j] = 0
		}
		c.prices[j] += s.spends()[j]
		switch {
		case !pending:
			s.shares()[j] = 0
		case c.market.bidders(j) == 0: // no bids: free slots are split evenly
			s.shares()[j] = 1 / float64(c.pending[j])
		case c.market.problem.Alpha == 0 && s.at >= 0: // evenly, but only among jobs with pending tasks here
			s.shares()[j] = 1 / float64(c.sharing[j])
		}
	}
}

// divide chooses jobs (seats) that can be served together, among the jobs that have tasks to run. It takes the seats
// with the largest budgets first, as NewPool does, but tries many seats at once. If it reaches the limit of its work,
// the seats that it has not tried must wait.
func (c *Mechanism) divide() {
	var bidding []*seat
	whole := Problem{Alpha: c.market.problem.Alpha, Classes: len(c.classes)}
	q := &c.pool
	q.minimum = q.minimum[:0]
	for _, s := range c.seats {
		s.rejected = s.bids
		if !s.bids {
			continue
		}
		bidding = append(bidding, s)
		whole.Budgets = append(whole.Budgets, s.job.Budget.Float())
		whole.Log = append(whole.Log, s.job.Form == jobmsg.Log)
		whole.Weights = append(whole.Weights, s.weights()...)
		q.minimum = append(q.minimum, s.minimumNow())
	}
	q.p, q.order, q.count = &whole, byBudget(whole.Budgets), 0
	q.limit = min(mostEvaluations, max(16, 2_000_000/len(bidding)))
	for _, i := range q.greedyInBulk() {
		bidding[i].rejected = false
	}
}

// A job has a minimum utility over all its classes. minimumNow returns the minimum utility from the classes on which
// the job bids now. This is a part of the whole minimum, in proportion to the weights of these classes. It assumes that
// the job will receive the same shares of its other classes later.
func (s *seat) minimumNow() float64 {
	if s.job.MinUtility == 0 {
		return math.Inf(-1)
	}
	now, all := 0.0, 0.0
	for j, w := range s.job.Weights {
		all += w
		now += s.weights()[j]
	}
	return s.job.MinUtility * now / all
}

// greedyInBulk returns the pool that results if jobs are added greedily in the order of q.order. It tries to add many
// jobs at a time. If they cannot all be served together, it tries half as many. So each job that does not fit costs
// about log n tries.
func (q *pooling) greedyInBulk() []int {
	var group []int
	for at, size := 0, len(q.order); at < len(q.order) && q.count < q.limit; {
		size = min(size, len(q.order)-at)
		more := slices.Concat(group, q.order[at:at+size])
		slices.Sort(more)
		switch {
		case q.serves(more):
			group, at, size = more, at+size, 2*size
		case size == 1:
			at++
		default:
			size /= 2
		}
	}
	return group
}
