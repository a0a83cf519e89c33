package auctioneer

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/candor-grid/candor/auctioneer/book"
	"github.com/candor-grid/candor/auctioneer/desk"
	"github.com/candor-grid/candor/auctioneer/market"
	"github.com/candor-grid/candor/auctioneer/series"
	"github.com/candor-grid/candor/messages"
	marketmsg "github.com/candor-grid/candor/messages/market"
)

// The leader takes samples for the histories of markets and nodes. The other replicas copy them, so that a new leader
// has the histories too.
var (
	marketSteps = []series.Step{
		{Every: 2 * aSecond, Keep: 300}, {Every: 10 * aSecond, Keep: 360}, {Every: 120 * aSecond, Keep: 360}, {Every: 1800 * aSecond, Keep: 336},
	}
	nodeSteps = []series.Step{{Every: 30 * aSecond, Keep: 120}, {Every: 600 * aSecond, Keep: 144}, {Every: 3600 * aSecond, Keep: 168}}
)

const (
	aSecond = messages.Duration(time.Second)
	// sampleEvery is the time between two samples that the leader takes for the histories of markets and nodes.
	sampleEvery = 2 * time.Second
	// The leader keeps the histories of at most 1000 nodes, and of at most 64 accounts in each market. A new history
	// beyond this number may replace the history whose last sample is oldest.
	mostNodes, mostAccounts = 1000, 64
)

// histories are the past values of the markets and nodes, as time series.
type histories struct {
	mu      sync.Mutex
	since   messages.Time // time of the first sample
	last    messages.Time // time of the last sample
	markets map[messages.Name]*marketPast
	nodes   map[messages.Name]*nodePast
}

// marketPast is the history of a market. It has the numbers of waiting and running jobs. For each class, it also has
// the columns that the constants below name, such as price and pending.
type marketPast struct {
	classes  []messages.Name
	all      *series.Series
	accounts map[messages.Name]*series.Series // each account's part of the slots, in millionths
}

// nodePast is the history of a node: for each class, its slots and the slots in use.
type nodePast struct {
	classes []messages.Name
	all     *series.Series
}

// The history of a class has these columns. Everybody may see toldPrice and toldPending. Only operators may see the
// other columns.
const (
	price = iota
	pending
	slots
	used
	toldPrice
	toldPending
	classColumns
)

func (p *histories) sample(now messages.Time, with func(func(*desk.Desk)), read func(func(*book.Book))) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.begin(now)
	p.last = now
	with(func(d *desk.Desk) {
		for i := range d.Configs {
			c := &d.Configs[i]
			p.market(c.Name, c.Classes).sample(now, d.Market(c.Name))
		}
		for name := range p.markets {
			if d.Find(name) == nil {
				delete(p.markets, name)
			}
		}
	})
	read(func(b *book.Book) { p.sampleNodes(now, b) })
}

func (p *histories) begin(now messages.Time) {
	if p.markets == nil {
		p.since, p.markets, p.nodes = now, map[messages.Name]*marketPast{}, map[messages.Name]*nodePast{}
	}
	p.since = min(p.since, now)
}

// market returns the history of a market. If the classes have changed, the history begins again.
func (p *histories) market(name messages.Name, classes []messages.Name) *marketPast {
	if at := p.markets[name]; at != nil && slices.Equal(at.classes, classes) {
		return at
	}
	p.markets[name] = &marketPast{slices.Clone(classes), series.New(2+classColumns*len(classes), marketSteps...), map[messages.Name]*series.Series{}}
	return p.markets[name]
}

// account returns the history of the slots that an account had. It returns nil if the number of histories is at its
// bound.
func (m *marketPast) account(now messages.Time, name messages.Name) *series.Series {
	if m.accounts[name] == nil && makeRoom(now, m.accounts, mostAccounts, (*series.Series).Last) {
		m.accounts[name] = series.New(1, marketSteps...)
	}
	return m.accounts[name]
}

// node returns the history of a node with these classes, or nil if there are too many histories.
func (p *histories) node(now messages.Time, name messages.Name, classes []messages.Name) *nodePast {
	at := p.nodes[name]
	if at != nil && !slices.Equal(at.classes, classes) {
		delete(p.nodes, name)
		at = nil
	}
	if at == nil && makeRoom(now, p.nodes, mostNodes, func(n *nodePast) messages.Time { return n.all.Last() }) {
		at = &nodePast{classes, series.New(2*len(classes), nodeSteps...)}
		p.nodes[name] = at
	}
	return at
}

// makeRoom reports whether another entry may be added to a map. If the map is full, makeRoom removes the entry whose
// last sample is oldest, but only if this sample is at least ten minutes old.
func makeRoom[V any](now messages.Time, from map[messages.Name]V, most int, last func(V) messages.Time) bool {
	if len(from) < most {
		return true
	}
	oldest := slices.MinFunc(slices.Collect(maps.Keys(from)), func(a, b messages.Name) int {
		return cmp.Or(cmp.Compare(last(from[a]), last(from[b])), cmp.Compare(a, b))
	})
	if now.Sub(last(from[oldest])) < 600*aSecond {
		return false
	}
	delete(from, oldest)
	return true
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
		if n == 0 && m.accounts[account] == nil {
			continue
		}
		if s := m.account(now, account); s != nil {
			s.Add(now, []int64{int64(n) * 1_000_000 / int64(max(1, total))})
		}
	}
}

func (p *histories) sampleNodes(now messages.Time, b *book.Book) {
	room := true
	for _, n := range b.Nodes() {
		if n.Removed {
			delete(p.nodes, n.Name)
			continue
		}
		if p.nodes[n.Name] == nil && !room {
			continue
		}
		classes := make([]messages.Name, len(n.Slots))
		for k, c := range n.Slots {
			classes[k] = c.Class
		}
		var row []int64
		for k, c := range n.Slots {
			if n.Up {
				row = append(row, int64(c.Slots), int64(n.Used[k]))
			} else {
				row = append(row, 0, 0)
			}
		}
		at := p.node(now, n.Name, classes)
		if at == nil {
			room = false
			continue
		}
		at.all.Add(now, row)
	}
}

func (m *marketPast) tell(reply *marketmsg.HistoryReply, now messages.Time, over messages.Duration, caller messages.Name, all bool) {
	step, rows := m.all.Since(now.Add(-over), now)
	reply.Step, reply.Classes = step, make([]marketmsg.ClassHistory, len(m.classes))
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

func (n *nodePast) tell(reply *marketmsg.HistoryReply, now messages.Time, over messages.Duration) {
	step, rows := n.all.Since(now.Add(-over), now)
	reply.Step, reply.Classes = step, make([]marketmsg.ClassHistory, len(n.classes))
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
