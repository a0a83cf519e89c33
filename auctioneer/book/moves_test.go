package book

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/candor-grid/candor/messages"
)

// neighbours are two auctioneers between which a market goes to and fro.
type neighbours struct {
	rng     *rand.Rand
	sides   [2]*twins
	names   [2]messages.Name
	from    int // the side whose market night is, or goes away
	cargo   *Cargo
	whole   bool
	taken   int
	done    bool
	dropped int
	late    *Drop
	sent    [2][]*TakeOver // to each side, to be repeated
	went    map[messages.JobID]string
	moves   int
	moved   int // jobs
}

const nightMoves = 1500 // steps

func newNeighbours(seed uint64) *neighbours {
	n := &neighbours{rng: rand.New(rand.NewPCG(seed, 11)), names: [2]messages.Name{"day", "dark"}}
	for i := range n.sides {
		n.sides[i] = &twins{rng: n.rng, one: New(), two: New()}
	}
	return n
}

// begin gives each side its markets and its numbers.
func (n *neighbours) begin() error {
	for i, w := range n.sides {
		if _, err := w.do(Command{Apply: &Apply{Markets: n.markets(i)}}); err != nil {
			return err
		}
	}
	_, err := n.sides[1].do(Command{Restored: &Restored{Last: messages.JobsOfOne}})
	return err
}

// markets are those of a side, if it has night or not.
func (n *neighbours) markets(side int) []messages.Market {
	list := []messages.Market{{Name: [2]messages.Name{"main", "late"}[side], Classes: []messages.Name{"map"}}}
	if side == n.from {
		list = append(list, night)
	}
	return list
}

var night = messages.Market{Name: "night", Classes: []messages.Name{"map"}}

// step has a side do something, or goes on with the move. Leaders are lost now and then, and
// answers; requests are repeated late.
func (n *neighbours) step() error {
	side := n.rng.IntN(2)
	w := n.sides[side]
	other := n.sides[1-side].one.Listed("")
	w.foreign = other[max(0, len(other)-9):]
	if n.rng.IntN(3) > 0 {
		c := w.command()
		switch {
		case c.Apply != nil, c.EnterRemote != nil, c.Advance != nil:
			return nil
		case c.Submit != nil: // what cannot go is refused, as another test shows
			c.Submit.Visit, c.Submit.Account, c.Submit.Quote = nil, w.account(), 0
			c.Submit.Key = fmt.Sprint(n.rng.IntN(400))
			if side != n.from {
				c.Submit.Spec.Market = "main"
			}
		case c.Decide != nil: // a market decides about its own jobs alone
			if w.one.sealed() || w.one.expects("night") {
				return nil
			}
			c.Decide.Start = nil
		}
		_, err := w.do(c)
		return err
	}
	if sent := n.sent[side]; len(sent) > 0 && n.rng.IntN(6) == 0 { // again, out of turn
		_, err := w.do(Command{TakeOver: pick(n.rng, sent...)})
		return err
	}
	if n.rng.IntN(20) == 0 { // another leader, after which a command of the one before may be carried out
		if n.done && n.dropped < n.cargo.Jobs() {
			n.late = &Drop{Move: n.sides[n.from].one.Moving().ID, Jobs: n.cargo.Last(n.dropped)}
		}
		n.cargo, n.whole, n.taken, n.done, n.dropped = nil, false, 0, false, 0
	}
	return n.goOn()
}

