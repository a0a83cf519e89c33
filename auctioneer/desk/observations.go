package desk

import (
	"slices"

	"github.com/candor-grid/candor/auctioneer/book"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/job"
)

// observations publishes observations of ended jobs to the estimator's stream. Each observation is an effect of the
// book, which is confirmed after the publication. Payments do not wait for observations.
type observations struct {
	*core
	effects bool // the book may have observations to publish
	busy    bool
	fails   int
	retry   messages.Duration
}

// While the stream does not work, observations wait. At most mostObservations wait, and each waits at most
// observationsKept. Observations beyond these bounds are dropped and counted. The loss is acceptable, because estimates
// are only advice.
const (
	mostObservations = 10_000
	observationsKept = messages.Duration(24 * 3600e9)
)

// unawaited is how long a command may wait for other commands if no user waits for it.
const unawaited = messages.Duration(50e6)

func (o *observations) step(more bool) {
	o.effects = o.effects || more
	switch {
	case o.busy || !o.effects:
		return
	case o.now.Mono < o.retry:
		o.wakeIn(o.retry - o.now.Mono)
		return
	}
	done, ids, list := &book.Confirm{}, []uint64(nil), []job.Observation(nil)
	dropped := 0
	o.book.Read(func(b *book.Book) {
		above := o.waiting(b) - mostObservations
		for e := range b.EachEffect {
			switch {
			case len(list) == transfersAtOnce:
				return
			case e.Kind != book.Observe:
			case !b.Names(&e):
				done.Effects = append(done.Effects, forgotten(e))
			case o.fails > 0 && (dropped < above || o.now.Wall.Sub(b.Job(e.Job).Ended) > observationsKept):
				done.Effects, dropped = append(done.Effects, book.Confirmation{Effect: e.ID}), dropped+1
			default:
				ids, list = append(ids, e.ID), append(list, o.observation(b.Job(e.Job)))
			}
		}
	})
	if dropped > 0 {
		o.tell(Dropped{Observations: dropped})
	}
	o.busy, o.effects = true, len(list) == transfersAtOnce
	if len(list) == 0 {
		o.confirm(done, unawaited, nil, o.end)
		return
	}
	o.ask(Request{To: Observations, Body: list}, func(reply any, err error) {
		left, _ := reply.(int)
		for _, id := range ids[:left] {
			done.Effects = append(done.Effects, book.Confirmation{Effect: id})
		}
		o.confirm(done, unawaited, err, o.end)
	})
}

// waiting returns how many observations wait to be sent to the estimator. It counts them only after the last try to
// send has failed; otherwise it returns 0.
func (o *observations) waiting(b *book.Book) (n int) {
	if o.fails == 0 {
		return 0
	}
	for e := range b.EachEffect {
		if e.Kind == book.Observe {
			n++
		}
	}
	return n
}

func (o *observations) end(err error) {
	o.busy = false
	if err == nil {
		o.fails, o.retry = 0, 0
		return
	}
	o.fails++
	o.effects, o.retry = true, o.retryAt(o.fails)
	o.tell(Waiting{"reports of ended jobs to the estimator", err})
}

func (o *observations) observation(j *book.Job) job.Observation {
	return job.Observation{
		Site: o.Site, Job: j.ID, Account: j.Account, Name: j.Spec.Name, Market: j.Spec.Market, State: j.State,
		Budget: j.Spec.Budget, Charged: j.Cost(), Utility: j.Spec.Utility, Shares: j.PastShares(),
		Submitted: j.Submitted, Started: j.Started, Ended: j.Ended, Stages: j.StageStatuses(), Work: work(j),
		Valuation: j.Spec.Valuation, Value: j.Spec.Value, Delay: j.Spec.Delay, Length: j.Spec.Length,
	}
}

// work returns the part of an observation from which the estimator learns run times.
func work(j *book.Job) []job.StageWork {
	out := make([]job.StageWork, len(j.Stages))
	for i := range j.Stages {
		spec := &j.Spec.Stages[i]
		out[i] = job.StageWork{Stage: spec.Name, Command: job.CommandID(spec), TimeLimit: spec.TimeLimit, Runtimes: runtimes(&j.Stages[i])}
	}
	return out
}

// runtimes returns the run times of a stage's accepted attempts in ascending order. If there are too many, it returns
// an evenly spaced selection of them.
func runtimes(s *book.Stage) []messages.Duration {
	var all []messages.Duration
	for k := range s.Tasks {
		if t := &s.Tasks[k]; t.Phase == book.Done {
			all = append(all, max(0, t.Ended.Sub(t.Claimed)))
		}
	}
	slices.Sort(all)
	if len(all) <= job.MostRuntimes {
		return all
	}
	chosen := make([]messages.Duration, job.MostRuntimes)
	for k := range chosen { // chosen[k] is the middle of the k-th of len(chosen) equal parts
		chosen[k] = all[(2*k+1)*len(all)/(2*job.MostRuntimes)]
	}
	return chosen
}
