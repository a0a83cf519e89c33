package front

import (
	"context"
	"reflect"
	"slices"
	"time"

	"github.com/candor-grid/candor/auctioneer/desk"
	"github.com/candor-grid/candor/auctioneer/market"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/bus"
)

// places say which auctioneer has which markets, and so which classes of slots.
type places struct {
	asked   time.Time // they are no older
	markets map[messages.Name]*auctioneer
	classes map[messages.Name]*auctioneer
	all     []*auctioneer
	replies []messages.MarketsReply // by auctioneer
	silent  error                   // one did not answer: its places are those of before
}

// status is what an auctioneer says of a market, nil if it has none of the name.
func (p *places) status(a *auctioneer, market messages.Name) *messages.MarketStatus {
	k := slices.Index(p.all, a)
	if k < 0 {
		return nil
	}
	for i := range p.replies[k].Markets {
		if s := &p.replies[k].Markets[i]; s.Market.Name == market {
			return s
		}
	}
	return nil
}

// goes says whether a market goes to another auctioneer as it is, with its jobs. One that is
// described otherwise is taken from the one auctioneer, if it has no jobs, and given to the other.
func (p *places) goes(a *auctioneer, m *messages.Market) bool {
	s := p.status(a, m.Name)
	return s != nil && (s.Moving != nil || s.Waiting+s.Running > 0 || market.Movable(m)) && reflect.DeepEqual(s.Market, *m)
}

// findWithin bounds the wait for one auctioneer.
const findWithin = 2 * time.Second

// find asks all auctioneers for their markets, unless somebody has since a time.
func (f *Front) find(ctx context.Context, since time.Time) *places {
	f.finding.Lock()
	defer f.finding.Unlock()
	before := f.known.Load()
	if before.asked.After(since) {
		return before
	}
	ctx, cancel := context.WithTimeout(ctx, findWithin)
	defer cancel()
	now := &places{asked: time.Now(), all: f.all, markets: map[messages.Name]*auctioneer{}, classes: map[messages.Name]*auctioneer{}, replies: make([]messages.MarketsReply, len(f.all))}
	now.replies, now.silent = each(f.all, func(i int, to *auctioneer) (messages.MarketsReply, error) {
		reply, err := ask[messages.MarketsReply](ctx, f, to, messages.VerbMarkets, messages.ServiceIdentity(messages.Auctioneer), messages.Empty{})
		if err != nil && before.replies != nil {
			reply = before.replies[i]
		}
		return reply, silent(to, err)
	})
	for i, a := range f.all {
		for k := range now.replies[i].Markets {
			m := &now.replies[i].Markets[k].Market
			now.markets[m.Name] = a
			for _, class := range m.Classes {
				now.classes[class] = a
			}
		}
	}
	f.known.Store(now)
	return now
}

// where finds the auctioneer that has a market.
func (f *Front) where(ctx context.Context, market messages.Name) (*auctioneer, error) {
	if market == "" {
		return f.all[0], nil
	}
	if a := f.known.Load().markets[market]; a != nil {
		return a, nil
	}
	p := f.find(ctx, time.Now())
	switch a := p.markets[market]; {
	case a != nil:
		return a, nil
	case p.silent != nil:
		return nil, p.silent
	}
	all := desk.Markets{}
	for i := range p.replies {
		for k := range p.replies[i].Markets {
			all.Configs = append(all.Configs, p.replies[i].Markets[k].Market)
		}
	}
	return nil, all.Missing("market: ", market)
}

// byMarket has requests about a market go to the auctioneer that has the market.
func byMarket[Request any](f *Front, market func(*Request) messages.Name) bus.Handler {
	return func(ctx context.Context, r bus.Request) ([]byte, error) {
		var request Request
		if err := messages.Unmarshal(r.Payload, r.Format, &request); err != nil {
			return nil, err
		}
		return f.toMarket(ctx, market(&request), &r)
	}
}

// toMarket passes a request on to the auctioneer that has a market. Where that one does not
// have the market any more, another may.
func (f *Front) toMarket(ctx context.Context, market messages.Name, r *bus.Request) ([]byte, error) {
	began := time.Now()
	to, err := f.where(ctx, market)
	if err != nil {
		return nil, err
	}
	reply, err := f.pass(ctx, to, r)
	if market == "" || messages.KindOf(err) != messages.NotFound || err == nil {
		return reply, err
	}
	p := f.find(ctx, began)
	switch now := p.markets[market]; {
	case now != nil && now != to:
		return f.pass(ctx, now, r)
	case now == nil && p.silent != nil:
		return nil, p.silent
	}
	return reply, err
}

// register has a node register with the auctioneer that has markets of its classes.
func (f *Front) register(ctx context.Context, r bus.Request) ([]byte, error) {
	var request messages.RegisterRequest
	if err := messages.Unmarshal(r.Payload, r.Format, &request); err != nil {
		return nil, err
	}
	p := f.find(ctx, time.Now()) // the node may come because its market went elsewhere
	var to *auctioneer
	of := messages.Name("")
	for _, s := range request.Slots {
		switch a := p.classes[s.Class]; {
		case a == nil:
		case to == nil:
			to, of = a, s.Class
		case a != to:
			return nil, messages.Errorf(messages.Invalid, "slots: class %s is of auctioneer %s, and class %s of auctioneer %s; give the node classes of one of them", of, to.name, s.Class, a.name)
		}
	}
	if to == nil && p.silent != nil {
		return nil, p.silent
	}
	if to == nil {
		to = f.all[0]
	}
	return f.pass(ctx, to, &r)
}
