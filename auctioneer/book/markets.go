package book

import (
	"crypto/sha256"
	"maps"
	"slices"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/market"
)

// These limits are for the notes that a market's mechanism keeps in the book.
const (
	MaxNotes       = 500_000 // largest number of notes of one market; more are dropped
	MaxNoteNumbers = 1 << 16
)

// Note is what a market's mechanism wants to remember about a job or, if Job is 0, about the market. The book does not
// interpret it; the next leader's mechanism reads it.
type Note struct {
	Job     messages.JobID
	Numbers []int64
}

type markets struct {
	applied []market.Market // nil means that the markets of the configuration apply
	version uint64          // number of times that markets were applied
	answers []Applied       // answers to the latest requests to apply markets, oldest first
	notes   map[messages.Name]map[messages.JobID][]int64
	// promises counts kept and broken contracts, for each market that made contracts.
	promises []Promises
}

// Promises counts the kept and the broken contracts of a market.
type Promises struct {
	Market       messages.Name
	Kept, Broken uint64
}

func (m *markets) promised(market messages.Name, p Promise) {
	if p != KeptPromise && p != BrokenPromise {
		return
	}
	at := slices.IndexFunc(m.promises, func(p Promises) bool { return p.Market == market })
	if at < 0 {
		at, m.promises = len(m.promises), append(m.promises, Promises{Market: market})
	}
	if p == KeptPromise {
		m.promises[at].Kept++
	} else {
		m.promises[at].Broken++
	}
}

// Applied is the answer to a request to apply markets.
type Applied struct {
	Key     string
	Content [sha256.Size]byte // digest of the request
	Reply   market.ApplyReply
}

// mostApplied is the number of answers to requests to apply markets that the book remembers. If such a request is
// repeated, it gets the same answer.
const mostApplied = 64

func (m *markets) answer(a *Applied) Applied {
	if a == nil {
		return Applied{}
	}
	a.Reply.Version = m.version + 1
	if a.Key != "" {
		m.answers = append(m.answers[max(0, len(m.answers)+1-mostApplied):], *a)
	}
	return *a
}

// replace sets the site's markets. It drops the notes and the counted promises of markets that were removed.
func (m *markets) replace(applied []market.Market) {
	m.applied = applied
	m.version++
	m.promises = slices.DeleteFunc(m.promises, func(p Promises) bool { return !m.configures(p.Market) })
	maps.DeleteFunc(m.notes, func(name messages.Name, _ map[messages.JobID][]int64) bool { return !m.configures(name) })
}

func (m *markets) configures(name messages.Name) bool {
	return slices.ContainsFunc(m.applied, func(m market.Market) bool { return m.Name == name })
}

// note stores notes of a market. A note replaces the earlier note about the same job. If `forget` is true, all earlier
// notes are dropped first.
func (m *markets) note(market messages.Name, notes []Note, forget bool) {
	known := m.notes[market]
	if known == nil || forget {
		known = map[messages.JobID][]int64{}
	}
	for _, n := range notes {
		if _, again := known[n.Job]; (again || len(known) < MaxNotes) && len(n.Numbers) <= MaxNoteNumbers {
			known[n.Job] = n.Numbers
		}
	}
	m.notes[market] = known
	if len(known) == 0 {
		delete(m.notes, market)
	}
}

// Promise says whether a job completed at the time that its contract promised.
type Promise uint8

// These are the possible outcomes of a contract.
const (
	NoPromise Promise = iota // there was no contract, or the owner ended the job first
	KeptPromise
	BrokenPromise
)
