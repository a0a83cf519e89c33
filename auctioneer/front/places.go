package front

import (
	"context"
	"reflect"
	"slices"
	"strings"
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
	// leaving are the auctioneers that have not forgotten a market which has gone to another.
	leaving map[messages.Name]*auctioneer
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
	now := &places{asked: time.Now(), all: f.all, markets: map[messages.Name]*auctioneer{}, classes: map[messages.Name]*auctioneer{}, leaving: map[messages.Name]*auctioneer{}}
	now.replies, now.silent = f.look(ctx, messages.ServiceIdentity(messages.Auctioneer))
	for i, a := range f.all {
		if now.replies[i].Version == 0 && before.replies != nil {
			now.replies[i] = before.replies[i]
		}
		for k := range now.replies[i].Markets {
			s := &now.replies[i].Markets[k]
			if other := now.markets[s.Market.Name]; other != nil { // it goes from one to the other
				if s.Moving != nil {
					now.leaving[s.Market.Name] = a
					continue
				}
				now.leaving[s.Market.Name] = other
			}
			now.markets[s.Market.Name] = a
			for _, class := range s.Market.Classes {
				now.classes[class] = a
			}
		}
	}
	f.known.Store(now)
	return now
}

// look asks all auctioneers for their markets until nothing has changed since the answers
// before, so that a market which goes from one to another is not missed at both, nor seen at
// both. An auctioneer that does not answer has an empty answer.
func (f *Front) look(ctx context.Context, caller messages.Name) ([]messages.MarketsReply, error) {
	last := f.known.Load().replies
	for {
		all, err := askAll[messages.MarketsReply](ctx, f, messages.VerbMarkets, caller, messages.Empty{})
		if err != nil || slices.EqualFunc(all, last, func(a, b messages.MarketsReply) bool { return a.Version == b.Version }) {
			return all, err
		}
		last = all
	}
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
	return decoded(func(ctx context.Context, r *bus.Request, request *Request) ([]byte, error) {
		return f.toMarket(ctx, market(request), r)
	})
}

// toMarket passes a request on to the auctioneer that has a market. Where that one does not
// have the market any more, another may, or the market has gone on or come back meanwhile.
func (f *Front) toMarket(ctx context.Context, market messages.Name, r *bus.Request) ([]byte, error) {
	to, err := f.where(ctx, market)
	if err != nil {
		return nil, err
	}
	reply, err := f.pass(ctx, to, r)
	if !noMarket(err) {
		return reply, err
	}
	p := f.find(ctx, time.Now())
	switch now := p.markets[market]; {
	case now != nil && now != to:
		if reply, err = f.pass(ctx, now, r); noMarket(err) {
			err = elsewhere(market)
		}
	case now != nil:
		err = elsewhere(market)
	case p.silent != nil:
		err = p.silent
	}
	return reply, err
}

// noMarket says whether an error says that there is no such market.
func noMarket(err error) bool {
	return messages.KindOf(err) == messages.NotFound && strings.HasPrefix(messages.Detail(err), "market: there is no market")
}

func elsewhere(market messages.Name) error {
	return messages.Errorf(messages.Unavailable, "market %s has just gone to another auctioneer; send the same request again", market)
}

// register has a node register with the auctioneer that has markets of its classes.
func (f *Front) register(ctx context.Context, r *bus.Request, request *messages.RegisterRequest) ([]byte, error) {
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
	data, err := f.pass(ctx, to, r)
	if err == nil && of != "" {
		err = f.served(ctx, data, of, to)
	}
	return data, err
}

// served refuses the answer to a node whose markets went to another auctioneer before the node
// came: the node would wait there for work.
func (f *Front) served(ctx context.Context, data []byte, class messages.Name, by *auctioneer) error {
	var reply messages.RegisterReply
	if err := messages.Unmarshal(data, messages.Detect(data, ""), &reply); err != nil || len(reply.Markets) > 0 {
		return err
	}
	p := f.find(ctx, time.Now())
	if p.silent != nil {
		return p.silent
	}
	if now := p.classes[class]; now != nil && now != by {
		return messages.Errorf(messages.Unavailable, "class %s has just gone to another auctioneer; register again", class)
	}
	return nil
}
