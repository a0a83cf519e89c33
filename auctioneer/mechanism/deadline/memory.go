package deadline

import (
	"maps"
	"slices"

	"github.com/candor-grid/candor/auctioneer/mechanism"
	"github.com/candor-grid/candor/messages"
)

// A job's note has these numbers, in this order: arrival, deadline and length in units; the value in
// microcredits; seat.base and seat.since; seat.met (1 or 0); history.gone; Task.Work, Task.Until and
// Task.Width; seat.lag.
const jobNumbers = 12

// The market's note has these numbers, in this order: the version of the format of notes, the length of a unit in
// microseconds, the last decided unit, and the first unit whose number of slots is known. Then come pairs of numbers.
// Each pair has a number of slots, and says for how many consecutive units this number was available.
const (
	noteForm      = 1
	marketNumbers = 4
)

// memory says which jobs have changed since the last notes, because the next notes must be about these jobs. It also
// has what this mechanism read from the notes of an earlier leader.
type memory struct {
	changed map[messages.JobID]bool
	asked   []messages.JobID // the jobs whose notes were returned last
	decided bool             // a decision was made since notes were last saved
	whole   bool
	left    map[messages.JobID]int // by job that ended before this mechanism was made: the first unit after the job had left
}

// forget makes the next notes replace all notes that were made before.
func (m *Mechanism) forget() {
	m.memory.whole = true
	clear(m.memory.changed)
	for _, s := range m.seats {
		s.told = nil
	}
}

// remember marks the jobs whose notes the last decision changed.
func (m *Mechanism) remember() {
	m.memory.decided = true
	for id, s := range m.seats {
		m.streak(s)
		if note := m.noteOf(id); !slices.Equal(note, s.told) {
			s.told, m.memory.changed[id] = note, true
		}
	}
}

func (m *Mechanism) streak(s *seat) {
	switch {
	case !s.holds:
		s.base, s.since = s.done, -1
	case s.since < 0 || s.base+m.ranking.unit-s.since != s.done:
		s.base, s.since = s.done, m.ranking.unit
	}
}

func (m *Mechanism) noteOf(id messages.JobID) []int64 {
	i := m.past.index[id]
	t := &m.past.tasks[i]
	value, _ := messages.RoundCredits(t.Value)
	base, since, lag := 0, -1, 0
	if s := m.seats[id]; s != nil {
		base, since, lag = s.base, s.since, s.lag
	}
	met := int64(0)
	if m.past.met[i] {
		met = 1
	}
	return []int64{int64(t.Arrival), int64(t.Deadline), int64(t.Length), int64(value), int64(base), int64(since),
		met, int64(m.past.gone[i]), int64(t.Work), int64(t.Until), int64(t.Width), int64(lag)}
}

func (m *Mechanism) noteOfMarket() []int64 {
	out := []int64{noteForm, int64(m.units), int64(m.ranking.unit), int64(m.past.first)}
	for k, slots := range m.past.slots {
		if k == 0 || slots != m.past.slots[k-1] {
			out = append(out, int64(slots), 0)
		}
		out[len(out)-1]++
	}
	return out
}

// Notes implements mechanism.Remembering.
func (m *Mechanism) Notes(limit int) (notes []mechanism.Note, whole bool) {
	if !m.memory.decided {
		return nil, false
	}
	ids := slices.Sorted(maps.Keys(m.memory.changed))
	m.memory.asked = ids[:max(0, min(len(ids), limit-1))]
	notes = append(notes, mechanism.Note{Numbers: m.noteOfMarket()})
	for _, id := range m.memory.asked {
		notes = append(notes, mechanism.Note{Job: id, Numbers: m.noteOf(id)})
	}
	return notes, m.memory.whole
}

// Saved implements mechanism.Remembering.
func (m *Mechanism) Saved() (more bool) {
	for _, id := range m.memory.asked {
		delete(m.memory.changed, id)
	}
	m.memory.asked, m.memory.whole = nil, false
	m.memory.decided = len(m.memory.changed) > 0
	return m.memory.decided
}

