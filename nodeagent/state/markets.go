package state

import (
	"math/rand/v2"
	"slices"
	"time"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/agent"
	"github.com/candor-grid/candor/messages/backoff"
)

// The type markets has the markets that the node serves. It decides which free slots ask the leader for tasks, and for
// which job each slot asks.
type markets struct {
	rng   *rand.Rand
	slots slots
	out   *Actions
	// decided is called when a vector brings new weights for a class.
	decided func(class int)

	all  []*market
	term uint64 // highest term of a vector so far
	shut bool   // slots neither wake up nor claim
}

// fetches spreads the requests over time when many agents miss the same vector.
var fetches = backoff.Backoff{First: 50 * time.Millisecond, Last: 2 * time.Second}

// set replaces the markets with the ones that the leader named, and requests their vectors.
func (k *markets) set(now messages.Time, named []agent.NodeMarket) {
	old := *k
	k.all, k.out.Markets = nil, []messages.Name{}
	for _, n := range named {
		if !slices.ContainsFunc(n.Classes, func(c messages.Name) bool { return k.slots.index(c) >= 0 }) {
			continue
		}
		m := old.find(n.Name)
		if m == nil {
			m = &market{name: n.Name, classes: make([]marketClass, len(k.slots))}
		}
		for at := range m.classes {
			m.classes[at].served = slices.Contains(n.Classes, k.slots[at].name)
		}
		m.ahead = !n.Ordered
		for at := range m.classes {
			m.classes[at].jobs.Plain = !m.ahead // in other markets, weights are not shares of slot time
		}
		k.missing(now, m)
		k.all = append(k.all, m)
		k.out.Markets = append(k.out.Markets, n.Name)
	}
}

func (k *markets) find(name messages.Name) *market {
	for _, m := range k.all {
		if m.name == name {
			return m
		}
	}
	return nil
}

// receive makes a vector the present one if it is newer. Then it applies the changes that waited for this vector. If a
// vector between the present one and the new one is missing, or if the new one is wrong, receive plans a request for
// the complete vector. The error says what was wrong.
func (k *markets) receive(now messages.Time, m *market, v *agent.Vector) error {
	if m == nil || !m.newer(v) {
		return nil
	}
	k.term = max(k.term, v.Term)
	if !m.follows(v) {
		m.wait(v)
		k.missing(now, m)
		return nil
	}
	if err := k.apply(m, v); err != nil {
		m.term, m.seq = 0, 0 // a part of the vector may be applied already: start again without a vector
		k.missing(now, m)
		return err
	}
	return k.catchUp(now, m)
}

// catchUp applies the changes that arrived early, as far as they follow the present vector. If some changes remain, an
// earlier change has not arrived yet.
func (k *markets) catchUp(now messages.Time, m *market) error {
	early := m.early
	m.early, m.fetchAt = nil, 0
	for _, v := range early {
		if err := k.receive(now, m, v); err != nil {
			return err
		}
	}
	return nil
}

func (k *markets) missing(now messages.Time, m *market) {
	if m.fetching || m.fetchAt != 0 {
		return
	}
	spread := fetches.Bound(m.failures + 1)
	m.fetchAt = now.Add(messages.Duration(float64(spread) * k.rng.Float64()))
}

func (k *markets) fetch(now messages.Time) {
	for _, m := range k.all {
		if m.fetchAt != 0 && now >= m.fetchAt {
			m.fetchAt, m.fetching = 0, true
			k.out.Fetch = append(k.out.Fetch, m.name)
		}
	}
}

func (k *markets) fetched(now messages.Time, v *agent.Vector) error {
	m := k.find(v.Market)
	if m == nil {
		return nil
	}
	m.fetching = false
	m.failures++ // counts as a failure until an answer can be used
	if v.Base != 0 {
		k.missing(now, m)
		return messages.Errorf(messages.Invalid, "vector %d of market %q: is not complete", v.Seq, v.Market)
	}
	if !m.newer(v) {
		return k.catchUp(now, m)
	}
	return k.receive(now, m, v)
}

// fetchFailed plans another request for a complete vector that did not come.
func (k *markets) fetchFailed(now messages.Time, name messages.Name) {
	if m := k.find(name); m != nil {
		m.fetching = false
		m.failures++
		k.missing(now, m)
	}
}

// apply uses a vector, and wakes idle slots for the work in it.
func (k *markets) apply(m *market, v *agent.Vector) error {
	for at := range k.slots {
		news := classOf(v, k.slots[at].name)
		if news == nil && v.Base != 0 {
			continue // this class has not changed
		}
		if err := m.classes[at].update(news, v.Base == 0); err != nil {
			return err
		}
		same := news != nil && news.Same() && v.Term == m.term && v.Seq == m.seq+1
		if news != nil && !same && slices.ContainsFunc(news.Jobs, func(j agent.JobWeight) bool { return j.Weight > 0 }) {
			k.decided(at)
		}
		m.classes[at].share(k.slots[at].free())
		k.wake(at, &m.classes[at])
	}
	m.term, m.seq, m.failures = v.Term, v.Seq, 0
	return nil
}
