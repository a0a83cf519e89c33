package book

import (
	"cmp"
	"maps"
	"slices"

	"github.com/candor-grid/candor/messages"
)

// Markets go from one auctioneer of a site to another with their jobs. The book of the one
// that gives them up, the source, and the book of the one that gets them, the target, each
// know how far that is:
//
//  1. [Apply] with Move: the source gives the markets' jobs no tasks any more. Tasks that
//     run go on until a time, and jobs are still submitted, changed and cancelled.
//  2. [TakeOver] without items: the target expects the markets.
//  3. [Seal]: no task of the markets is claimed, and nothing is asked of the bank for their
//     jobs. Nothing changes about them any more, so that the items to be taken over are the
//     same however often, and by whichever leader, they are listed.
//  4. [TakeOver] with items: the target takes each one once, in their order. Jobs keep their
//     numbers. The last command makes the markets the target's, in which they begin.
//  5. [Drop], and [Apply] with Moved: the source forgets the jobs, and the markets.
//
// Until the fifth step the source has all, and from the fourth on the target. A request that
// would change a job between is to be sent again.

// Moving is a move of markets from this auctioneer to another one.
type Moving struct {
	ID      uint64 // of the moves of this auctioneer, rising
	To      messages.Name
	Markets []messages.Market
	Until   messages.Time // when tasks that still run are ended, to be run again
	Sealed  bool
}

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

// Seal is the third step of a move. Result: nil.
type Seal struct{ Move uint64 }

// Withdraw ends the tasks of the markets that move, to be run again. Result: int, how many.
type Withdraw struct{ Move uint64 }

// transit is where markets go to and come from.
type transit struct {
	moving   *Moving
	last     uint64 // move
	arrivals []Arrival
	// endedAway are jobs that ended at another auctioneer, in the order in which they came.
	endedAway []Past
}

// Moving is the move of markets from here; nil: there is none. It must not be changed.
func (m *transit) Moving() *Moving { return m.moving }

// Moves is the move of a market from here; nil: it stays.
func (m *transit) Moves(market messages.Name) *Moving {
	if m.moving != nil && m.moving.Has(market) {
		return m.moving
	}
	return nil
}

