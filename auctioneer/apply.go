package auctioneer

import (
	"context"
	"reflect"
	"slices"

	"go.uber.org/zap"

	"github.com/candor-grid/candor/auctioneer/book"
	"github.com/candor-grid/candor/messages"
)

// apply makes others the markets of the site. The leader begins anew with them,
// as a new leader would; jobs are in the book, and stay.
func (l *operations) apply(ctx context.Context, caller messages.Name, r messages.ApplyRequest) (reply messages.ApplyReply, err error) {
	if !slices.Contains(l.Operators, caller) {
		return reply, messages.Errorf(messages.PermissionDenied, "only operators may change the markets")
	}
	if err := r.Validate(); err != nil {
		return reply, err
	}
	if i, err := CheckMarkets(r.Markets); err != nil {
		e := messages.AsError("", err)
		return reply, messages.Errorf(e.Kind, "markets[%d].%s", i, e.Message)
	}
	reply = compare(l.Configs, r.Markets)
	idle, err := l.spare(&reply, r.Markets)
	if err != nil {
		return reply, err
	}
	if r.DryRun || len(reply.Added)+len(reply.Changed)+len(reply.Removed) == 0 {
		return reply, nil
	}
	if _, err := l.propose(ctx, &book.Command{Apply: &book.Apply{Markets: r.Markets, Idle: idle, MarketsVersion: l.Version + 1}}); err != nil {
		return reply, err
	}
	l.Log.Info("markets applied", zap.String("by", caller), zap.Strings("added", reply.Added),
		zap.Strings("changed", reply.Changed), zap.Strings("removed", reply.Removed))
	l.awaitApplied(ctx)
	return reply, nil
}

// awaitApplied has the markets that were committed come into force, and waits for
// that, or until the term or ctx ends: then they do so with the next leader.
func (l *operations) awaitApplied(ctx context.Context) {
	inForce := make(chan struct{})
	select {
	case l.applied <- inForce:
	case <-l.over:
		return
	}
	select {
	case <-inForce:
	case <-l.over:
	case <-ctx.Done():
	}
}

func compare(was, is []messages.Market) (r messages.ApplyReply) {
	find := func(in []messages.Market, name messages.Name) int {
		return slices.IndexFunc(in, func(m messages.Market) bool { return m.Name == name })
	}
	for i := range is {
		switch k := find(was, is[i].Name); {
		case k < 0:
			r.Added = append(r.Added, is[i].Name)
		case !reflect.DeepEqual(was[k], is[i]):
			r.Changed = append(r.Changed, is[i].Name)
		}
	}
	for i := range was {
		if find(is, was[i].Name) < 0 {
			r.Removed = append(r.Removed, was[i].Name)
		}
	}
	return r
}

// spare refuses changes that would lose jobs, and says which markets must have
// none for that.
func (l *operations) spare(r *messages.ApplyReply, markets []messages.Market) (idle []messages.Name, err error) {
	l.replica.read(func(b *book.Book) {
		for _, name := range slices.Concat(r.Removed, r.Changed) {
			n := b.Live(name)
			i := slices.IndexFunc(markets, func(m messages.Market) bool { return m.Name == name })
			was := l.Find(name)
			if i >= 0 && markets[i].Mechanism == was.Mechanism && slices.Equal(markets[i].Classes, was.Classes) {
				continue
			}
			idle = append(idle, name)
			switch {
			case n == 0:
			case i < 0:
				err = messages.Errorf(messages.Conflict, "markets: %s cannot go: it has %d jobs that have not ended; cancel them or wait", name, n)
			default:
				err = messages.Errorf(messages.Conflict, "markets[%d]: %s has %d jobs that bid under mechanism %s for %v; these cannot change before they end",
					i, name, n, was.Mechanism, was.Classes)
			}
		}
	})
	return idle, err
}
