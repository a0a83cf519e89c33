package density

import (
	"slices"

	"github.com/candor-grid/candor/messages"
)

// Snapshot is everything that a class remembers.
type Snapshot struct {
	Count   float64   // number of samples
	Widths  []float64 // scale of each coordinate, for distances
	Rescale float64   // count at which the scales are next measured
	Drawn   uint64    // state of the random numbers
	Groups  []Group   // one group for each account, in the order of the first samples
}

// Snapshot returns a copy of everything that the class remembers.
func (c *Class) Snapshot() *Snapshot { return new(c.store.clone()) }

func (s Snapshot) clone() Snapshot {
	s.Widths, s.Groups = slices.Clone(s.Widths), slices.Clone(s.Groups)
	for i := range s.Groups {
		g := &s.Groups[i]
		g.Weights, g.Values = slices.Clone(g.Weights), slices.Clone(g.Values)
	}
	return s
}

// RestoreClass returns a class that continues from a snapshot, which it copies. A snapshot that is damaged or does not
// fit the configuration is an error.
func RestoreClass(config Config, s *Snapshot) (*Class, error) {
	c, err := NewClass(config)
	if err != nil {
		return nil, err
	}
	if err := c.check(s); err != nil {
		return nil, err
	}
	c.store.Snapshot = s.clone()
	for i := range s.Groups {
		c.store.index[s.Groups[i].Account] = i
		c.store.used += len(s.Groups[i].Weights)
	}
	c.before, c.built = nil, nil
	return c, c.build()
}

func (c *Class) check(s *Snapshot) error {
	l, kernels := c.store.dims, 0
	if !(s.Count >= 0 && s.Count <= Largest && s.Rescale > 0 && s.Rescale <= Largest) || len(s.Widths) != l || len(s.Groups) > c.store.accounts+1 {
		return messages.Errorf(messages.Invalid, "snapshot: does not fit a class of %d dimensions and %d accounts", l, c.store.accounts)
	}
	for _, w := range s.Widths {
		if !(w > 0 && w <= Largest) {
			return messages.Errorf(messages.Invalid, "snapshot: the width %g must be above 0 and at most %g", w, Largest)
		}
	}
	seen := map[messages.Name]bool{}
	for i := range s.Groups {
		g := &s.Groups[i]
		if seen[g.Account] || !g.sound(&c.config) {
			return messages.Errorf(messages.Invalid, "snapshot: the kernels of account %.64q are damaged", g.Account)
		}
		seen[g.Account] = true
		kernels += len(g.Weights)
	}
	if kernels > c.store.kernels {
		return messages.Errorf(messages.Invalid, "snapshot: has %d kernels, and the class has room for %d", kernels, c.store.kernels)
	}
	return nil
}

// sound checks a group that was read from a snapshot. It reports whether the lists have the right lengths, the weights
// are possible, and the values are within the bounds of the template.
func (g *Group) sound(c *Config) bool {
	l, n := len(c.Bounds.Low), len(g.Weights)
	if n == 0 || len(g.Values) != n*l || g.Turn < 0 {
		return false
	}
	for k, w := range g.Weights {
		if !(w > 0 && w <= Largest) || !c.Bounds.Contains(g.value(k, l)) {
			return false
		}
	}
	return true
}
