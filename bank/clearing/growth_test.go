package clearing

import (
	"fmt"
	"maps"
	"math"
	"runtime/debug"
	"slices"
	"testing"
	"time"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/clearing"
)

// queue is a site named east, with n charges that wait for an answer of another site. If there are payments, they stand
// before the charges in the queue, and are answered first.
type queue struct {
	east, west *side
	visits     []clearing.SignedAuthorisation // authorisations of west that east accepted
}

func queued(t *testing.T, n int) *queue {
	q := &queue{east: newSide(t, "east"), west: newSide(t, "west")}
	q.east.know(q.west, 1_000_000)
	q.west.know(q.east, 1_000_000)
	q.east.grant("ada", 1_000_000)
	q.west.grant("ada", 1_000_000)
	for i := range perKind * len(queueKinds) {
		q.visits = append(q.visits, q.west.authorise(q.east, fmt.Sprint(i), 1))
		q.east.must(accepting(q.visits[i]))
	}
	for i := range perKind {
		q.east.must(q.pays(fmt.Sprint("first", i)))
	}
	p := q.east.state.peers.byName["west"]
	q.east.meddled = true
	for i := range n {
		p.send(item{Instruction: clearing.Instruction{Kind: clearing.InstructCharge, ID: fmt.Sprint("waits", i), Amount: 1}})
	}
	return q
}

const perKind = 15 // commands of each kind

func (q *queue) pays(key string) Command {
	return Command{By: "ada", Remit: &clearing.RemitRequest{Key: key, Peer: "west", Payee: "ada", Amount: 1}}
}

// queueKinds has one function for each kind of command. The function returns the command number i of this kind, for the
// bank east.
var queueKinds = map[string]func(q *queue, i int) Command{
	"remit":        func(q *queue, i int) Command { return q.pays(fmt.Sprint("new", i)) },
	"remit again":  func(q *queue, i int) Command { return q.pays(fmt.Sprint("new", i-perKind)) },
	"charge":       func(q *queue, i int) Command { return charging(q.visits[i], 1) },
	"charge again": func(q *queue, i int) Command { return charging(q.visits[i-perKind], 1) },
	"accept again": func(q *queue, i int) Command { return accepting(q.visits[len(q.visits)-1]) },
	"close a cycle": func(q *queue, i int) Command {
		return Command{By: "ops", Close: &clearing.CloseRequest{Cycle: uint64(i + 1)}}
	},
	"a peer's limits": func(q *queue, i int) Command {
		return Command{Peer: &clearing.PeerRequest{Peer: "west", Keys: []string{q.west.public()}, Limit: messages.Credits(2_000_000+i) * messages.Credit}}
	},
	"an answer": func(q *queue, i int) Command {
		m, _ := q.east.state.Outgoing("west", q.east.at)
		m.List = m.List[:1]
		receipt := q.west.answer(q.east.sign(m))
		return Command{Receipt: &receipt}
	},
}

// TestEachKindOfCommandCostsNoMoreWhileMoreWaits: with 100 times as many waiting instructions, a command must take less
// than 4 times as long.
func TestEachKindOfCommandCostsNoMoreWhileMoreWaits(t *testing.T) {
	// no garbage collection, because it would slow down some commands at random
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	const n, most = 1000, 4
	kinds := slices.Sorted(maps.Keys(queueKinds))
	ratios := map[string]float64{}
	for try := 0; try < 4 && (try == 0 || slices.Max(slices.Collect(maps.Values(ratios))) >= most); try++ {
		few, many := queued(t, n), queued(t, 100*n)
		for k, kind := range kinds {
			ratio := many.cost(kind, k) / few.cost(kind, k)
			if was, measured := ratios[kind]; !measured || ratio < was {
				ratios[kind] = ratio
			}
		}
		debug.FreeOSMemory()
	}
	for kind, times := range ratios {
		if times >= most {
			t.Errorf("%s: while a hundred times as much waits it costs %.1f times as much", kind, times)
		}
	}
	t.Log(ratios)
}

// cost returns the median time of several commands of a kind. It takes the median because a pause of the machine in one
// command does not change it.
func (q *queue) cost(kind string, at int) float64 {
	var all [perKind]float64
	for i := range all {
		all[i] = timed(q.east, queueKinds[kind](q, at*perKind+i)).Seconds()
	}
	slices.Sort(all[:])
	return all[perKind/2]
}

func timed(s *side, c Command) time.Duration {
	c.At = s.at
	signs().sign("east", &c, s.ledger.Now())
	data, err := c.Encode()
	if err != nil {
		s.Fatal(err)
	}
	began := time.Now()
	r := s.state.Apply(data)
	took := time.Since(began)
	if r.Error != nil {
		s.Fatal(r.Error)
	}
	return took
}

// When this site ends its trade with a peer, it must look only at authorisations of this peer. So with 100 times as
// many authorisations of other sites, it may take at most 4 times as long.
func TestAPartingLooksAtItsOwnAlone(t *testing.T) {
	cost := func(n int) time.Duration {
		east, west := newSide(t, "east"), newSide(t, "west")
		east.know(west, 1000)
		east.meddled = true
		for i := range n {
			east.state.issuer.issued.add(issued{Authorisation: clearing.Authorisation{ID: fmt.Sprint(i), Peer: "north", Account: "ada", Issued: east.at, Interval: messages.Duration(time.Hour)}})
		}
		return timed(east, parting("west")) + timed(east, abandoning("west", 0))
	}
	few, many := time.Duration(math.MaxInt64), time.Duration(math.MaxInt64)
	for range 12 {
		if few, many = min(few, cost(1000)), min(many, cost(100_000)); many < 4*few {
			return
		}
	}
	t.Errorf("a parting takes %v among a thousand authorisations of another site, and %v among a hundred thousand", few, many)
}
