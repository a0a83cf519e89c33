package bids

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/candor-grid/candor/deploy/simulated/workload"
	"github.com/candor-grid/candor/messages"
)

// Bid is the true worth of a job, and the bid that the job declares. Money is in credits.
type Bid struct {
	Value      float64 // v: true worth of a slot-second, known only to the owner
	Rate       float64 // bid for a slot-second
	Deadline   float64 // seconds from the log's beginning; +Inf: none
	Length     float64 // declared run time, in seconds
	Budget     float64
	High       bool // the value is from the upper mode of the distribution
	Aggressive bool // the bid is shaded with the larger β
	// Valued is true if the job's value per slot-second was read from a file. Rated is true if its bid was read from a
	// file. A number that was read is not drawn at random.
	Valued, Rated bool
	// DelayRate is the declared cost of a second of waiting, for one slot. 0 means that DelayRate is equal to the field
	// Rate.
	DelayRate float64
	// Minimum is the least utility that the job demands. It counts only in a proportional market with the parameter
	// slo. 0 means the value of slo.
	Minimum float64
}

// Worth returns the worth of the whole job to its owner.
func (b *Bid) Worth(j *workload.Job) float64 { return b.Value * j.Work() }

// Left returns the part of the worth that is left at a time. The whole worth is left until the declared length has
// passed; then it falls to nothing at the deadline.
func (b *Bid) Left(j *workload.Job, at float64) float64 {
	whole := j.Submit + b.Length
	switch {
	case at <= whole || math.IsInf(b.Deadline, 1):
		return 1
	case at >= b.Deadline:
		return 0
	}
	return (b.Deadline - at) / (b.Deadline - whole)
}

// Delay returns the true cost to the owner if the job ends one second later. The cost is the value of one slot-second,
// multiplied by the slots of the job.
func (b *Bid) Delay(j *workload.Job) float64 { return b.Value * float64(j.Width) }

// SaidDelay returns the cost that a job declares for a second of delay, per slot.
func (b *Bid) SaidDelay() float64 { return cmp.Or(b.DelayRate, b.Rate) }

// Model is the document that says how bids are drawn. Absent fields have the
// defaults of Default.
type Model struct {
	Value    Value    `json:"value"`
	Shading  Shading  `json:"shading"`
	Deadline Deadline `json:"deadline"`
	Length   Length   `json:"length"`
	Users    Users    `json:"users"`
	// Budget is the budget of each job, as a multiple of what all its slot-seconds cost at its bid.
	Budget float64 `json:"budget"`
}

// Value is the distribution of v, the worth of a slot-second.
type Value struct {
	Distribution string  `json:"distribution"` // bimodal, normal, lognormal, exponential, uniform or constant
	Share        float64 `json:"share"`        // bimodal: part of the jobs in the upper mode
	Low          Normal  `json:"low"`          // bimodal: the lower mode
	High         Normal  `json:"high"`
	Mean         float64 `json:"mean"` // value of the other jobs
	Deviation    float64 `json:"deviation"`
	Min          float64 `json:"min"` // uniform: the least value
	Max          float64 `json:"max"`
}

// Normal is a normal distribution, cut off at 0.
type Normal struct {
	Mean      float64 `json:"mean"`
	Deviation float64 `json:"deviation"`
}

// Shading says which jobs bid below their value, and by how much at most.
type Shading struct {
	Aggressive float64 `json:"aggressive"` // part of the jobs
	Beta       float64 `json:"beta"`       // β of these jobs
	Others     float64 `json:"others"`     // β of the other jobs
}

// Deadline says how much time a job has after its earliest possible completion.
type Deadline struct {
	Slack string  `json:"slack"` // exponential, fixed or none
	Mean  float64 `json:"mean"`  // mean slack, in lengths of the job
	Least float64 `json:"least"` // seconds after submission, at least
}

// Length says how the run time that a job declares is made from its real run time.
type Length struct {
	Declared string  `json:"declared"` // exact, asked (from the log, if known) or noisy
	Spread   float64 `json:"spread"`   // noisy: σ of the logarithm
}

// Users says how much the jobs of one user are alike.
type Users struct {
	Spread float64 `json:"spread"` // σ of the logarithm of a user's factor
	By     string  `json:"by"`     // job or user: who draws the mode of the value
}

