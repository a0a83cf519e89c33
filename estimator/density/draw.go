package density

import (
	"math"
	"math/rand/v2"
)

// Bounds limit the parameters of a type: parameter j is in [Low[j], High[j]]. A bound may be infinite.
type Bounds struct {
	Low, High []float64
}

// widths returns High − Low for each coordinate.
func (b *Bounds) widths() []float64 {
	widths := make([]float64, len(b.Low))
	for j, low := range b.Low {
		widths[j] = b.High[j] - low
	}
	return widths
}

// Contains reports whether x has L coordinates within the bounds. NaN is outside.
func (b *Bounds) Contains(x []float64) bool {
	if len(x) != len(b.Low) {
		return false
	}
	for j, v := range x {
		if !(v >= b.Low[j] && v <= b.High[j]) {
			return false
		}
	}
	return true
}

// reflect moves each coordinate of x that is outside the bounds. It mirrors the coordinate at the nearest bound, again
// and again, until the coordinate is within both bounds.
func (b *Bounds) reflect(x []float64) {
	for j, v := range x {
		low, high := b.Low[j], b.High[j]
		switch width := high - low; {
		case v >= low && v <= high:
			continue
		case !math.IsInf(width, 0):
			part := math.Mod(math.Abs(v-low), 2*width)
			v = low + min(part, 2*width-part)
		case v < low:
			v = low + (low - v)
		default:
			v = high - (v - high)
		}
		x[j] = min(high, max(low, v)) // rounding may leave x[j] outside
	}
}

// Redraws is how often a draw outside the bounds is repeated. After that, the last draw is reflected at the bounds.
const Redraws = 100

// Draw draws a point from the density and writes it to x, which has L coordinates. Draw takes O(L²).
func (f *Density) Draw(r *rand.Rand, x []float64) {
	k, n := f.pick.draw(r), len(f.logs)
	var white [MaxDimensions]float64
	for j := range x {
		white[j] = f.kernels[j*n+k] + r.NormFloat64()
	}
	for i := range x {
		s := f.centre[i]
		for j, l := range f.lower[i*f.dims : i*f.dims+i+1] {
			s += l * white[j]
		}
		x[i] = s
	}
}

// DrawWithin draws a point from the density truncated to the bounds, and writes it to x. It repeats draws that fall
// outside. If 100 draws in a row fall outside, the density is almost 0 within the bounds. Then DrawWithin reflects the
// last draw at the bounds, and returns true.
func (f *Density) DrawWithin(r *rand.Rand, b *Bounds, x []float64) (reflected bool) {
	for range Redraws {
		if f.Draw(r, x); b.Contains(x) {
			return false
		}
	}
	b.reflect(x)
	return true
}

// Draws returns n draws, as n·L numbers, and how many of them were reflected. If b is nil, there are no bounds.
func (f *Density) Draws(r *rand.Rand, n int, b *Bounds) (values []float64, reflected int) {
	values = make([]float64, n*f.dims)
	for k := range n {
		x := values[k*f.dims : (k+1)*f.dims]
		if b == nil {
			f.Draw(r, x)
		} else if f.DrawWithin(r, b, x) {
			reflected++
		}
	}
	return values, reflected
}

// alias draws an index with given probabilities in O(1) (Walker's method, in Vose's form). It first draws an index k,
// where each index has the same probability. With probability keep[k] the result is k, and otherwise other[k].
type alias struct {
	keep  []float64
	other []int32
}

func newAlias(parts []float64) alias {
	n := len(parts)
	a := alias{make([]float64, n), make([]int32, n)}
	var small, large []int32
	for k, p := range parts {
		a.keep[k], a.other[k] = p*float64(n), int32(k)
		if a.keep[k] < 1 {
			small = append(small, int32(k))
		} else {
			large = append(large, int32(k))
		}
	}
	for len(small) > 0 && len(large) > 0 {
		s, l := small[len(small)-1], large[len(large)-1]
		small = small[:len(small)-1]
		a.other[s] = l
		a.keep[l] -= 1 - a.keep[s]
		if a.keep[l] < 1 {
			large = large[:len(large)-1]
			small = append(small, l)
		}
	}
	for _, k := range append(small, large...) { // the probability that is left is 1, except for rounding
		a.keep[k] = 1
	}
	return a
}

func (a *alias) draw(r *rand.Rand) int {
	k := r.IntN(len(a.keep))
	if r.Float64() < a.keep[k] {
		return k
	}
	return int(a.other[k])
}
