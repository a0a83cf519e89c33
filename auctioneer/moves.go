package auctioneer

import (
	"context"
	"slices"

	"go.uber.org/zap"

	"github.com/candor-grid/candor/auctioneer/book"
	"github.com/candor-grid/candor/auctioneer/market"
	"github.com/candor-grid/candor/messages"
)

// moving says what a request to apply markets changes about which markets go to another
// auctioneer: a move that is to begin, or stay, if the one that has begun is given up.
func (l *operations) moving(r *messages.ApplyRequest, reply *messages.ApplyReply) (begin *book.Moving, stay bool, err error) {
	if r.Auctioneers != nil && l.Name == "" {
		return nil, false, messages.Errorf(messages.Invalid, "auctioneers: the site has one auctioneer; start the hosts with a configuration that has several, or leave auctioneers out")
	}
	if len(r.Auctioneers) > 1 {
		return nil, false, messages.Errorf(messages.Conflict, "auctioneers: markets of auctioneer %s go to several others; have them go to one at a time", l.Name)
	}
	for _, of := range r.Auctioneers {
		begin = &book.Moving{To: of.Name, Until: l.Clock().Add(r.Within)}
		for _, name := range of.Markets {
			i := slices.IndexFunc(r.Markets, func(m messages.Market) bool { return m.Name == name })
			if i < 0 || l.Find(name) == nil {
				return nil, false, l.Missing("auctioneers: ", name)
			}
			begin.Markets = append(begin.Markets, r.Markets[i])
			reply.Moving = append(reply.Moving, name)
		}
	}
	l.replica.read(func(b *book.Book) {
		now := b.Moving()
		for _, name := range slices.Concat(reply.Changed, reply.Removed) {
			if begin != nil && begin.Has(name) {
				err = messages.Errorf(messages.Conflict, "markets: %s cannot change while it goes to another auctioneer; have the market go as it is, and change it there", name)
			} else if b.Moves(name) != nil {
				err = messages.Errorf(messages.Conflict, "markets: %s is on its way to auctioneer %s; change it when it is there", name, now.To)
			}
		}
		switch {
		case err != nil:
		case begin == nil:
			stay = now != nil
		case now != nil && now.To == begin.To && slices.Equal(now.Names(), begin.Names()):
			begin = nil // it has begun
		default:
			err = l.movable(b, begin)
		}
	})
	return begin, stay, err
}

// movable refuses a move of what cannot go from one auctioneer to another.
func (l *operations) movable(b *book.Book, m *book.Moving) (err error) {
	classes := map[messages.Name]bool{}
	for i := range m.Markets {
		c := &m.Markets[i]
		if !market.Movable(c) {
			return messages.Errorf(messages.Conflict, "market %s has active jobs, and its mechanism, %s, has promised them slots or prices that another auctioneer does not know: close the market, wait until its jobs have ended, and apply again", c.Name, c.Mechanism)
		}
		for _, class := range c.Classes {
			classes[class] = true
		}
	}
	for _, n := range b.Nodes() {
		goes := slices.IndexFunc(n.Slots, func(s messages.ClassSlots) bool { return classes[s.Class] })
		stays := slices.IndexFunc(n.Slots, func(s messages.ClassSlots) bool { return !classes[s.Class] && l.serves(s.Class) })
		if n.Up && goes >= 0 && stays >= 0 {
			return messages.Errorf(messages.Conflict, "node %s has class %s, which goes to auctioneer %s, and class %s, which stays; a node is of one auctioneer", n.Name, n.Slots[goes].Class, m.To, n.Slots[stays].Class)
		}
	}
	if err := b.Movable(m); err != nil {
		return err
	}
	if j := b.TooLarge(m); j != nil {
		return messages.Errorf(messages.Conflict, "job %d of market %s is too large to go along, with its tasks that have begun; wait for its end", j.ID, j.Spec.Market)
	}
	return nil
}

// serves says whether a class is of a market here.
func (l *operations) serves(class messages.Name) bool {
	return slices.ContainsFunc(l.Configs, func(m messages.Market) bool { return slices.Contains(m.Classes, class) })
}

// takeOver takes over what another auctioneer of the site hands over.
func (l *operations) takeOver(ctx context.Context, caller messages.Name, r messages.HandOverRequest) (reply messages.HandOverReply, err error) {
	if caller != messages.ServiceIdentity(messages.Auctioneer) {
		return reply, messages.Errorf(messages.PermissionDenied, "only auctioneers hand markets over; operators use candor market apply")
	}
	t, err := book.DecodeTakeOver(r.Data)
	if err != nil {
		return reply, err
	}
	if t.Last || t.After == 0 {
		if i, err := checkMarkets(r.Markets); err != nil {
			return reply, messages.Errorf(messages.KindOf(err), "markets[%d].%s", i, messages.Detail(err))
		}
		t.Applied, t.MarketsVersion = slices.Concat(l.Configs, r.Markets), l.Version+1
	}
	a, err := propose[book.Arrival](ctx, l.Auctioneer, &book.Command{TakeOver: t})
	if err != nil {
		return reply, err
	}
	reply = messages.HandOverReply{Taken: a.Taken, Done: a.Done}
	if a.Done && l.Find(a.Markets[0]) == nil {
		l.Log.Info("markets are taken over from another auctioneer", zap.Strings("markets", a.Markets), zap.String("from", a.From), zap.Int("parts", a.Taken))
		return reply, l.awaitApplied(ctx)
	}
	return reply, nil
}
