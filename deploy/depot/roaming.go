package depot

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/candor-grid/candor/auctioneer/federation"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/bus"
	"github.com/candor-grid/candor/messages/clearing"
	jobmsg "github.com/candor-grid/candor/messages/job"
	"github.com/candor-grid/candor/messages/wire"
)

// These limits bound how long a peer can make this site's depot wait, and how many requests of the depot can wait.
const (
	peerWithin = 4 * time.Second // time to wait for one answer
	peerPlaces = 4               // largest number of requests to one peer at the same time
	peerCalls  = 16              // largest number of requests of one peer at the same time
)

// places counts the open requests for each peer. One value of this type counts the requests to peers, and another value
// counts the requests from peers.
type places struct {
	mu    sync.Mutex
	taken map[messages.Name]int
}

// enter counts a new request to or from a peer, or returns an error if `most` requests are open already. The caller
// calls leave at the end of the request.
func (p *places) enter(peer messages.Name, most int) (leave func(), err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.taken[peer] >= most {
		return nil, messages.Errorf(messages.Unavailable, "%d requests for files of site %s are under way, which is the limit; ask again", most, peer)
	}
	if p.taken == nil {
		p.taken = map[messages.Name]int{}
	}
	p.taken[peer]++
	return func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.taken[peer]--; p.taken[peer] == 0 {
			delete(p.taken, peer)
		}
	}, nil
}

// askPeer sends one request to a peer's depot, in the name of this site.
func askPeer[Reply any](ctx context.Context, d *Depot, peer messages.Name, verb string, request any) (reply Reply, err error) {
	leave, err := d.asking.enter(peer, peerPlaces)
	if err != nil {
		return reply, err
	}
	defer leave()
	ctx, cancel := context.WithTimeout(ctx, peerWithin)
	defer cancel()
	payload, err := wire.Marshal(request, wire.Msgpack)
	if err != nil {
		return reply, err
	}
	data, err := d.c.Bus.Request(ctx, clearing.PeerVerb{Actor: messages.Depot, Verb: verb}.Subject(d.c.Site, peer), payload)
	if err == nil {
		err = wire.UnmarshalReply(data, &reply)
	}
	if err != nil {
		said := messages.AsError("", jobmsg.Tamed(err))
		return reply, messages.Errorf(said.Kind, "files of site %s: %s", peer, said.Message)
	}
	federation.Tame(&reply)
	return reply, nil
}

// awayOf returns the site that runs an account's job, or "" if it is this site. A job that the auctioneer no longer
// knows counts as this site's.
func (d *Depot) awayOf(ctx context.Context, account messages.Name, id messages.JobID) (messages.Name, error) {
	j, err := d.job(ctx, id)
	switch {
	case err != nil && messages.KindOf(err) == messages.NotFound:
		return "", nil
	case err == nil && j.away != "" && j.account != account:
		return "", messages.Errorf(messages.NotFound, "job: %s has no job %v", account, id)
	}
	return j.away, err
}

func (d *Depot) getAway(ctx context.Context, site messages.Name, r *jobmsg.GetRequest, err error) (jobmsg.GetReply, error) {
	if err == nil {
		err = r.Validate()
	}
	if err != nil {
		return jobmsg.GetReply{}, err
	}
	return askPeer[jobmsg.GetReply](ctx, d, site, jobmsg.VerbPeerGet, jobmsg.GetRequest{Digest: r.Digest, Offset: r.Offset, Attempt: r.Attempt})
}

func (d *Depot) outputsAway(ctx context.Context, site messages.Name, r *jobmsg.OutputsRequest, err error) (reply jobmsg.OutputsReply, _ error) {
	if err != nil {
		return reply, err
	}
	r.Account = ""
	if r.Limit == 0 {
		r.Limit = defaultLook
	}
	if reply, err = askPeer[jobmsg.OutputsReply](ctx, d, site, jobmsg.VerbPeerOutputs, r); err != nil {
		return jobmsg.OutputsReply{}, err
	}
	if err := credible(r, &reply); err != nil {
		return jobmsg.OutputsReply{}, messages.Errorf(messages.Internal, "site %s answered with a list of files that cannot be right: %s", site, messages.Detail(err))
	}
	return reply, nil
}

// credible returns an error if a peer's list of outputs is malformed, or does not answer the request.
func credible(r *jobmsg.OutputsRequest, reply *jobmsg.OutputsReply) error {
	if reply.Next <= r.From || reply.Next-r.From > uint32(r.Limit) {
		return messages.Errorf(messages.Invalid, "next: must be from %d to %d, is %d", r.From+1, r.From+uint32(r.Limit), reply.Next)
	}
	next := r.From
	for i := range reply.Tasks {
		t := &reply.Tasks[i]
		of := t.Attempt.Task
		if of.Job != r.Job || of.Stage != r.Stage || of.Index < next || of.Index >= reply.Next {
			return messages.Errorf(messages.Invalid, "task %v: is in the answer, but was not asked for", of)
		}
		next = of.Index + 1
		if err := (*jobmsg.DeliverRequest)(t).Validate(); err != nil {
			return err
		}
	}
	return nil
}

