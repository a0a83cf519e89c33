package measure

import (
	"cmp"
	"math"
	"slices"

	"gonum.org/v1/gonum/stat/distuv"

	"github.com/candor-grid/candor/deploy/simulated/core"
)

// To compute confidence intervals, a comparison divides the log into parts and leaves out each part in turn. Blocks is
// the number of parts.
const Blocks = 10

// rounding is the largest value of a measure that can come from rounding.
const rounding = 1e-9

// A job starves if its response (the time from submission to end) is longer than 100 times its run time. A run time
// below a minute counts as a minute.
const starving = 100

// Comparison has several markets with the same jobs and the same types. Other programs may read its JSON, so the keys
// must not change.
type Comparison struct {
	Worth   string     `json:"worth"` // measure of welfare for all markets: delay, deadline or run
	Draws   int        `json:"draws"` // number of draws of types; all numbers are means over the draws
	Blocks  int        `json:"blocks"`
	Markets []Compared `json:"markets"`
}

// Compared is one of the markets of a Comparison. The keys of the maps are the names in Measures.
type Compared struct {
	Name      string              `json:"name"`
	Mechanism string              `json:"mechanism"`
	Measures  map[string]Estimate `json:"measures"`
	// Less has, for each measure, the number for this market minus the number for the first market. Both markets have
	// the same jobs.
	Less   map[string]Estimate `json:"less_first"`
	Widths []Waited            `json:"wait_by_width"`
	Users  []Waited            `json:"wait_by_user"`
	Notes  []string            `json:"notes"`
}

// Estimate is a measure with its 95 % interval.
type Estimate struct {
	Mean float64    `json:"mean"`
	CI   [2]float64 `json:"interval_95"`
}

// Clear reports whether 0 is outside of the interval.
func (e *Estimate) Clear() bool { return e.CI[0] > 0 || e.CI[1] < 0 }

// Waited is the mean wait of a group of jobs.
type Waited struct {
	Name      string  `json:"name"`
	Jobs      int     `json:"jobs"`
	Completed float64 `json:"completed"`
	Wait      float64 `json:"wait"` // seconds, of completed jobs
}

// Measures lists the measures with which markets are compared, in the order of the table.
var Measures = []string{"welfare", "wait", "bounded_slowdown", "starved", "jain", "gini", "utilisation", "revenue"}

// Compare compares markets. For each market there are several studies, one for each draw of the jobs' types. In each
// draw, all markets have the same jobs and types.
//
// Intervals are jackknife intervals. For them, the log is cut into parts with equally many jobs, in the order of
// submission; Blocks is the number of parts. Each measure is computed again without each part.
func Compare(markets [][]*Study) *Comparison {
	first := markets[0]
	c := &Comparison{Worth: first[0].Market.Worth, Draws: len(first), Blocks: min(Blocks, len(first[0].Work.Jobs))}
	var base []map[string]float64
	for _, of := range markets {
		m := Compared{Name: string(of[0].Market.Name), Mechanism: of[0].Market.Mechanism, Notes: append([]string{}, of[0].Outcome.Notes...)}
		left := make([]map[string]float64, c.Blocks+1) // the last one is over all jobs
		for b := range left {
			left[b] = measured(of, b, c.Blocks)
		}
		m.Measures = estimates(left, nil)
		if base == nil {
			base = left
		} else {
			m.Less = estimates(left, base)
		}
		m.Widths, m.Users = waits(of, "width"), waits(of, "user")
		c.Markets = append(c.Markets, m)
	}
	return c
}

// estimates returns each measure in `left` with its interval. If `less` is not nil, it returns differences: each
// measure in `left` minus the same measure in `less`.
func estimates(left, less []map[string]float64) map[string]Estimate {
	out := map[string]Estimate{}
	n := len(left) - 1
	for _, name := range Measures {
		x := make([]float64, n+1)
		for b := range x {
			if x[b] = left[b][name]; less != nil {
				x[b] -= less[b][name]
			}
		}
		out[name] = jackknife(x[:n], x[n])
	}
	return out
}

// jackknife returns a measure with its interval. `all` is the measure on the whole log. Each element of `without` is
// the measure on the log without one of its parts.
func jackknife(without []float64, all float64) Estimate {
	n := float64(len(without))
	if n < 2 {
		return Estimate{all, [2]float64{all, all}}
	}
	mean, squares := 0.0, 0.0
	for _, x := range without {
		mean += x / n
	}
	for _, x := range without {
		squares += (x - mean) * (x - mean)
	}
	d := distuv.StudentsT{Mu: 0, Sigma: 1, Nu: n - 1}.Quantile(0.975) * math.Sqrt((n-1)/n*squares)
	if d <= rounding*math.Abs(mean) {
		d = 0
	}
	return Estimate{all, [2]float64{all - d, all + d}}
}

