package book

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/candor-grid/candor/messages"
)

// A reader may still use a list of halted attempts that it got earlier. So a list must never change: when attempts are
// halted or resumed, the node must make a new list.
func TestAListOfHaltedAttemptsStays(t *testing.T) {
	type reading struct{ list, said []messages.Attempt }
	for seed := range uint64(50) {
		n, rng, readings := &Node{}, rand.New(rand.NewPCG(seed, 1)), []reading(nil)
		for range 400 {
			r := messages.TaskRef{Job: 1, Index: rng.Uint32N(6)}
			was, h := n.Halted(), n.Claims[r]
			switch {
			case h.Attempt == 0:
				n.set(r, NodeClaim{Attempt: 1, Halt: Halt(rng.IntN(3))})
			case rng.IntN(3) == 0:
				n.drop(r)
			case h.halts():
				n.set(r, NodeClaim{Attempt: 1})
			default:
				n.set(r, NodeClaim{Attempt: 1, Halt: Suspended})
				if is := n.Halted(); len(is) == len(was) {
					t.Fatalf("seed %d: a halt changed nothing: %v", seed, is)
				}
			}
			for _, x := range readings {
				if !slices.Equal(x.list, x.said) {
					t.Fatalf("seed %d: a list has become %v, it was %v", seed, x.list, x.said)
				}
				if is := n.Halted(); len(is) > 0 && len(x.list) == len(is) && &x.list[0] == &is[0] && !slices.Equal(x.said, is) {
					t.Fatalf("seed %d: %v and %v are one list", seed, x.said, is)
				}
			}
			readings = append(readings[max(0, len(readings)-8):], reading{n.Halted(), slices.Clone(n.Halted())})
		}
	}
}
