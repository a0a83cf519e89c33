package auctioneer

import (
	"slices"

	"github.com/candor-grid/candor/auctioneer/book"
	"github.com/candor-grid/candor/messages"
)

// work is what the estimator learns run times from.
func work(j *book.Job) []messages.StageWork {
	out := make([]messages.StageWork, len(j.Stages))
	for i := range j.Stages {
		spec := &j.Spec.Stages[i]
		out[i] = messages.StageWork{Stage: spec.Name, Command: messages.CommandID(spec), TimeLimit: spec.TimeLimit, Runtimes: runtimes(&j.Stages[i])}
	}
	return out
}

// runtimes are those of a stage's accepted attempts, ascending: all of them, or
// evenly chosen ones.
func runtimes(s *book.Stage) []messages.Duration {
	var all []messages.Duration
	for k := range s.Tasks {
		if t := &s.Tasks[k]; t.Phase == book.Done {
			all = append(all, max(0, t.Ended.Sub(t.Claimed)))
		}
	}
	slices.Sort(all)
	if len(all) <= messages.MostRuntimes {
		return all
	}
	chosen := make([]messages.Duration, messages.MostRuntimes)
	for k := range chosen { // the middle of each of as many equal parts
		chosen[k] = all[(2*k+1)*len(all)/(2*messages.MostRuntimes)]
	}
	return chosen
}