// goOn is the next step of the move, as a leader makes it.
func (n *neighbours) goOn() error {
	w, b := n.sides[n.from], n.sides[n.from].one
	m := b.Moving()
	switch {
	case m == nil:
		_, err := w.do(Command{Apply: &Apply{Markets: n.markets(n.from), Move: &Moving{To: n.names[1-n.from], Markets: []messages.Market{night}, Until: w.at}}})
		return err
	case !m.Sealed && n.rng.IntN(30) == 0:
		_, err := w.do(Command{Apply: &Apply{Markets: n.markets(n.from), Stay: true}})
		return err
	case !m.Sealed:
		return n.seal(m)
	case !n.whole:
		if n.cargo == nil {
			n.cargo = &Cargo{}
		}
		n.whole = n.cargo.Look(b)
		return nil
	case !n.done:
		if n.late != nil {
			if _, err := w.do(Command{Drop: n.late}); err != nil {
				return err
			}
			n.late = nil
		}
		return n.handOver(m)
	case n.dropped < n.cargo.Jobs():
		some := n.cargo.Last(n.dropped)
		some = some[max(0, len(some)-2):]
		n.dropped += len(some)
		_, err := w.do(Command{Drop: &Drop{Move: m.ID, Jobs: some}})
		return err
	}
	n.from = 1 - n.from
	answer, err := w.do(Command{Apply: &Apply{Markets: n.markets(1 - n.from), Moved: m.ID}})
	if failed, is := answer.(error); err == nil && is {
		return failed
	}
	n.cargo, n.whole, n.taken, n.done, n.dropped = nil, false, 0, false, 0
	n.moves++
	if live := b.Live("night"); err == nil && live > 0 {
		return fmt.Errorf("%d jobs were left behind", live)
	}
	return err
}

// seal has what runs end, and then nothing change any more.
func (n *neighbours) seal(m *Moving) error {
	w, b := n.sides[n.from], n.sides[n.from].one
	if _, err := w.do(Command{Withdraw: &Withdraw{Move: m.ID}}); err != nil {
		return err
	}
	for i := range b.inOrder {
		node := b.inOrder[i]
		x := &Exchange{Node: node.Name, Session: node.Session, Seq: node.Seq + 1}
		for _, ref := range node.claimed() {
			x.Finished = append(x.Finished, messages.Finished{Attempt: messages.Attempt{Task: ref, Number: node.Claims[ref].Attempt}, Outcome: messages.Stopped})
		}
		if _, err := w.do(Command{Exchange: x}); err != nil {
			return err
		}
	}
	for _, id := range b.Listed("") {
		if j := b.Job(id); j != nil && j.State == messages.Settling && !j.Settled {
			if _, err := w.do(Command{Settle: &Settle{Job: id}}); err != nil {
				return err
			}
		}
	}
	if _, err := w.do(Command{Confirm: w.confirmation()}); err != nil {
		return err
	}
	if _, err := w.do(Command{Seal: &Seal{Move: m.ID}}); err != nil || !b.sealed() {
		return err
	}
	n.went = live(b)
	n.moved += len(n.went)
	return nil
}

// handOver has the other side take the next items; the answer may be lost.
func (n *neighbours) handOver(m *Moving) error {
	b, target := n.sides[n.from].one, n.sides[1-n.from]
	t, err := n.cargo.Next(b, n.taken)
	if err != nil {
		return err
	}
	if cut := 1 + n.rng.IntN(5); len(t.Items) > cut {
		t.Items, t.Last = t.Items[:cut], false
	}
	t.From, t.MarketsVersion = n.names[n.from], target.one.version+1
	t.Applied = append(n.markets(1-n.from), night)
	n.sent[1-n.from] = append(n.sent[1-n.from], t)
	again := slices.ContainsFunc(target.one.arrivals, func(a Arrival) bool { return a.From == t.From && a.Move == t.Move && a.Done })
	answer, err := target.do(Command{TakeOver: t})
	if err != nil {
		return err
	}
	a, is := answer.(Arrival)
	if !is {
		return fmt.Errorf("not taken over: %v", answer)
	}
	if a.Done && !again { // at the moment at which the market begins there
		if now := live(target.one); !mapsEqual(now, n.went) {
			return fmt.Errorf("there are %v, and there were %v", now, n.went)
		}
	}
	if n.rng.IntN(4) > 0 {
		n.taken, n.done = a.Taken, a.Done
	}
	return nil
}

func mapsEqual(x, y map[messages.JobID]string) bool {
	if len(x) != len(y) {
		return false
	}
	for id, text := range x {
		if y[id] != text {
			return false
		}
	}
	return true
}

