package front

import (
	"context"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/bus"
)

// submit has a job go to the auctioneer of its market. A job for another site is an errand
// of the first.
func (f *Front) submit(ctx context.Context, r bus.Request) ([]byte, error) {
	var request messages.SubmitRequest
	if err := messages.Unmarshal(r.Payload, r.Format, &request); err != nil {
		return nil, err
	}
	switch {
	case request.Jobs != nil:
		return f.submitSeveral(ctx, &r, &request)
	case request.Site != "" && request.Site != f.Site:
		return f.first(ctx, r)
	}
	return f.toMarket(ctx, request.Spec.Market, &r)
}

// part is what of a request goes to one auctioneer.
type part[One any] struct {
	to     *auctioneer
	list   []One
	places []int // of the list in the request
}

// split splits a list by auctioneer.
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
		return f.pass(ctx, parts[0].to, r)
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
	return messages.Marshal(messages.SubmitReply{Jobs: outcomes}, r.Format)
}

// cancel has each job be cancelled by the auctioneer that its number names. If some of these do
// not answer, the answer is whole and has the error at their jobs: the request repeated would
// say of the others that they have ended.
func (f *Front) cancel(ctx context.Context, r bus.Request) ([]byte, error) {
	var request messages.CancelRequest
	if err := messages.Unmarshal(r.Payload, r.Format, &request); err != nil {
		return nil, err
	}
	if err := request.Validate(); err != nil {
		return nil, err
	}
	parts := split(request.Jobs, func(id *messages.JobID) *auctioneer { return f.numbered(*id) })
	switch len(parts) {
	case 0:
		return f.pass(ctx, f.numbered(request.Job), &r)
	case 1:
		return f.pass(ctx, parts[0].to, &r)
	}
	outcomes := make([]messages.CancelOutcome, len(request.Jobs))
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
	return messages.Marshal(messages.CancelReply{Jobs: outcomes}, r.Format)
}
