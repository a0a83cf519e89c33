package market

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/candor-grid/candor/auctioneer/mechanism"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/job"
)

// roster has what the mechanism needs: the jobs and slots of a market, and the present shares of the jobs.
type roster struct {
	classes []messages.Name
	view    mechanism.View
	jobs    []*entry // parallel to view.Jobs; has removed jobs until the next call of tidy
	left    int      // number of jobs that are gone
	number  numbers
	open    []int // by class: number of slots that claimable tasks need
	bidding []int // by class: number of jobs with claimable tasks
	prices  []float64
	scale   []float64        // by class: factor for the shares of all jobs
	areas   []float64        // by class: integral of the scale over time, in seconds, until areasAt
	areasAt messages.Time    // time up to which areas is computed; negative means none yet
	changed []*mechanism.Job // jobs that changed since the last allocation
	told    []*entry         // the entries of the jobs in changed
	gone    []messages.JobID
	ongoing []*entry // jobs with slots whose charge was read for this decision
	unseen  []*entry // jobs that already had suspended tasks when they were added
	wides   []*entry // jobs with tasks of several slots, and gangs
	astray  []*entry // jobs with tasks for which the last decision found no node
}

// entry is a job of the market. A million jobs may wait. To save memory, the fields that only some jobs use are in the
// struct `rest`.
type entry struct {
	job     mechanism.Job
	ledger  []account // by class
	since   messages.Time
	told    bool  // the job is in the list of changed jobs
	gone    bool  // the job was removed
	charged bool  // the job's charge was read for this decision, or the job has no slots and its charge cannot change
	changes int32 // the field Changes of [Progress]
	*rest         // may be shared with other jobs: call own before a change
}

// rest has further fields of a waiting job. They are needed only if the market's mechanism gives directives, or uses
// run times in its plans.
type rest struct {
	Ahead, Suspended, Ordered []int // the fields of [Progress]
	Pending, Running          []int // fields of [Progress], set only if the job has Ordered
	OrderedAt                 messages.Time
	Budget                    *messages.Credits
	learned                   messages.Time // when the job's run times were requested; 0 means never
	most                      []int         // by class, if the mechanism gives directives: the job's maximum of slots
	claims                    [][]claim     // by class: running claims as last read
	known                     bool          // claims were read after the last change of the job
	front                     [][]claim     // by class: suspended tasks that may get a slot, the longest suspended first
	ordered                   bool          // the mechanism orders the jobs, so suspended tasks that are not in `front` are stuck
}

// nothing is an empty value of type rest, to which many jobs point. Before a change, the method own gives the job a
// value that it shares with no other job.
var nothing = new(rest)

// The method `own` returns the entry's `rest`, so that the caller may change it. If the entry shares the empty rest
// (see nothing), own first gives the entry a new one.
func (e *entry) own() *rest {
	if e.rest == nothing {
		e.rest = new(rest)
	}
	return e.rest
}

// account adds up the shares of a job in a class. It counts only the time in which the job had pending tasks in the
// class.
type account struct {
	share               float64 // present share, without the factor roster.scale
	allocated, received float64 // sums of the shares given and the shares received, each multiplied by seconds
	seconds             float64
	area                float64 // value of roster.areas up to which allocated is computed
	counted             int     // the job's part of roster.open
}

// The type `numbers` finds jobs by their numbers. It is efficient if most numbers are consecutive.
type numbers struct {
	parts map[messages.JobID]*part // the key is a job number divided by partJobs
	order []*part                  // parts, in the order of their numbers
	count int
}

const partJobs = 64

// part is a block of jobs with consecutive numbers.
type part struct {
	first   messages.JobID // the job number of entries[0]
	count   int
	entries [partJobs]*entry
	bidding int       // number of pairs of a job and a class where the job has claimable tasks
	pulls   []float64 // by class: sum of the pulls of jobs with claimable tasks; nil if they are not computed
}

func (n *numbers) get(id messages.JobID) *entry {
	if p := n.parts[id/partJobs]; p != nil {
		return p.entries[id%partJobs]
	}
	return nil
}

func (n *numbers) put(e *entry) {
	id := e.job.Job
	p := n.parts[id/partJobs]
	if p == nil {
		p = &part{first: id - id%partJobs}
		n.parts[id/partJobs] = p
		n.order = slices.Insert(n.order, n.position(p), p)
	}
	p.entries[id%partJobs] = e
	p.pulls = nil
	p.count++
	n.count++
}

