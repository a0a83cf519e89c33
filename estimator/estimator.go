package estimator

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/bus"
)

// Estimator is the actor.
type Estimator struct {
	config  Config
	metrics *metrics
	service bus.Subscription
	cancel  context.CancelFunc
	done    chan struct{}

	mu      sync.Mutex
	history *history
	seen    uint64
}

// Start answers until ctx ends or Close. It does so from the first moment,
// with what it has read of the stream until then.
func Start(ctx context.Context, c Config) (*Estimator, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	c.defaults()
	e := &Estimator{config: c, history: newHistory(c.Kinds, c.Runs), done: make(chan struct{})}
	e.metrics = newMetrics(e)
	if err := e.metrics.register(c.Metrics); err != nil {
		return nil, fmt.Errorf("estimator: metrics: %w", err)
	}
	var err error
	if e.service, err = c.Bus.Serve(e.queries()); err != nil {
		e.metrics.unregister()
		return nil, fmt.Errorf("estimator: serving: %w", err)
	}
	ctx, e.cancel = context.WithCancel(ctx)
	go e.follow(ctx)
	return e, nil
}

// Close stops.
func (e *Estimator) Close() error {
	e.cancel()
	<-e.done
	e.metrics.unregister()
	return nil
}

// Seen returns how many different jobs' observations were taken in since the
// start.
func (e *Estimator) Seen() uint64 {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.seen
}

// Held returns how many observations are in memory.
func (e *Estimator) Held() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.history.held
}

// Runs returns the observations kept of an account's jobs of a name, oldest
// first. They are shared, not to be changed.
func (e *Estimator) Runs(account messages.Name, name string) []messages.Observation {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.history.of(kind{account, name})
}

// follow reads the stream from its beginning until ctx ends.
func (e *Estimator) follow(ctx context.Context) {
	defer close(e.done)
	reading := e.open(ctx)
	<-ctx.Done()
	stopping := []bus.Subscription{e.service}
	if reading != nil {
		stopping = append(stopping, reading)
	}
	for _, s := range stopping {
		if err := s.Stop(); err != nil {
			e.config.Log.Warn("a subscription did not stop in time", zap.Error(err))
		}
	}
}

// open begins to read the stream, trying again until it can; nil if ctx ended.
func (e *Estimator) open(ctx context.Context) bus.Subscription {
	for {
		reading, err := e.consume(ctx)
		if err == nil {
			return reading
		}
		if ctx.Err() != nil {
			return nil
		}
		e.config.Log.Warn("cannot read observations yet; will try again", zap.Error(err))
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(retryInterval):
		}
	}
}

func (e *Estimator) consume(ctx context.Context) (bus.Subscription, error) {
	site := e.config.Site
	stream, err := e.config.Bus.Stream(ctx, messages.ObservationStream(site), []string{messages.ObservationSubject(site)})
	if err != nil {
		return nil, err
	}
	return stream.Consume(ctx, 0, e.take)
}

// take takes in one message of the stream. One that is malformed is passed
// over: it would be so at every start.
func (e *Estimator) take(seq uint64, _ string, payload []byte) {
	var o messages.Observation
	err := messages.Unmarshal(payload, messages.Detect(payload, ""), &o)
	if err == nil {
		err = check(&o)
	}
	if err != nil {
		e.metrics.malformed.Inc()
		e.config.Log.Warn("passed over an observation", zap.Uint64("sequence", seq), zap.Error(err))
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.history.add(o) {
		e.metrics.repeated.Inc()
		return
	}
	e.seen++
	e.metrics.kept.Inc()
}

// check refuses an observation that no auctioneer would make.
func check(o *messages.Observation) error {
	switch {
	case !messages.ValidName(o.Site) || !messages.ValidName(o.Account):
		return errors.New("estimator: observation without a valid site and account")
	case o.Job == 0:
		return errors.New("estimator: observation of job 0")
	case len(o.Name) > messages.MaxTextField:
		return errors.New("estimator: observation of a job with an overlong name")
	case !o.State.Final():
		return fmt.Errorf("estimator: observation of job %v, which is %v", o.Job, o.State)
	}
	return nil
}

func (e *Estimator) queries() bus.Service {
	return bus.Service{
		Name: "candor-estimator", Version: "1.0.0", Description: "What jobs of site " + e.config.Site + " are worth", Discoverable: true,
		Endpoints: []bus.Endpoint{{
			Name:    messages.VerbUtility,
			Subject: messages.Subject(e.config.Site, messages.Estimator, messages.VerbUtility, "*"),
			Handle:  bus.Handle(messages.VerbUtility, e.utility),
		}},
	}
}

// utility answers with the default.
func (e *Estimator) utility(_ context.Context, caller messages.Name, r messages.UtilityRequest) (messages.UtilityReply, error) {
	began := time.Now()
	defer func() { e.metrics.seconds.Observe(time.Since(began).Seconds()) }()
	if err := e.permit(caller, r.Account); err != nil {
		return messages.UtilityReply{}, err
	}
	if len(r.Classes) == 0 || len(r.Classes) > messages.MaxStages {
		return messages.UtilityReply{}, messages.Errorf(messages.Invalid, "%d classes: name those that the job has stages in, 1 to %d", len(r.Classes), messages.MaxStages)
	}
	utility := messages.Utility{Form: messages.Linear}
	for _, class := range slices.Compact(slices.Sorted(slices.Values(r.Classes))) {
		if !messages.ValidName(class) {
			return messages.UtilityReply{}, messages.Errorf(messages.Invalid, "classes has a name that is not one: a lower-case letter, then at most 62 of a-z, 0-9, '-' and '_'")
		}
		utility.Weights = append(utility.Weights, messages.ClassWeight{Class: class, Weight: 1})
	}
	return messages.UtilityReply{Utility: utility}, nil
}

// permit lets services and operators ask about everybody's jobs, and others
// about their own. An account that is not named is the caller's.
func (e *Estimator) permit(caller, account messages.Name) error {
	if account == "" || account == caller || strings.HasPrefix(caller, "$") || slices.Contains(e.config.Operators, caller) {
		return nil
	}
	return messages.Errorf(messages.PermissionDenied, "account %q may only ask about its own jobs", caller)
}