// Default returns the default model. A document may leave fields out, and these fields keep their values from this
// model.
func Default() Model {
	return Model{
		Value: Value{Distribution: "bimodal", Share: 0.2, Low: Normal{30, 15}, High: Normal{150, 15},
			Mean: 50, Deviation: 25, Min: 10, Max: 100},
		Shading:  Shading{Beta: 0.1},
		Deadline: Deadline{Slack: "exponential", Mean: 2, Least: 60},
		Length:   Length{Declared: "exact", Spread: 0.5},
		Users:    Users{By: "job"},
		Budget:   10,
	}
}

// Largest is the largest number that may stand in the description of a Model.
const Largest = 1e9

// Check returns an error if no bids can be drawn from the model. It names the field, such as "value.share".
func (m *Model) Check() error {
	for _, f := range []struct {
		name        string
		x, low, top float64
	}{
		{"value.share", m.Value.Share, 0, 1},
		{"value.low.mean", m.Value.Low.Mean, 0, Largest}, {"value.low.deviation", m.Value.Low.Deviation, 0, Largest},
		{"value.high.mean", m.Value.High.Mean, 0, Largest}, {"value.high.deviation", m.Value.High.Deviation, 0, Largest},
		{"value.mean", m.Value.Mean, 1e-6, Largest}, {"value.deviation", m.Value.Deviation, 0, Largest},
		{"value.min", m.Value.Min, 0, Largest}, {"value.max", m.Value.Max, max(m.Value.Min, 1e-6), Largest},
		{"shading.aggressive", m.Shading.Aggressive, 0, 1}, {"shading.beta", m.Shading.Beta, 0, 1}, {"shading.others", m.Shading.Others, 0, 1},
		{"deadline.mean", m.Deadline.Mean, 0, 1e6}, {"deadline.least", m.Deadline.Least, 0, Largest},
		{"length.spread", m.Length.Spread, 0, 5}, {"users.spread", m.Users.Spread, 0, 5},
		{"budget", m.Budget, 1e-6, 1e6},
	} {
		if !(f.x >= f.low && f.x <= f.top) {
			return messages.Errorf(messages.Invalid, "%s: must be from %g to %g, is %v", f.name, f.low, f.top, f.x)
		}
	}
	for _, f := range []struct {
		name, is string
		of       []string
	}{
		{"value.distribution", m.Value.Distribution, []string{"bimodal", "normal", "lognormal", "exponential", "uniform", "constant"}},
		{"deadline.slack", m.Deadline.Slack, []string{"exponential", "fixed", "none"}},
		{"length.declared", m.Length.Declared, []string{"exact", "asked", "noisy"}},
		{"users.by", m.Users.By, []string{"job", "user"}},
	} {
		if !slices.Contains(f.of, f.is) {
			return messages.Errorf(messages.Invalid, "%s: must be one of %v, is %.64q", f.name, f.of, f.is)
		}
	}
	return nil
}

// Draw draws a bid for each job of a workload.
func (m *Model) Draw(w *workload.Workload, seed uint64) []Bid {
	users := make([]user, len(w.Users))
	for i, n := range w.Users {
		rng := rand.New(rand.NewPCG(seed, mix(uint64(n), 1)))
		users[i] = user{factor: m.factor(rng), high: rng.Float64() < m.Value.Share}
	}
	out := make([]Bid, len(w.Jobs))
	source := rand.NewPCG(0, 0)
	rng := rand.New(source)
	for i := range w.Jobs {
		j := &w.Jobs[i]
		source.Seed(seed, mix(uint64(j.Number), uint64(j.Line)<<1))
		out[i] = m.draw(j, &users[j.User], rng)
	}
	return out
}

type user struct {
	factor float64
	high   bool
}

func (m *Model) factor(rng *rand.Rand) float64 {
	if m.Users.Spread == 0 {
		return 1
	}
	s := m.Users.Spread
	return math.Exp(s*rng.NormFloat64() - s*s/2)
}

// mix combines two numbers into a well mixed number of 64 bits (the finaliser of SplitMix64).
func mix(a, b uint64) uint64 {
	z := a*0x9e3779b97f4a7c15 + b + 0x632be59bd9b4e019
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}