// live are the jobs of night that go on, as text that has nodes by name.
func live(b *Book) map[messages.JobID]string {
	out := map[messages.JobID]string{}
	for id, j := range b.every {
		if !j.Active() || j.Spec.Market != "night" {
			continue
		}
		c := j.copy()
		c.Kept = slices.Clone(c.Kept)
		var nodes []string
		c.nodes(func(at *uint32) {
			nodes = append(nodes, b.inOrder[*at].Name)
			*at = 0
		})
		for _, d := range c.Doubts {
			d.Nodes = nil
		}
		slices.Sort(nodes)
		c.Blocked = len(b.Awaited(j))
		if c.Blocked != j.Blocked {
			out[id] = fmt.Sprint("waits for ", j.Blocked, " jobs and not ", c.Blocked)
			continue
		}
		data, err := Ended{Job: c}.Encode()
		out[id] = fmt.Sprint(len(data), bytes.Count(data, []byte{0}), nodes, err, string(data))
	}
	return out
}

// TestMarketsMoveBetweenBooks: whatever is lost and repeated, and whoever leads, the jobs of a
// market are as they were when they are at the other auctioneer, and nowhere else.
func TestMarketsMoveBetweenBooks(t *testing.T) {
	retaining(t, 40)
	whole(t, 20)
	moves, moved := 0, 0
	first, end := seeds(t, 3)
	for seed := first; seed < end; seed++ {
		n := newNeighbours(seed)
		err := n.begin()
		for step := 0; err == nil && step < nightMoves; step++ {
			if err = n.step(); err != nil {
				err = fmt.Errorf("step %d: %w", step, err)
			}
		}
		if err != nil {
			t.Fatalf("seed %d, %v", seed, err)
		}
		moves, moved = moves+n.moves, moved+n.moved
	}
	if moves < 20 || moved < moves {
		t.Errorf("%d moves of %d jobs: the test does not try what it is for", moves, moved)
	}
	t.Logf("%d moves of %d jobs", moves, moved)
}