// measured returns the measures of a market, as means over the draws. The log is divided into parts, and the jobs of
// the part with the number `without` do not count.
func measured(of []*Study, without, blocks int) map[string]float64 {
	out := map[string]float64{}
	for _, s := range of {
		n := len(s.Work.Jobs)
		var jobs []int
		for i := range n {
			if i*blocks/n != without {
				jobs = append(jobs, i)
			}
		}
		for name, x := range s.measures(jobs) {
			out[name] += x / float64(len(of))
		}
	}
	return out
}

// measures returns the measures. They are means over the given jobs, with one exception: the use of slots is measured
// over all jobs.
func (s *Study) measures(jobs []int) map[string]float64 {
	t := s.Stats(jobs)
	value, starved := 0.0, 0
	speed := make([]float64, len(s.Work.Users))
	count := make([]float64, len(s.Work.Users))
	for _, i := range jobs {
		j, r := &s.Work.Jobs[i], &s.Outcome.Jobs[i]
		value += s.Bids[i].Worth(j)
		count[j.User]++
		slow := math.Inf(1)
		if r.Fate == core.Completed {
			slow = max(1, (r.Finish-j.Submit)/max(j.Runtime, minute))
		}
		speed[j.User] += 1 / slow
		if slow > starving {
			starved++
		}
	}
	var users []float64
	for u := range speed {
		if count[u] > 0 {
			users = append(users, speed[u]/count[u])
		}
	}
	out := map[string]float64{"wait": t.Wait.Mean, "bounded_slowdown": t.Slowdown.Mean, "starved": float64(starved) / float64(max(1, len(jobs))),
		"jain": Jain(users), "gini": Gini(users), "utilisation": s.loaded()}
	if value > 0 {
		out["welfare"], out["revenue"] = t.Welfare/value, t.Revenue/value
	}
	return out
}

// loaded returns a fraction: the slot time that was used between the first and the last submission, divided by all slot
// time in this period.
func (s *Study) loaded() float64 {
	from, to := s.Work.Span()
	if to <= from {
		return 0
	}
	used := 0.0
	for i := range s.Outcome.Jobs {
		r := &s.Outcome.Jobs[i]
		if r.Used > 0 && r.Finish > r.Start { // a job that was suspended counts as if it ran evenly from its start to its end
			used += r.Used * max(0, min(r.Finish, to)-max(r.Start, from)) / (r.Finish - r.Start)
		}
	}
	return used / ((to - from) * float64(s.Work.Nodes))
}

func waits(of []*Study, by string) []Waited {
	var out []Waited
	for k, s := range of {
		groups, err := s.groups(by)
		if err != nil {
			panic(err) // this file uses only groupings that exist
		}
		if k == 0 {
			for i := range groups {
				out = append(out, Waited{Name: groups[i].Name, Jobs: groups[i].Jobs})
			}
		}
		for i := range groups { // all studies have the same jobs in the same order
			done := float64(groups[i].Completed)
			out[i].Completed, out[i].Wait = out[i].Completed+done, out[i].Wait+done*groups[i].Wait.Mean
		}
	}
	for i := range out {
		out[i].Wait /= max(1, out[i].Completed)
		out[i].Completed /= float64(len(of))
	}
	if by == "width" {
		slices.SortFunc(out, func(a, b Waited) int {
			return cmp.Or(cmp.Compare(len(a.Name), len(b.Name)), cmp.Compare(a.Name, b.Name)) // sort groups by their number
		})
	}
	return out
}

// Jain returns Jain's index of fairness, (Σx)²/(n·Σx²): 1 if all x are equal, 1/n if all x except one are 0.
func Jain(x []float64) float64 {
	sum, squares := 0.0, 0.0
	for _, v := range x {
		sum, squares = sum+v, squares+v*v
	}
	if squares == 0 {
		return 1
	}
	return sum * sum / (float64(len(x)) * squares)
}

// Gini returns the Gini coefficient: 0 if all x are equal, 1 − 1/n if all x except one are 0.
func Gini(x []float64) float64 {
	x = slices.Sorted(slices.Values(x))
	sum, ranked := 0.0, 0.0
	for k, v := range x {
		sum, ranked = sum+v, ranked+float64(2*(k+1)-len(x)-1)*v
	}
	if sum == 0 {
		return 0
	}
	return ranked / (float64(len(x)) * sum)
}
