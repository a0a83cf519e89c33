package auctioneer

import (
	"context"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/candor-grid/candor/auctioneer/book"
	"github.com/candor-grid/candor/auctioneer/desk"
	"github.com/candor-grid/candor/auctioneer/market"
	"github.com/candor-grid/candor/auctioneer/series"
	"github.com/candor-grid/candor/messages"
)

// A history is kept in these steps. Each replica keeps the times in which it led.
var (
	marketSteps = []series.Step{
		{Every: 2 * aSecond, Keep: 300}, {Every: 10 * aSecond, Keep: 360}, {Every: 120 * aSecond, Keep: 360}, {Every: 1800 * aSecond, Keep: 336},
	}
	nodeSteps = []series.Step{{Every: 30 * aSecond, Keep: 120}, {Every: 600 * aSecond, Keep: 144}, {Every: 3600 * aSecond, Keep: 168}}
)

const (
	aSecond = messages.Duration(time.Second)
	// sampleEvery is how often the leader looks.
	sampleEvery = 2 * time.Second
	// mostSeries bounds the nodes, and the accounts of each market, of which a history is
	// kept: the first that come.
	mostNodes, mostAccounts = 1000, 64
)

// histories are how the markets and nodes were while this replica led.
type histories struct {
	mu      sync.Mutex
	since   messages.Time
	markets map[messages.Name]*marketPast
	nodes   map[messages.Name]*nodePast
}

// marketPast is a market over time: the jobs that wait and run, and of each class the
// columns below.
type marketPast struct {
	classes  []messages.Name
	all      *series.Series
	accounts map[messages.Name]*series.Series // the part of the slots, in millionths
}

// nodePast is a node over time: of each class the slots and those in use.
type nodePast struct {
	classes []messages.Name
	all     *series.Series
}

// The columns of a class: as operators see it, and as everybody does.
const (
	price = iota
	pending
	slots
	used
	toldPrice
	toldPending
	classColumns
)

// watchPast looks at the markets and nodes again and again.
func (l *leader) watchPast(ctx context.Context) {
	for sleep(ctx, sampleEvery) {
		l.histories.sample(l)
	}
}

func (p *histories) sample(l *leader) {
	now := l.Clock()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.markets == nil {
		p.since, p.markets, p.nodes = now, map[messages.Name]*marketPast{}, map[messages.Name]*nodePast{}
	}
	l.with(func(d *desk.Desk) {
		for i := range d.Configs {
			c := &d.Configs[i]
			if p.markets[c.Name] == nil || !slices.Equal(p.markets[c.Name].classes, c.Classes) {
				p.markets[c.Name] = &marketPast{slices.Clone(c.Classes), series.New(2+classColumns*len(c.Classes), marketSteps...), map[messages.Name]*series.Series{}}
			}
			p.markets[c.Name].sample(now, d.Market(c.Name))
		}
		for name := range p.markets {
			if d.Find(name) == nil {
				delete(p.markets, name)
			}
		}
	})
	l.replica.read(func(b *book.Book) { p.sampleNodes(now, b) })
}

func (m *marketPast) sample(now messages.Time, live *market.Market) {
	row := []int64{0, int64(live.Started())}
	row[0] = int64(live.Jobs()) - row[1]
	total := 0
	for k, c := range live.SeenBy("", true).Prices() {
		one := [classColumns]int64{price: int64(math.Round(min(c.Price*float64(messages.Credit), series.MaxValue))), pending: int64(c.Pending),
			slots: int64(c.Slots), used: int64(c.Slots - c.Idle)}
		one[toldPrice], one[toldPending] = one[price], one[pending]
		if !live.Told(k) {
			one[toldPrice], one[toldPending] = series.Unknown, series.Unknown
		}
		row = append(row, one[:]...)
		total += c.Slots
	}
	m.all.Add(now, row)
	for account, n := range live.UsedBy() {
		if m.accounts[account] == nil && n > 0 && len(m.accounts) < mostAccounts {
			m.accounts[account] = series.New(1, marketSteps...)
		}
		if s := m.accounts[account]; s != nil {
			s.Add(now, []int64{int64(n) * 1_000_000 / int64(max(1, total))})
		}
	}
}

