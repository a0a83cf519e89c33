package profile

import "math"

// hints remembers the times at which a search found no window of enough nodes and enough length. Many searches of one
// plan begin at the same instant. Without hints, they would skip the same small gaps again and again. A hint says that
// no window of n nodes and length l can begin in [from, start). Then no window of more nodes and more length can begin
// there either, until nodes are given back. The table of hints has a fixed size. Widths and lengths are rounded to half
// octaves (two steps for each factor of 2), and for each pair of rounded numbers there is one place. A new hint
// replaces an older one in the same place.
type hints struct {
	cells []hint
	epoch uint32 // only hints of this epoch are valid
}

type hint struct {
	from, start   float64
	epoch         uint32
	width, length uint16 // in half octaves (1, 1.5, 2, 3, 4, 6 and so on), rounded up
}

const widths, lengths = 16, 32 // both are powers of two

// Widths and lengths are rounded to steps: 1, 1.5, 2, 3, 4, 6, 8 and so on. below returns the number of the step of x >
// 0, rounded down. above rounds up. For a larger x, neither function returns a smaller number.
func below(x float64) uint16 { return uint16(math.Float64bits(x) >> 51) }
func above(x float64) uint16 { return uint16((math.Float64bits(x) + 1<<51 - 1) >> 51) }

func (h *hints) forget() {
	if h.cells == nil {
		h.cells = make([]hint, widths*lengths)
	}
	h.epoch++
	if h.epoch == 0 { // the counter overflowed, after 2^32 calls; hints of old epochs would be valid again
		clear(h.cells)
		h.epoch = 1
	}
}

func (h *hints) cell(width, length uint16) *hint {
	return &h.cells[int(width%widths)*lengths+int(length%lengths)]
}

// begin returns the time at which a search for a free window can begin. This is t, or a later time if a hint from an
// earlier search says that no window begins before it.
func (h *hints) begin(t, length float64, n int) float64 {
	width, long := below(float64(n)), below(length)
	from := t
	for w := width; w+1 >= width; w-- {
		for l := long; l+1 >= long; l-- {
			c := h.cell(w, l)
			if c.epoch == h.epoch && c.width == w && c.length == l && c.from <= t {
				from = max(from, c.start)
			}
		}
	}
	return from
}

// A search has found that no window begins at t or later and before `start`. found stores this as a hint for later
// searches.
func (h *hints) found(t, start, length float64, n int) {
	width, long := above(float64(n)), above(length)
	c := h.cell(width, long)
	if c.epoch == h.epoch && c.width == width && c.length == long && c.from <= t && c.start >= start {
		return
	}
	*c = hint{t, start, h.epoch, width, long}
}
