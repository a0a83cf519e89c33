package deadlineaware

// push adds to a binary heap whose first is before all others.
func push[T any](heap []T, x T, before func(a, b T) bool) []T {
	heap = append(heap, x)
	i := len(heap) - 1
	for i > 0 && before(x, heap[(i-1)/2]) {
		heap[i] = heap[(i-1)/2]
		i = (i - 1) / 2
	}
	heap[i] = x
	return heap
}

// pop takes the first away.
func pop[T any](heap []T, before func(a, b T) bool) []T {
	n := len(heap) - 1
	last := heap[n]
	heap = heap[:n]
	if n > 0 {
		heap[0] = last
		sink(heap, 0, before)
	}
	return heap
}

// sink moves down the one at i, which may belong below.
func sink[T any](heap []T, i int, before func(a, b T) bool) {
	x := heap[i]
	for {
		child := 2*i + 1
		if child >= len(heap) {
			break
		}
		if child+1 < len(heap) && before(heap[child+1], heap[child]) {
			child++
		}
		if !before(heap[child], x) {
			break
		}
		heap[i] = heap[child]
		i = child
	}
	heap[i] = x
}
