package density

import (
	"math"

	"github.com/candor-grid/candor/messages"
)

// Group has the samples of one account, merged into kernels.
type Group struct {
	Account messages.Name
	Weights []float64 // by kernel: number of samples merged into it
	Values  []float64 // by kernel: L numbers, one of the merged samples, drawn by weight
	Turn    int       // index of the kernel that may be merged next
}

// store keeps a bounded number of kernels. When all are in use, two kernels are merged: two of the account with the
// most kernels. The merged kernel is placed at one of the two old places. The place is drawn at random, in proportion
// to the weights of the two kernels, so that the spread of the samples is kept.
type store struct {
	Snapshot
	dims, kernels, accounts int

	index map[messages.Name]int // by account: index of its group
	used  int                   // number of kernels
}

func newStore(c *Config) store {
	return store{Snapshot: Snapshot{Widths: c.Bounds.widths(), Rescale: float64(c.Kernels)},
		dims: len(c.Bounds.Low), kernels: c.Kernels, accounts: c.Kernels / 2, index: map[messages.Name]int{}}
}

func (s *store) add(account messages.Name, x []float64) {
	g := s.group(account)
	s.Count++
	if s.used < s.kernels {
		g.put(x)
		s.used++
		return
	}
	if s.Count >= s.Rescale {
		s.measure()
	}
	if most := s.most(); len(most.Weights) > len(g.Weights) {
		most.give(s)
		g.put(x)
		return
	}
	g.absorb(x, s)
}

// group returns the group of an account, or the group that all accounts above the limit share.
func (s *store) group(account messages.Name) *Group {
	if at, ok := s.index[account]; ok {
		return &s.Groups[at]
	}
	if len(s.Groups) >= s.accounts && account != "" {
		return s.group("")
	}
	s.index[account] = len(s.Groups)
	s.Groups = append(s.Groups, Group{Account: account})
	return &s.Groups[len(s.Groups)-1]
}

// most returns the group with the most kernels. This group has at least two kernels, because there are fewer groups
// than kernels.
func (s *store) most() *Group {
	at := 0
	for i := range s.Groups {
		if len(s.Groups[i].Weights) > len(s.Groups[at].Weights) {
			at = i
		}
	}
	return &s.Groups[at]
}

// measure sets the scale of each coordinate from the samples. It is called when no kernel is free for the first time.
// After that, it is called each time that the number of samples has doubled.
func (s *store) measure() {
	s.Rescale *= 2
	d, _ := s.data()
	for j := range s.Widths {
		if _, deviation := spread(d, d.Weights, j); deviation > 0 {
			s.Widths[j] = deviation
		}
	}
}

// data returns all kernels as weighted samples. The result `owner` has, for each kernel, the index of its group.
func (s *store) data() (d *Data, owner []int) {
	d = &Data{Dimensions: s.dims, Weights: []float64{}}
	for a := range s.Groups {
		g := &s.Groups[a]
		d.Values, d.Weights = append(d.Values, g.Values...), append(d.Weights, g.Weights...)
		for range g.Weights {
			owner = append(owner, a)
		}
	}
	return d, owner
}

// chance returns true with probability p. Its random numbers come from the generator splitmix64.
func (s *store) chance(p float64) bool {
	s.Drawn += 0x9e3779b97f4a7c15
	x := s.Drawn
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return float64((x^x>>31)>>11)/(1<<53) < p
}

func (g *Group) put(x []float64) {
	g.Weights = append(g.Weights, 1)
	g.Values = append(g.Values, x...)
}

// absorb adds a sample to a group without adding a kernel. Usually it merges the sample into the nearest kernel. But if
// it costs less to merge two existing kernels, it merges these two, and the sample becomes a kernel of its own.
func (g *Group) absorb(x []float64, s *store) {
	into, cost := g.near(x, 1, -1, math.Inf(1), s.Widths)
	i := g.next()
	j, _ := g.near(g.value(i, s.dims), g.Weights[i], i, cost, s.Widths)
	if j < 0 {
		g.join(into, x, 1, s)
		return
	}
	g.join(j, g.value(i, s.dims), g.Weights[i], s)
	g.Weights[i] = 1
	copy(g.value(i, s.dims), x)
}

// give makes the group smaller by one kernel. It merges the kernel that the method next chooses into the nearest other
// kernel of the group.
func (g *Group) give(s *store) {
	i, last := g.next(), len(g.Weights)-1
	j, _ := g.near(g.value(i, s.dims), g.Weights[i], i, math.Inf(1), s.Widths)
	g.join(j, g.value(i, s.dims), g.Weights[i], s)
	g.Weights[i] = g.Weights[last]
	copy(g.value(i, s.dims), g.value(last, s.dims))
	g.Weights, g.Values = g.Weights[:last], g.Values[:last*s.dims]
}

func (g *Group) next() int {
	g.Turn++
	if g.Turn >= len(g.Weights) {
		g.Turn = 0
	}
	return g.Turn
}

func (g *Group) value(k, l int) []float64 { return g.Values[k*l : (k+1)*l : (k+1)*l] }

// near returns the kernel into which a kernel of weight w at x can be merged at the lowest cost. It leaves out the
// kernel at position `except`. The cost is the growth of the squared distances within the kernel (Ward). If every merge
// costs at least `limit`, it returns −1.
func (g *Group) near(x []float64, w float64, except int, limit float64, widths []float64) (at int, cost float64) {
	var scale [MaxDimensions]float64
	l := len(x)
	for j, width := range widths {
		scale[j] = 1 / (width * width)
	}
	at, cost = -1, limit
	values, scales := g.Values, scale[:l]
	for k, v := range g.Weights {
		row := values[:l]
		values = values[l:]
		distance := 0.0
		for j, y := range row {
			y -= x[j]
			distance += y * y * scales[j]
		}
		if growth := distance * w * v; growth < cost*(w+v) && k != except {
			at, cost = k, growth/(w+v)
		}
	}
	return at, cost
}

// join merges a new kernel at position x with weight w into kernel k. The weight of the merged kernel is the sum of the
// two weights. The merged kernel stays at the position of kernel k, or moves to x. This is decided at random, with
// probabilities in proportion to the two weights.
func (g *Group) join(k int, x []float64, w float64, s *store) {
	g.Weights[k] += w
	if s.chance(w / g.Weights[k]) {
		copy(g.value(k, s.dims), x)
	}
}
