package federation

import (
	"cmp"
	"fmt"
	"math"

	"github.com/candor-grid/candor/auctioneer/mechanism/valuation"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/clearing"
	"github.com/candor-grid/candor/messages/job"
)

// Choose returns the position of the best offer for a job that is submitted now, and a clause that says why. The
// position is −1 if the job can take none. In each offer, Choose also sets the worth of completing the job at the
// offered time. Among equally good offers, it chooses the first.
func Choose(spec *job.JobSpec, now messages.Time, offers []clearing.Offer) (best int, why string) {
	worth, valued := worthOf(spec)
	if valued {
		for i := range offers {
			if at := offers[i].Completion; at != 0 {
				offers[i].Value = worth(at, now)
			}
		}
		return chooseByWorth(spec, offers)
	}
	return chooseEarliest(spec, offers)
}

// worthOf returns a function that computes what the job's completion at a time is worth, in credits. The result
// `valued` is false if the job's description does not say what the completion is worth.
func worthOf(spec *job.JobSpec) (worth func(at, now messages.Time) float64, valued bool) {
	switch {
	case spec.Valuation != nil:
		curve, err := valuation.New(*spec.Valuation)
		if err != nil {
			return nil, false // cannot happen: the job was validated
		}
		return func(at, now messages.Time) float64 { return curve.At(max(0, at.Sub(now).Std().Seconds())) }, true
	case spec.Value > 0:
		return func(at, now messages.Time) float64 {
			late := 0.0
			if spec.Deadline != 0 && at > spec.Deadline {
				return 0
			}
			if spec.Delay > 0 {
				late = spec.Delay.Float() * max(0, at.Sub(now).Std().Seconds())
			}
			return spec.Value.Float() - late
		}, true
	}
	return nil, false
}

func affordable(spec *job.JobSpec, o *clearing.Offer) bool {
	return max(o.Price, o.Budget) <= spec.Budget
}

func chooseByWorth(spec *job.JobSpec, offers []clearing.Offer) (best int, why string) {
	best, most := -1, math.Inf(-1)
	for i := range offers {
		o := &offers[i]
		if surplus := o.Value - o.Price.Float(); o.Completion != 0 && affordable(spec, o) && surplus > most {
			best, most = i, surplus
		}
	}
	switch {
	case best < 0:
		return -1, "no site gave a completion time at a price within the budget"
	case most < 0:
		o := &offers[best]
		return -1, fmt.Sprintf("no offer is worth its price: the best offer, at %s, is worth %.6g credits to the job, and costs %v", o.Site, o.Value, o.Price)
	}
	o := &offers[best]
	return best, fmt.Sprintf("completion at %v is worth %.6g credits to the job, and its price is %v: the best of %s", o.Completion, o.Value, o.Price, count(len(offers)))
}

func chooseEarliest(spec *job.JobSpec, offers []clearing.Offer) (best int, why string) {
	best = -1
	for i := range offers {
		if affordable(spec, &offers[i]) && (best < 0 || earlier(&offers[i], &offers[best])) {
			best = i
		}
	}
	switch {
	case best < 0:
		return -1, "no offer is within the budget"
	case offers[best].Completion == 0:
		return best, fmt.Sprintf("no site knows the completion time; this offer is the cheapest of %s within the budget (of equally cheap offers, the one with the most free slots)", count(len(offers)))
	}
	return best, fmt.Sprintf("completion, expected at %v, is the earliest of %s within the budget", offers[best].Completion, count(len(offers)))
}

// earlier reports whether offer a is better than offer b: an earlier completion, then a lower price, then more free
// slots. An unknown time counts as later than all known times.
func earlier(a, b *clearing.Offer) bool {
	switch {
	case a.Completion == b.Completion:
		return cmp.Or(cmp.Compare(a.Price, b.Price), cmp.Compare(b.Free, a.Free)) < 0
	case a.Completion == 0 || b.Completion == 0:
		return b.Completion == 0
	}
	return a.Completion < b.Completion
}

func count(offers int) string {
	if offers == 1 {
		return "1 offer"
	}
	return fmt.Sprintf("%d offers", offers)
}
