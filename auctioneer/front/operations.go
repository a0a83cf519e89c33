package front

import (
	"context"
	"crypto/sha256"
	"slices"
	"strings"
	"time"

	"github.com/candor-grid/candor/messages"
)

// drain has every auctioneer that knows a node drain it. The answer is that of the one which
// the node serves.
func (f *Front) drain(ctx context.Context, caller messages.Name, r messages.DrainRequest) (reply messages.DrainReply, err error) {
	list, err := f.serving(ctx, caller, r.Node)
	if err != nil {
		return reply, err
	}
	all, err := each(list, func(_ int, to *auctioneer) (messages.DrainReply, error) {
		return ask[messages.DrainReply](ctx, f, to, messages.VerbDrain, caller, r)
	})
	return all[0], err
}

// replicas lists the replicas of all auctioneers.
func (f *Front) replicas(ctx context.Context, caller messages.Name, r messages.Empty) (messages.ReplicasReply, error) {
	all, err := askAll[messages.ReplicasReply](ctx, f, messages.VerbReplicas, caller, r)
	return f.together(all), err
}

// regroup adds a replica to all auctioneers, or removes one.
func (f *Front) regroup(ctx context.Context, caller messages.Name, r messages.ReplicaRequest) (reply messages.ReplicasReply, err error) {
	addresses, err := f.addresses(r.Address)
	if err != nil {
		return reply, err
	}
	all, err := each(f.all, func(_ int, to *auctioneer) (messages.ReplicasReply, error) {
		own := r
		own.Address = addresses[to.name]
		reply, err := ask[messages.ReplicasReply](ctx, f, to, messages.VerbReplica, caller, own)
		return reply, silent(to, err)
	})
	return f.together(all), err
}

// addresses reads the address of a replica of each auctioneer, as in "day=10.0.0.4:7001,dark=10.0.0.4:7003";
// "": the configuration has them.
func (f *Front) addresses(text string) (map[messages.Name]string, error) {
	of := map[messages.Name]string{}
	for one := range strings.SplitSeq(text, ",") {
		if name, address, ok := strings.Cut(one, "="); ok {
			of[name] = address
		}
	}
	for _, a := range f.all {
		if _, is := of[a.name]; text != "" && (!is || len(of) != len(f.all)) {
			return nil, messages.Errorf(messages.Invalid, "address: the replicas of several auctioneers have an address each; write %s=host:port, and the others after commas", a.name)
		}
	}
	return of, nil
}

// together is one answer about the replicas of all auctioneers.
func (f *Front) together(all []messages.ReplicasReply) messages.ReplicasReply {
	reply := messages.ReplicasReply{Actor: messages.Auctioneer, Spare: all[0].Spare}
	for i := range all {
		for _, replica := range all[i].Replicas {
			replica.Auctioneer = f.all[i].name
			reply.Replicas = append(reply.Replicas, replica)
		}
		reply.Spare = min(reply.Spare, all[i].Spare)
	}
	return reply
}

// apply has each auctioneer have those of the markets that are its. Where nothing is
// otherwise for an auctioneer, it goes on as it is. The version of the site's markets is the
// sum of the versions of the auctioneers.
func (f *Front) apply(ctx context.Context, caller messages.Name, r messages.ApplyRequest) (reply messages.ApplyReply, err error) {
	if err := r.Validate(); err != nil {
		return reply, err
	}
	requests, err := f.spread(ctx, &r)
	if err != nil {
		return reply, err
	}
	whole := digest(r)
	for i := range requests {
		requests[i].Whole = whole
	}
	changed := func(err error) error { // since it was looked where the markets are
		switch {
		case err == nil || !strings.HasPrefix(messages.Detail(err), "version:"):
			return err
		case r.Version != 0:
			return messages.Errorf(messages.Conflict, "version: the markets have just been changed; candor markets shows them; check your change, then repeat the command with the new version")
		}
		return messages.Errorf(messages.Unavailable, "markets: they have just been changed, or one has gone to another auctioneer; send the same request again")
	}
	try := func(i int, own messages.ApplyRequest) (messages.ApplyReply, error) {
		own.DryRun, own.Key = true, ""
		reply, err := ask[messages.ApplyReply](ctx, f, f.all[i], messages.VerbApply, caller, own)
		return reply, changed(err)
	}
	tried, err := each(requests, try)
	if err != nil {
		return reply, err
	}
	if r.Version != 0 {
		if err := f.expect(ctx, caller, r.Version, requests, tried); err != nil {
			return reply, err
		}
	}
	if r.DryRun {
		return sum(tried), nil
	}
	done := make([]messages.ApplyReply, len(requests))
	for _, takes := range []bool{true, false} { // a market is taken from one before another has it
		for i := range requests {
			if takes != (len(tried[i].Removed) > 0) {
				continue
			}
			if done[i], err = ask[messages.ApplyReply](ctx, f, f.all[i], messages.VerbApply, caller, requests[i]); err != nil {
				return reply, changed(err)
			}
		}
	}
	f.find(ctx, time.Now())
	return sum(done), nil
}

// digest is the same for each repetition of a request.
func digest(r messages.ApplyRequest) []byte {
	r.Version, r.Whole = 0, nil
	text, _ := messages.Marshal(&r, messages.JSON) // what came in can be written
	sum := sha256.Sum256(text)
	return sum[:]
}

