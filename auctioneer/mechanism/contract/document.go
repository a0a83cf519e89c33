package contract

import (
	"bytes"
	"encoding/json"

	"github.com/candor-grid/candor/auctioneer/mechanism/casefile"
	"github.com/candor-grid/candor/messages/job"
)

// input is the document of `candor solve contract`. It has exactly one of the keys Weights, ExPost and Type, and the
// keys that belong to it.
type input struct {
	Weights    [][]float64 `json:"weights,omitempty"` // row: replica, column: surrogate
	Completion []float64   `json:"completion,omitempty"`
	Types      [][]float64 `json:"types_mu_delta,omitempty"` // types of the replicas for readers; the solver ignores them

	ExPost   *adjustment `json:"ex_post,omitempty"`
	LateOnly *bool       `json:"late_only,omitempty"`

	Type     *parameters        `json:"type,omitempty"`
	Class    job.ValuationClass `json:"class,omitempty"`
	Samples  []parameters       `json:"samples,omitempty"`
	Seed     uint64             `json:"seed,omitempty"`
	Schedule *schedule          `json:"schedule,omitempty"`

	M    *int `json:"M,omitempty"`
	Show *int `json:"show,omitempty"` // number of contracts of the menu to show; default all
}

// parameters has the parameters of a valuation. The document names the class of the valuation.
type parameters struct {
	Max            float64              `json:"max"`
	Mu             float64              `json:"mu,omitempty"`
	Delta          float64              `json:"delta,omitempty"`
	Epsilon        float64              `json:"eps,omitempty"`
	Deadline       float64              `json:"deadline,omitempty"`
	Workload       float64              `json:"workload,omitempty"`
	SecondsPerUnit float64              `json:"seconds_per_unit,omitempty"`
	Points         []job.ValuationPoint `json:"points,omitempty"`
}

// output is the answer that `candor solve contract` prints. A matching gives each replica (a possible submitted job) a
// surrogate (a drawn job). The answer has one of the matchings with the largest weight, and the price of each replica.
type output struct {
	M          int        `json:"M"`
	MaxWeight  float64    `json:"max_weight"`
	Unique     bool       `json:"unique"`
	Matching   []int      `json:"matching"` // by replica: its surrogate
	Surrogates []float64  `json:"price_by_surrogate"`
	Replicas   []float64  `json:"price_by_replica"`
	Utility    []float64  `json:"utility_by_replica"`
	Declared   *int       `json:"declared,omitempty"` // the replica that is the declared type
	Menu       []Contract `json:"menu,omitempty"`
}

// SolveDocument answers a JSON document of one of three kinds:
//
//   - {"weights", "completion"?}: the answer has the matching and its prices. If there are completion times, it
//     also has the menu.
//   - {"type", "class", "samples", "M", "seed"?, "schedule"}: the answer has the matching, prices and menu for a job of
//     this type. Replicas and surrogates are drawn from the samples. The schedule says when the job completes:
//     {"completion"}, {"deadline_aware", "job"?} with a document of package deadlineaware, or
//     {"slots"?, "demand", "jobs"}.
//   - {"ex_post": {"price", "v_expected", "v_actual"} or a list of these, "late_only"?}: the answer has the
//     adjusted prices.
func SolveDocument(data []byte) (any, error) {
	if listed(data) {
		return adjustList(data)
	}
	in, err := casefile.Read[input](data)
	if err != nil {
		return nil, err
	}
	if err := in.check(); err != nil {
		return nil, err
	}
	switch {
	case in.ExPost != nil:
		return in.ExPost.answer("ex_post", in.LateOnly)
	case in.Type != nil:
		return in.offer()
	default:
		return in.matching()
	}
}

// check returns an error unless the document has exactly one of the keys weights, ex_post and type. It also returns an
// error for any other key that does not belong to this key. Example: completion belongs to weights.
func (in *input) check() error {
	weights, adjusts, offers := in.Weights != nil, in.ExPost != nil, in.Type != nil
	if n := count(weights, adjusts, offers); n != 1 {
		return casefile.Invalid("", "give exactly one of the keys weights, ex_post and type; %d of them are given", n)
	}
	for _, key := range []struct {
		name  string
		given bool
		fits  bool
		with  string
	}{
		{"completion", in.Completion != nil, weights, "weights"},
		{"types_mu_delta", in.Types != nil, weights, "weights"},
		{"late_only", in.LateOnly != nil, adjusts, "ex_post"},
		{"class", in.Class != "", offers, "type"},
		{"samples", in.Samples != nil, offers, "type"},
		{"seed", in.Seed != 0, offers, "type"},
		{"schedule", in.Schedule != nil, offers, "type"},
		{"M", in.M != nil, weights || offers, "weights or type"},
		{"show", in.Show != nil, in.Completion != nil || offers, "completion or type"},
	} {
		if key.given && !key.fits {
			return casefile.Invalid(key.name, "can be used only together with %s: leave it out", key.with)
		}
	}
	if in.Show != nil && *in.Show < 2 {
		return casefile.Invalid("show", "must be at least 2, for the declared and the free contract, is %d", *in.Show)
	}
	return nil
}

