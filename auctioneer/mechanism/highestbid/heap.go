package highestbid

// heap is a binary heap of small numbers that are not negative. Each number is in the heap at most once, and has a key.
// The number with the least key is first. Any number can be removed. Reading the first number costs O(1), each other
// operation O(log n).
type heap struct {
	ties  func(a, b int32) bool // whether a goes before b if both have the same key
	items []item
	place []int32 // by number: its position in items plus 1, or 0 if it is not in the heap
}

// item is a number and its key, which is stored here so that a comparison reads no other memory.
type item struct {
	key float64
	id  int32
}

func (h *heap) empty() bool { return len(h.items) == 0 }

func (h *heap) first() int32 { return h.items[0].id }

// least returns the smallest key in the heap.
func (h *heap) least() float64 { return h.items[0].key }

func (h *heap) has(id int32) bool { return int(id) < len(h.place) && h.place[id] > 0 }

// keep puts id into the heap with the given key if `in` is true, and removes id from the heap if `in` is false. If
// nothing has to change, it does nothing. If id is in the heap already, its key must be the same.
func (h *heap) keep(id int32, key float64, in bool) {
	switch {
	case in == h.has(id):
	case in:
		h.push(id, key)
	default:
		h.remove(id)
	}
}

// put inserts id with a key, or changes its key.
func (h *heap) put(id int32, key float64) {
	if h.has(id) {
		if h.items[h.place[id]-1].key == key {
			return
		}
		h.remove(id)
	}
	h.push(id, key)
}

func (h *heap) push(id int32, key float64) {
	for int(id) >= len(h.place) {
		h.place = append(h.place, 0)
	}
	h.items = append(h.items, item{})
	h.up(len(h.items)-1, item{key, id})
}

func (h *heap) remove(id int32) {
	at, last := int(h.place[id])-1, len(h.items)-1
	moved := h.items[last]
	h.items = h.items[:last]
	h.place[id] = 0
	if at < last && !h.up(at, moved) {
		h.down(at, moved)
	}
}

func (h *heap) before(x, y item) bool {
	return x.key < y.key || x.key == y.key && h.ties(x.id, y.id)
}

// up moves x from position i towards the top of the heap, and reports whether x has moved.
func (h *heap) up(i int, x item) bool {
	start := i
	for i > 0 {
		parent := (i - 1) / 2
		if !h.before(x, h.items[parent]) {
			break
		}
		h.set(i, h.items[parent])
		i = parent
	}
	h.set(i, x)
	return i < start
}

func (h *heap) down(i int, x item) {
	for {
		child := 2*i + 1
		if child >= len(h.items) {
			break
		}
		if child+1 < len(h.items) && h.before(h.items[child+1], h.items[child]) {
			child++
		}
		if !h.before(h.items[child], x) {
			break
		}
		h.set(i, h.items[child])
		i = child
	}
	h.set(i, x)
}

func (h *heap) set(i int, x item) { h.items[i], h.place[x.id] = x, int32(i+1) }