func (n *numbers) remove(id messages.JobID) {
	p := n.parts[id/partJobs]
	p.entries[id%partJobs] = nil
	p.pulls = nil
	n.count--
	if p.count--; p.count == 0 {
		delete(n.parts, id/partJobs)
		at := n.position(p)
		n.order = slices.Delete(n.order, at, at+1)
	}
}

// position returns a part's position in the order, or where to insert it.
func (n *numbers) position(p *part) int {
	at, _ := slices.BinarySearchFunc(n.order, p.first, func(p *part, first messages.JobID) int { return cmp.Compare(p.first, first) })
	return at
}

// The jobs are divided into parts, blocks of 64 job numbers. A job's pull is its weight in the draw; a removed job has
// no pull. stale is called when the pull of a job may have changed. It discards the stored sums of pulls of the job's
// part. The argument `bidding` is added to the count of classes in which the jobs of this part bid.
func (n *numbers) stale(e *entry, bidding int) {
	if p := n.parts[e.job.Job/partJobs]; p != nil {
		p.pulls = nil
		p.bidding += bidding
	}
}

// The roster divides its jobs into parts. The pull of a job is the weight with which it is drawn at random. Some jobs
// of the part have claimable tasks in class k. The method pull returns the sum of the pulls of these jobs.
func (p *part) pull(k, classes int) float64 {
	if p.bidding == 0 {
		return 0
	}
	if p.pulls == nil {
		p.pulls = make([]float64, classes)
		for _, e := range p.entries {
			for k := range p.pulls {
				if e != nil && e.open(k) > 0 {
					p.pulls[k] += e.pull(k)
				}
			}
		}
	}
	return p.pulls[k]
}

func newRoster(classes []messages.Name) roster {
	s := roster{classes: classes, number: numbers{parts: map[messages.JobID]*part{}}, prices: make([]float64, len(classes)), open: make([]int, len(classes)), bidding: make([]int, len(classes)),
		scale: slices.Repeat([]float64{1}, len(classes)), areas: make([]float64, len(classes)), areasAt: -1}
	for _, c := range classes {
		s.view.Classes = append(s.view.Classes, mechanism.Class{Name: c})
	}
	return s
}

// add adds a job to the roster. If the mechanism itself chooses the jobs for claims, the roster also stores how many
// claims the job may have.
func (s *roster) add(now messages.Time, job mechanism.Job, p Progress, manner mechanism.Manner) {
	classes := len(s.classes)
	e := &entry{job: job, ledger: make([]account, classes), since: now, rest: nothing}
	if manner.Directs {
		r := e.own()
		r.most, r.ordered = slices.Clone(p.Running), manner.Order != nil
	}
	if p.Suspended != nil {
		s.unseen = append(s.unseen, e)
	}
	if job.Width > 1 {
		s.wides = append(s.wides, e)
	}
	s.advance(now)
	for k := range e.ledger {
		e.ledger[k].area = s.areas[k]
	}
	e.become(p)
	s.number.put(e)
	s.count(e)
	i := s.position(job.Job)
	s.jobs = slices.Insert(s.jobs, i, e)
	s.view.Jobs = slices.Insert(s.view.Jobs, i, &e.job)
	s.change(e)
}

func (s *roster) remove(now messages.Time, e *entry) {
	id := e.job.Job
	s.integrate(e, now)
	for k := range e.ledger {
		bids := min(e.ledger[k].counted, 1)
		s.open[k] -= e.ledger[k].counted
		s.bidding[k] -= bids
		s.number.stale(e, -bids)
	}
	s.number.remove(id)
	if e.job.Width > 1 {
		s.wides = slices.DeleteFunc(s.wides, func(x *entry) bool { return x == e })
	}
	e.gone = true
	s.left++
	s.gone = append(s.gone, id)
	if e.told { // a job with this number may be added again
		i := slices.Index(s.told, e)
		s.changed, s.told = slices.Delete(s.changed, i, i+1), slices.Delete(s.told, i, i+1)
	}
}

// The list of a market's jobs may still have jobs that have left the market. In a list of more than fewJobs jobs, at
// most 1/mostLeft of the jobs may have left.
const (
	fewJobs  = 4096
	mostLeft = 64
)

