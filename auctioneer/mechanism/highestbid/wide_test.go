package highestbid

import (
	"math/big"
	"testing"

	"pgregory.net/rapid"

	"github.com/candor-grid/candor/messages"
)

// edges are words near which carries go wrong.
var edges = []uint64{0, 1, 2, 1<<63 - 1, 1 << 63, 1<<64 - 2, 1<<64 - 1}

// TestWideAgainstBig: modulo 2¹⁹², as the sums are.
func TestWideAgainstBig(t *testing.T) {
	modulus := new(big.Int).Lsh(big.NewInt(1), 192)
	rapid.Check(t, func(t *rapid.T) {
		word := rapid.OneOf(rapid.SampledFrom(edges), rapid.Uint64())
		a := wide{word.Draw(t, "a0"), word.Draw(t, "a1"), word.Draw(t, "a2")}
		b := wide{word.Draw(t, "b0"), word.Draw(t, "b1"), word.Draw(t, "b2")}
		n := word.Draw(t, "n")
		for what, pair := range map[string][2]*big.Int{
			"sum":        {a.plus(b).big(0), new(big.Int).Add(a.big(0), b.big(0))},
			"difference": {a.minus(b).big(0), new(big.Int).Sub(a.big(0), b.big(0))},
			"product":    {a.times(n).big(0), new(big.Int).Mul(a.big(0), new(big.Int).SetUint64(n))},
		} {
			if want := pair[1].Mod(pair[1], modulus); pair[0].Cmp(want) != 0 {
				t.Fatalf("%s of %v and %v or %d: %v, want %v", what, a, b, n, pair[0], want)
			}
		}
	})
}

// TestChargeIsRoundedHalfToEven, once, and stays within what an amount may be.
func TestChargeIsRoundedHalfToEven(t *testing.T) {
	for micros, want := range map[uint64]messages.Credits{500_000: 0, 500_001: 1, 1_500_000: 2, 2_500_000: 2, 2_500_001: 3} {
		if got := charge(bill[wide]{own: wide{micros}}, 1, 0, 1); got != want {
			t.Errorf("%d µs at a microcredit a second: %d, want %d", micros, got, want)
		}
	}
	third := bill[wide]{level: levelOf(1, 3).times(3_000_000)} // three seconds at a third
	if got := charge(third, 0, 0, 3); got != 3 {
		t.Errorf("a third of three for three seconds: %d", got)
	}
	if got := charge(bill[wide]{reserve: wide{1 << 62}}, 0, MostRate, 1); got != messages.MaxCredits {
		t.Errorf("more than there is: %v", got)
	}
}
