package estimator

import (
	"container/list"
	"slices"

	"github.com/candor-grid/candor/messages"
)

// kind is what makes two jobs runs of the same thing.
type kind struct {
	account messages.Name
	name    string
}

// history holds the latest observations of each kind of job. It is pure, and
// not safe for concurrent use.
type history struct {
	kinds, runs int // bounds
	byKind      map[kind]*list.Element
	recent      *list.List // of *record, the latest observed first
	seen        map[messages.Name]*jobSet
	held        int
}

// record is what is kept of one kind, oldest first.
type record struct {
	kind kind
	runs []messages.Observation
}

func newHistory(kinds, runs int) *history {
	return &history{kinds: kinds, runs: runs, byKind: map[kind]*list.Element{}, recent: list.New(), seen: map[messages.Name]*jobSet{}}
}

// add keeps an observation; false if that of the same job was added before.
func (h *history) add(o messages.Observation) bool {
	jobs := h.seen[o.Site]
	if jobs == nil {
		jobs = &jobSet{}
		h.seen[o.Site] = jobs
	}
	if !jobs.add(o.Job) {
		return false
	}
	r := h.touch(kind{o.Account, o.Name})
	if len(r.runs) == h.runs {
		r.runs = slices.Delete(r.runs, 0, 1)
		h.held--
	}
	r.runs = append(r.runs, o)
	h.held++
	return true
}

// touch returns the record of a kind as the one seen last, making it if need
// be, and room for it.
func (h *history) touch(k kind) *record {
	if e := h.byKind[k]; e != nil {
		h.recent.MoveToFront(e)
		return e.Value.(*record)
	}
	if h.recent.Len() == h.kinds {
		oldest := h.recent.Remove(h.recent.Back()).(*record)
		delete(h.byKind, oldest.kind)
		h.held -= len(oldest.runs)
	}
	r := &record{kind: k}
	h.byKind[k] = h.recent.PushFront(r)
	return r
}

// of returns the observations kept of a kind, oldest first.
func (h *history) of(k kind) []messages.Observation {
	e := h.byKind[k]
	if e == nil {
		return nil
	}
	return slices.Clone(e.Value.(*record).runs)
}

// jobSet is a set of job numbers. These are given out in sequence, so that a
// bit for each costs little.
type jobSet struct {
	blocks map[messages.JobID]*[64]uint64
}

// add reports false if the job is in the set already.
func (s *jobSet) add(job messages.JobID) bool {
	if s.blocks == nil {
		s.blocks = map[messages.JobID]*[64]uint64{}
	}
	block := s.blocks[job>>12]
	if block == nil {
		block = new([64]uint64)
		s.blocks[job>>12] = block
	}
	word, bit := &block[job>>6&63], uint64(1)<<(job&63)
	if *word&bit != 0 {
		return false
	}
	*word |= bit
	return true
}
