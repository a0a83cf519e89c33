package auctioneer

import (
	"context"
	"slices"
	"time"

	"go.uber.org/zap"

	"github.com/candor-grid/candor/auctioneer/book"
	"github.com/candor-grid/candor/auctioneer/mechanism"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/bus"
)

// What is asked of the estimator, and how often. Nobody waits for it: until it has
// answered, markets go by what is declared, or what their operator thinks.
const (
	learnEvery  = time.Minute
	learnAtOnce = 256 // jobs
	learnWithin = 2 * time.Second
	fewestTypes = 20 // samples that a profile class must rest on
)

// keepLearning has the markets know what the estimator does: how long tasks like those of
// their jobs run, and what jobs of a batch queue are likely to declare.
func (l *leader) keepLearning(ctx context.Context) {
	next := time.NewTimer(0)
	defer next.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-l.newcomers:
		case <-next.C:
			l.learnTypes(ctx)
			next.Reset(learnEvery)
		}
		l.learnRuntimes(ctx)
	}
}

// newcomer has keepLearning look for jobs that it does not know.
func (l *leader) newcomer() {
	select {
	case l.newcomers <- struct{}{}:
	default:
	}
}

func (l *leader) learnRuntimes(ctx context.Context) {
	for _, t := range l.markets {
		l.mu.Lock()
		ids := t.Unknown(l.Clock(), learnAtOnce)
		l.mu.Unlock()
		for _, id := range ids {
			var account messages.Name
			var spec *messages.JobSpec
			l.replica.read(func(b *book.Book) {
				if j := b.Job(id); j != nil {
					account, spec = j.Account, j.Spec
				}
			})
			if spec == nil {
				continue
			}
			if r := l.runtimes(ctx, account, spec); r != nil {
				l.mu.Lock()
				t.Learn(id, r)
				l.mu.Unlock()
			}
		}
		if len(ids) > 0 {
			l.replica.wake()
		}
	}
}

// runtimes asks how long the tasks of a job run; nil: it is not known, of one of
// its stages at least.
func (l *leader) runtimes(ctx context.Context, account messages.Name, spec *messages.JobSpec) *mechanism.Runtimes {
	r := messages.RuntimeRequest{Account: account, Name: spec.Name}
	for i := range spec.Stages {
		r.Stages = append(r.Stages, spec.Stages[i].Shape())
	}
	ctx, cancel := context.WithTimeout(ctx, learnWithin)
	defer cancel()
	subject := messages.Subject(l.Site, messages.Estimator, messages.VerbRuntime, messages.ServiceIdentity(messages.Auctioneer))
	reply, err := bus.Call[messages.RuntimeReply](ctx, l.Bus, subject, r)
	if err != nil || len(reply.Stages) != len(r.Stages) {
		l.Log.Debug("no run times from the estimator", zap.Error(err))
		return nil
	}
	return together(r.Stages, reply.Stages)
}

// together makes one estimate of those of a job's stages, a mean by tasks at each
// quantile: it takes it that a slow job is slow in all of them. It rests on as few
// runs, and is as far off, as the worst of them.
func together(shapes []messages.StageShape, stages []messages.RuntimeEstimate) *mechanism.Runtimes {
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

// learnTypes asks what jobs of the batch queues are likely to declare.
func (l *leader) learnTypes(ctx context.Context) {
	for _, t := range l.markets {
		if !t.Believing() {
			continue
		}
		if types := l.queuedTypes(ctx, t.Config.Name); types != nil {
			l.mu.Lock()
			t.Believe(types)
			l.mu.Unlock()
		}
	}
}

// queuedTypes draws from the profile class of a batch queue's jobs; nil: it has
// none, or not enough samples of it yet.
func (l *leader) queuedTypes(ctx context.Context, market messages.Name) (out []messages.QueuedType) {
	ctx, cancel := context.WithTimeout(ctx, learnWithin)
	defer cancel()
	as := messages.ServiceIdentity(messages.Auctioneer)
	known, err := bus.Call[messages.ClassesReply](ctx, l.Bus, messages.Subject(l.Site, messages.Estimator, messages.VerbClasses, as), messages.Empty{})
	i := slices.IndexFunc(known.Classes, func(c messages.ClassEstimate) bool {
		return c.Profile.Class == messages.Queued && c.Profile.Market == market
	})
	if err != nil || i < 0 || known.Classes[i].Samples < fewestTypes {
		return nil
	}
	r := messages.SamplesRequest{Class: known.Classes[i].Profile.Name, Draws: drawnTypes}
	reply, err := bus.Call[messages.SamplesReply](ctx, l.Bus, messages.Subject(l.Site, messages.Estimator, messages.VerbSamples, as), r)
	if err != nil {
		l.Log.Debug("no types from the estimator", zap.String("market", market), zap.Error(err))
		return nil
	}
	return typesOf(&reply)
}

// typesOf reads the types of a class queued: value, cost of a second's delay,
// length in seconds.
func typesOf(r *messages.SamplesReply) (out []messages.QueuedType) {
	const numbers = 3
	for x := r.Samples; len(x) >= numbers; x = x[numbers:] {
		value, ok1 := messages.RoundCredits(x[0])
		delay, ok2 := messages.RoundCredits(x[1])
		if ok1 && ok2 && value >= 0 && delay >= 0 && x[2] >= 0 && x[2] <= messages.MaxValuationTime/1e3 {
			out = append(out, messages.QueuedType{Value: value, Delay: delay, Length: messages.Duration(x[2] * 1e9)})
		}
	}
	return out
}
