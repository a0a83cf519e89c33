package jobfile

import "testing"

func TestParseSize(t *testing.T) {
	for text, want := range map[string]int64{"512": 512 << 20, "512M": 512 << 20, "2g": 2 << 30, "1.5GiB": 3 << 29, "64K": 64 << 10, "1T": 1 << 40, "0": 0} {
		if got, err := parseSize(text); got != want || err != nil {
			t.Errorf("%s: %d, %v; want %d", text, got, err, want)
		}
	}
	for _, text := range []string{"", "G", "-1G", "NaN", "1e300", "5X", "lots"} {
		if got, err := parseSize(text); err == nil {
			t.Errorf("%q is %d", text, got)
		}
	}
}
