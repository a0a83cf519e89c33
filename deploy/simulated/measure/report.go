package measure

import (
	"cmp"
	"math"
	"slices"
	"strconv"

	"github.com/candor-grid/candor/deploy/simulated/rules"
	"github.com/candor-grid/candor/deploy/simulated/workload"
	"github.com/candor-grid/candor/messages"
)

// Report is the whole result of a study. The names of the JSON keys do not change.
type Report struct {
	Market  *rules.Market `json:"market"`
	Trace   Trace         `json:"trace"`
	Seed    uint64        `json:"seed"`
	Actors  string        `json:"actors"`
	Results Results       `json:"results"`
	GroupBy string        `json:"group_by"`
	Groups  []Group       `json:"groups"`
	Traffic any           `json:"traffic,omitempty"` // with all actors: number of messages by kind
	Notes   []string      `json:"notes"`
}

// Trace describes the log that was run.
type Trace struct {
	File     string            `json:"file"`
	Nodes    int               `json:"nodes"`
	Jobs     int               `json:"jobs"`
	Tasks    int               `json:"tasks"`
	Users    int               `json:"users"`
	Parallel workload.Parallel `json:"parallel"`
	From     float64           `json:"from"` // time of the first submission, in seconds
	To       float64           `json:"to"`   // time of the last submission, in seconds
	Scale    float64           `json:"scale_load"`
	Load     float64           `json:"load"` // slot-seconds asked for, divided by the slot-seconds that exist from the first to the last submission
	Skipped  workload.Skipped  `json:"skipped"`
}

// Results are the measures of all jobs.
type Results struct {
	Stats
	Makespan    float64 `json:"makespan"`
	Utilisation float64 `json:"utilisation"`
	Preemptions int     `json:"preemptions"`
	Balance     string  `json:"budget_balance"` // balanced, surplus (credits are left with the site) or deficit
	Worth       string  `json:"worth"`          // measure of welfare: delay, deadline or run
}

// Group has the numbers of the report for a part of the jobs.
type Group struct {
	Name string `json:"name"`
	Stats
}

// Groupings are the ways to divide jobs into groups.
var Groupings = []string{"group", "user", "value", "shading", "width", "queue"}

// Report measures the jobs of the study, and returns the report. The results are grouped by `groupBy`, one of
// Groupings.
func (s *Study) Report(groupBy string) (*Report, error) {
	groups, err := s.groups(groupBy)
	if err != nil {
		return nil, err
	}
	widest, tasks := s.Work.Widest()
	from, to := s.Work.Span()
	all := make([]int, len(s.Work.Jobs))
	work := 0.0
	for i := range all {
		all[i] = i
		work += s.Work.Jobs[i].Work()
	}
	r := &Report{Market: s.Market, GroupBy: groupBy, Groups: groups, Notes: append(append([]string{}, s.Work.Notes...), s.Outcome.Notes...),
		Trace: Trace{Nodes: s.Work.Nodes, Jobs: len(all), Tasks: tasks, Users: len(s.Work.Users), Parallel: s.Work.Parallel,
			From: from, To: to, Skipped: s.Work.Skipped}}
	if widest == 1 {
		r.Trace.Parallel = "serial"
	}
	if to > from {
		r.Trace.Load = work / (float64(s.Work.Nodes) * (to - from))
	}
	r.Results = s.results(all)
	return r, nil
}

func (s *Study) results(all []int) Results {
	t := Results{Stats: s.Stats(all), Preemptions: s.Outcome.Preemptions}
	first, _ := s.Work.Span()
	last := first
	for i := range s.Outcome.Jobs {
		if job := &s.Outcome.Jobs[i]; job.Used > 0 {
			last = max(last, job.Finish)
		}
	}
	if t.Makespan = last - first; t.Makespan > 0 {
		t.Utilisation = t.Used / (float64(s.Work.Nodes) * t.Makespan)
	}
	t.Worth = s.Market.Worth
	t.Balance = balance(t.Revenue)
	return t
}

// A revenue is what the mechanism takes from the jobs minus what it pays to them. balance returns the word for it:
// "surplus", "deficit", or "balanced" if it is exactly 0.
func balance(revenue float64) string {
	switch {
	case revenue > 0:
		return "surplus"
	case revenue < 0:
		return "deficit"
	}
	return "balanced"
}

// groups divides the jobs into groups with the same value of a property. The argument `by` is the name of this
// property. The group with the most jobs comes first.
func (s *Study) groups(by string) ([]Group, error) {
	name, err := s.namer(by)
	if err != nil {
		return nil, err
	}
	index := map[string]int{}
	var names []string
	var members [][]int
	for i := range s.Work.Jobs {
		n := name(i)
		k, ok := index[n]
		if !ok {
			k = len(names)
			index[n] = k
			names, members = append(names, n), append(members, nil)
		}
		members[k] = append(members[k], i)
	}
	out := make([]Group, len(names))
	for k := range out {
		out[k] = Group{names[k], s.Stats(members[k])}
	}
	slices.SortStableFunc(out, func(a, b Group) int { return cmp.Or(cmp.Compare(b.Jobs, a.Jobs), cmp.Compare(a.Name, b.Name)) })
	return out, nil
}

// namer returns a function that gives, for a job, the name of the job's group.
func (s *Study) namer(by string) (func(i int) string, error) {
	either := func(is bool, yes, no string) string {
		if is {
			return yes
		}
		return no
	}
	number := func(kind string, n int64) string {
		return either(n < 0, "unknown", kind+" "+strconv.FormatInt(n, 10))
	}
	switch by {
	case "group":
		return func(i int) string { return number(by, s.Work.Groups[s.Work.Jobs[i].Group]) }, nil
	case "user":
		return func(i int) string { return number(by, s.Work.Users[s.Work.Jobs[i].User]) }, nil
	case "queue":
		return func(i int) string { return number(by, s.Work.Jobs[i].Queue) }, nil
	case "value":
		return func(i int) string {
			return either(s.Bids[i].Valued, "value from the file", either(s.Bids[i].High, "high value", "low value"))
		}, nil
	case "shading":
		return func(i int) string {
			return either(s.Bids[i].Rated, "bid from the file", either(s.Bids[i].Aggressive, "aggressive", "others"))
		}, nil
	case "width":
		return func(i int) string {
			return "up to " + strconv.Itoa(1<<int(math.Ceil(math.Log2(float64(s.Work.Jobs[i].Width)))))
		}, nil
	}
	return nil, messages.Errorf(messages.Invalid, "by: must be one of %v, is %.64q", Groupings, by)
}
