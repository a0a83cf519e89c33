package state

import (
	"math"
	"time"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/backoff"
	"github.com/candor-grid/candor/nodeagent/sampler"
)

// market is what the agent holds of one market: its vector, for the classes of
// this node.
type market struct {
	name      messages.Name
	term, seq uint64
	classes   []marketClass // beside State.classes
	// early holds changes whose base is not held, until the whole vector comes.
	early    []*messages.Vector
	fetchAt  messages.Time // when to ask for the whole vector; 0: not at all
	fetching bool
	failures int
}

type marketClass struct {
	pending, idle int
	// rest is the work that the slots idle when the vector was made leave to
	// those that become free later.
	rest int
	// dry says that a claim found no more work here than there was: claim no
	// more before the next vector.
	dry  bool
	jobs sampler.Sampler
	// claimed says that claims are under way, sampled from this vector.
	claimed           bool
	sentTerm, sentSeq uint64
}

// maxEarly bounds the changes kept while the whole vector is on its way.
const maxEarly = 64

// fetches bounds the time over which agents that miss the same vector ask for it.
var fetches = backoff.Backoff{First: 50 * time.Millisecond, Last: 2 * time.Second}

// setMarkets takes the markets that the leader named, and asks for the
// vectors of those that are new.
func (s *State) setMarkets(now messages.Time, named []messages.Market) {
	old := s.markets
	s.markets = nil
	s.out.Markets = []messages.Name{}
	for _, n := range named {
		if !s.serves(n.Classes) {
			continue
		}
		m := find(old, n.Name)
		if m == nil {
			m = &market{name: n.Name, classes: make([]marketClass, len(s.classes))}
		}
		s.missing(now, m)
		s.markets = append(s.markets, m)
		s.out.Markets = append(s.out.Markets, n.Name)
	}
}

// Serve takes the markets that the leader says the node serves from now on; nil
// changes nothing.
func (s *State) Serve(now messages.Time, named []messages.Market) {
	if named != nil && s.phase == joined {
		s.setMarkets(now, named)
	}
}

// serves reports whether the node has slots of one of the classes.
func (s *State) serves(classes []messages.Name) bool {
	for _, c := range classes {
		if s.classOf(c) >= 0 {
			return true
		}
	}
	return false
}

func find(markets []*market, name messages.Name) *market {
	for _, m := range markets {
		if m.name == name {
			return m
		}
	}
	return nil
}

// Vector is a vector that was published. One that cannot be used is asked for
// again as a whole; the error says what was wrong with it.
func (s *State) Vector(now messages.Time, v *messages.Vector) error {
	m := find(s.markets, v.Market)
	if m == nil || !m.newer(v) {
		return nil
	}
	s.term = max(s.term, v.Term)
	if v.Base != 0 && (v.Term != m.term || v.Base != m.seq) {
		m.keep(v)
		s.missing(now, m)
		return nil
	}
	if err := s.apply(m, v); err != nil {
		m.term, m.seq = 0, 0 // half of it may have been taken: begin anew
		s.missing(now, m)
		return err
	}
	return s.catchUp(now, m)
}

// newer reports whether a vector comes after what is held.
func (m *market) newer(v *messages.Vector) bool {
	return v.Term > m.term || v.Term == m.term && v.Seq > m.seq
}

// keep remembers a change until its base is here; beyond the bound the oldest goes.
func (m *market) keep(v *messages.Vector) {
	if len(m.early) == maxEarly {
		m.early = m.early[1:]
	}
	m.early = append(m.early, v)
}

// catchUp applies the changes kept that follow what is held now. If some are
// left that are newer, there is still something missing.
func (s *State) catchUp(now messages.Time, m *market) error {
	kept := m.early
	m.early, m.fetchAt = nil, 0
	for _, v := range kept {
		if !m.newer(v) {
			continue
		}
		if err := s.Vector(now, v); err != nil {
			return err
		}
	}
	return nil
}

// missing sees to it that the whole vector is asked for soon.
func (s *State) missing(now messages.Time, m *market) {
	if m.fetching || m.fetchAt != 0 {
		return
	}
	spread := fetches.Bound(m.failures + 1)
	m.fetchAt = now.Add(messages.Duration(float64(spread) * s.rng.Float64()))
}

