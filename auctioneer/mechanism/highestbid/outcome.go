package highestbid

// Outcome is what happened to the jobs of a trace. Slices are by job, in the order of the problem.
type Outcome struct {
	Start    []float64 `json:"start"` // when the job first ran
	Finish   []float64 `json:"finish"`
	Flow     []float64 `json:"flow"` // time from submission to finish
	Payment  []float64 `json:"payment"`
	Slowdown []float64 `json:"bsd"`     // bounded slowdown: flow divided by run time, or by a minute if that is longer
	Severe   []bool    `json:"ssj"`     // the slowdown is 5 or more
	Utility  []float64 `json:"utility"` // −value·flow − payment

	Revenue     float64      `json:"revenue"`         // the sum of all payments
	Weighted    float64      `json:"twft"`            // total weighted flow time: the sum of value·flow
	Designer    *float64     `json:"designer_payoff"` // see Payoff; nil if it is not finite
	Preemptions int          `json:"preemptions"`
	Intervals   [][]Interval `json:"intervals"` // by job; left out for a Problem with Watch, unless prices are pivot
}

// Interval is a time in which a job had slots. The end of the interval is not part of it.
type Interval [2]float64

// Payoff returns the designer's payoff: revenue divided by weighted flow time. It is NaN without jobs.
func (o *Outcome) Payoff() float64 { return o.Revenue / o.Weighted }

const (
	shortest = 60 // in seconds; the slowdown of a shorter job is computed with this run time
	severe   = 5
)

func newOutcome(n int) *Outcome {
	numbers := make([]float64, 6*n)
	part := func(k int) []float64 { return numbers[k*n : (k+1)*n : (k+1)*n] }
	return &Outcome{Start: part(0), Finish: part(1), Flow: part(2), Payment: part(3), Slowdown: part(4), Utility: part(5),
		Severe: make([]bool, n), Intervals: make([][]Interval, n)}
}

// conclude computes the results that follow from flow times and payments, for example the slowdown and the revenue.
func (o *Outcome) conclude(jobs []Job) {
	var revenue, weighted double
	for i := range jobs {
		j := &jobs[i]
		o.Slowdown[i] = o.Flow[i] / max(j.Runtime, shortest)
		o.Severe[i] = o.Slowdown[i] >= severe
		delay := product(j.Value, o.Flow[i])
		o.Utility[i] = 0 - delay.plus(double{hi: o.Payment[i]}).float() // so that the result is never −0
		revenue = revenue.plus(double{hi: o.Payment[i]})
		weighted = weighted.plus(delay)
	}
	o.Revenue, o.Weighted = revenue.float(), weighted.float()
	if payoff := o.Payoff(); payoff-payoff == 0 {
		o.Designer = &payoff
	}
}