// TestWhatCannotMove: a move that would leave something behind is refused, and so is what would
// change a job between two auctioneers.
func TestWhatCannotMove(t *testing.T) {
	s := newSite(t)
	markets := []messages.Market{{Name: "main", Classes: []messages.Name{"map"}}, night}
	s.apply(Command{Apply: &Apply{Markets: markets}})
	move := Command{Apply: &Apply{Markets: markets, Move: &Moving{To: "dark", Markets: []messages.Market{night}}}}
	submit := func(key string, market messages.Name, change func(*Submit)) any {
		c := &Submit{Account: "alice", Key: key, Payer: "alice", Hold: key, Held: 100, Spec: &messages.JobSpec{Market: market, Budget: 100, Stages: []messages.Stage{mapStage(1)}}}
		if change != nil {
			change(c)
		}
		return s.apply(Command{Submit: c})
	}
	first := submit("first", "main", nil).(Receipt).Job
	waits := submit("waits", "night", func(c *Submit) { c.Spec.AfterJobs = []messages.JobID{first} }).(Receipt).Job
	refusal(t, s.apply(move), messages.Conflict)
	s.apply(Command{Cancel: &Cancel{Job: first, By: "alice"}})
	visit := submit("visit", "night", func(c *Submit) { c.Visit = &Visit{Visit: messages.Visit{Home: "west", Job: 1}} }).(Receipt).Job
	refusal(t, s.apply(move), messages.Conflict)
	s.apply(Command{Cancel: &Cancel{Job: visit, By: "alice"}})
	ordered := submit("ordered", "night", nil).(Receipt).Job
	s.apply(Command{Decide: &Decide{Market: "night", Start: []Starting{{Job: ordered, Order: Order{Class: "map", Slots: 1}}}}})
	refusal(t, s.apply(move), messages.Conflict)
	s.apply(Command{Cancel: &Cancel{Job: ordered, By: "alice"}})
	s.register("n1", 7, 1)
	ran := s.claim("n1", 7, 1, 1, waits)
	if _, is := s.apply(move).(Applied); !is || len(ran) != 1 {
		t.Fatalf("not on its way; claimed %v", ran)
	}
	refusal(t, s.apply(move), messages.Conflict)
	during := submit("during", "night", nil).(Receipt).Job
	other := submit("other", "main", nil).(Receipt).Job
	refusal(t, submit("cross", "main", func(c *Submit) { c.Spec.AfterOK = []messages.JobID{during} }), messages.Conflict)
	refusal(t, submit("across", "night", func(c *Submit) { c.Spec.AfterJobs = []messages.JobID{other} }), messages.Conflict)
	refusal(t, submit("visits", "night", func(c *Submit) { c.Visit = &Visit{Visit: messages.Visit{Home: "west", Job: 2}} }), messages.Conflict)
	if got := s.claim("n1", 7, 2, 9, during); len(got) != 0 {
		t.Errorf("claimed %v", got)
	}
	seal := Command{Seal: &Seal{Move: 1}}
	refusal(t, s.apply(Command{Seal: &Seal{Move: 2}}), messages.NotFound)
	refusal(t, s.apply(seal), messages.Unavailable)
	if n := s.apply(Command{Withdraw: &Withdraw{Move: 1}}); n != 1 {
		t.Errorf("%v tasks are to end", n)
	}
	s.finish("n1", 7, 3, messages.Stopped, 0, ran[0].Attempt)
	refusal(t, s.apply(seal), messages.Unavailable) // three jobs are not settled
	for _, id := range []messages.JobID{first, visit, ordered} {
		s.apply(Command{Settle: &Settle{Job: id}})
	}
	var done Confirm
	for e := range s.EachEffect {
		done.Effects = append(done.Effects, Confirmation{Effect: e.ID})
	}
	s.apply(Command{Confirm: &done})
	if err := s.apply(seal); err != nil {
		t.Fatal(err)
	}
	refusal(t, submit("late", "night", nil), messages.Unavailable)
	refusal(t, s.apply(Command{Cancel: &Cancel{Job: waits, By: "alice"}}), messages.Unavailable)
	refusal(t, s.apply(Command{Park: &Park{Job: during, By: "alice"}}), messages.Unavailable)
	refusal(t, s.apply(Command{Apply: &Apply{Markets: markets, Stay: true}}), messages.Unavailable)
	refusal(t, s.apply(Command{Apply: &Apply{Markets: markets[:1], Moved: 1}}), messages.Conflict)
	refusal(t, s.apply(Command{Drop: &Drop{Move: 2, Jobs: []messages.JobID{waits}}}), messages.NotFound)

	// The other auctioneer takes what it is given in order, and no market that it has.
	var cargo Cargo
	for !cargo.Look(s.Book) {
	}
	next, err := cargo.Next(s.Book, 0)
	if err != nil || cargo.Jobs() != 2 || !next.Last {
		t.Fatalf("%+v, %v", next, err)
	}
	o := newSite(t)
	next.From, next.Applied = "day", append(markets[:1:1], night, night)
	refusal(t, o.apply(Command{TakeOver: next}), messages.Conflict)
	next.Applied, next.After = markets, 1
	refusal(t, o.apply(Command{TakeOver: next}), messages.Conflict)
	next.After = 0
	for range 2 {
		if a, is := o.apply(Command{TakeOver: next}).(Arrival); !is || !a.Done || a.Taken != cargo.Size() || o.Live("night") != 2 {
			t.Errorf("taken over: %+v, %d jobs", a, o.Live("night"))
		}
	}
	given := newSite(t) // up before anything came
	if a, is := given.apply(Command{TakeOver: &TakeOver{From: "day", Move: 1, Markets: []messages.Name{"night"}}}).(Arrival); !is || a.Taken != 0 {
		t.Errorf("expected: %+v", a)
	}
	if _, is := given.apply(Command{Apply: &Apply{Markets: markets}}).(Applied); !is || given.expects("night") {
		t.Errorf("expected still: %+v", given.arrivals)
	}
	refusal(t, given.apply(Command{TakeOver: next}), messages.Conflict)
	earlier := *next
	earlier.Move = 0
	refusal(t, o.apply(Command{TakeOver: &earlier}), messages.Conflict)
	if again := o.apply(Command{Submit: &Submit{Account: "alice", Key: "ordered", Spec: &messages.JobSpec{Market: "night"}}}); again.(Receipt).Job != ordered {
		t.Errorf("a key of a job that ended elsewhere: %+v", again)
	}
}
