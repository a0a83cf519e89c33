package auctioneer

import (
	"context"
	"crypto/sha256"
	"reflect"
	"slices"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/candor-grid/candor/auctioneer/book"
	"github.com/candor-grid/candor/auctioneer/desk"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/bus"
	"github.com/candor-grid/candor/messages/mailbox"
	"github.com/candor-grid/candor/messages/market"
	"github.com/candor-grid/candor/messages/wire"
)

// operations answers the requests of operators, and the requests about join tokens.
type operations struct{ *term }

// query is a function that answers one kind of request from a caller.
type query[Request, Reply any] func(ctx context.Context, caller messages.Name, r Request) (Reply, error)

// forOperators returns a handler for f that refuses callers who are not operators.
func forOperators[Request, Reply any](l *operations, verb, to string, f query[Request, Reply]) bus.Handler {
	return bus.Handle(verb, func(ctx context.Context, caller messages.Name, r Request) (reply Reply, err error) {
		if !slices.Contains(l.Operators, caller) {
			return reply, messages.Errorf(messages.PermissionDenied, "only operators may %s", to)
		}
		return f(ctx, caller, r)
	})
}

// drain stops new work on a node.
func (l *operations) drain(ctx context.Context, caller messages.Name, r market.DrainRequest) (reply market.DrainReply, err error) {
	if err := r.Validate(); err != nil {
		return reply, err
	}
	reply.Node = r.Node
	if r.Remove {
		_, err = propose[int](ctx, l.site, &book.Command{Drain: &book.Drain{Node: r.Node, Remove: true}})
		if err == nil {
			l.Log.Info("node is removed", zap.String("node", r.Node), zap.String("by", caller))
		}
		return reply, err
	}
	until := messages.Time(0)
	switch reply.Draining = !r.Undo; {
	case r.Undo:
	case r.Notice == nil:
		until = book.ToTheirEnd
	default:
		reply.Until = l.Clock().Add(*r.Notice)
		until = reply.Until
	}
	if reply.Tasks, err = propose[int](ctx, l.site, &book.Command{Drain: &book.Drain{Node: r.Node, Until: until, Reason: r.Reason}}); err != nil {
		return reply, err
	}
	if r.Undo {
		l.Log.Info("node accepts work", zap.String("node", r.Node), zap.String("by", caller))
		return reply, nil
	}
	l.Log.Info("node drains", zap.String("node", r.Node), zap.Stringer("until", reply.Until), zap.Int("tasks", reply.Tasks), zap.String("reason", r.Reason), zap.String("by", caller))
	return reply, nil
}

func (l *operations) window(ctx context.Context, caller messages.Name, r market.WindowRequest) (w market.Window, err error) {
	if err := r.Validate(); err != nil {
		return w, err
	}
	if r.Add != nil && r.Add.To > l.Clock().Add(market.WindowAhead) {
		return w, messages.Errorf(messages.Invalid, "to: a window must end within a year from now, and %s is later; to keep nodes free for longer, use `candor node drain`", r.Add.To.Std().UTC().Format(time.DateOnly))
	}
	if w, err = propose[market.Window](ctx, l.site, &book.Command{ChangeWindows: &book.ChangeWindows{Add: r.Add, Remove: r.Remove}}); err != nil {
		return w, err
	}
	if r.Add != nil && (w.Notice == nil) != (r.Add.Notice == nil) || r.Add != nil && w.Notice != nil && *w.Notice != *r.Add.Notice {
		return w, messages.Errorf(messages.Conflict, "notice: window %d already exists with another notice; remove this window first: `candor window remove %[1]d`", w.ID)
	}
	said := "maintenance window added"
	if r.Add == nil {
		said = "maintenance window removed"
	}
	l.Log.Info(said, zap.Uint32("window", w.ID), zap.Stringer("from", w.From), zap.Stringer("to", w.To), zap.Int("nodes", len(w.Nodes)), zap.String("reason", w.Reason), zap.String("by", caller))
	return w, nil
}

// regroup adds a replica of the auctioneer, or removes one.
func (l *operations) regroup(ctx context.Context, caller messages.Name, r messages.ReplicaRequest) (messages.ReplicasReply, error) {
	reply, err := mailbox.Regroup(ctx, messages.Auctioneer, l.box, &r)
	l.Log.Info("replicas", zap.String("by", caller), zap.String("add", r.Add), zap.String("remove", r.Remove), zap.Error(err))
	return reply, err
}

func (l *operations) replicas(ctx context.Context, _ messages.Name, _ messages.Empty) (messages.ReplicasReply, error) {
	return mailbox.Regroup(ctx, messages.Auctioneer, l.box, nil)
}

// joinTokens stores and uses the join tokens of nodes. Only the site's admission service may ask. All replicas have the
// tokens, so a token can be used only once, even if two hosts present it.
func (l *operations) joinTokens(ctx context.Context, caller messages.Name, r messages.AdmitRequest) (reply messages.TokensReply, err error) {
	if caller != messages.ServiceIdentity(messages.Admission) {
		return reply, messages.Errorf(messages.PermissionDenied, "only the site's admission may send this request; operators use `candor node token`")
	}
	if r.Issue == nil && r.Use == nil && r.Revoke == "" {
		err := l.look(ctx, func(b *book.Book) error {
			reply.Tokens = b.Tokens()
			return nil
		})
		return reply, err
	}
	if t := r.Issue; t != nil && (!strings.HasPrefix(t.ID, messages.JoinPrefix) || !messages.ValidName(t.Node)) {
		return reply, messages.Errorf(messages.Invalid, "issue: %q for node %q is no join token", t.ID, t.Node)
	}
	admit := &book.Admit{Issue: r.Issue, Use: r.Use, Revoke: r.Revoke}
	token, err := propose[messages.TokenState](ctx, l.site, &book.Command{Admit: admit})
	if err != nil {
		return reply, err
	}
	return messages.TokensReply{Tokens: []messages.TokenState{token}}, nil
}

