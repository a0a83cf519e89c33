package runtime

import (
	"math"

	"github.com/candor-grid/candor/messages"
)

// Record is a part of a predictor's memory. It is a record of a context or a record of trust. A record of a context has
// the context's runs. A record of trust says how well each level predicted the run times of one user's jobs, or of all
// jobs of the site.
type Record struct {
	// These fields are set if the record is about a context, which is a group of similar jobs:
	Level                uint8
	User, Group, Command string
	Size                 int64
	Limit                float64
	Runs                 []Run
	// These fields are set only in a record of trust; in such a record, Runs is empty. The predictor has several
	// levels. Each level has a different rule for which jobs are similar, and predicts from these jobs. The record says
	// how well each level has predicted so far. If Site is true, the predictions were for all jobs of the site, and
	// otherwise for the jobs of User.
	Site         bool
	Loss, Weight []float64
}

// Snapshot calls `visit` with a copy of each record that the predictor remembers. If a new predictor restores the
// records in this order, it equals this predictor.
func (p *Predictor) Snapshot(visit func(*Record)) {
	visit(trustRecord("", true, &p.site))
	p.trust.OldestFirst(func(user string, t *trust) { visit(trustRecord(user, false, t)) })
	p.contexts.OldestFirst(func(k key, c *context) {
		r := &Record{Level: k.Level, User: k.User, Group: k.Group, Command: k.Command, Size: k.Size, Limit: k.Limit}
		r.Runs = append(r.Runs, c.runs...) // a run never changes, so its slices can be shared
		visit(r)
	})
}

func trustRecord(user string, site bool, t *trust) *Record {
	return &Record{User: user, Site: site, Loss: append([]float64{}, t.Loss[:]...), Weight: append([]float64{}, t.Weight[:]...)}
}

// Restore adds a record of a snapshot. A damaged record is an error.
func (p *Predictor) Restore(r *Record) error {
	if len(r.Runs) > 0 {
		return p.restoreContext(r)
	}
	if len(r.Loss) != len(levels) || len(r.Weight) != len(levels) {
		return damaged()
	}
	t := &p.site
	if !r.Site {
		t = p.trust.Touch(r.User, func() *trust { return &trust{} })
	}
	for i := range levels {
		if !(r.Loss[i] >= 0 && r.Loss[i] <= math.MaxFloat64 && r.Weight[i] >= 0 && r.Weight[i] <= math.MaxFloat64) {
			return damaged()
		}
		t.Loss[i], t.Weight[i] = r.Loss[i], r.Weight[i]
	}
	return nil
}

func (p *Predictor) restoreContext(r *Record) error {
	if int(r.Level) >= len(levels) || len(r.Runs) > mostRuns {
		return damaged()
	}
	for i := range r.Runs {
		run := &r.Runs[i]
		if checkRuntimes(run.Values) != nil || len(run.Values) > mostValues || i > 0 && run.Ended < r.Runs[i-1].Ended {
			return damaged()
		}
	}
	k := key{r.Level, r.User, r.Group, r.Command, r.Size, r.Limit}
	p.contexts.Touch(k, func() *context { return newContext(&levels[r.Level]) }).runs = r.Runs
	return nil
}

func damaged() error {
	return messages.Errorf(messages.Invalid, "snapshot: its run times are damaged")
}
