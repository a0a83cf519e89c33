package highestbid

// Outcome is what became of a trace, by job in the order of the problem.
type Outcome struct {
	Start    []float64 `json:"start"` // when it first ran
	Finish   []float64 `json:"finish"`
	Flow     []float64 `json:"flow"` // from submission to finish
	Payment  []float64 `json:"payment"`
	Slowdown []float64 `json:"bsd"`     // bounded slowdown: flow over run time, taken as at least a minute
	Severe   []bool    `json:"ssj"`     // whether that is 5 or more
	Utility  []float64 `json:"utility"` // −value·flow − payment

	Revenue     float64      `json:"revenue"`         // all payments
	Weighted    float64      `json:"twft"`            // total weighted flow time: the sum of value·flow
	Designer    *float64     `json:"designer_payoff"` // Payoff; nil where it is no finite number
	Preemptions int          `json:"preemptions"`
	Intervals   [][]Interval `json:"intervals"` // by job; none of a Problem with Watch, but at pivot prices
}

// Interval is a time in which a job had slots, half open.
type Interval [2]float64

// Payoff is the designer's: revenue over weighted flow time; NaN of nothing.
func (o *Outcome) Payoff() float64 { return o.Revenue / o.Weighted }

const (
	shortest = 60 // seconds: a run time below it counts as this in a slowdown
	severe   = 5
)

func newOutcome(n int) *Outcome {
	numbers := make([]float64, 6*n)
	part := func(k int) []float64 { return numbers[k*n : (k+1)*n : (k+1)*n] }
	return &Outcome{Start: part(0), Finish: part(1), Flow: part(2), Payment: part(3), Slowdown: part(4), Utility: part(5),
		Severe: make([]bool, n), Intervals: make([][]Interval, n)}
}

// conclude works out what follows from flow times and payments.
func (o *Outcome) conclude(jobs []Job) {
	var revenue, weighted double
	for i := range jobs {
		j := &jobs[i]
		o.Slowdown[i] = o.Flow[i] / max(j.Runtime, shortest)
		o.Severe[i] = o.Slowdown[i] >= severe
		delay := product(j.Value, o.Flow[i])
		o.Utility[i] = 0 - delay.plus(double{hi: o.Payment[i]}).float() // no −0
		revenue = revenue.plus(double{hi: o.Payment[i]})
		weighted = weighted.plus(delay)
	}
	o.Revenue, o.Weighted = revenue.float(), weighted.float()
	if payoff := o.Payoff(); payoff-payoff == 0 {
		o.Designer = &payoff
	}
}