// apply replaces the markets of the site. The jobs stay in the book.
func (l *operations) apply(ctx context.Context, caller messages.Name, r market.ApplyRequest) (reply market.ApplyReply, err error) {
	if err := r.Validate(); err != nil {
		return reply, err
	}
	if i, err := checkMarkets(r.Markets); err != nil {
		e := messages.AsError("", err)
		return reply, messages.Errorf(e.Kind, "markets[%d].%s", i, e.Message)
	}
	if err := l.decided(ctx); err != nil { // an earlier copy of this request may be on its way in the log
		return reply, err
	}
	applied := &book.Applied{Key: r.Key, Content: contentOf(&r)}
	if err := l.look(ctx, func(b *book.Book) (err error) {
		earlier, done, err := b.AppliedBy(r.Key, applied.Content)
		if done {
			applied = &earlier
		}
		return err
	}); err != nil {
		return reply, err
	}
	if applied.Reply.Version > 0 {
		return applied.Reply, l.awaitApplied(ctx, applied.Reply.Version)
	}
	was := l.inForce()
	reply = compare(was.Configs, r.Markets)
	reply.Version = was.Version + 1
	if r.Version != 0 && r.Version != reply.Version {
		return reply, messages.Errorf(messages.Conflict, "version: the markets have version %d, not %d; `candor markets` shows the markets; check your change, then repeat the command with the new version", reply.Version, r.Version)
	}
	change := &book.ApplyMarkets{Markets: r.Markets, MarketsVersion: reply.Version, Applied: applied}
	if change.Idle, err = l.mustBeIdle(&reply, was, r.Markets); err != nil {
		return reply, err
	}
	same := len(reply.Added)+len(reply.Changed)+len(reply.Removed) == 0
	if r.DryRun || same && r.Key == "" {
		return reply, nil
	}
	if same {
		change.Markets = nil
	}
	applied.Reply = reply
	done, err := propose[book.Applied](ctx, l.site, &book.Command{ApplyMarkets: change})
	if err != nil || done.Reply.Version <= was.Version+1 {
		return done.Reply, err
	}
	reply = done.Reply
	l.Log.Info("markets applied", zap.String("by", caller), zap.Strings("added", reply.Added),
		zap.Strings("changed", reply.Changed), zap.Strings("removed", reply.Removed))
	return reply, l.awaitApplied(ctx, reply.Version)
}

func contentOf(r *market.ApplyRequest) [sha256.Size]byte {
	content := *r
	// leave out the version, because it differs when the request is repeated
	content.Version = 0
	text, _ := wire.Marshal(&content, wire.JSON) // cannot fail: the value was decoded from such bytes
	return sha256.Sum256(text)
}

// awaitApplied waits until the markets of a version are in force, and then returns nil. If the term or ctx ends
// earlier, it returns an error that says to ask again. It would be wrong to return nil then, because a leader that
// stops still answers with the old markets.
func (l *operations) awaitApplied(ctx context.Context, version uint64) error {
	for {
		next := l.nextMarkets()
		if l.inForce().Version+1 >= version {
			return nil
		}
		select {
		case <-next:
			continue
		case <-l.life.Done():
		case <-ctx.Done():
		}
		return messages.Errorf(messages.Unavailable, "the new markets were stored, but are not in force yet; ask again")
	}
}

func compare(was, is []market.Market) (r market.ApplyReply) {
	find := func(in []market.Market, name messages.Name) int {
		return slices.IndexFunc(in, func(m market.Market) bool { return m.Name == name })
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

// mustBeIdle looks at the markets that a change removes, or gives another mechanism or other classes. It returns the
// names of these markets: they must have no active jobs. If one of them has active jobs, it returns an error.
func (l *operations) mustBeIdle(r *market.ApplyReply, present *desk.Markets, markets []market.Market) (idle []messages.Name, err error) {
	l.replica.read(func(b *book.Book) {
		for _, name := range slices.Concat(r.Removed, r.Changed) {
			n := b.Live(name)
			i := slices.IndexFunc(markets, func(m market.Market) bool { return m.Name == name })
			was := present.Find(name)
			if i >= 0 && markets[i].Mechanism == was.Mechanism && slices.Equal(markets[i].Classes, was.Classes) {
				continue
			}
			idle = append(idle, name)
			switch {
			case n == 0:
			case i < 0:
				err = messages.Errorf(messages.Conflict, "markets: %s cannot be removed: it has %d active jobs; cancel the jobs or wait", name, n)
			default:
				err = messages.Errorf(messages.Conflict, "markets[%d]: %s has %d active jobs that bid under mechanism %s for %v; mechanism and classes cannot change before the jobs have ended",
					i, name, n, was.Mechanism, was.Classes)
			}
		}
	})
	return idle, err
}
