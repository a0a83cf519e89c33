package memory

import (
	"cmp"
	"slices"

	"github.com/candor-grid/candor/messages"
)

// jobSet is a set of job numbers. They are consecutive, so one bit for each is enough.
type jobSet struct {
	blocks map[messages.JobID]*[64]uint64
}

func (s *jobSet) has(job messages.JobID) bool {
	block := s.blocks[job>>12]
	return block != nil && block[job>>6&63]&(1<<(job&63)) != 0
}

func (s *jobSet) add(job messages.JobID) {
	block := s.blocks[job>>12]
	if block == nil {
		if s.blocks == nil {
			s.blocks = map[messages.JobID]*[64]uint64{}
		}
		block = new([64]uint64)
		s.blocks[job>>12] = block
	}
	block[job>>6&63] |= 1 << (job & 63)
}

// JobBlock is a part of the set of observed jobs: bit i of word k is job 4096·Number + 64·k + i.
type JobBlock struct {
	Site   messages.Name
	Number uint64
	Words  [64]uint64
}

// blocksOf returns the blocks of a site's jobs, ordered by Number.
func (s *jobSet) blocksOf(site messages.Name) []JobBlock {
	var out []JobBlock
	for number, words := range s.blocks {
		out = append(out, JobBlock{site, uint64(number), *words})
	}
	slices.SortFunc(out, func(a, b JobBlock) int { return cmp.Compare(a.Number, b.Number) })
	return out
}
