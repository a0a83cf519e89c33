package backfill

import (
	"github.com/candor-grid/candor/auctioneer/mechanism/casefile"
	"github.com/candor-grid/candor/auctioneer/mechanism/rigid"
)

// Variant is a kind of backfilling.
type Variant string

// These are the variants of backfilling.
const (
	EASY         Variant = "easy"         // the front job has a reservation
	Conservative Variant = "conservative" // every job has a reservation
)

// Schedule runs the jobs on the machine in the order of their submission, with backfilling.
func Schedule(in *rigid.Instance, v Variant) (*rigid.Schedule, error) {
	if err := in.Check(); err != nil {
		return nil, err
	}
	switch v {
	case EASY:
		return rigid.Run(in, newEasy(in))
	case Conservative:
		return rigid.Run(in, newConservative(in))
	default:
		return nil, casefile.Invalid("variant", "must be %q or %q, is %.64q", EASY, Conservative, v)
	}
}

// input is the document of `candor solve backfill`.
type input struct {
	rigid.Input
	Variant *string `json:"variant,omitempty"`
}

// SolveDocument answers the JSON document described in package rigid, with one more key, "variant": "easy" (the
// default) or "conservative".
func SolveDocument(data []byte) (any, error) {
	in, err := casefile.Read[input](data)
	if err != nil {
		return nil, err
	}
	v := EASY
	if in.Variant != nil {
		v = Variant(*in.Variant)
	}
	return in.Solve(func(i *rigid.Instance) (*rigid.Schedule, error) { return Schedule(i, v) })
}