// Has says whether a market moves.
func (m *Moving) Has(market messages.Name) bool {
	return slices.ContainsFunc(m.Markets, func(c messages.Market) bool { return c.Name == market })
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

// between refuses to change a job that is neither quite here nor quite elsewhere.
func (b *Book) between(ids ...messages.JobID) error {
	if b.moving == nil && len(b.arrivals) == 0 {
		return nil
	}
	for _, id := range ids {
		if j := b.Job(id); j != nil && j.Active() {
			if err := b.goesOver(j.Spec.Market); err != nil {
				return err
			}
		}
	}
	return nil
}

func (b *Book) goesOver(market messages.Name) error {
	if m := b.Moves(market); m != nil && m.Sealed || b.arriving(market) != nil {
		return messages.Errorf(messages.Unavailable, "market %s goes from one auctioneer to another at this moment; ask again", market)
	}
	return nil
}

// changes are the jobs that a command is to change, as their owner or an operator wants.
func (c *Command) changes() []messages.JobID {
	switch {
	case c.Cancel != nil:
		return []messages.JobID{c.Cancel.Job}
	case c.CancelJobs != nil:
		return c.CancelJobs.Jobs
	case c.CancelTasks != nil:
		return []messages.JobID{c.CancelTasks.Job}
	case c.Park != nil:
		return []messages.JobID{c.Park.Job}
	case c.Change != nil:
		return []messages.JobID{c.Change.Job}
	case c.Requeue != nil:
		return []messages.JobID{c.Requeue.Job}
	}
	return nil
}

// admitted refuses a submission to a market that goes over, and one that would have jobs
// of two auctioneers wait for one another.
func (b *Book) admitted(c *Submit) error {
	if b.moving == nil && len(b.arrivals) == 0 {
		return nil
	}
	if err := b.goesOver(c.Spec.Market); err != nil {
		return err
	}
	m := b.moving
	if m == nil {
		return nil
	}
	if c.Visit != nil && m.Has(c.Spec.Market) {
		return messages.Errorf(messages.Conflict, "market %s goes to another auctioneer, which has no jobs of other sites", c.Spec.Market)
	}
	for _, id := range slices.Concat(c.Spec.AfterJobs, c.Spec.AfterOK) {
		if j := b.Job(id); j != nil && j.Active() && m.Has(j.Spec.Market) != m.Has(c.Spec.Market) {
			return messages.Errorf(messages.Conflict, "after_jobs: job %d would be of another auctioneer than this one, as a market goes to auctioneer %s; a job waits only for jobs of its own auctioneer", id, m.To)
		}
	}
	return nil
}

// Movable refuses a move that would leave something behind.
func (b *Book) Movable(m *Moving) error {
	if b.moving != nil {
		return messages.Errorf(messages.Conflict, "market %s is on its way to auctioneer %s; one move at a time: candor markets shows how far it is", b.moving.Markets[0].Name, b.moving.To)
	}
	var stays *Job                        // the first that cannot go
	b.byID.all(false, func(j *Job) bool { // one that is packed has neither an order nor another site
		if j.Active() && m.Has(j.Spec.Market) && (j.Visit != nil || j.Order != nil || j.Contract != nil) && (stays == nil || j.ID < stays.ID) {
			stays = j
		}
		return true
	})
	switch {
	case stays == nil:
	case stays.Visit != nil:
		return messages.Errorf(messages.Conflict, "market %s has job %d of site %s, which only the first auctioneer can have; close the market and wait for the end of such jobs", stays.Spec.Market, stays.ID, stays.Visit.Visit.Home)
	default:
		return messages.Errorf(messages.Conflict, "job %d has reserved slots in market %s; close the market and wait for the end of such jobs", stays.ID, stays.Spec.Market)
	}
	for _, id := range slices.Sorted(maps.Keys(b.waiters)) {
		for _, waiter := range b.waiters[id] {
			j, o := b.Job(waiter), b.Job(id)
			if j != nil && j.Active() && o != nil && m.Has(j.Spec.Market) != m.Has(o.Spec.Market) {
				return messages.Errorf(messages.Conflict, "job %d of market %s waits for job %d of market %s, and would be of another auctioneer; let the two markets go together, or wait for the end of job %d",
					j.ID, j.Spec.Market, id, o.Spec.Market, id)
			}
		}
	}
	return nil
}

// transfer does what markets that are applied have to do with a move.
func (b *Book) transfer(c *Apply) error {
	here := func(a Arrival) bool {
		return !a.Done && slices.ContainsFunc(c.Markets, func(m messages.Market) bool { return slices.Contains(a.Markets, m.Name) })
	}
	for _, a := range b.arrivals {
		if here(a) && a.Taken > 0 {
			return messages.Errorf(messages.Conflict, "market %s is on its way here from auctioneer %s", a.Markets[0], a.From)
		}
	}
	if slices.ContainsFunc(b.arrivals, here) { // that were given up before anything came
		if b.arrivals = slices.DeleteFunc(slices.Clone(b.arrivals), here); len(b.arrivals) == 0 {
			b.arrivals = nil // as in an image
		}
	}
	switch {
	case c.Moved != 0:
		return b.handedOver(c.Moved)
	case c.Stay:
		return b.stay()
	case c.Move != nil:
		return b.beginMove(c.Move)
	}
	return nil
}

// beginMove begins a move.
func (b *Book) beginMove(m *Moving) error {
	if err := b.Movable(m); err != nil {
		return err
	}
	b.transit.last++
	move := *m
	move.ID = b.transit.last
	b.moving = &move
	for _, n := range b.inOrder {
		for _, r := range n.claimed() { // what waits for others on its slot, or for a slot, would wait for ever
			if h := n.Claims[r]; b.moved(r.Job) && (h.Halt == Suspended || h.Halt == Gathers) {
				b.requeue(messages.Attempt{Task: r, Number: h.Attempt}, ofSite, messages.EndPreempted)
			}
		}
	}
	return nil
}

// moved says whether a job is of a market that moves.
func (b *Book) moved(id messages.JobID) bool {
	j := b.Job(id)
	return j != nil && b.moving.Has(j.Spec.Market)
}

// stay gives a move up that has not been sealed.
func (b *Book) stay() error {
	if b.moving != nil && b.moving.Sealed {
		return messages.Errorf(messages.Unavailable, "market %s is being handed over to auctioneer %s; ask again when it is there", b.moving.Markets[0].Name, b.moving.To)
	}
	b.moving = nil
	return nil
}

// withdraw ends what still runs when its time is over.
func (b *Book) withdraw(w *Withdraw) (n int) {
	if b.moving == nil || b.moving.ID != w.Move {
		return 0
	}
	for _, node := range b.inOrder {
		for _, r := range node.claimed() {
			if h := node.Claims[r]; b.moved(r.Job) && !h.Leaving {
				b.requeue(messages.Attempt{Task: r, Number: h.Attempt}, ofSite, messages.EndEvicted)
				n++
			}
		}
	}
	return n
}

// Unready says what a move waits for: how many tasks of its markets are claimed, and how
// many of their jobs wait for the bank.
func (b *Book) Unready() (tasks, jobs int) {
	speaks := map[messages.JobID]bool{}
	note := func(id messages.JobID) {
		if j := b.Job(id); j != nil && b.moved(id) && (j.Active() || j.State == messages.Settling) {
			speaks[id] = true
		}
	}
	for _, n := range b.inOrder {
		for r := range n.Claims {
			if b.moved(r.Job) {
				tasks++
			}
		}
	}
	for i := range b.waiting {
		note(b.waiting[i].Job)
		for _, l := range b.waiting[i].Legs {
			note(l.From)
			note(l.To)
		}
	}
	b.byID.all(false, func(j *Job) bool {
		if j.State == messages.Settling || j.Raise.Pending() {
			note(j.ID)
		}
		return true
	})
	return tasks, len(speaks)
}

// seal has nothing change any more about what moves.
func (b *Book) seal(s *Seal) error {
	switch {
	case b.moving == nil || b.moving.ID != s.Move:
		return messages.Errorf(messages.NotFound, "there is no move %d", s.Move)
	case b.moving.Sealed:
		return nil
	}
	if tasks, jobs := b.Unready(); tasks+jobs > 0 {
		return messages.Errorf(messages.Unavailable, "%d tasks and %d jobs have not come to rest", tasks, jobs)
	}
	sealed := *b.moving
	sealed.Sealed = true
	b.moving = &sealed
	for i := range sealed.Markets {
		b.meters.catchUpAll(sealed.Markets[i].Name)
	}
	return nil
}

// Cargo are the items of a move that is sealed. Each leader makes the same list anew.
type Cargo struct {
	jobs []messages.JobID // those that others wait for come before these
	rest []Item           // after them

	last   messages.JobID // that was looked at
	listed map[messages.JobID]bool
	whole  bool
}

// lookAtOnce is how many jobs are looked at, or dropped, at a time: there may be a million.
const lookAtOnce = 4 << 10

// Look lists some more of what goes over, and says whether that is all.
func (c *Cargo) Look(b *Book) (whole bool) {
	if c.listed == nil {
		c.listed = map[messages.JobID]bool{}
	}
	ids := b.Listed("")
	at, _ := slices.BinarySearch(ids, c.last+1)
	for _, c.last = range ids[at:min(len(ids), at+lookAtOnce)] {
		c.add(b, c.last)
	}
	if c.whole = c.whole || at+lookAtOnce >= len(ids) && c.close(b); c.whole {
		c.listed = nil
	}
	return c.whole
}

// add lists a job that goes over, after those that it waits for.
func (c *Cargo) add(b *Book, id messages.JobID) {
	j := b.Job(id)
	if c.listed[id] || j == nil || !j.Active() || !b.moving.Has(j.Spec.Market) {
		return
	}
	c.listed[id] = true
	for _, before := range slices.Concat(j.Spec.AfterJobs, j.Spec.AfterOK) {
		c.add(b, before)
	}
	c.jobs = append(c.jobs, id)
}

// close lists what is no job that goes on.
func (c *Cargo) close(b *Book) bool {
	for i := range b.moving.Markets {
		name := b.moving.Markets[i].Name
		if t := b.tariffs[name]; t != nil {
			c.rest = append(c.rest, Item{Tariffs: &tariffImage{name, t, b.spells[name]}})
		}
		var some *MarketNotes
		size := cargoBytes
		for _, n := range b.Notes(name) {
			if size >= cargoBytes {
				some, size = &MarketNotes{Market: name}, 0
				c.rest = append(c.rest, Item{Notes: some})
			}
			some.Notes, size = append(some.Notes, n), size+numberBytes*(2+len(n.Numbers))
		}
	}
	for _, id := range b.jobs.ended {
		p := b.jobs.past[id]
		if j := b.Job(id); j != nil {
			p = j.brief()
		}
		if p != nil && b.moving.Has(p.Market) {
			c.rest = append(c.rest, Item{Past: p})
		}
	}
	for i := range b.endedAway {
		if b.moving.Has(b.endedAway[i].Market) {
			c.rest = append(c.rest, Item{Past: &b.endedAway[i]})
		}
	}
	return true
}

// Last are up to lookAtOnce of the jobs that go on, before those that are gone: no job is
// forgotten before those that wait for it.
func (c *Cargo) Last(gone int) []messages.JobID {
	end := len(c.jobs) - gone
	return c.jobs[max(0, end-lookAtOnce):end]
}

const (
	// About cargoBytes go over with one command, and at most mostCarried of one job with the
	// names of its nodes: a log takes commands of 1 MiB.
	cargoBytes  = 1 << 18
	mostCarried = 7 << 17
	numberBytes = 9   // of a number, at most
	pastBytes   = 512 // of what is known of an ended job, about
)

// TooLarge returns the first job of a move that has begun and does not fit one command,
// nil if all do.
func (b *Book) TooLarge(m *Moving) (first *Job) {
	b.byID.all(false, func(j *Job) bool {
		if !j.Active() || !m.Has(j.Spec.Market) || first != nil && first.ID < j.ID {
			return true
		}
		nodes := map[uint32]bool{}
		if data, err := b.carried(j, nodes); err != nil || len(data)+b.nameBytes(nodes) > mostCarried {
			first = j
		}
		return true
	})
	return first
}

// carried is the record of a job, whose nodes are added to others.
func (b *Book) carried(j *Job, nodes map[uint32]bool) ([]byte, error) {
	j.nodes(func(at *uint32) { nodes[*at] = true })
	return Ended{Job: j}.Encode()
}

// nameBytes is about how many bytes the names of nodes have.
func (b *Book) nameBytes(nodes map[uint32]bool) (size int) {
	for at := range nodes {
		if int(at) < len(b.inOrder) {
			size += len(b.inOrder[at].Name) + 2*numberBytes
		}
	}
	return size
}

// Size is the number of all items, and Jobs that of the jobs among them.
func (c *Cargo) Size() int { return len(c.jobs) + len(c.rest) }

// Jobs is how many of the items are jobs that go on.
func (c *Cargo) Jobs() int { return len(c.jobs) }

// Next makes the command for the items after some.
func (c *Cargo) Next(b *Book, after int) (*TakeOver, error) {
	t := &TakeOver{Move: b.moving.ID, Markets: b.moving.Names(), After: after, Now: b.now, LastEffect: b.effects.last}
	nodes := map[uint32]bool{}
	for size := 0; after < c.Size() && size < cargoBytes; after++ {
		if after >= len(c.jobs) {
			item := c.rest[after-len(c.jobs)]
			if size += pastBytes; item.Notes != nil {
				for _, n := range item.Notes.Notes {
					size += numberBytes * (2 + len(n.Numbers))
				}
			}
			t.Items = append(t.Items, item)
			continue
		}
		with := maps.Clone(nodes)
		data, err := b.carried(b.Job(c.jobs[after]), with)
		if err != nil {
			return nil, err
		}
		if len(t.Items) > 0 && size+len(data)+b.nameBytes(with) > 2*cargoBytes {
			break
		}
		nodes = with
		size += len(data)
		t.Items = append(t.Items, Item{Job: data})
	}
	for _, at := range slices.Sorted(maps.Keys(nodes)) {
		if int(at) < len(b.inOrder) {
			t.Nodes = append(t.Nodes, NodeName{at, b.inOrder[at].Name})
		}
	}
	t.Last = after == c.Size()
	return t, nil
}

// Names are the names of the markets.
func (m *Moving) Names() []messages.Name {
	out := make([]messages.Name, len(m.Markets))
	for i := range m.Markets {
		out[i] = m.Markets[i].Name
	}
	return out
}

// nodes calls f with each position of a node of which a job speaks.
func (j *Job) nodes(f func(*uint32)) {
	for i := range j.Stages {
		for k := range j.Stages[i].Tasks {
			f(&j.Stages[i].Tasks[k].Node)
		}
	}
	for i := range j.Kept {
		f(&j.Kept[i].Node)
	}
	for _, d := range j.Doubts {
		for i := range d.Nodes {
			f(&d.Nodes[i])
		}
	}
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
		if err := b.checkVersion(t.MarketsVersion); err != nil {
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

// halts says whether no tasks of a market are claimed, as it is on its way.
func (m *transit) halts(market messages.Name) bool {
	return m.Moves(market) != nil || m.expects(market)
}

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

// sealed says whether what is to be handed over must stay as it is.
func (m *transit) sealed() bool { return m.moving != nil && m.moving.Sealed }

// Drop has the source of a move forget jobs, once the target has all. Result: nil.
type Drop struct {
	Move uint64
	Jobs []messages.JobID
}

// drop forgets jobs that the target has.
func (b *Book) drop(d *Drop) error {
	if b.moving == nil || b.moving.ID != d.Move || !b.moving.Sealed {
		return messages.Errorf(messages.NotFound, "there is no move %d", d.Move)
	}
	gone, awaited, accounts := map[messages.JobID]bool{}, map[messages.JobID]bool{}, map[messages.Name]bool{"": true}
	for _, id := range d.Jobs {
		j := b.Job(id)
		if j == nil || !j.Active() || !b.moving.Has(j.Spec.Market) {
			continue
		}
		gone[id], accounts[j.Account] = true, true
		b.jobs.live(j.Spec.Market, -1)
		b.index.count(j.Account, -1)
		b.index.drop(j.Account, j.Key)
		for _, id := range slices.Concat(j.Spec.AfterJobs, j.Spec.AfterOK) {
			awaited[id] = true
		}
		b.meters.forget(j)
		b.byID.remove(id)
		b.touch(id)
	}
	for name := range accounts {
		b.index.omit(name, gone)
	}
	b.unwait(awaited, gone)
	b.delayed = slices.DeleteFunc(b.delayed, func(d delayed) bool { return gone[d.job] })
	return nil
}

// handedOver ends a move of which no job is here any more.
func (b *Book) handedOver(id uint64) error {
	if b.moving == nil || b.moving.ID != id || !b.moving.Sealed {
		return messages.Errorf(messages.NotFound, "there is no move %d", id)
	}
	for i := range b.moving.Markets {
		if n := b.Live(b.moving.Markets[i].Name); n > 0 {
			return messages.Errorf(messages.Conflict, "%d jobs of market %s are here still", n, b.moving.Markets[i].Name)
		}
	}
	b.quoted = slices.DeleteFunc(b.quoted, func(q *Quote) bool { return b.moving.Has(q.Market) })
	b.moving = nil
	return nil
}
