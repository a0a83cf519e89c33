package desk

import (
	"fmt"
	"maps"

	"github.com/candor-grid/candor/auctioneer/book"
	"github.com/candor-grid/candor/auctioneer/market"
	"github.com/candor-grid/candor/messages"
)

type trading struct {
	*core
	markets []*traded
	slots   *market.Slots
	gangs   market.Gangs
	// gone has the markets that were removed in this term, each with the number of its last published vector.
	gone map[messages.Name]uint64
}

// traded is a market that this leader decides. It also has the state of the market's decisions, and the publisher,
// which remembers the last published vector.
type traded struct {
	*market.Market
	publisher *market.Publisher
	deciding  bool // a decision is being committed
	fails     int  // decisions in a row whose commit failed
	retry     messages.Duration
}

func newTrading(c *core, m *Markets) trading {
	t := trading{core: c, slots: market.NewSlots(m.Configs)}
	for _, live := range m.live {
		t.markets = append(t.markets, &traded{Market: live, publisher: market.NewPublisher(c.Term, live)})
	}
	return t
}

// follow makes the numbers of vectors continue from the numbers of earlier vectors in the same term. Agents ignore a
// vector with a smaller number. So the numbers must also continue for a market that was removed and added again.
func (t *trading) follow(before *trading) {
	t.gone = maps.Clone(before.gone)
	if t.gone == nil {
		t.gone = map[messages.Name]uint64{}
	}
	for _, m := range before.markets {
		if seq := m.publisher.Seq(); seq > 0 {
			t.gone[m.Config.Name] = seq
		}
	}
	for _, m := range t.markets {
		if seq := t.gone[m.Config.Name]; seq > 0 {
			m.publisher.Continue(seq)
		}
		earlier := before.market(m.Config.Name)
		m.deciding = earlier != nil && earlier.deciding
	}
}

func (t *trading) market(name messages.Name) *traded {
	for _, m := range t.markets {
		if m.Config.Name == name {
			return m
		}
	}
	return nil
}

// setSlots tells the markets how many slots the nodes offer now, and when maintenance windows begin. It reports whether
// a change of windows has changed which tasks can start.
func (t *trading) setSlots() (windows bool) {
	for i, m := range t.markets {
		slots, idle := t.slots.Of(i)
		m.SetSlots(t.now.Wall, slots, idle)
		windows = m.SetWindows(t.slots.Windows(i)) || windows
	}
	return windows
}

// step lets each market make a decision if something has changed in it, and publishes the vectors that are due. A
// market makes no decision while its last decision is being committed. If the commit failed, it waits a while longer.
func (t *trading) step() {
	for _, m := range t.markets {
		switch {
		case m.deciding:
		case t.now.Mono < m.retry:
			t.wakeIn(m.retry - t.now.Mono)
		case m.Stale(t.now.Wall):
			t.decide(m)
		}
		if v, ok := m.publisher.Due(m.Market, t.now.Wall, t.slots.Nodes(), t.rng); ok {
			t.out.Publish = append(t.out.Publish, v)
		}
		t.wakeAt(m.publisher.Wake())
		if !m.deciding && t.now.Mono >= m.retry {
			t.wakeAt(m.Wake())
		}
	}
	t.disband()
}

// decide asks a market for a decision. It proposes the part of the decision that must be in the log.
func (t *trading) decide(m *traded) {
	decision := m.Decide(t.now.Wall, t.book.Read)
	t.tell(Decided{m.Config.Name})
	m.publisher.Reallocated()
	if decision == nil {
		return
	}
	m.deciding = true
	t.propose(&book.Command{Decide: decision}, func(_ any, err error) {
		m.deciding = false
		if now := t.market(m.Config.Name); now != nil { // another market may have taken the place of m
			now.deciding = false
		}
		if err != nil {
			m.Stalled()
			m.fails++
			m.retry = t.retryAt(m.fails)
			t.tell(Undecided{m.Config.Name, err})
			return
		}
		m.fails, m.retry = 0, 0
		m.Committed()
		t.tell(Committed{decision})
	})
}

// disband handles gangs that do not get all their slots in time. It gives their tasks back, so that these tasks wait
// again.
func (t *trading) disband() {
	for _, late := range t.gangs.Late(t.now.Wall) {
		t.propose(&book.Command{Disband: late}, func(_ any, err error) {
			if err != nil {
				t.gangs.Again(late, t.now.Wall.Add(soon))
			}
			t.tell(Disbanded{late.Job, err})
		})
	}
	t.wakeAt(t.gangs.Next())
}

// openMarkets opens the markets that were applied to the book. If none were applied, it opens the markets of the
// configuration. A market that fails to open is left out: another version of this program may have accepted it.
func openMarkets(c *Config, b *book.Book) (*Markets, []error) {
	m, configs, faults := &Markets{Version: b.MarketsVersion()}, c.Markets, []error(nil)
	if applied := b.Markets(); len(applied) > 0 {
		configs, m.applied = applied, true
	}
	open := c.Open
	if open == nil {
		open = market.Open
	}
	for _, config := range configs {
		live, err := open(config)
		if err != nil {
			faults = append(faults, fmt.Errorf("market %s: %w", config.Name, err))
			continue
		}
		live.Recall(b)
		m.Configs, m.live = append(m.Configs, live.Config), append(m.live, live)
	}
	return m, faults
}