// tidy removes the jobs that have left the market from the list. If the argument `some` is true, tidy leaves a long
// list unchanged as long as few of its jobs have left.
func (s *roster) tidy(some bool) {
	if n := len(s.jobs); s.left == 0 || some && n > fewJobs && s.left < n/mostLeft {
		return
	}
	n := 0
	for i, e := range s.jobs {
		if !e.gone {
			s.jobs[n], s.view.Jobs[n] = e, s.view.Jobs[i]
			n++
		}
	}
	clear(s.jobs[n:])
	clear(s.view.Jobs[n:])
	s.jobs, s.view.Jobs, s.left = s.jobs[:n], s.view.Jobs[:n], 0
}

func (s *roster) members() []*entry {
	s.tidy(false)
	return s.jobs
}

func (s *roster) change(e *entry) {
	if !e.told {
		e.told = true
		s.changed, s.told = append(s.changed, &e.job), append(s.told, e)
	}
}

// forgetChanges empties the list of changes. Call it after an allocation has used them.
func (s *roster) forgetChanges() {
	for _, e := range s.told {
		e.told = false
	}
	s.changed, s.told, s.gone = reuse(s.changed), reuse(s.told), reuse(s.gone)
}

// reuse empties a list for the next use. It keeps the memory of the list, unless the list was much longer than usual;
// then it returns nil.
func reuse[T any](list []T) []T {
	if cap(list) > fewJobs {
		return nil
	}
	return list[:0]
}

func (s *roster) enforce(now messages.Time, e *entry, share []float64) {
	s.integrate(e, now)
	for k := range e.ledger {
		e.ledger[k].share = share[k]
	}
	s.number.stale(e, 0)
}

// rescale sets a factor for each class. All shares of the class are multiplied by this factor. If `scale` is nil, all
// factors become 1.
func (s *roster) rescale(now messages.Time, scale []float64) {
	s.advance(now)
	for k := range s.scale {
		if s.scale[k] = 1; scale != nil {
			s.scale[k] = scale[k]
		}
	}
}

// s.scale has a factor for each class, and s.areas has the integral of each factor over time. advance continues the
// integrals up to now.
func (s *roster) advance(now messages.Time) {
	if s.areasAt < 0 {
		s.areasAt = now
	}
	if seconds := now.Sub(s.areasAt).Seconds(); seconds > 0 {
		for k, x := range s.scale {
			s.areas[k] += seconds * x
		}
		s.areasAt = now
	}
}

// integrate updates the counters of a job until now. For this, it adds the job's present shares and slots, each
// multiplied by the seconds since the last call.
func (s *roster) integrate(e *entry, now messages.Time) {
	s.advance(now)
	seconds := now.Sub(e.since).Seconds()
	if seconds <= 0 {
		return
	}
	e.since = now
	for k := range e.ledger {
		a := &e.ledger[k]
		area := s.areas[k] - a.area
		a.area = s.areas[k]
		if e.job.Complete || e.job.Pending[k] == 0 || s.view.Classes[k].Slots == 0 {
			continue
		}
		a.seconds += seconds
		a.allocated += min(area*a.share, seconds) // a share is at most 1, also after rounding
		slots, running := float64(s.view.Classes[k].Slots), float64(e.job.Running[k])
		a.received += seconds * running / slots
		if e.job.Started == 0 {
			continue
		}
		bought := min(area*a.share*slots, seconds*(running+float64(e.job.Pending[k])))
		e.job.Lacked += messages.Duration(math.Round(1e9 * (bought - seconds*running)))
	}
}

// position returns a job's position among the jobs, or where to insert it.
func (s *roster) position(id messages.JobID) int {
	if n := len(s.jobs); n == 0 || s.jobs[n-1].job.Job < id {
		return n
	}
	i, _ := slices.BinarySearchFunc(s.jobs, id, func(e *entry, id messages.JobID) int { return cmp.Compare(e.job.Job, id) })
	return i
}

func (s *roster) shares(e *entry) []job.ClassShare {
	out := make([]job.ClassShare, len(e.ledger))
	for k, a := range e.ledger {
		out[k] = job.ClassShare{Class: s.classes[k], Now: a.share * s.scale[k]}
		// If the mechanism itself chooses the jobs for claims, its weights are not shares: the best waiting job has all
		// the weight. The share is then computed from the slots that the job has.
		if slots := s.view.Classes[k].Slots; (e.job.Pending[k] == 0 || e.most != nil) && slots > 0 {
			out[k].Now = float64(e.job.Running[k]) / float64(slots)
		}
		if a.seconds > 0 {
			out[k].Allocated, out[k].Received = a.allocated/a.seconds, a.received/a.seconds
			out[k].Over = messages.Duration(math.Round(a.seconds*1e3)) * messages.Duration(time.Millisecond)
		}
	}
	return out
}

