package market

import (
	"math/rand/v2"
	"slices"

	"github.com/candor-grid/candor/auctioneer/book"
	"github.com/candor-grid/candor/messages"
	agentmsg "github.com/candor-grid/candor/messages/agent"
	"github.com/candor-grid/candor/messages/job"
)

// Jobs are drawn in advance, so the cost of a draw hardly depends on the number of waiting jobs. If n jobs bid, a class
// draws n/drawnOf jobs at once, but at least drawnAhead jobs. Drawn jobs are discarded after the time drawnFor. If no
// more than MostJobs jobs bid, they are also discarded at each decision.
const (
	drawnAhead = 256
	drawnOf    = 256
	drawnFor   = messages.Duration(100e6)
)

// A node draws a job at random and claims a task of it. The job may have no claimable task left when the claim arrives.
// draws then chooses another job for the claim.
type draws struct {
	ahead [][]messages.JobID // by class: the jobs that were drawn and not used yet
	drawn []messages.Time    // by class: when they were drawn
	// reserved says, by class and job, how many tasks are reserved for claims that are not in the book yet. Without
	// reservations, many nodes with the same vector would choose the same task.
	reserved []map[messages.JobID]int
	sum      []int // sum of reserved, by class
	roster   *roster
}

func newDraws(s *roster) draws {
	d := draws{ahead: make([][]messages.JobID, len(s.classes)), drawn: make([]messages.Time, len(s.classes)), sum: make([]int, len(s.classes)), roster: s}
	for range s.classes {
		d.reserved = append(d.reserved, map[messages.JobID]int{})
	}
	return d
}

// free returns how many tasks of a job can be claimed and are not reserved yet for another claim.
func (d *draws) free(id messages.JobID, k int) int {
	return max(0, d.roster.Pending(id, k)-d.reserved[k][id])
}

// The method reserve reserves up to `wanted` tasks of a job for a claim. It returns how many of the wanted tasks it
// could not reserve.
func (d *draws) reserve(id messages.JobID, k, wanted int) (lacks int) {
	n := min(wanted, d.free(id, k))
	if n > 0 {
		d.reserved[k][id] += n
		d.sum[k] += n
	}
	return wanted - n
}

// TooFewUnreserved reports whether the market must decide again before a claim can get all its tasks. This is possible
// only in a market that directs claims. There the market allows a number of tasks to be claimed. It must decide again
// if the claim asks for more tasks than are allowed and not yet reserved.
func (m *Market) TooFewUnreserved(c *agentmsg.Claim) bool {
	k := m.Class(c.Class)
	return m.manner.Directs && k >= 0 && m.open[k]-m.sum[k] < c.Slots
}

// AllReserved reports whether all tasks of a claim's class are reserved. A task is reserved for a claim of a node
// before the claim is in the book. In a market that directs claims, AllReserved returns false.
func (m *Market) AllReserved(c *agentmsg.Claim) bool {
	k := m.Class(c.Class)
	return !m.manner.Directs && k >= 0 && m.open[k] <= m.sum[k]
}

// Unreserve ends all reservations of tasks of a job. It is called if the job has changed, or if a claim did not get
// tasks that were reserved for it.
func (d *draws) Unreserve(id messages.JobID) {
	for k, reserved := range d.reserved {
		d.sum[k] -= reserved[id]
		delete(reserved, id)
	}
}

// ReserveClaim chooses the jobs of a claim, in order of preference. The agent has drawn a job at random; this job comes
// first. If it has too few tasks for the claimed slots, other jobs follow, drawn by their shares. If the market itself
// chooses a job for each claim, a job is left out when all its tasks are reserved for other claims.
//
// If a decision chose a node for a task of several slots, only that node can claim the task, and the task comes first.
// If `lent` is not 0, the node keeps the claimed slots free for another task, until it has enough slots for that task.
// Until then, tasks that end within the time `lent` may use these slots; see [Lent].
func (m *Market) ReserveClaim(b *book.Book, node messages.Name, c *agentmsg.Claim, lent messages.Duration, rng *rand.Rand) book.Claim {
	const mostSubstitutes = 16
	k := m.Class(c.Class)
	jobs, spare := m.atHome(b, node, k)
	missing := min(c.Slots, spare)
	for _, id := range jobs {
		m.reserve(id, k, 1)
	}
	n := b.Node(node)
	elsewhere := func(id messages.JobID) bool {
		e := m.number.get(id)
		return lent != 0 && !endsWithin(b, id, c.Class, lent) || m.manner.Displaces && e != nil && e.job.Width > 1 || !m.ordered(b, id, k) || n != nil && !m.admits(b, n, id, k)
	}
	left := m.manner.Directs && m.Pending(c.Job, k) > 0 && m.free(c.Job, k) == 0
	if j := b.Job(c.Job); missing > 0 && j != nil && j.Spec.Market == m.Config.Name && !left && !elsewhere(c.Job) { // another market may sell the same class
		jobs, missing = append(jobs, c.Job), m.reserve(c.Job, k, missing)
	}
	for tries := 0; missing > 0 && len(jobs) <= mostSubstitutes && tries < 4*mostSubstitutes; tries++ {
		id := m.Substitute(k, rng)
		if id == 0 {
			break
		}
		if !elsewhere(id) {
			jobs, missing = append(jobs, id), m.reserve(id, k, missing)
		}
	}
	claim := book.Claim{Class: c.Class, Slots: c.Slots, Jobs: jobs, Fits: m.manner.Displaces, Lent: lent}
	if !m.manner.Attentive { // in an attentive market, nodes claim nothing ahead: the running tasks must always match the decision
		claim.Ahead = c.Ahead
	}
	if m.manner.Directs {
		claim.Most = make([]int, len(jobs))
		for i, id := range jobs {
			claim.Most[i] = m.most(id, k)
		}
	}
	return claim
}

