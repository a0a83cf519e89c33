package highestbid

import (
	"math/big"
	"math/bits"

	"github.com/candor-grid/candor/messages"
)

// wide is a whole number of 192 bits, the lowest word first, for running sums
// of microseconds, and of levels times microseconds: with rates below 2⁵³ and
// times below 2⁶³ none comes near its end.
type wide [3]uint64

func (a wide) plus(b wide) wide {
	var carry uint64
	for i := range a {
		a[i], carry = bits.Add64(a[i], b[i], carry)
	}
	return a
}

func (a wide) minus(b wide) wide {
	var borrow uint64
	for i := range a {
		a[i], borrow = bits.Sub64(a[i], b[i], borrow)
	}
	return a
}

func (a wide) times(n uint64) wide {
	var out wide
	var over uint64
	for i := range a {
		hi, lo := bits.Mul64(a[i], n)
		var carry uint64
		out[i], carry = bits.Add64(lo, over, 0)
		over = hi + carry
	}
	return out
}

// big is a·2^shift.
func (a wide) big(shift uint) *big.Int {
	out := new(big.Int)
	for i := len(a) - 1; i >= 0; i-- {
		out.Lsh(out, 64).Or(out, new(big.Int).SetUint64(a[i]))
	}
	return out.Lsh(out, shift)
}

// levelOf is rate/length · 2⁶⁴, rounded down, in microcredits a second and
// microseconds.
func levelOf(rate, length uint64) wide {
	fraction, _ := bits.Div64(rate%length, 0, length)
	return wide{fraction, rate / length}
}

// charge is what a bill comes to, rounded half to even to the microcredit, and
// at most MaxCredits. Its times are in microseconds, its level in units of 2⁻⁶⁴;
// rates are in microcredits a second.
func charge(b bill[wide], own, reserve messages.Credits, length uint64) messages.Credits {
	sum := new(big.Int).Mul(b.own.big(64), big.NewInt(int64(own)))
	sum.Add(sum, new(big.Int).Mul(b.reserve.big(64), big.NewInt(int64(reserve))))
	sum.Add(sum, new(big.Int).Mul(b.level.big(0), new(big.Int).SetUint64(length)))
	unit := new(big.Int).Lsh(big.NewInt(1_000_000), 64)
	quotient, rest := sum.QuoRem(sum, unit, new(big.Int))
	if c := rest.Lsh(rest, 1).Cmp(unit); c > 0 || c == 0 && quotient.Bit(0) == 1 {
		quotient.Add(quotient, big.NewInt(1))
	}
	if !quotient.IsInt64() {
		return messages.MaxCredits
	}
	return min(messages.Credits(quotient.Int64()), messages.MaxCredits)
}
