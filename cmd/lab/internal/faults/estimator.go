package faults

import (
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/market"
)

// estimate returns an answer of the site's estimator: a usable one, a wrong one, or none in time.
func (s *site) estimate(request any) (any, error) {
	switch r := request.(type) {
	case market.RuntimeRequest:
		var reply market.RuntimeReply
		for range s.rng.IntN(2) + len(r.Stages)*s.rng.IntN(2) { // as many answers as stages, or more, or fewer
			e := market.RuntimeEstimate{Runs: 100 * s.rng.Float64(), Divergence: s.rng.Float64()}
			for range s.rng.IntN(5) {
				e.Samples = append(e.Samples, 20*s.rng.Float64())
			}
			reply.Stages = append(reply.Stages, e)
		}
		return &reply, nil
	}
	return nil, messages.Errorf(messages.Unavailable, "the estimator is not well")
}
