package desk

import (
	"github.com/candor-grid/candor/auctioneer/book"
	"github.com/candor-grid/candor/messages"
)

// moves hand markets over to another auctioneer, step by step, as package book says. Where
// a step stands is in the books: a leader that takes over goes on with the next one, and what
// is asked of the other auctioneer twice is done once.
type moves struct {
	*core
	markets *Markets
	busy    bool
	next    messages.Duration
	fails   int

	move     uint64      // the one that the rest is about
	expected bool        // the other auctioneer knows of the markets
	cargo    *book.Cargo // once the move is sealed
	whole    bool        // the cargo is listed
	taken    int         // of the cargo
	done     bool        // the other auctioneer has all
	dropped  int         // jobs of the cargo
	tasks    int         // that still run
	trouble  error
}

const (
	// lookEvery is how often it is looked whether the tasks have ended.
	lookEvery = messages.Duration(100e6)
	// handOverWithin is how long the other auctioneer is waited for.
	handOverWithin = messages.Duration(10e9)
)

func (m *moves) step() {
	var to *book.Moving
	m.book.Read(func(b *book.Book) { to = b.Moving() })
	switch {
	case to == nil || m.busy:
		return
	case to.ID != m.move:
		*m = moves{core: m.core, markets: m.markets, move: to.ID}
	case m.now.Mono < m.next:
		m.wakeIn(m.next - m.now.Mono)
		return
	}
	switch {
	case !to.Sealed:
		m.drain(to)
	case !m.whole:
		if m.cargo == nil {
			m.cargo = &book.Cargo{}
		}
		m.read(func(b *book.Book) { m.whole = m.cargo.Look(b) })
		m.wakeIn(0)
	case !m.done:
		m.handOver(to)
	default:
		m.drop(to)
	}
}

// read reads the book if the move goes on: a command of the desk before may just have ended it.
func (m *moves) read(f func(*book.Book)) {
	m.book.Read(func(b *book.Book) {
		if to := b.Moving(); to != nil && to.ID == m.move {
			f(b)
		}
	})
}

// drain waits until nothing of the markets runs, and seals the move.
func (m *moves) drain(to *book.Moving) {
	jobs := 0
	m.read(func(b *book.Book) {
		m.tasks, jobs = b.Unready()
		jobs += b.Releases() // of a hold that the same submission would find at the other auctioneer
	})
	switch {
	case m.tasks+jobs > 0:
		m.again()
		if m.tasks > 0 && to.Until <= m.now.Wall {
			m.do(&book.Command{Withdraw: &book.Withdraw{Move: to.ID}}, func() { m.again() })
		}
	case !m.expected:
		m.ask(to, &book.TakeOver{Move: to.ID, Markets: to.Names()}, func(*messages.HandOverReply) { m.expected = true })
	default:
		var large *book.Job // one that came since the move began
		if m.read(func(b *book.Book) { large = b.TooLarge(to) }); large != nil {
			m.failed(messages.Errorf(messages.TooLarge, "job %d is too large to go along; cancel it, or have the market stay", large.ID))
			return
		}
		m.do(&book.Command{Seal: &book.Seal{Move: to.ID}}, func() {})
	}
}

// handOver gives the other auctioneer what comes next.
func (m *moves) handOver(to *book.Moving) {
	var next *book.TakeOver
	var err error
	m.read(func(b *book.Book) { next, err = m.cargo.Next(b, m.taken) })
	if err != nil {
		m.failed(err)
	}
	if next == nil {
		return
	}
	m.ask(to, next, func(r *messages.HandOverReply) { m.taken, m.done = min(r.Taken, m.cargo.Size()), r.Done })
}

// drop forgets what the other auctioneer has.
func (m *moves) drop(to *book.Moving) {
	if some := m.cargo.Last(m.dropped); len(some) > 0 {
		m.do(&book.Command{Drop: &book.Drop{Move: to.ID, Jobs: some}}, func() { m.dropped += len(some) })
		return
	}
	apply := &book.Apply{Moved: to.ID, MarketsVersion: m.markets.Version + 1}
	for _, c := range m.markets.Configs {
		if !to.Has(c.Name) {
			apply.Markets = append(apply.Markets, c)
		}
	}
	jobs := m.cargo.Jobs()
	m.do(&book.Command{Apply: apply}, func() { m.tell(HandedOver{to.Names(), to.To, jobs}) })
}

// ask has the other auctioneer take something over.
func (m *moves) ask(to *book.Moving, t *book.TakeOver, then func(*messages.HandOverReply)) {
	t.From = m.Name
	data, err := t.Encode()
	if err != nil {
		m.failed(err)
		return
	}
	m.busy = true
	ask(m.core, Request{To: messages.AuctioneerNamed(to.To), Verb: messages.VerbHandOver, Body: messages.HandOverRequest{Markets: to.Markets, Data: data}, Within: handOverWithin},
		func(r *messages.HandOverReply, err error) { m.answered(err, func() { then(r) }) })
}

func (m *moves) do(c *book.Command, then func()) {
	m.busy = true
	m.propose(c, func(_ any, err error) { m.answered(err, then) })
}

func (m *moves) answered(err error, then func()) {
	m.busy = false
	if err != nil {
		m.failed(err)
		return
	}
	m.fails, m.trouble = 0, nil
	then()
}

// failed has the same tried again later.
func (m *moves) failed(err error) {
	m.fails++
	m.trouble = err
	m.tell(Waiting{"a market that goes to another auctioneer", err})
	m.next = m.retryAt(m.fails)
	m.wakeIn(m.next - m.now.Mono)
}

// again has the desk look again after a while.
func (m *moves) again() {
	m.next = m.now.Mono + lookEvery
	m.wakeIn(lookEvery)
}

// Moving says how far a market is on its way to another auctioneer; nil: it stays.
func (d *Desk) Moving(market messages.Name) (r *messages.MarketMove) {
	m := &d.moves
	d.book.Read(func(b *book.Book) {
		to := b.Moves(market)
		if to == nil {
			return
		}
		r = &messages.MarketMove{To: to.To, Until: to.Until, HandedOver: to.Sealed}
		for _, name := range to.Names() {
			r.Jobs += b.Live(name)
		}
		if to.ID != m.move {
			return
		}
		if r.Tasks = m.tasks; m.whole {
			r.Jobs, r.Taken = m.cargo.Jobs(), min(m.taken, m.cargo.Jobs())
		}
		if m.trouble != nil {
			r.Trouble = messages.AsError("", m.trouble).Message
		}
	})
	return r
}