func count(given ...bool) (n int) {
	for _, g := range given {
		if g {
			n++
		}
	}
	return n
}

func (in *input) matching() (*output, error) {
	m := len(in.Weights)
	if in.M != nil && *in.M != m {
		return nil, casefile.Invalid("M", "is %d, but there are %d rows of weights", *in.M, m)
	}
	if in.Completion != nil && len(in.Completion) != m {
		return nil, casefile.Invalid("completion", "must be one for each of the %d surrogates, there are %d", m, len(in.Completion))
	}
	if in.Types != nil && len(in.Types) != m {
		return nil, casefile.Invalid("types_mu_delta", "must be one for each of the %d replicas, there are %d", m, len(in.Types))
	}
	var flat []float64
	for j, row := range in.Weights {
		if len(row) != m {
			return nil, casefile.Invalid("weights", "must be square: there are %d rows, and row %d has %d", m, j, len(row))
		}
		flat = append(flat, row...)
	}
	var s Solver
	r, err := s.Solve(m, flat)
	if err != nil {
		return nil, err
	}
	out := present(&s, r, flat)
	if in.Completion != nil {
		out.Menu = in.shown(Menu(r, flat, in.Completion, none))
	}
	return out, nil
}

func (in *input) shown(menu []Contract) []Contract {
	if in.Show == nil {
		return menu
	}
	return Sample(menu, *in.Show, in.Seed)
}

func present(s *Solver, r *Matching, weights []float64) *output {
	out := &output{M: len(r.Surrogate), MaxWeight: r.Weight, Unique: s.Unique(), Matching: r.Surrogate, Surrogates: r.Prices}
	for j, k := range r.Surrogate {
		out.Replicas = append(out.Replicas, r.Prices[k])
		out.Utility = append(out.Utility, weights[j*out.M+k]-r.Prices[k])
	}
	return out
}

func (in *input) offer() (*output, error) {
	switch {
	case in.Class == "":
		return nil, casefile.Invalid("class", "the key is missing: name the class of the type and of the samples")
	case in.M == nil:
		return nil, casefile.Invalid("M", "the key is missing: say how many replicas")
	case in.Schedule == nil:
		return nil, casefile.Invalid("schedule", "the key is missing: say when the job would complete")
	}
	sampler, err := FromSamples(in.samples())
	if err != nil {
		return nil, err
	}
	schedule, err := in.Schedule.box()
	if err != nil {
		return nil, err
	}
	d, err := NewDraw(in.Type.of(in.Class), sampler, *in.M, in.Seed)
	if err != nil {
		return nil, err
	}
	var s Solver
	o, err := NewOffer(&s, d, schedule)
	if err != nil {
		return nil, err
	}
	out := present(&s, o.Matching, o.Weights)
	out.Declared, out.Menu = &d.Declared, in.shown(o.Menu)
	return out, nil
}

func (in *input) samples() (out []job.Valuation) {
	for _, p := range in.Samples {
		out = append(out, p.of(in.Class))
	}
	return out
}

func (p *parameters) of(class job.ValuationClass) job.Valuation {
	return job.Valuation{Class: class, Max: p.Max, Mu: p.Mu, Delta: p.Delta, Epsilon: p.Epsilon,
		Deadline: p.Deadline, Workload: p.Workload, SecondsPerUnit: p.SecondsPerUnit, Points: p.Points}
}

// listed reports whether the key "ex_post" of a document has a list as its value. It returns false for an invalid
// document, which is refused later.
func listed(data []byte) bool {
	var in struct {
		ExPost json.RawMessage `json:"ex_post"`
	}
	return bytes.Contains(data, []byte(`"ex_post"`)) && json.Unmarshal(data, &in) == nil && bytes.HasPrefix(in.ExPost, []byte("["))
}
