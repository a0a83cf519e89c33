package auctioneer

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/candor-grid/candor/auctioneer/book"
	"github.com/candor-grid/candor/auctioneer/desk"
	"github.com/candor-grid/candor/auctioneer/market"
	"github.com/candor-grid/candor/messages"
)

// raiseWithin is how long a change waits for the bank to set more aside. The raise is
// committed, whatever comes of the wait.
const raiseWithin = 3 * time.Second

// change describes a job otherwise that has not ended.
func (l steering) change(ctx context.Context, caller messages.Name, r messages.ChangeRequest) (reply messages.ChangeReply, err error) {
	if err := r.Validate(); err != nil {
		return reply, err
	}
	if err := l.decided(ctx); err != nil { // the same change may be on its way in the log
		return reply, err
	}
	j, err := l.find(caller, r.Job)
	if err != nil {
		return reply, err
	}
	c := &book.Change{Job: r.Job, Key: r.Key, Budget: r.Budget, Version: j.Changes}
	if r.Key == "" || r.Key != j.ChangeKey { // else it was made, and is not looked at again
		if err := l.mayChange(&j, &r); err != nil {
			return reply, err
		}
		if c.To, err = l.described(&j, &r); err != nil {
			return reply, err
		}
		c.Unstarted = r.Rate != 0 || r.TimeLimit != 0
	}
	changed, err := propose[book.Changed](ctx, l.Auctioneer, &book.Command{Change: c})
	if err != nil {
		return reply, err
	}
	return l.raised(ctx, caller, r.Job, changed)
}

// mayChange refuses a change of a bid that the mechanism does not allow.
func (l steering) mayChange(j *book.Job, r *messages.ChangeRequest) error {
	m := l.Find(j.Spec.Market)
	if m == nil {
		return messages.Errorf(messages.Conflict, "market %s of job %d is closed", j.Spec.Market, j.ID)
	}
	raises := market.MannerOf(m).Raises
	switch {
	case r.Budget != 0 && r.Budget != j.Spec.Budget && !raises.Budget:
		return messages.Errorf(messages.Conflict, "budget: bids in %s markets, such as %s, cannot change; cancel the job and submit it again", m.Mechanism, m.Name)
	case r.Rate != 0 && r.Rate != j.Spec.Rate && !raises.Rate:
		return messages.Errorf(messages.Conflict, "rate: bids in %s markets, such as %s, have no rate that can change", m.Mechanism, m.Name)
	case r.Rate != 0 && r.Rate < j.Spec.Rate:
		return messages.Errorf(messages.Invalid, "rate: the rate of job %d, %s, can only be raised: cancel the job and submit it again to offer less", j.ID, j.Spec.Rate.Words())
	}
	return nil
}

// described is the new description of a job, without the new budget; nil: the
// description does not change.
func (l steering) described(j *book.Job, r *messages.ChangeRequest) (*messages.JobSpec, error) {
	if r.Name == "" && r.Rate == 0 && r.TimeLimit == 0 && r.MaxRunning == nil {
		return nil, nil
	}
	spec := *j.Spec
	spec.Stages = slices.Clone(spec.Stages)
	if r.Name != "" {
		spec.Name = r.Name
	}
	if r.Rate != 0 {
		spec.Rate = r.Rate
	}
	if err := restage(&spec, r); err != nil {
		return nil, err
	}
	limits := slices.Clone(spec.Stages)
	if err := l.submissions.rules.Complete(&spec); err != nil {
		return nil, err
	}
	for i := range limits {
		if limits[i].TimeLimit != spec.Stages[i].TimeLimit {
			return nil, messages.Errorf(messages.Invalid, "time_limit: market %s allows at most %v", spec.Market, spec.Stages[i].TimeLimit)
		}
	}
	if err := spec.Validate(); err != nil || spec.Rate == j.Spec.Rate {
		return &spec, err
	}
	now := l.Clock()
	var err error
	l.with(func(d *desk.Desk) {
		m := d.Market(spec.Market)
		err = m.Admit(now, m.Bid(j.ID, j.Account, now, &spec, j.Contract))
	})
	return &spec, err
}

// restage changes the stage that a request is about.
func restage(spec *messages.JobSpec, r *messages.ChangeRequest) error {
	at := 0
	switch {
	case r.TimeLimit == 0 && r.MaxRunning == nil:
		return nil
	case r.Stage != nil:
		at = *r.Stage
	case len(spec.Stages) > 1:
		return messages.Errorf(messages.Invalid, "stage: the job has %d stages; name the stage to change", len(spec.Stages))
	}
	if at < 0 || at >= len(spec.Stages) {
		return messages.Errorf(messages.NotFound, "stage: the job has stages 0 to %d", len(spec.Stages)-1)
	}
	if r.TimeLimit != 0 {
		spec.Stages[at].TimeLimit = r.TimeLimit
	}
	if r.MaxRunning != nil {
		spec.Stages[at].MaxRunning = *r.MaxRunning
	}
	return nil
}

// raised waits until the bank has answered for a budget that is raised, and tells how the
// job is then.
func (l steering) raised(ctx context.Context, caller messages.Name, id messages.JobID, changed book.Changed) (reply messages.ChangeReply, err error) {
	ctx, cancel := context.WithTimeout(ctx, raiseWithin)
	defer cancel()
	for {
		j, err := l.find(caller, id)
		if err != nil {
			return reply, err
		}
		mine := changed.Effect != 0 && j.Raise.Effect == changed.Effect
		if mine && j.Raise.Refused != "" {
			return reply, messages.Errorf(messages.Insufficient, "budget: it stays at %s: %s", j.Spec.Budget.Words(), strings.TrimSuffix(j.Raise.Refused, " (Insufficient)"))
		}
		reply = messages.ChangeReply{Job: id, State: j.State, Budget: j.Spec.Budget}
		if mine && j.Raise.Pending() {
			reply.Pending = j.Spec.Budget + j.Raise.Amount
		}
		if reply.Pending == 0 || !sleep(ctx, 10*time.Millisecond) {
			return reply, nil
		}
	}
}
