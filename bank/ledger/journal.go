package ledger

import (
	"slices"
	"sort"
)

// pageSize is the capacity of a page in bytes; a record is never larger.
const pageSize = 1 << 20

// journal is an append-only list of records, numbered from 1. Bytes once
// written are never changed or moved, so a prefix can be read while more is
// appended.
type journal struct {
	pages []page
	count uint64
}

// page holds consecutive records without pointers into them, so that the
// garbage collector has one thing to look at for some thousands of records.
type page struct {
	first uint64 // number of the first record
	data  []byte
	ends  []uint32 // ends[i] is where record first+i ends in data
}

// append adds a record and returns its number.
func (j *journal) append(record []byte) uint64 {
	last := len(j.pages) - 1
	if last < 0 || len(j.pages[last].data)+len(record) > pageSize {
		j.pages = append(j.pages, page{first: j.count + 1, data: make([]byte, 0, pageSize)})
		last++
	}
	p := &j.pages[last]
	p.data = append(p.data, record...)
	p.ends = append(p.ends, uint32(len(p.data)))
	j.count++
	return j.count
}

// at returns the record of a number in [1, count]. It must not be changed.
func (j *journal) at(number uint64) []byte {
	after := sort.Search(len(j.pages), func(i int) bool { return j.pages[i].first > number })
	p := &j.pages[after-1]
	i := number - p.first
	start := uint32(0)
	if i > 0 {
		start = p.ends[i-1]
	}
	return p.data[start:p.ends[i]:p.ends[i]]
}

// prefix returns the journal as it is now, unaffected by later appends. It
// costs a few words per page.
func (j *journal) prefix() journal {
	return journal{pages: slices.Clone(j.pages), count: j.count}
}

// each calls f for every record in order until f returns an error.
func (j *journal) each(f func(number uint64, record []byte) error) error {
	for _, p := range j.pages {
		start := uint32(0)
		for i, end := range p.ends {
			if err := f(p.first+uint64(i), p.data[start:end:end]); err != nil {
				return err
			}
			start = end
		}
	}
	return nil
}
