package estimator

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/bus"
	"github.com/candor-grid/candor/messages/job"
	"github.com/candor-grid/candor/messages/market"
	"github.com/candor-grid/candor/messages/spelling"
)

func (e *Estimator) queries() bus.Service {
	endpoint := func(verb string, handle bus.Handler) bus.Endpoint {
		seconds := e.metrics.seconds.WithLabelValues(verb)
		timed := func(ctx context.Context, r bus.Request) ([]byte, error) {
			began := time.Now()
			defer func() { seconds.Observe(time.Since(began).Seconds()) }()
			return handle(ctx, r)
		}
		return bus.Endpoint{Name: verb, Subject: messages.Subject(e.config.Site, messages.Estimator, verb, "*"), Handle: timed}
	}
	return bus.Service{
		Name: "candor-estimator", Version: "1.1.0", Description: "What jobs of site " + e.config.Site + " are worth, and how long they take", Discoverable: true,
		Endpoints: []bus.Endpoint{
			endpoint(messages.VerbUtility, bus.Handle(messages.VerbUtility, e.utility)),
			endpoint(market.VerbRuntime, bus.Handle(market.VerbRuntime, e.runtime)),
			endpoint(market.VerbEstimate, bus.Handle(market.VerbEstimate, e.estimate)),
			endpoint(market.VerbClasses, bus.Handle(market.VerbClasses, e.classes)),
			endpoint(market.VerbSamples, bus.Handle(market.VerbSamples, e.samples)),
		},
	}
}

func (e *Estimator) utility(_ context.Context, caller messages.Name, r market.UtilityRequest) (reply market.UtilityReply, err error) {
	if r.Account, err = e.permit(caller, r.Account); err != nil {
		return reply, err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.memory.Utility(&r)
}

func (e *Estimator) runtime(_ context.Context, caller messages.Name, r market.RuntimeRequest) (reply market.RuntimeReply, err error) {
	if r.Account, err = e.permit(caller, r.Account); err != nil {
		return reply, err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.memory.Runtime(&r)
}

func (e *Estimator) estimate(_ context.Context, caller messages.Name, r market.EstimateRequest) (reply market.EstimateReply, err error) {
	if r.Account, err = e.permit(caller, r.Account); err != nil {
		return reply, err
	}
	if err := r.Spec.Validate(); err != nil {
		return reply, err
	}
	if err := e.complete(&r.Spec); err != nil {
		return reply, err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.memory.Estimate(r.Account, &r.Spec)
}

// complete fills in the fields that a job leaves to the site, as the auctioneer does.
func (e *Estimator) complete(spec *job.JobSpec) error {
	var market *market.Market
	for i := range e.config.Markets {
		if m := &e.config.Markets[i]; market == nil && (spec.Market == "" || spec.Market == m.Name) {
			market = m
		}
	}
	if market == nil {
		return messages.Errorf(messages.NotFound, "market: there is no market %q", spec.Market)
	}
	spec.Market = market.Name
	for i := range spec.Stages {
		s := &spec.Stages[i]
		s.Class = cmp.Or(s.Class, market.Classes[0])
		if s.Name == "" {
			s.Name = fmt.Sprintf("stage%d", i)
		}
		if s.TimeLimit == 0 || market.TimeLimit > 0 && s.TimeLimit > market.TimeLimit {
			s.TimeLimit = market.TimeLimit
		}
		if !slices.Contains(market.Classes, s.Class) {
			return messages.Errorf(messages.NotFound, "stages[%d].class: market %s has no class %q; its classes are %s", i, market.Name, s.Class, spelling.List(market.Classes))
		}
	}
	return nil
}

// classes returns what is known about each class. Only callers who may draw samples see estimates of declared types: a
// mean that changes when a job ends reveals the job's type.
func (e *Estimator) classes(_ context.Context, caller messages.Name, _ messages.Empty) (reply market.ClassesReply, err error) {
	e.mu.Lock()
	reply, err = e.memory.Classes()
	e.mu.Unlock()
	if !e.privileged(caller) {
		for i, c := range reply.Classes {
			reply.Classes[i] = market.ClassEstimate{Profile: c.Profile, Samples: c.Samples, Accounts: c.Accounts, Prior: c.Prior}
		}
	}
	return reply, err
}

// samples draws types. Only services and operators may ask, because many draws would reveal single types.
func (e *Estimator) samples(_ context.Context, caller messages.Name, r market.SamplesRequest) (reply market.SamplesReply, err error) {
	if !e.privileged(caller) {
		return reply, messages.Errorf(messages.PermissionDenied, "account %q may not draw samples of a job profile class; the site's services and operators may", caller)
	}
	e.mu.Lock()
	draw, err := e.memory.Samples(&r)
	e.mu.Unlock()
	if err != nil {
		return reply, err
	}
	return draw()
}

// permit returns the account that a request is about; "" means the caller's. Only services and operators may ask about
// other accounts.
func (e *Estimator) permit(caller, account messages.Name) (messages.Name, error) {
	if account == "" || account == caller {
		return caller, nil
	}
	if e.privileged(caller) {
		return account, nil
	}
	return "", messages.Errorf(messages.PermissionDenied, "account %q may only ask about its own jobs", caller)
}

// privileged reports whether a caller is a service or operator of the site.
func (e *Estimator) privileged(caller messages.Name) bool {
	return strings.HasPrefix(caller, "$") || slices.Contains(e.config.Operators, caller)
}
