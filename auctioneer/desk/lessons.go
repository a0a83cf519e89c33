package desk

import (
	"slices"

	"github.com/candor-grid/candor/auctioneer/book"
	"github.com/candor-grid/candor/auctioneer/mechanism"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/job"
	"github.com/candor-grid/candor/messages/market"
)

// No job waits for the estimator. Until the estimator answers, markets use the numbers that the jobs or the operator
// gave.
const (
	learnEvery  = messages.Duration(60e9)
	learnAtOnce = 32 // number of jobs of a market in one pass
	// LearnWithin is how long the desk waits for an answer of the estimator.
	LearnWithin = messages.Duration(2e9)
	// DrawnTypes is how many job types a request to the estimator asks for.
	DrawnTypes = 1000
)

// lessons asks the estimator for run times of tasks that are similar to a job's tasks. It passes the answers to the
// markets.
type lessons struct {
	*core
	trading   *trading
	newcomers bool // there are jobs whose run times were not requested yet
	open      int  // number of requests without an answer
	next      messages.Duration
}

func (l *lessons) step() {
	if l.now.Mono >= l.next {
		l.next, l.newcomers = l.now.Mono+learnEvery, true
	}
	l.wakeIn(l.next - l.now.Mono)
	if l.newcomers && l.open == 0 {
		l.newcomers = false
		for _, m := range l.trading.markets {
			l.askRuntimes(m)
		}
	}
}

func (l *lessons) askRuntimes(m *traded) {
	ids := m.Unknown(l.now.Wall, learnAtOnce)
	l.newcomers = l.newcomers || len(ids) == learnAtOnce
	for _, id := range ids {
		var r market.RuntimeRequest
		l.book.Read(func(b *book.Book) {
			if j := b.Job(id); j != nil {
				r = RuntimesOf(j.Account, j.Spec)
			}
		})
		if len(r.Stages) == 0 {
			continue
		}
		l.open++
		asked := Request{To: messages.Estimator, Verb: market.VerbRuntime, Body: r, Within: LearnWithin}
		ask(l.core, asked, func(reply *market.RuntimeReply, err error) {
			l.open--
			if err != nil {
				return
			}
			if known := Together(r.Stages, reply.Stages); known != nil {
				m.Learn(id, known)
			}
		})
	}
}

// RuntimesOf returns the request for the run times of a job's tasks.
func RuntimesOf(account messages.Name, spec *job.JobSpec) market.RuntimeRequest {
	r := market.RuntimeRequest{Account: account, Name: spec.Name}
	for i := range spec.Stages {
		r.Stages = append(r.Stages, spec.Stages[i].Shape())
	}
	return r
}

// Together combines the estimates of the stages of a job. For each quantile, the result is the mean over all tasks of
// the job. This assumes that a job that is slow in one stage is slow in all stages. The number of runs in the result is
// the smallest of all stages, and the error is the largest. Together returns nil if an estimate is missing.
func Together(shapes []job.StageShape, stages []market.RuntimeEstimate) *mechanism.Runtimes {
	if len(stages) != len(shapes) {
		return nil
	}
	out, tasks := &mechanism.Runtimes{}, 0.0
	for i := range stages {
		s, n := &stages[i], float64(max(1, shapes[i].Tasks))
		if len(s.Samples) == 0 || i > 0 && len(s.Samples) != len(out.Seconds) {
			return nil
		}
		if i == 0 {
			out.Seconds, out.Runs = make([]float64, len(s.Samples)), s.Runs
		}
		for k, x := range slices.Sorted(slices.Values(s.Samples)) {
			out.Seconds[k] += n * x
		}
		tasks += n
		out.Runs, out.Divergence = min(out.Runs, s.Runs), max(out.Divergence, s.Divergence)
	}
	for k := range out.Seconds {
		out.Seconds[k] /= tasks
	}
	return out
}
