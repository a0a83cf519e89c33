package grid

import (
	"slices"

	"github.com/candor-grid/candor/auctioneer/book"
	"github.com/candor-grid/candor/deploy/simulated/core"
	"github.com/candor-grid/candor/deploy/simulated/rules"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/job"
)

// Owner describes what the owner of a job does with the job in addition to bidding. The zero Owner submits the job and
// waits. A refused command changes nothing.
type Owner struct {
	// Exits is the number of attempts of the last task that print their result and then exit with 1. If Quick is true,
	// a later attempt looks for the result of the earlier attempt, finds it, and ends at once.
	Exits    int
	Quick    bool
	Attempts int     // largest number of attempts of a task; 0: the site's default
	Stays    float64 // seconds that the last task keeps its slot after it has printed its result
	Hold     bool    // the job is submitted on hold
	Begin    float64 // seconds from the submission to the earliest start of the first task
	Stages   int     // number of stages, one after the other, with equal parts of the run time; 0 means 1
	Idle     int     // number of tasks of one more stage, which nobody needs and which end at once
	Quotes   int     // number of menus that the owner asks for before taking a contract; 0 means 1
	Pause    float64 // seconds between two requests for a menu
	Wide     int     // number of slots of each task, which does the work of as many tasks at once; 0 means 1
	Most     int     // largest number of tasks of a stage that run at once; 0: no limit
	Visits   bool    // the owner's account is at a peer
	After    *Owner  // the job of this owner must end first; nil: none
	Unless   *Owner  // this job is not needed if the job of this owner has a result; nil: none
	Acts     []Act
}

// Act is a command that an owner gives at a given event in the life of a job.
type Act struct {
	Do    Verb
	When  Moment
	Of    *Owner  // owner of the job that the moment is about; nil: this owner
	After float64 // seconds after the moment
	By    float64 // a value is multiplied by this factor
}

// Verb is a command that a job's owner gives after the submission.
type Verb uint8

const (
	Cancel Verb = iota
	Requeue
	Hold
	Release
	RaiseBudget
	RaiseRate
)

// Moment is an event in the life of a job.
type Moment uint8

// These are moments in the life of a job. At the moment Printed, each task of the job has done its work once, with
// success or not, and the job's result is printed.
const (
	Submitted Moment = iota
	Started
	Printed
)

// owning has the state of an owner during the simulation.
type owning struct {
	*Owner
	at      int              // position of the job in the workload
	ids     []messages.JobID // numbers of the owner's jobs in the book
	started bool
	tries   map[messages.TaskRef]int // number of attempts of each task that printed their result
	settled messages.Time            // when the last price became known
}

func (g *Grid) own() {
	g.owners, g.out.Results = map[int]*owning{}, map[int]float64{}
	for i, o := range g.config.Owners {
		g.owners[i] = &owning{Owner: o, at: i, tries: map[messages.TaskRef]int{}}
	}
}

// An owner can do more than submit a job and wait. owner returns what the owner of this job does in addition. It
// returns nil if the owner does nothing else.
func (g *Grid) owner(id messages.JobID) *owning {
	if id == 0 { // a probe, which is no real job
		return nil
	}
	return g.owners[int(g.leader.of[id])]
}

// The field Unless of an owner can name another job of this owner. needless reports whether this other job already has
// a result. Then the job is not needed any more, and is not submitted.
func (g *Grid) needless(i int) bool {
	o := g.owners[i]
	if o == nil || o.Unless == nil {
		return false
	}
	_, has := g.out.Results[g.position(o.Unless)]
	return has
}

func (g *Grid) position(of *Owner) int {
	for i, o := range g.config.Owners {
		if o == of {
			return i
		}
	}
	return -1
}

func (l *leader) describe(o *owning, s *job.JobSpec) error {
	main := &s.Stages[0]
	main.Attempts, main.MaxRunning, s.Hold, main.CPUs = o.Attempts, o.Most, o.Hold, max(o.Wide, main.CPUs)
	if o.Begin > 0 {
		s.Begin = l.now.Add(messages.Duration(o.Begin * 1e9))
	}
	for k := 1; k < o.Stages; k++ {
		next := s.Stages[k-1]
		next.Name, next.After = next.Name+"n", []messages.Name{next.Name}
		s.Stages = append(s.Stages, next)
	}
	if o.Idle > 0 {
		idle := *main
		idle.Name, idle.Tasks = "idle", o.Idle
		s.Stages = append(s.Stages, idle)
	}
	if o.After != nil {
		if s.AfterJobs = slices.Clone(l.owners[l.position(o.After)].ids); len(s.AfterJobs) == 0 {
			return messages.Errorf(messages.NotFound, "a job waits for a job that was not accepted")
		}
	}
	return nil
}