// fetch asks for the vectors whose time has come.
func (s *State) fetch(now messages.Time) {
	for _, m := range s.markets {
		if m.fetchAt != 0 && now >= m.fetchAt && s.phase == joined && !s.closing {
			m.fetchAt, m.fetching = 0, true
			s.out.Fetch = append(s.out.Fetch, m.name)
		}
	}
}

// Fetched is the whole vector that was asked for.
func (s *State) Fetched(now messages.Time, v *messages.Vector) error {
	m := find(s.markets, v.Market)
	if m == nil {
		return nil
	}
	m.fetching = false
	m.failures++ // until something comes of it
	if v.Base != 0 {
		s.missing(now, m)
		return messages.Errorf(messages.Invalid, "vector %d of market %q: is not whole", v.Seq, v.Market)
	}
	if !m.newer(v) {
		return s.catchUp(now, m)
	}
	return s.Vector(now, v)
}

// FetchFailed says that a whole vector did not come.
func (s *State) FetchFailed(now messages.Time, name messages.Name) {
	if m := find(s.markets, name); m != nil {
		m.fetching = false
		m.failures++
		s.missing(now, m)
	}
}

// apply takes a vector, and wakes idle slots for the work in it.
func (s *State) apply(m *market, v *messages.Vector) error {
	for at := range s.classes {
		news := classOf(v, s.classes[at].name)
		if news == nil && v.Base != 0 {
			continue // unchanged
		}
		if err := m.classes[at].take(news, v.Base == 0); err != nil {
			return err
		}
		m.classes[at].share(s.classes[at].free())
		s.wake(at, &m.classes[at])
	}
	m.term, m.seq, m.failures = v.Term, v.Seq, 0
	return nil
}

// take takes one class of a vector, whole or changes; nil: nothing is there.
func (c *marketClass) take(v *messages.ClassVector, whole bool) error {
	if v == nil {
		v = &messages.ClassVector{}
	}
	c.pending, c.idle, c.dry = v.Pending, v.Idle, false
	if whole {
		return c.jobs.Replace(v.Jobs)
	}
	return c.jobs.Update(v.Jobs)
}

func classOf(v *messages.Vector, name messages.Name) *messages.ClassVector {
	for i := range v.Classes {
		if v.Classes[i].Class == name {
			return &v.Classes[i]
		}
	}
	return nil
}

// wanted is the number of claims that all idle slots together should make.
func (c *marketClass) wanted() float64 {
	p := float64(c.pending)
	return p + 2*math.Sqrt(p) + 3
}

// share works out what the idle slots leave over; own are those of this node.
func (c *marketClass) share(own int) {
	claims := min(float64(max(c.idle, own)), c.wanted())
	c.rest = max(0, c.pending-int(claims))
}

// wake lets each idle slot of a class decide by chance whether to claim.
func (s *State) wake(at int, m *marketClass) {
	c := &s.classes[at]
	idle := c.free() - c.awake
	if s.closing || s.paused || m.pending <= 0 || m.jobs.Len() == 0 || idle <= 0 {
		return
	}
	chance := m.wanted() / float64(max(m.idle, c.free()))
	woken := 0
	for range idle {
		if woken < m.pending && s.rng.Float64() < chance {
			woken++
		}
	}
	c.awake += woken
}

// work is the number of tasks pending in a market's class as far as is known,
// 0 if a claim found nothing.
func (m *marketClass) work() int {
	if m.dry || m.jobs.Len() == 0 {
		return 0
	}
	return max(0, m.pending)
}

// pending is the work of all markets for a class.
func (s *State) pending(at int) (n int) {
	if s.closing || s.paused || s.phase != joined {
		return 0
	}
	for _, m := range s.markets {
		n += m.classes[at].work()
	}
	return n
}

// left reports whether there is work for a slot that becomes free.
func (s *State) left(at int) bool {
	for _, m := range s.markets {
		if m.classes[at].rest > 0 && m.classes[at].work() > 0 {
			return !s.closing && !s.paused && s.phase == joined
		}
	}
	return false
}
