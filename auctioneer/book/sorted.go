package book

import "slices"

// sorted is an ordered set. Its elements are in blocks of at most mostInBlock, so adding one costs about the same with
// a million elements as with a thousand. No block is empty. All elements of a block are smaller than the elements of
// the next block.
type sorted[T any] struct {
	blocks  [][]T
	count   int
	compare func(x, y T) int
}

const mostInBlock = 512

func (s *sorted[T]) all(yield func(T) bool) {
	for _, b := range s.blocks {
		for _, e := range b {
			if !yield(e) {
				return
			}
		}
	}
}

// first returns the lowest element, or false if the set is empty.
func (s *sorted[T]) first() (e T, ok bool) {
	if s.count == 0 {
		return e, false
	}
	return s.blocks[0][0], true
}

// Blocks are in ascending order. block returns the index of the last block that begins with e or with a smaller
// element. It returns −1 if there is no such block.
func (s *sorted[T]) block(e T) int {
	k, found := slices.BinarySearchFunc(s.blocks, e, func(b []T, e T) int { return s.compare(b[0], e) })
	if found {
		return k
	}
	return k - 1
}

// find returns the block k that has the element, or would have it, and the element's position in this block.
func (s *sorted[T]) find(e T) (k, at int, found bool) {
	if k = max(0, s.block(e)); k < len(s.blocks) {
		at, found = slices.BinarySearchFunc(s.blocks[k], e, s.compare)
	}
	return k, at, found
}

func (s *sorted[T]) add(e T) {
	k, at, found := s.find(e)
	if found {
		return
	}
	s.count++
	switch {
	case s.count == 1:
		s.blocks = append(s.blocks, []T{e})
	case at == mostInBlock:
		s.blocks = slices.Insert(s.blocks, k+1, []T{e})
	case len(s.blocks[k]) == mostInBlock:
		low, high := slices.Clone(s.blocks[k][:at]), slices.Clone(s.blocks[k][at:])
		s.blocks[k] = append(low, e)
		s.blocks = slices.Insert(s.blocks, k+1, high)
	default:
		s.blocks[k] = slices.Insert(s.blocks[k], at, e)
	}
}

// remove removes an element. It returns the stored element, or false if the set did not have it.
func (s *sorted[T]) remove(e T) (was T, found bool) {
	k, at, found := s.find(e)
	if !found {
		return was, false
	}
	s.count--
	b := s.blocks[k]
	was = b[at]
	switch {
	case len(b) == 1:
		s.blocks = slices.Delete(s.blocks, k, k+1)
	case at == 0: // usual case: no element moves
		clear(b[:1])
		s.blocks[k] = b[1:]
	default:
		s.blocks[k] = slices.Delete(b, at, at+1)
	}
	return was, true
}
