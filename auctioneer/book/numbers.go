package book

import (
	"cmp"
	"iter"
	"slices"

	"github.com/candor-grid/candor/messages"
)

// Numbers is a list of job numbers in ascending order.
type Numbers struct{ sorted[messages.JobID] }

func newNumbers() *Numbers {
	return &Numbers{sorted[messages.JobID]{compare: cmp.Compare[messages.JobID]}}
}

// All yields all numbers, lowest first.
func (n *Numbers) All() iter.Seq[messages.JobID] { return n.Above(0) }

// Above yields the numbers above id, lowest first.
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

// Below yields the numbers below id, highest first.
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
