package faults

// Report sums up the outcomes of many seeds.
type Report struct {
	Seeds          int            `json:"seeds"`
	Steps          uint64         `json:"steps"`
	Applied        uint64         `json:"applied"`
	Jobs           int            `json:"jobs"`
	Visits         int            `json:"visits"`
	Alone          int            `json:"alone"`
	Instructions   uint64         `json:"instructions"`
	Steered        [6]int         `json:"steered"`
	Faults         map[string]int `json:"faults"`
	SimulatedHours float64        `json:"simulated_hours"`
	Violations     []Violation    `json:"violations"`
}

// Violation is a failing seed, and the shortest plan that was found to make it fail.
type Violation struct {
	Seed uint64 `json:"seed"`
	What string `json:"what"`
	Plan string `json:"plan"` // YAML
	// Story lists the events that led to the violation, one per line.
	Story []string `json:"story"`
}

// Add counts an outcome.
func (r *Report) Add(o *Outcome) {
	r.Seeds++
	r.Steps += o.Steps
	r.Applied += uint64(o.Applied)
	r.Jobs += o.Jobs
	r.Visits += o.Visits
	r.Alone += o.Alone
	r.Instructions += o.Moved
	for k, n := range o.Steered {
		r.Steered[k] += n
	}
	r.SimulatedHours += o.Span.Seconds() / 3600
	if r.Faults == nil {
		r.Faults, r.Violations = map[string]int{}, []Violation{}
	}
	for k, n := range o.Faults {
		r.Faults[k] += n
	}
}