// admits reports whether a node can start a task of the job now, so that the task ends before the node's next
// maintenance window.
func (m *Market) admits(b *book.Book, n *book.Node, id messages.JobID, k int) bool {
	if len(n.Windows()) == 0 {
		return true
	}
	j := b.Job(id)
	return j != nil && slices.ContainsFunc(j.Spec.Stages, func(s job.Stage) bool { return s.Class == m.classes[k] && n.Admits(&s, b.Now()) })
}

// A claim may name a job that has no tasks left. Substitute then draws another job with pending tasks in class k, in
// proportion to the shares. It returns 0 if there is none.
func (d *draws) Substitute(k int, rng *rand.Rand) messages.JobID {
	for drawn := 0; d.roster.open[k] > d.sum[k]; drawn++ {
		for n := len(d.ahead[k]); n > 0; n = len(d.ahead[k]) {
			id := d.ahead[k][n-1]
			d.ahead[k] = d.ahead[k][:n-1]
			if d.free(id, k) > 0 {
				return id
			}
		}
		switch drawn {
		case 0:
			d.draw(k, rng)
		case 1:
			d.addUnreserved(k)
		default:
			return 0
		}
	}
	return 0
}

// addUnreserved adds to the draws every job of class k for which the mechanism still allows unreserved tasks. The draws
// from the same shares are nearly equal, so without addUnreserved all draws might miss the same job.
func (d *draws) addUnreserved(k int) {
	for _, e := range d.roster.bidders(k) {
		if e.most != nil && d.free(e.job.Job, k) > 0 {
			d.ahead[k] = append(d.ahead[k], e.job.Job)
		}
	}
}

func (d *draws) draw(k int, rng *rand.Rand) {
	queue, n := d.ahead[k][:0], max(drawnAhead, d.roster.bidding[k]/drawnOf)
	d.roster.systematic(k, n, rng.Float64(), func(e *entry) { queue = append(queue, e.job.Job) })
	rng.Shuffle(len(queue), func(i, j int) { queue[i], queue[j] = queue[j], queue[i] })
	d.ahead[k], d.drawn[k] = queue, d.roster.view.Now
}

// The field d.ahead has jobs that were drawn in advance. clear discards them if the shares may have changed since they
// were drawn.
func (d *draws) clear(now messages.Time) {
	for k := range d.ahead {
		if d.roster.bidding[k] <= MostJobs || now.Sub(d.drawn[k]) >= drawnFor {
			d.ahead[k] = nil
		}
	}
}

// systematic draws n places from the jobs with claimable tasks of a class, in proportion to their shares. It divides a
// line into one interval for each job, as long as the job's share. Then it marks n points on the line at equal
// distances, the first point at u times this distance, with u in [0, 1). A job gets a place for each point in its
// interval. A job with the part s of all shares gets ⌊ns⌋ or ⌈ns⌉ places, and ns on average. If no job has a share yet,
// all jobs count equally. It calls `place` in the order of the jobs.
//
// The roster is divided into parts of partJobs jobs. Parts without a place are skipped. So the cost is O(n + parts),
// plus O(jobs) for each part that has changed.
func (s *roster) systematic(k, n int, u float64, place func(*entry)) {
	sum, pull, total := func(p *part) float64 { return p.pull(k, len(s.classes)) }, func(e *entry) float64 { return e.pull(k) }, 0.0
	for _, p := range s.number.order {
		total += sum(p)
	}
	if !(total > 0) {
		pull = func(*entry) float64 { return 1 }
		sum = func(p *part) (bidding float64) {
			for _, e := range p.entries {
				if e != nil && e.open(k) > 0 {
					bidding++
				}
			}
			return bidding
		}
		total = float64(s.bidding[k])
	}
	space := total / float64(n)
	next, before := u*space, 0.0 // before is the sum of the earlier parts
	for _, p := range s.number.order {
		end, cumulated := sum(p), 0.0 // the same order of additions gives exactly the same sum
		for i := 0; next-before < end && i < partJobs; i++ {
			if e := p.entries[i]; e != nil && e.open(k) > 0 {
				for cumulated += pull(e); next-before < cumulated; next += space {
					place(e)
				}
			}
		}
		before += end
	}
}
