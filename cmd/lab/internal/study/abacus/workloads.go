package abacus

import "github.com/candor-grid/candor/cmd/lab/internal/study"

// submitSeconds is how long users submit jobs, in seconds, as in the paper.
const submitSeconds = 30 * 60

// repeats is the number of repetitions of a setting. A quick study has quickRepeats repetitions. Each repetition draws
// other jobs.
const (
	repeats      = 30
	quickRepeats = 6
)

// private returns the cluster of figures 9 and 10. For user 1, a map task takes 30 s and a reduce task takes 20 s. For
// user 2 these times are 20 s and 30 s, and for user 3 they are 60 s and 10 s. The paper's text gives the times of user
// 3, the ratio of the two times for user 1, and the number of nodes (72). We chose the other numbers. With our numbers,
// jobs need a little more time than the slots have.
func private(number int) *cluster {
	c := &cluster{slots: [classes]int{72, 72}, alpha: 0.5, hadoop: hadoop{perNode: 1}}
	for i := range number {
		kind := []user{
			{weights: [classes]float64{3, 2}, seconds: [classes]float64{30, 20}},
			{weights: [classes]float64{2, 3}, seconds: [classes]float64{20, 30}},
			{weights: [classes]float64{6, 1}, seconds: [classes]float64{60, 10}},
		}[i%3]
		kind.budget, kind.tasks, kind.between = 100, [classes]int{144, 144}, 200
		c.users = append(c.users, kind)
	}
	return c
}

// public returns the cluster of figures 12 and 13. Its machines have two map and two reduce slots, and its users have
// ten kinds of jobs. Each kind has a ratio: its map time divided by its reduce time. The ratio is below 1 for the sixth
// and the ninth kind, and above 1 for the others. The paper does not print its table of ratios. Its text says only that
// the ratio of the third kind is nearest to 4. We chose the other ratios.
func public(number, machines int) *cluster {
	c := &cluster{slots: [classes]int{2 * machines, 2 * machines}, alpha: 0.5, hadoop: hadoop{perNode: 2}}
	ratios := []float64{2, 3, 4, 5, 3, 0.4, 2, 6, 0.5, 4}
	for i := range number {
		ratio := ratios[i%len(ratios)]
		total := 50.0 // seconds that a map task and a reduce task take together
		u := user{budget: 200, tasks: [classes]int{30, 30}, between: 600,
			seconds: [classes]float64{total * ratio / (1 + ratio), total / (1 + ratio)}}
		u.weights = u.seconds
		c.users = append(c.users, u)
	}
	return c
}

// estimates has the results of a study at one value of the property that it varies, with confidence intervals.
type estimates struct {
	At       float64          `json:"at"`
	Response []study.Estimate `json:"response_s"` // by user
	Total    study.Estimate   `json:"total_s"`
	Away     *study.Estimate  `json:"away,omitempty"` // part of maps that ran away from their data, if nodes differ
}

// repeat runs a cluster with n draws, each with its own seed.
func (c *cluster) repeat(n int, seed uint64) (*estimates, error) {
	var totals, away []float64
	responses := make([][]float64, len(c.users))
	for k := range n {
		s, err := c.run(c.draw(submitSeconds, seed<<16+uint64(k)))
		if err != nil {
			return nil, err
		}
		totals, away = append(totals, s.total), append(away, s.away)
		for i, x := range s.response {
			responses[i] = append(responses[i], x)
		}
	}
	e := &estimates{Total: study.Estimated(totals)}
	for _, r := range responses {
		e.Response = append(e.Response, study.Estimated(r))
	}
	if c.away > 0 {
		a := study.Estimated(away)
		e.Away = &a
	}
	return e, nil
}

// axis is an axis of a figure, with its values. The field `of` is a function that returns the cluster for a value on
// the axis.
type axis struct {
	name, label string
	at          []float64
	of          func(x float64) *cluster
}

// often returns the number of repetitions of a setting: fewer for a quick study.
func often(o study.Options) int { return study.Sized(o, repeats, quickRepeats) }

// run runs the experiment n times for each point on the axis of a figure. The server uses the auction, or takes jobs in
// the order of arrival if `fifo` is true.
func (a *axis) run(fifo bool, n int, seed uint64) ([]estimates, error) {
	var out []estimates
	for _, x := range a.at {
		c := a.of(x)
		c.fifo = fifo
		e, err := c.repeat(n, seed)
		if err != nil {
			return nil, err
		}
		e.At = x
		out = append(out, *e)
	}
	return out, nil
}

func third(c *cluster, change func(*user)) *cluster {
	change(&c.users[2])
	return c
}

// budgeted returns a function that sets a user's budget to x. reporting returns a function that makes a user report the
// weights x and 1.
func budgeted(x float64) func(*user)  { return func(u *user) { u.budget = x } }
func reporting(x float64) func(*user) { return func(u *user) { u.weights = [classes]float64{x, 1} } }
