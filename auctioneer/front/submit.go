package front

import (
	"context"
	"time"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/bus"
)

// submit has a job go to the auctioneer of its market. A job for another site is an errand
// of the first.
func (f *Front) submit(ctx context.Context, r *bus.Request, request *messages.SubmitRequest) ([]byte, error) {
	switch {
	case request.Jobs != nil:
		return f.submitSeveral(ctx, r, request)
	case request.Site != "" && request.Site != f.Site:
		return f.first(ctx, *r)
	}
	return f.toMarket(ctx, request.Spec.Market, r)
}

// part is what of a request goes to one auctioneer.
type part[One any] struct {
	to     *auctioneer
	list   []One
	places []int // of the list in the request
}

func split[One any](list []One, of func(*One) *auctioneer) (parts []part[One]) {
	at := map[*auctioneer]int{}
	for i := range list {
		to := of(&list[i])
		if to == nil {
			continue
		}
		k, known := at[to]
		if !known {
			k = len(parts)
			at[to], parts = k, append(parts, part[One]{to: to})
		}
		parts[k].list, parts[k].places = append(parts[k].list, list[i]), append(parts[k].places, i)
	}
	return parts
}

// submitSeveral has each of several jobs go to the auctioneer of its market. If the outcome
// of one part is not known, the whole request is to be sent again: the jobs that were taken
// have the same answers then.
func (f *Front) submitSeveral(ctx context.Context, r *bus.Request, request *messages.SubmitRequest) ([]byte, error) {
	if err := request.Several(); err != nil {
		return nil, err
	}
	outcomes := make([]messages.SubmitOutcome, len(request.Jobs))
	of, failed := map[messages.Name]*auctioneer{}, map[messages.Name]error{} // by market
	for i := range request.Jobs {
		market := request.Jobs[i].Spec.Market
		if of[market] == nil && failed[market] == nil {
			of[market], failed[market] = f.where(ctx, market)
		}
		if err := failed[market]; err != nil && messages.KindOf(err).Retriable() {
			return nil, err
		} else if err != nil {
			outcomes[i].Error = messages.AsError(messages.VerbSubmit, err)
		}
	}
	parts := split(request.Jobs, func(j *messages.NewJob) *auctioneer { return of[j.Spec.Market] })
	if len(parts) == 1 && len(parts[0].list) == len(request.Jobs) {
		data, err := f.pass(ctx, parts[0].to, r)
		var reply messages.SubmitReply
		if err == nil {
			err = messages.Unmarshal(data, messages.Detect(data, ""), &reply)
		}
		if err == nil && len(reply.Jobs) == len(request.Jobs) {
			err = f.gone(ctx, request.Jobs, reply.Jobs)
		}
		return data, err
	}
	_, err := each(parts, func(_ int, p part[messages.NewJob]) (struct{}, error) {
		reply, err := ask[messages.SubmitReply](ctx, f, p.to, messages.VerbSubmit, r.Caller, messages.SubmitRequest{Jobs: p.list, DryRun: request.DryRun})
		if err == nil && len(reply.Jobs) != len(p.list) {
			err = messages.Errorf(messages.Internal, "auctioneer %s answered for %d of %d jobs", p.to.name, len(reply.Jobs), len(p.list))
		}
		if err != nil && messages.KindOf(err).Retriable() {
			return struct{}{}, err
		}
		for k, i := range p.places {
			if err != nil {
				outcomes[i].Error = messages.AsError(messages.VerbSubmit, err)
			} else {
				outcomes[i] = reply.Jobs[k]
			}
		}
		return struct{}{}, nil
	})
	if err != nil {
		return nil, err
	}
	if err := f.gone(ctx, request.Jobs, outcomes); err != nil {
		return nil, err
	}
	return messages.Marshal(messages.SubmitReply{Jobs: outcomes}, r.Format)
}

// gone says that the market of a job which was refused has just gone to another auctioneer.
func (f *Front) gone(ctx context.Context, jobs []messages.NewJob, outcomes []messages.SubmitOutcome) error {
	now := time.Now()
	for i := range outcomes {
		if e := outcomes[i].Error; e == nil || !noMarket(e) {
			continue
		}
		p := f.find(ctx, now)
		if market := jobs[i].Spec.Market; p.markets[market] != nil {
			return elsewhere(market)
		} else if p.silent != nil {
			return p.silent
		}
	}
	return nil
}

// cancel has each job be cancelled by the auctioneer that its number names. If some of these do
// not answer, the answer is whole and has the error at their jobs: the request repeated would
// say of the others that they have ended.
func (f *Front) cancel(ctx context.Context, r *bus.Request, request *messages.CancelRequest) ([]byte, error) {
	if err := request.Validate(); err != nil {
		return nil, err
	}
	parts := split(request.Jobs, func(id *messages.JobID) *auctioneer { return f.numbered(*id) })
	if len(parts) == 0 {
		return f.toJob(ctx, request.Job, r)
	}
	outcomes := make([]messages.CancelOutcome, len(request.Jobs))
	f.cancelParts(ctx, r, parts, outcomes)
	for _, a := range f.all { // jobs that are not where their numbers say
		elsewhere := part[messages.JobID]{to: a}
		for i := range outcomes {
			if e := outcomes[i].Error; e != nil && missing(e, outcomes[i].Job) {
				elsewhere.list, elsewhere.places = append(elsewhere.list, outcomes[i].Job), append(elsewhere.places, i)
			}
		}
		if len(f.all) > 1 && elsewhere.list != nil {
			f.cancelParts(ctx, r, []part[messages.JobID]{elsewhere}, outcomes)
		}
	}
	return messages.Marshal(messages.CancelReply{Jobs: outcomes}, r.Format)
}

// cancelParts has auctioneers cancel jobs, and notes the outcomes.
func (f *Front) cancelParts(ctx context.Context, r *bus.Request, parts []part[messages.JobID], outcomes []messages.CancelOutcome) {
	_, _ = each(parts, func(_ int, p part[messages.JobID]) (struct{}, error) {
		reply, err := ask[messages.CancelReply](ctx, f, p.to, messages.VerbCancel, r.Caller, messages.CancelRequest{Jobs: p.list})
		for k, i := range p.places {
			switch outcomes[i].Job = p.list[k]; {
			case err != nil:
				outcomes[i].Error = messages.AsError(messages.VerbCancel, err)
			case k < len(reply.Jobs):
				outcomes[i] = reply.Jobs[k]
			}
		}
		return struct{}{}, nil
	})
}