func (p *histories) sampleNodes(now messages.Time, b *book.Book) {
	for _, n := range b.Nodes() {
		if n.Removed {
			delete(p.nodes, n.Name)
			continue
		}
		at := p.nodes[n.Name]
		if at == nil || at.all.Width() != 2*len(n.Slots) {
			if at == nil && len(p.nodes) >= mostNodes {
				continue
			}
			at = &nodePast{all: series.New(2*len(n.Slots), nodeSteps...)}
			for _, c := range n.Slots {
				at.classes = append(at.classes, c.Class)
			}
			p.nodes[n.Name] = at
		}
		var row []int64
		for k, c := range n.Slots {
			if n.Up {
				row = append(row, int64(c.Slots), int64(n.Used[k]))
			} else {
				row = append(row, 0, 0)
			}
		}
		at.all.Add(now, row)
	}
}

// history tells how a market or a node was, to whoever may ask how it is.
func (l *queries) history(ctx context.Context, caller messages.Name, r messages.HistoryRequest) (reply messages.HistoryReply, err error) {
	if err := r.Validate(); err != nil {
		return reply, err
	}
	if r.Over == 0 {
		r.Over = 3600 * aSecond
	}
	if r.Market != "" && l.Find(r.Market) == nil {
		return reply, l.Missing("market: ", r.Market)
	}
	if err := l.verify(ctx); err != nil {
		return reply, err
	}
	now := l.Clock()
	l.histories.mu.Lock()
	defer l.histories.mu.Unlock()
	reply.Since = l.histories.since
	if m := l.histories.markets[r.Market]; m != nil {
		m.tell(&reply, now, r.Over, caller, l.operates(caller))
	} else if n := l.histories.nodes[r.Node]; n != nil {
		n.tell(&reply, now, r.Over)
	}
	return reply, nil
}

func (m *marketPast) tell(reply *messages.HistoryReply, now messages.Time, over messages.Duration, caller messages.Name, all bool) {
	step, rows := m.all.Since(now.Add(-over), now)
	reply.Step, reply.Classes = step, make([]messages.ClassHistory, len(m.classes))
	shownPrice, shownPending := toldPrice, toldPending
	if all {
		shownPrice, shownPending = price, pending
	}
	for _, row := range rows {
		reply.At = append(reply.At, row.At)
		reply.Waiting, reply.Running = append(reply.Waiting, int(row.Values[0])), append(reply.Running, int(row.Values[1]))
		for k, class := range m.classes {
			c, v := &reply.Classes[k], row.Values[2+k*classColumns:]
			c.Class = class
			if p := v[shownPrice]; p < 0 {
				c.Price = append(c.Price, -1)
			} else {
				c.Price = append(c.Price, messages.Credits(p).Float())
			}
			c.Slots, c.Used, c.Pending = append(c.Slots, int(v[slots])), append(c.Used, int(v[used])), append(c.Pending, int(v[shownPending]))
		}
	}
	own := m.accounts[caller]
	if own == nil {
		return
	}
	had := map[messages.Time]int64{}
	_, rows = own.Since(now.Add(-over), now)
	for _, row := range rows {
		had[row.At] = row.Values[0]
	}
	for _, at := range reply.At {
		reply.Own = append(reply.Own, float64(had[at])/1e6)
	}
}

func (n *nodePast) tell(reply *messages.HistoryReply, now messages.Time, over messages.Duration) {
	step, rows := n.all.Since(now.Add(-over), now)
	reply.Step, reply.Classes = step, make([]messages.ClassHistory, len(n.classes))
	for _, row := range rows {
		reply.At = append(reply.At, row.At)
		for k, class := range n.classes {
			c := &reply.Classes[k]
			c.Class = class
			c.Slots, c.Used = append(c.Slots, int(row.Values[2*k])), append(c.Used, int(row.Values[2*k+1]))
			c.Price, c.Pending = append(c.Price, -1), append(c.Pending, -1)
		}
	}
}