// bring fetches a piece of a visiting job's input from its home site, and stores it for the other tasks. After the last
// piece the file is complete, if it matches its digest.
func (d *Depot) bring(ctx context.Context, v *jobmsg.Visit, size int64, r *jobmsg.GetRequest) (jobmsg.GetReply, error) {
	of := messages.Attempt{Task: messages.TaskRef{Job: v.Job}}
	reply, err := askPeer[jobmsg.GetReply](ctx, d, v.Home, jobmsg.VerbPeerTake, jobmsg.GetRequest{Digest: r.Digest, Offset: r.Offset, Attempt: of})
	if err != nil {
		return jobmsg.GetReply{}, err
	}
	if reply.Size != size || int64(len(reply.Data)) != min(jobmsg.PieceSize, max(0, size-r.Offset)) {
		return jobmsg.GetReply{}, messages.Errorf(messages.NotFound, "site %s has another file than the job's input of %d bytes", v.Home, size)
	}
	b, err := d.bucket(ctx, VisitorsOf(v.Home))
	if err == nil {
		// The piece may not be stored now, for example because the bucket is full. Then the next request fetches it
		// again.
		_, _ = keep(ctx, b, &jobmsg.PutRequest{Digest: r.Digest, Size: size, Offset: r.Offset, Data: reply.Data})
	}
	return reply, nil
}

// atHome returns a task with the job number of the home site. A visiting job has a number here and a number at home;
// requests for its files use the number at home.
func (d *Depot) atHome(ctx context.Context, owner messages.Name, t messages.TaskRef) (messages.TaskRef, error) {
	if messages.ValidName(owner) {
		return t, nil
	}
	j, err := d.job(ctx, t.Job)
	if err == nil && j.visit == nil {
		err = messages.Errorf(messages.Internal, "job %v of %s did not come from another site", t.Job, owner)
	}
	if err != nil {
		return t, err
	}
	t.Job = j.visit.Job
	return t, nil
}

// forPeers returns a handler for requests from the depots of other sites. f gets the name of the requesting site.
func forPeers[Request, Reply any](d *Depot, verb string, f func(ctx context.Context, peer messages.Name, r Request) (Reply, error)) bus.Handler {
	return bus.Handle(verb, func(ctx context.Context, caller messages.Name, r Request) (reply Reply, err error) {
		peer, err := federation.HomeOf(caller)
		if err != nil {
			return reply, err
		}
		leave, err := d.asked.enter(peer, peerCalls)
		if err != nil {
			return reply, err
		}
		defer leave()
		return f(ctx, peer, r)
	})
}

// peerTake returns a piece of an input to a peer that runs the job.
func (d *Depot) peerTake(ctx context.Context, peer messages.Name, r jobmsg.GetRequest) (reply jobmsg.GetReply, err error) {
	id := r.Attempt.Task.Job
	j, err := d.job(ctx, id)
	if err != nil && messages.KindOf(err) != messages.NotFound {
		return reply, err
	}
	if _, has := j.inputs[r.Digest]; err != nil || j.away != peer || !has {
		return reply, messages.Errorf(messages.PermissionDenied, "site %s runs no job %v that has an input of this digest", peer, id)
	}
	return d.read(ctx, j.account, &r)
}

// peerOutputs lists the outputs of a job for the peer from which the job came.
func (d *Depot) peerOutputs(ctx context.Context, home messages.Name, r jobmsg.OutputsRequest) (reply jobmsg.OutputsReply, err error) {
	if err := r.Validate(); err != nil {
		return reply, err
	}
	if reply, err = d.list(ctx, VisitorsOf(home), &r); err != nil {
		return jobmsg.OutputsReply{}, err
	}
	for i := range reply.Tasks {
		t := &reply.Tasks[i].Attempt.Task
		if err := d.handedOver(ctx, t.Job, r.Job); err != nil {
			return jobmsg.OutputsReply{}, err
		}
		t.Job = r.Job
	}
	return reply, nil
}

// A job came from a peer, and has an output. peerGet returns a piece of this output to the peer.
func (d *Depot) peerGet(ctx context.Context, home messages.Name, r jobmsg.GetRequest) (reply jobmsg.GetReply, err error) {
	t := r.Attempt.Task
	left, err := d.peerOutputs(ctx, home, jobmsg.OutputsRequest{Job: t.Job, Stage: t.Stage, From: t.Index, Limit: 1})
	if err != nil {
		return reply, err
	}
	for _, task := range left.Tasks {
		if slices.ContainsFunc(task.Files, func(f jobmsg.File) bool { return f.Digest == r.Digest }) {
			return d.read(ctx, VisitorsOf(home), &r)
		}
	}
	return reply, messages.Errorf(messages.NotFound, "task %v has left no file of this digest", t)
}
