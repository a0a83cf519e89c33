package contract

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/candor-grid/candor/auctioneer/mechanism"
	"github.com/candor-grid/candor/auctioneer/mechanism/deadlineaware"
	"github.com/candor-grid/candor/auctioneer/mechanism/valuation"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/spelling"
)

// problem converts the view to a problem for the scheduler, with jobs at the same positions.
func problem(view *mechanism.View) *deadlineaware.Problem {
	p := &deadlineaware.Problem{
		Slots: min(max(1, view.Classes[0].Slots), deadlineaware.MostSlots),
		Jobs:  make([]deadlineaware.Job, len(view.Jobs), len(view.Jobs)+1),
	}
	for _, c := range view.Classes[0].Closings {
		p.Closings = append(p.Closings, deadlineaware.Closing{From: max(0, c.From.Sub(view.Now).Seconds()), To: c.To.Sub(view.Now).Seconds(), Slots: c.Slots})
	}
	for i, job := range view.Jobs {
		p.Jobs[i] = planned(view.Now, job)
		if !job.Complete { // the contract of a complete job is fulfilled
			p.Jobs[i].Valuation = curveOf(job.Bid)
		}
	}
	return p
}

// planned describes the remaining work of a job for the scheduler, which knows only tasks of one slot. So a task of n
// slots becomes n tasks. It is not known when the running tasks started. They are assumed to have started together, at
// the latest time that is possible if all earlier tasks took as long as planned.
func planned(now messages.Time, job *mechanism.Job) deadlineaware.Job {
	running := mechanism.Sum(job.Running)
	each, _ := planning(job.Bid)
	age := ageOf(now, job, each)
	tasks := max((job.Tasks-job.Done)*width(job.Bid), mechanism.Sum(job.Pending)+running+mechanism.Sum(job.Suspended))
	return deadlineaware.Job{
		Tasks:   tasks,
		Demand:  min(deadlineaware.Largest, float64(tasks-running)*each+float64(running)*(each-age)),
		Elapsed: max(0, now.Sub(job.Arrived).Seconds()),
		Limit:   limit(job.Bid),
	}
}

// limit returns the longest time that a task of a bid may take, in seconds.
func limit(bid *mechanism.Bid) float64 {
	if bid.Limit == 0 {
		return math.Inf(1)
	}
	return bid.Limit.Seconds()
}

// ageOf returns for how long the running tasks of a job are assumed to have run, in seconds. The argument `each` is the
// planned length of a task.
func ageOf(now messages.Time, job *mechanism.Job, each float64) float64 {
	if job.Started == 0 || each <= 0 {
		return 0
	}
	return math.Mod(max(0, now.Sub(job.Started).Seconds()), each)
}

// The function free returns how long it takes until a slot is free. It assumes that the running tasks take their
// planned lengths. It returns 0 if a slot is idle.
func free(view *mechanism.View) messages.Duration {
	if view.Classes[0].Idle > 0 {
		return 0
	}
	next := math.Inf(1)
	for _, job := range view.Jobs {
		if mechanism.Sum(job.Running) > 0 {
			each, _ := planning(job.Bid)
			next = min(next, each-ageOf(view.Now, job, each))
		}
	}
	if math.IsInf(next, 1) {
		return 0
	}
	return seconds(next)
}

// width returns how many slots each task of a job takes.
func width(bid *mechanism.Bid) int {
	if bid.Gang() {
		return bid.Width / max(bid.Tasks, 1)
	}
	return max(bid.Alone, 1)
}

// fewestRuns is how many runs of similar tasks must have been observed before a task's length is planned by them. With
// fewer runs, the planned length is the declared one. An old run counts less than 1.
const fewestRuns = 3

// planning returns the planned length of a task in seconds. If enough runs were observed, the length comes from these
// runs, and the result `seen` is true. Otherwise the length is the one that the bid declares.
func planning(bid *mechanism.Bid) (seconds float64, seen bool) {
	if r := bid.Runtimes; r != nil && r.Runs >= fewestRuns {
		if seconds, err := deadlineaware.RobustQuantile(r.Seconds, max(0, r.Divergence), deadlineaware.DefaultQuantile); err == nil {
			return seconds, true
		}
	}
	return max(0, bid.Length.Seconds()), false
}

// basis says in words how long a task is planned to take, and where this number comes from.
func basis(bid *mechanism.Bid) string {
	seconds, seen := planning(bid)
	switch r := bid.Runtimes; {
	case seen:
		return fmt.Sprintf("the plan gives a task %.3g s, estimated from %.0f runs of such tasks (the job declares %.3g s)", seconds, r.Runs, bid.Length.Seconds())
	case r != nil:
		return fmt.Sprintf("the plan gives a task the declared run time of %.3g s, because only %s", seconds, spelling.Number(int(math.Round(r.Runs)), "run of such tasks was seen", "runs of such tasks were seen"))
	default:
		return fmt.Sprintf("the plan gives a task the declared run time of %.3g s, because no run of such tasks was seen", seconds)
	}
}

// curveOf returns the valuation with which the scheduler ranks a job. A job without a contract gets the valuation 0, so
// it comes after all others.
func curveOf(bid *mechanism.Bid) valuation.Curve {
	if bid.Contract == nil {
		return valuation.Curve{}
	}
	c, err := valuation.New(bid.Contract.Surrogate)
	if err != nil { // Admit refuses a contract with an invalid valuation
		return valuation.Curve{}
	}
	return c
}

// order returns the positions of the view's jobs in the order in which they are served. The scheduler computes an
// order, and the jobs have promised completion times. Usually the scheduler's order counts. The order of the promised
// times counts in two cases: the scheduler's order would break more promises, or there are too many jobs for the
// scheduler.
func order(view *mechanism.View) []int {
	p := problem(view)
	if order, err := deadlineaware.Order(p); err == nil {
		if x := look(view, p); x != nil {
			order = x.best(order)
		}
		return order
	}
	order := make([]int, len(view.Jobs))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(promise(view.Jobs[a]), promise(view.Jobs[b])) })
	return order
}

func promise(job *mechanism.Job) messages.Time {
	if job.Contract == nil {
		return math.MaxInt64
	}
	return job.Contract.Completion
}