// Class returns the position of a class in the market, or -1 if the market does not have it.
func (s *roster) Class(name messages.Name) int { return slices.Index(s.classes, name) }

func (s *roster) count(e *entry) {
	for k := range e.ledger {
		was, is := e.ledger[k].counted, e.open(k)
		if was == is {
			continue
		}
		bidding := min(is, 1) - min(was, 1)
		e.ledger[k].counted = is
		s.open[k] += is - was
		s.bidding[k] += bidding
		s.number.stale(e, bidding)
	}
}

func (e *entry) open(k int) int {
	switch {
	case e.most == nil && e.Ahead != nil:
		return e.job.Pending[k] - e.Ahead[k]
	case e.most == nil:
		return e.job.Pending[k]
	}
	return min(e.pending()[k], max(0, e.most[k]-e.running()[k]))
}

// pull returns the job's weight when a job is drawn for a free slot of class k.
func (e *entry) pull(k int) float64 {
	if e.most == nil {
		return e.ledger[k].share
	}
	return float64(e.open(k))
}

// bidders returns the jobs with claimable tasks of class k.
func (s *roster) bidders(k int) []*entry {
	out := make([]*entry, 0, s.bidding[k])
	for _, p := range s.number.order {
		for i := 0; i < partJobs && p.bidding > 0; i++ {
			if e := p.entries[i]; e != nil && e.open(k) > 0 {
				out = append(out, e)
			}
		}
	}
	return out
}

// Pending returns how many slots the claimable tasks of a job in class k need.
func (s *roster) Pending(id messages.JobID, k int) int {
	if e := s.number.get(id); e != nil {
		return e.open(k)
	}
	return 0
}

// The method `most` returns how many slots of class k a job may have by the mechanism's directives. It returns 0 if the
// mechanism gives no directives.
func (s *roster) most(id messages.JobID, k int) int {
	if e := s.number.get(id); e != nil && e.most != nil {
		return e.most[k]
	}
	return 0
}

// Charged sets how much a job owes so far, and the slot time for which it owes this amount.
func (s *roster) Charged(id messages.JobID, cost messages.Credits, slotTime messages.Duration) {
	if e := s.number.get(id); e != nil && e.job.Started != 0 {
		e.job.Accrued, e.job.Received = cost, slotTime
	}
}

// Job returns a job as the mechanism sees it, or nil if the market does not have it.
func (s *roster) Job(id messages.JobID) *mechanism.Job {
	if e := s.number.get(id); e != nil {
		return &e.job
	}
	return nil
}

// Jobs returns the number of jobs in the market.
func (s *roster) Jobs() int { return s.number.count }

// Started returns the number of jobs in the market that have had a task claimed.
func (s *roster) Started() int {
	n := 0
	for _, e := range s.members() {
		if e.job.Started != 0 {
			n++
		}
	}
	return n
}

// Tasks returns three numbers: how many tasks have a slot, how many are suspended, and how many wait and could start
// now.
func (s *roster) Tasks() (running, suspended, waiting int) {
	for _, e := range s.members() {
		width := max(e.job.Alone, 1)
		running, suspended, waiting = running+mechanism.Sum(e.running())/width, suspended+mechanism.Sum(e.Suspended)/width, waiting+mechanism.Sum(e.pending())/width
	}
	return running, suspended, waiting
}

// Oldest returns the earliest arrival of a job that never had a slot and can start a task, or 0.
func (s *roster) Oldest() (first messages.Time) {
	for _, e := range s.members() {
		if e.job.Started == 0 && mechanism.Sum(e.pending()) > 0 {
			first = messages.Earlier(first, e.job.Arrived)
		}
	}
	return first
}

// Shares returns a job's average share of each class until now, or nil if the market does not have the job.
func (s *roster) Shares(now messages.Time, id messages.JobID) []job.ClassShare {
	e := s.number.get(id)
	if e == nil {
		return nil
	}
	s.integrate(e, now)
	return s.shares(e)
}

// Claimable returns the number of slots that claimable tasks need, in classes with idle slots.
func (s *roster) Claimable() int {
	n := 0
	for k, open := range s.open {
		if s.view.Classes[k].Idle > 0 {
			n += open
		}
	}
	return n
}