// spread makes the request of each auctioneer, for the markets that the auctioneer had when it
// was looked where they are: one that goes elsewhere meanwhile is not to be added here again.
func (f *Front) spread(ctx context.Context, r *messages.ApplyRequest) ([]messages.ApplyRequest, error) {
	p := f.find(ctx, time.Now())
	if p.silent != nil {
		return nil, p.silent
	}
	wanted := map[messages.Name]*auctioneer{}
	for i, of := range r.Auctioneers {
		k := slices.IndexFunc(f.all, func(a *auctioneer) bool { return a.name == of.Name })
		if k < 0 {
			return nil, messages.Errorf(messages.NotFound, "auctioneers[%d]: the site has no auctioneer %.64q; an auctioneer is added when the hosts start with another configuration", i, of.Name)
		}
		for _, market := range of.Markets {
			wanted[market] = f.all[k]
		}
	}
	classes := map[messages.Name]*auctioneer{}
	requests, left := make([]messages.ApplyRequest, len(f.all)), make([]int, len(f.all))
	for i := range requests {
		requests[i] = messages.ApplyRequest{Key: r.Key, Within: r.Within, Version: p.replies[i].Version}
	}
	for i := range r.Markets {
		m := &r.Markets[i]
		from, to := p.markets[m.Name], wanted[m.Name]
		if to == nil {
			to = f.toward(p, m.Name)
		}
		if to == nil {
			return nil, messages.Errorf(messages.Invalid, "markets[%d]: market %.64q is new; say under auctioneers which auctioneer has the market", i, m.Name)
		}
		if source := p.leaving[m.Name]; source != nil { // which is to go on forgetting it
			if to != from {
				return nil, messages.Errorf(messages.Unavailable, "markets[%d]: market %s goes from auctioneer %s to %s at this moment; send the same request again", i, m.Name, source.name, from.name)
			}
			k := slices.Index(f.all, source)
			sendOn(&requests[k], from.name, m.Name)
			requests[k].Markets = append(requests[k].Markets, p.status(source, m.Name).Market)
		}
		for _, class := range m.Classes {
			if other := classes[class]; other != nil && other != to {
				return nil, messages.Errorf(messages.Invalid, "markets[%d]: class %.64q is in markets of the auctioneers %s and %s; a class is of one auctioneer", i, class, other.name, to.name)
			}
			classes[class] = to
		}
		k := slices.Index(f.all, to)
		left[k]++
		if from != nil && from != to && p.goes(from, m) { // it stays there until it has gone with its jobs
			k = slices.Index(f.all, from)
			sendOn(&requests[k], to.name, m.Name)
		}
		requests[k].Markets = append(requests[k].Markets, *m)
	}
	for i := range requests {
		if left[i] == 0 || len(requests[i].Markets) == 0 {
			return nil, messages.Errorf(messages.Invalid, "markets: auctioneer %s would have no market; leave it one", f.all[i].name)
		}
	}
	return requests, nil
}

// toward is the auctioneer that a market goes to, or that it stays with.
func (f *Front) toward(p *places, market messages.Name) *auctioneer {
	if s := p.status(p.markets[market], market); s != nil && s.Moving != nil {
		if k := slices.IndexFunc(f.all, func(a *auctioneer) bool { return a.name == s.Moving.To }); k >= 0 {
			return f.all[k]
		}
	}
	return p.markets[market]
}

// sendOn adds to a request that a market goes to another auctioneer.
func sendOn(r *messages.ApplyRequest, to, market messages.Name) {
	for i := range r.Auctioneers {
		if r.Auctioneers[i].Name == to {
			r.Auctioneers[i].Markets = append(r.Auctioneers[i].Markets, market)
			return
		}
	}
	r.Auctioneers = append(r.Auctioneers, messages.AuctioneerMarkets{Name: to, Markets: []messages.Name{market}})
}

// noVersion is a version that no markets have.
const noVersion = 1 << 63

// expect refuses a change that is for another version of the site's markets, and has each
// auctioneer refuse the change if its version becomes another one meanwhile. A change that is
// repeated was for the version before it: auctioneers that carried it out say so again.
func (f *Front) expect(ctx context.Context, caller messages.Name, version uint64, requests []messages.ApplyRequest, tried []messages.ApplyReply) error {
	var now, before uint64
	for i := range requests {
		now, before = now+tried[i].Version, before+tried[i].Version
		if requests[i].Key == "" {
			continue
		}
		again := requests[i]
		again.Version = noVersion
		done, err := ask[messages.ApplyReply](ctx, f, f.all[i], messages.VerbApply, caller, again)
		switch {
		case err == nil:
			before -= tried[i].Version - done.Version
			if len(done.Added)+len(done.Changed)+len(done.Removed) > 0 {
				before--
			}
		case messages.KindOf(err) != messages.Conflict:
			return err
		}
	}
	if before != version {
		return messages.Errorf(messages.Conflict, "version: the markets have version %d, not %d; candor markets shows them; check your change, then repeat the command with the new version", now, version)
	}
	return nil
}

// sum is one answer of all auctioneers. A market that went from one to another was changed.
func sum(all []messages.ApplyReply) (reply messages.ApplyReply) {
	for _, one := range all {
		reply.Added, reply.Changed, reply.Removed = append(reply.Added, one.Added...), append(reply.Changed, one.Changed...), append(reply.Removed, one.Removed...)
		reply.Version += one.Version
		reply.Moving = append(reply.Moving, one.Moving...)
	}
	went := func(name messages.Name) bool {
		return slices.Contains(reply.Added, name) && slices.Contains(reply.Removed, name)
	}
	var moved []messages.Name
	for _, name := range reply.Added {
		if went(name) {
			moved = append(moved, name)
		}
	}
	stays := func(name messages.Name) bool { return slices.Contains(moved, name) }
	reply.Added, reply.Removed = slices.DeleteFunc(reply.Added, stays), slices.DeleteFunc(reply.Removed, stays)
	reply.Changed = append(reply.Changed, moved...)
	return reply
}
