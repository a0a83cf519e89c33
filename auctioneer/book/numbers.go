package book

import (
	"iter"
	"slices"

	"github.com/candor-grid/candor/messages"
)

// Numbers are numbers of jobs, ascending. To add one at the end, or to remove any, costs about the
// same among a million as among a thousand: they are in blocks of at most mostInBlock, and none is
// empty. Invariant: each number of a block is below each number of the next block.
type Numbers struct{ blocks [][]messages.JobID }

const mostInBlock = 512

// All yields the numbers, the lowest first.
func (n *Numbers) All() iter.Seq[messages.JobID] { return n.Above(0) }

// Above yields the numbers above one, the lowest first.
func (n *Numbers) Above(id messages.JobID) iter.Seq[messages.JobID] {
	return func(yield func(messages.JobID) bool) {
		if n == nil {
			return
		}
		for k := max(0, n.block(id+1)); k < len(n.blocks); k++ {
			from, _ := slices.BinarySearch(n.blocks[k], id+1)
			for _, next := range n.blocks[k][from:] {
				if !yield(next) {
					return
				}
			}
		}
	}
}

// Below yields the numbers below one, the highest first.
func (n *Numbers) Below(id messages.JobID) iter.Seq[messages.JobID] {
	return func(yield func(messages.JobID) bool) {
		if n == nil {
			return
		}
		for k := n.block(id); k >= 0; k-- {
			end, _ := slices.BinarySearch(n.blocks[k], id)
			for _, next := range slices.Backward(n.blocks[k][:end]) {
				if !yield(next) {
					return
				}
			}
		}
	}
}

// block is the last block that begins at or below a number, −1 if none does.
func (n *Numbers) block(id messages.JobID) int {
	k, found := slices.BinarySearchFunc(n.blocks, id, func(b []messages.JobID, id messages.JobID) int {
		switch {
		case b[0] < id:
			return -1
		case b[0] > id:
			return 1
		}
		return 0
	})
	if found {
		return k
	}
	return k - 1
}

// add adds a number that is higher than all others.
func (n *Numbers) add(id messages.JobID) {
	last := len(n.blocks) - 1
	if last < 0 || len(n.blocks[last]) == mostInBlock {
		n.blocks, last = append(n.blocks, nil), last+1
	}
	n.blocks[last] = append(n.blocks[last], id)
}

// remove removes a number, if it is there, and reports whether none is left.
func (n *Numbers) remove(id messages.JobID) (empty bool) {
	if k := n.block(id); k >= 0 {
		if at, found := slices.BinarySearch(n.blocks[k], id); found {
			n.blocks[k] = slices.Delete(n.blocks[k], at, at+1)
		}
		if len(n.blocks[k]) == 0 {
			n.blocks = slices.Delete(n.blocks, k, k+1)
		}
	}
	return len(n.blocks) == 0
}

// sort puts numbers in order that were added in any.
func (n *Numbers) sort() {
	all := slices.Concat(n.blocks...)
	slices.Sort(all)
	n.blocks = slices.Collect(slices.Chunk(all, mostInBlock))
}
