package profile

import "math"

// A schedule is drawn up by question after question from the same instant, and
// most of the work is passing over gaps that are too small, again and again.
// hints remember what has been passed over: if a window of width n and length
// l cannot begin in [from, start), no wider and longer one can, until nodes are
// given back. There is a hint for each width and length rounded to half an
// octave, in a table of fixed size in which a newer one displaces an older.
type hints struct {
	cells []hint
	epoch uint32 // those of an earlier epoch no longer hold
}

type hint struct {
	from, start   float64
	epoch         uint32
	width, length uint16 // rounded up
}

const widths, lengths = 16, 32 // powers of two

// Halves of octaves, rounded down and up; x > 0. They are in the order of x.
func below(x float64) uint16 { return uint16(math.Float64bits(x) >> 51) }
func above(x float64) uint16 { return uint16((math.Float64bits(x) + 1<<51 - 1) >> 51) }

func (h *hints) forget() {
	if h.cells == nil {
		h.cells = make([]hint, widths*lengths)
	}
	h.epoch++
	if h.epoch == 0 { // once in four thousand million times
		clear(h.cells)
		h.epoch = 1
	}
}

func (h *hints) cell(width, length uint16) *hint {
	return &h.cells[int(width%widths)*lengths+int(length%lengths)]
}

// begin returns from where on to look for a window, t or later.
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

// found keeps that no window begins in [t, start).
func (h *hints) found(t, start, length float64, n int) {
	width, long := above(float64(n)), above(length)
	c := h.cell(width, long)
	if c.epoch == h.epoch && c.width == width && c.length == long && c.from <= t && c.start >= start {
		return
	}
	*c = hint{t, start, h.epoch, width, long}
}
