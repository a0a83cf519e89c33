package ledger

import "sort"

// journal is an append-only list of records, numbered from 1. The store has the full segments. The field `tail` has the
// records after the full segments. Written bytes never change, so they can be read during an append.
type journal struct {
	store  Store
	sealed []Sealed
	tail   Segment
	count  uint64
	chain  chain
}

func newJournal(s Store) journal { return journal{store: s, tail: Segment{First: 1}} }

// The method append adds a record and returns its number. `key` is the hash of the record's identifier, or 0. If the
// store fails, append returns the store's error, and nothing was added.
func (j *journal) append(record []byte, key uint64) (uint64, error) {
	if len(j.tail.Ends) > 0 && len(j.tail.Data)+len(record) > j.store.SegmentBytes() {
		if err := j.seal(); err != nil {
			return 0, err
		}
	}
	j.tail.Data = append(j.tail.Data, record...)
	j.tail.Ends = append(j.tail.Ends, uint32(len(j.tail.Data)))
	j.tail.Keys = append(j.tail.Keys, key)
	j.chain.add(record)
	j.tail.After = j.chain.head
	j.count++
	return j.count, nil
}

// seal stores the tail as a full segment, and begins a new tail.
func (j *journal) seal() error {
	full := j.tail
	s, err := j.store.Seal(&full)
	if err != nil {
		return err
	}
	j.sealed = append(j.sealed, s)
	j.tail = Segment{
		First: j.count + 1, Before: full.After, After: full.After,
		Data: make([]byte, 0, cap(full.Data)), Ends: make([]uint32, 0, cap(full.Ends)), Keys: make([]uint64, 0, cap(full.Keys)),
	}
	return nil
}

// The method follow appends a segment to the journal. The store must have the segment already. The journal's tail must
// be empty.
func (j *journal) follow(s Sealed) {
	sum := s.Sum()
	j.sealed = append(j.sealed, s)
	j.count += uint64(sum.Count)
	j.chain.head = sum.After
	j.tail = Segment{First: j.count + 1, Before: sum.After, After: sum.After}
}

// The method at returns the record with a number in [1, count]. The caller must not change it.
func (j *journal) at(number uint64) ([]byte, error) {
	if number >= j.tail.First {
		return j.tail.record(int(number - j.tail.First)), nil
	}
	after := sort.Search(len(j.sealed), func(i int) bool { return j.sealed[i].Sum().First > number })
	s := j.sealed[after-1]
	return s.Record(int(number - s.Sum().First))
}

// prefix returns the journal as it is now, unaffected by later appends. It costs a few words of memory.
func (j *journal) prefix() journal {
	p := *j
	p.sealed = j.sealed[:len(j.sealed):len(j.sealed)]
	p.chain = chain{head: j.chain.head}
	return p
}

// each calls f for each record, beginning with the record that has the number `from`. It stops when f returns an error.
// It checks the records that it reads from the store.
func (j *journal) each(from uint64, f func(number uint64, record []byte) error) error {
	for _, s := range j.sealed {
		if sum := s.Sum(); sum.First+uint64(sum.Count) <= from {
			continue
		}
		whole, err := s.Segment()
		if err != nil {
			return err
		}
		if err := whole.Each(from, f); err != nil {
			return err
		}
	}
	return j.tail.Each(from, f)
}

// Each calls f for each record of the segment, starting at a number, until f returns an error.
func (s *Segment) Each(from uint64, f func(number uint64, record []byte) error) error {
	for i := int(max(from, s.First) - s.First); i < len(s.Ends); i++ {
		if err := f(s.First+uint64(i), s.record(i)); err != nil {
			return err
		}
	}
	return nil
}

// History is a ledger's journal at one moment. Other goroutines may use it while the ledger
// changes.
type History struct{ journal journal }

// History returns the journal as it is now. It costs a few words of memory.
func (l *Ledger) History() History { return History{l.records.journal.prefix()} }

// Count returns the number of records.
func (h *History) Count() uint64 { return h.journal.count }

// Segments returns the segments of the journal that are in the store.
func (h *History) Segments() []Sealed { return h.journal.sealed }

// Head returns the hash of all records.
func (h *History) Head() Head { return h.journal.chain.head }

// HeadAfter returns the hash of the first `number` records of the journal. There must be at least so many records. It
// reads one segment.
func (h *History) HeadAfter(number uint64) (Head, error) {
	j := &h.journal
	if number == 0 {
		return Head{}, nil
	}
	from, c := j.tail.First, chain{head: j.tail.Before}
	for _, s := range j.sealed {
		if sum := s.Sum(); number < sum.First+uint64(sum.Count) {
			whole, err := s.Segment()
			if err != nil {
				return Head{}, err
			}
			from, c.head = sum.First, whole.Before
			break
		}
	}
	for n := from; n <= number; n++ {
		record, err := j.at(n)
		if err != nil {
			return Head{}, err
		}
		c.add(record)
	}
	return c.head, nil
}

// Record returns the canonical bytes of a record, whose number is from 1 to Count. The caller must not change them.
func (h *History) Record(number uint64) ([]byte, error) { return h.journal.at(number) }