func (g *Grid) moment(of *owning, m Moment) {
	for i := range g.Work.Jobs {
		o := g.owners[i]
		if o == nil {
			continue
		}
		for _, a := range o.Acts {
			if a.When != m || a.Of != of.Owner && (a.Of != nil || o != of) {
				continue
			}
			if a.After > 0 {
				g.queue.Push(g.now.Add(messages.Duration(a.After*1e9)), func() { g.leader.command(o, a) })
			} else {
				g.leader.command(o, a)
			}
		}
	}
}

func (l *leader) command(o *owning, a Act) {
	for _, id := range o.ids {
		j := l.book.Job(id)
		if j == nil || !j.Active() {
			continue
		}
		if c := l.commanded(j, a); c != nil {
			l.propose(c)
		}
	}
	l.kick()
}

// commanded returns the command for the book, or nil if the site would refuse the command before it reaches the book.
func (l *leader) commanded(j *book.Job, a Act) *book.Command {
	raise := job.ChangeRequest{Job: j.ID}
	switch a.Do {
	case Cancel:
		return &book.Command{Cancel: &book.Cancel{Job: j.ID, By: j.Account}}
	case Requeue:
		return &book.Command{Requeue: &book.Requeue{Job: j.ID}}
	case Hold:
		if l.rules.MayHold(j) != nil {
			return nil
		}
		return &book.Command{Park: &book.Park{Job: j.ID, By: j.Account}}
	case Release:
		return &book.Command{Park: &book.Park{Job: j.ID, By: j.Account, Release: true}}
	case RaiseBudget:
		raise.Budget = core.Money(j.Spec.Budget.Float() * a.By)
	case RaiseRate:
		raise.Rate = core.Money(j.Spec.Rate.Float() * a.By)
	}
	c, err := l.rules.Change(j, &raise, func(spec *job.JobSpec) error {
		return l.market.Admit(l.now, l.market.Bid(j.ID, j.Account, l.now, spec, j.Contract))
	})
	if err != nil {
		return nil
	}
	return &book.Command{Change: c}
}

// The method takes returns how long an attempt of a task runs until it prints its result, in seconds. It returns 0 if
// the task has no work to do in this attempt.
func (g *Grid) takes(o *owning, task messages.TaskRef) float64 {
	if o.Quick && o.tries[task] > 0 || o.idles(task) {
		return 0
	}
	return g.Work.Jobs[o.at].Runtime / float64(max(1, o.Stages))
}

func (o *owning) idles(task messages.TaskRef) bool { return int(task.Stage) >= max(1, o.Stages) }

// The method stays returns how long a task keeps its slot after it has printed its result, in seconds.
func (g *Grid) stays(o *owning, task messages.TaskRef) float64 {
	if int(task.Stage) == max(1, o.Stages)-1 && int(task.Index) == g.width(o.at)-1 {
		return o.Stays
	}
	return 0
}

func (g *Grid) prints(o *owning, task messages.TaskRef) {
	if o.idles(task) {
		return
	}
	o.tries[task]++
	if _, before := g.out.Results[o.at]; !before && g.allPrinted(o) {
		g.out.Results[o.at] = g.seconds(g.now)
		g.moment(o, Printed)
	}
}

func (g *Grid) allPrinted(o *owning) bool {
	return len(o.tries) == g.width(o.at)*g.partsOf(o.at)*max(1, o.Stages)
}

func (g *Grid) code(o *owning, task messages.TaskRef) int {
	if g.allPrinted(o) && !o.idles(task) && o.tries[task] <= o.Exits {
		return 1
	}
	return 0
}

// In some markets, the owner gets a result only at the declared deadline. If the price of the job is known earlier, the
// owner gets the result at that earlier time. handOver changes the times of results in these markets accordingly.
func (g *Grid) handOver() {
	if g.Market.HandOver != rules.AtDeadline {
		return
	}
	for i, at := range g.out.Results {
		g.out.Results[i] = max(at, min(g.seconds(g.owners[i].settled), g.Bids[i].Deadline))
	}
}
