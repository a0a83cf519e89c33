package highestbid

// heap is a binary heap of small non-negative numbers, each at most once, from
// which any can be taken out. Every operation but the look at the first costs
// O(log n).
type heap struct {
	before func(a, b int32) bool
	ids    []int32
	place  []int32 // by number: its position in ids, plus one; 0: not here
}

func (h *heap) empty() bool { return len(h.ids) == 0 }

func (h *heap) first() int32 { return h.ids[0] }

func (h *heap) has(id int32) bool { return int(id) < len(h.place) && h.place[id] > 0 }

func (h *heap) push(id int32) {
	for int(id) >= len(h.place) {
		h.place = append(h.place, 0)
	}
	h.ids = append(h.ids, id)
	h.up(len(h.ids)-1, id)
}

func (h *heap) remove(id int32) {
	at, last := int(h.place[id])-1, len(h.ids)-1
	moved := h.ids[last]
	h.ids = h.ids[:last]
	h.place[id] = 0
	if at < last && !h.up(at, moved) {
		h.down(at, moved)
	}
}

// up puts id, which belongs at position i or above, in its place, and reports
// whether that is above.
func (h *heap) up(i int, id int32) bool {
	start := i
	for i > 0 {
		parent := (i - 1) / 2
		if !h.before(id, h.ids[parent]) {
			break
		}
		h.set(i, h.ids[parent])
		i = parent
	}
	h.set(i, id)
	return i < start
}

func (h *heap) down(i int, id int32) {
	for {
		child := 2*i + 1
		if child >= len(h.ids) {
			break
		}
		if child+1 < len(h.ids) && h.before(h.ids[child+1], h.ids[child]) {
			child++
		}
		if !h.before(h.ids[child], id) {
			break
		}
		h.set(i, h.ids[child])
		i = child
	}
	h.set(i, id)
}

func (h *heap) set(i int, id int32) { h.ids[i], h.place[id] = id, int32(i+1) }
