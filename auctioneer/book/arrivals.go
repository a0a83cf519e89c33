package book

import (
	"cmp"
	"slices"

	"github.com/candor-grid/candor/messages"
)

// Arrival is a move of markets from another auctioneer to this one, the last one from there.
type Arrival struct {
	From    messages.Name
	Move    uint64
	Markets []messages.Name
	Taken   int // items
	Done    bool
}

// TakeOver has the target of a move take items. Result: Arrival.
type TakeOver struct {
	From    messages.Name
	Move    uint64
	Markets []messages.Name
	After   int // items that were taken before
	Items   []Item
	Nodes   []NodeName // that tasks of the items speak of
	// Now and LastEffect are of the source: what the target does comes after, and has
	// other numbers.
	Now        messages.Time
	LastEffect uint64
	// Last says that these items are the last. Applied are the markets of the target from
	// then on, as its leader knows, if MarketsVersion is as of Apply.
	Last           bool
	Applied        []messages.Market
	MarketsVersion uint64
}

// Encode writes what is to be taken over.
func (t *TakeOver) Encode() ([]byte, error) { return messages.Marshal(t, messages.Msgpack) }

// DecodeTakeOver reads what Encode wrote.
func DecodeTakeOver(data []byte) (*TakeOver, error) {
	t := new(TakeOver)
	return t, messages.Unmarshal(data, messages.Msgpack, t)
}

// NodeName is the name of a node at a position.
type NodeName struct {
	At   uint32
	Name messages.Name
}

// Item is one thing that goes over. One of the fields is set.
type Item struct {
	Job     []byte // as of [Ended.Encode]
	Past    *Past  // a job that ended before, so that a repeated submission is known
	Notes   *MarketNotes
	Tariffs *tariffImage
}

// MarketNotes are some notes of a market.
type MarketNotes struct {
	Market messages.Name
	Notes  []Note
}

// arriving is the move by which a market comes here; nil: it does not.
func (m *transit) arriving(market messages.Name) *Arrival {
	for i := range m.arrivals {
		if a := &m.arrivals[i]; !a.Done && slices.Contains(a.Markets, market) {
			return a
		}
	}
	return nil
}

// takeOver takes items of a move, each once.
func (b *Book) takeOver(t *TakeOver) (Arrival, error) {
	i := slices.IndexFunc(b.arrivals, func(a Arrival) bool { return a.From == t.From })
	if i < 0 {
		i = len(b.arrivals)
	}
	switch {
	case i < len(b.arrivals) && b.arrivals[i].Move > t.Move:
		return Arrival{}, messages.Errorf(messages.Conflict, "move %d of auctioneer %s was followed by another", t.Move, t.From)
	case i == len(b.arrivals) || b.arrivals[i].Move < t.Move:
		a, err := b.expect(t)
		if err != nil || t.After > 0 {
			return a, cmp.Or(err, error(messages.Errorf(messages.Conflict, "move %d of auctioneer %s did not begin here", t.Move, t.From)))
		}
		b.arrivals = append(slices.Clone(b.arrivals[:i]), append([]Arrival{a}, b.arrivals[min(i+1, len(b.arrivals)):]...)...)
	}
	a := b.arrivals[i]
	if a.Done || t.After != a.Taken || len(t.Items) == 0 && !t.Last {
		return a, nil // it was taken before, or comes too early
	}
	if t.Last {
		if err := b.Unchanged(t.MarketsVersion); err != nil {
			return a, err
		}
	}
	jobs := make([]*Job, len(t.Items))
	for k := range t.Items {
		if t.Items[k].Job == nil {
			continue
		}
		e, err := DecodeEnded(t.Items[k].Job)
		if err != nil || e.Job == nil {
			return a, messages.Errorf(messages.Invalid, "items[%d]: is no job: %v", k, err)
		}
		jobs[k] = e.Job
	}
	b.now, b.effects.last = max(b.now, t.Now), max(b.effects.last, t.LastEffect)
	at := b.nodesNamed(t.Nodes)
	listed := map[messages.Name][]messages.JobID{}
	for k := range t.Items {
		if j := jobs[k]; j != nil {
			listed[""], listed[j.Account] = append(listed[""], j.ID), append(listed[j.Account], j.ID)
		}
		b.takeItem(&t.Items[k], jobs[k], at)
	}
	for name, ids := range listed {
		b.index.insert(name, ids)
	}
	arrivals := slices.Clone(b.arrivals)
	arrivals[i].Taken, arrivals[i].Done = a.Taken+len(t.Items), t.Last
	b.arrivals = arrivals
	if t.Last {
		b.replaceMarkets(t.Applied)
	}
	return arrivals[i], nil
}

// expect begins the arrival of markets, which must not be here.
func (b *Book) expect(t *TakeOver) (Arrival, error) {
	for _, name := range t.Markets {
		here := 0
		for i := range t.Applied {
			if t.Applied[i].Name == name {
				here++
			}
		}
		if here > 1 || b.configures(name) || b.Live(name) > 0 || b.expects(name) && b.arriving(name).From != t.From {
			return Arrival{}, messages.Errorf(messages.Conflict, "there is a market %s here already", name)
		}
	}
	return Arrival{From: t.From, Move: t.Move, Markets: t.Markets}, nil
}

// expects says whether a market comes here.
func (m *transit) expects(market messages.Name) bool { return m.arriving(market) != nil }

// nodesNamed finds nodes by their names, and enters those that are not known as removed.
func (b *Book) nodesNamed(names []NodeName) map[uint32]uint32 {
	at := make(map[uint32]uint32, len(names))
	for _, n := range names {
		i, known := b.nodes.find(n.Name)
		if known == nil {
			i, _ = b.nodes.add(&Node{Name: n.Name, Removed: true, Since: b.now}) // without room it is taken for the first
		}
		at[n.At] = i
	}
	return at
}

func (b *Book) takeItem(item *Item, j *Job, at map[uint32]uint32) {
	switch {
	case j != nil:
		j.nodes(func(node *uint32) { *node = at[*node] })
		for _, d := range j.Doubts {
			slices.Sort(d.Nodes)
		}
		b.await(j)
		b.jobs.live(j.Spec.Market, 1)
		b.index.keys[keyOf(b.byID.put(j), j.Account, j.Key)] = j.ID
		b.index.count(j.Account, 1)
	case item.Past != nil:
		b.recallElsewhere(*item.Past)
	case item.Notes != nil:
		b.note(item.Notes.Market, item.Notes.Notes, false)
	case item.Tariffs != nil:
		b.meters.adopt(item.Tariffs)
	}
}

// recallElsewhere remembers a job that ended at another auctioneer.
func (b *Book) recallElsewhere(p Past) {
	if b.index.find(p.Account, p.Key) != 0 {
		return
	}
	b.index.recall(p.Account, p.Key, p.ID)
	b.endedAway = append(b.endedAway, p)
	for len(b.endedAway) > retainEnded && !b.sealed() {
		o := &b.endedAway[0]
		b.index.drop(o.Account, o.Key)
		b.endedAway = b.endedAway[1:]
	}
}

// endedElsewhere is a job that ended at another auctioneer, nil if there is none.
func (m *transit) endedElsewhere(id messages.JobID) *Past {
	for i := range m.endedAway {
		if m.endedAway[i].ID == id {
			return &m.endedAway[i]
		}
	}
	return nil
}
