package density

import (
	"slices"

	"github.com/candor-grid/candor/messages"
)

// Snapshot is all that a class remembers.
type Snapshot struct {
	Count   float64   // samples
	Widths  []float64 // scale of each coordinate
	Rescale float64   // count at which it is measured again
	Drawn   uint64    // state of the draws
	Groups  []Group
}

// Snapshot returns a copy of what the class remembers.
func (c *Class) Snapshot() *Snapshot {
	s := &Snapshot{Count: c.store.count, Widths: slices.Clone(c.store.widths), Rescale: c.store.rescale, Drawn: c.store.drawn}
	for _, g := range c.store.groups {
		s.Groups = append(s.Groups, g.clone())
	}
	return s
}

func (g *Group) clone() Group {
	return Group{g.Account, slices.Clone(g.Weights), slices.Clone(g.Values), g.Turn}
}

// RestoreClass makes a class that goes on from a snapshot, which is copied. One
// that does not fit the configuration, or is damaged, is refused.
func RestoreClass(config Config, s *Snapshot) (*Class, error) {
	c, err := NewClass(config)
	if err != nil {
		return nil, err
	}
	if err := c.check(s); err != nil {
		return nil, err
	}
	c.store.count, c.store.rescale, c.store.drawn = s.Count, s.Rescale, s.Drawn
	copy(c.store.widths, s.Widths)
	for i := range s.Groups {
		g := s.Groups[i].clone()
		c.store.index[g.Account] = i
		c.store.used += len(g.Weights)
		c.store.groups = append(c.store.groups, g)
	}
	c.before, c.built = nil, nil
	return c, c.build()
}

func (c *Class) check(s *Snapshot) error {
	l, kernels := c.store.dims, 0
	if !(s.Count >= 0 && s.Count <= Largest && s.Rescale > 0 && s.Rescale <= Largest) || len(s.Widths) != l || len(s.Groups) > c.store.accounts+1 {
		return messages.Errorf(messages.Invalid, "snapshot: does not fit a class of %d dimensions and %d accounts: learn anew", l, c.store.accounts)
	}
	for _, w := range s.Widths {
		if !(w > 0 && w <= Largest) {
			return messages.Errorf(messages.Invalid, "snapshot: a width of %g is none: learn anew", w)
		}
	}
	seen := map[messages.Name]bool{}
	for i := range s.Groups {
		g := &s.Groups[i]
		if seen[g.Account] || !g.sound(&c.config) {
			return messages.Errorf(messages.Invalid, "snapshot: the kernels of account %.64q are damaged: learn anew", g.Account)
		}
		seen[g.Account] = true
		kernels += len(g.Weights)
	}
	if kernels > c.store.kernels {
		return messages.Errorf(messages.Invalid, "snapshot: has %d kernels, the class has room for %d: learn anew", kernels, c.store.kernels)
	}
	return nil
}

// sound says whether a group has the shape it must, with numbers within the
// template.
func (g *Group) sound(c *Config) bool {
	l, n := len(c.Bounds.Low), len(g.Weights)
	if n == 0 || len(g.Values) != n*l || g.Turn < 0 {
		return false
	}
	for k, w := range g.Weights {
		if !(w > 0 && w <= Largest) || c.contains("", g.value(k, l)) != nil {
			return false
		}
	}
	return true
}
