package proportional

import "testing"

// Percentages must be written like 100, and not like 1e+02.
func TestPercentagesHaveNoExponent(t *testing.T) {
	for x, want := range map[float64]string{0: "0", 0.000012: "less than 0.01", 0.0214: "0.021", 4.55: "4.5", 9.96: "10", 42.4: "42", 100: "100"} {
		if got := twoDigits(x); got != want {
			t.Errorf("%v: got %q, want %q", x, got, want)
		}
	}
}