// Recall implements mechanism.Remembering.
func (m *Mechanism) Recall(notes []mechanism.Note, jobs []messages.JobID, past func(messages.JobID) mechanism.Past) {
	if len(notes) > 0 && notes[0].Job == 0 && m.recallMarket(notes[0].Numbers) {
		m.recallJobs(notes[1:], past)
	}
	m.past.ranked = len(m.past.tasks)
	for _, id := range jobs {
		if _, noted := m.past.index[id]; !noted {
			m.rebuild(id, past(id))
		}
	}
}

func (m *Mechanism) recallJobs(notes []mechanism.Note, past func(messages.JobID) mechanism.Past) {
	for _, note := range notes {
		if n := note.Numbers; len(n) == jobNumbers {
			m.recallJob(note.Job, n)
		}
	}
	for id := range m.seats {
		if p := past(id); p.Ended {
			m.memory.left[id] = m.units.unitOf(p.At) + 1
			m.ended(id, p)
		}
	}
	m.ranking.decide(m.seats, m.ranking.unit, m.past.lastSlots())
}

// The mechanism stores a note for each job in the book. If the note of a job is missing, rebuild adds the job from its
// bid in the book. This job and its competitors then pay the same as with the note.
func (m *Mechanism) rebuild(id messages.JobID, p mechanism.Past) {
	if p.Bid == nil || len(m.past.tasks) >= mostHistory {
		return
	}
	t := m.units.taskOf(p.Bid)
	if t.check("") != nil { // the bid was made for another mechanism, which this market used earlier
		return
	}
	m.past.add(id, t)
	m.memory.changed[id] = true
	if !p.Ended {
		return
	}
	m.ended(id, p)
	s := &seat{task: t}
	_, s.done = m.units.had(p.Bid, p.Received)
	by := m.units.unitOf(p.At) + 1
	m.past.left(id, by, s.done, s.hopeless(by))
}

// ended records whether an ended job was completed, because the prices of other jobs depend on this.
func (m *Mechanism) ended(id messages.JobID, p mechanism.Past) {
	if p.Bid != nil && m.served(p.Bid, p.Completed, p.Received) {
		m.past.served[id] = true
	} else {
		m.past.withdrawn(id)
	}
}

// A market's note is the state that an earlier leader stored for the mechanism. recallMarket restores this state. It
// returns false if the note does not have the expected form.
func (m *Mechanism) recallMarket(n []int64) bool {
	if len(n) < marketNumbers+2 || len(n)%2 != 0 || n[0] != noteForm || n[1] != int64(m.units) {
		return false
	}
	m.ranking.unit, m.past.first = int(n[2]), int(n[3])
	for pair := n[marketNumbers:]; len(pair) > 0; pair = pair[2:] {
		m.past.slots = append(m.past.slots, slices.Repeat([]int{int(pair[0])}, int(min(max(pair[1], 0), MostUnits)))...)
	}
	return len(m.past.slots) > 0
}

func (m *Mechanism) recallJob(id messages.JobID, n []int64) {
	t := Task{Arrival: int(n[0]), Deadline: int(n[1]), Length: int(n[2]), Value: messages.Credits(n[3]).Float(), Work: int(n[8]), Until: int(n[9]), Width: int(n[10])}
	m.past.add(id, t)
	i := m.past.index[id]
	m.past.met[i], m.past.gone[i] = n[6] != 0, int(n[7])
	if n[7] != 0 {
		return
	}
	s := &seat{job: &mechanism.Job{Bid: &mechanism.Bid{Job: id}}, task: t, base: int(n[4]), since: int(n[5]), met: n[6] != 0, told: n, lag: int(n[11])}
	s.done = s.base
	if s.since >= 0 {
		s.done += m.ranking.unit - s.since
	}
	m.seats[id] = s
}
