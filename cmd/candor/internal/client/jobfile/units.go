package jobfile

import (
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/goccy/go-yaml/ast"

	"github.com/candor-grid/candor/messages"
)

// slurmTime matches the forms of time in sbatch's --time: minutes, minutes:seconds, hours:minutes:seconds, days-hours,
// days-hours:minutes and days-hours:minutes:seconds. It limits the digits to 10^4 days and 10^6 hours: a Duration holds
// 2.5·10^6 hours.
var slurmTime = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^(?:(\d{1,4})-)?(\d{1,6})(?::(\d{1,6}))?(?::(\d{1,6}))?$`)
})

// ParseTime reads a time limit: with units ("1h30m", "90s"), or in the forms of sbatch, where a number means minutes. 0
// and UNLIMITED mean the market's limit.
func ParseTime(s string) (messages.Duration, error) {
	if strings.EqualFold(s, "UNLIMITED") || strings.EqualFold(s, "INFINITE") {
		return 0, nil
	}
	if m := slurmTime().FindStringSubmatch(s); m != nil {
		return slurmDuration(m), nil
	}
	d, err := time.ParseDuration(s)
	if err != nil || d < 0 {
		return 0, fmt.Errorf("time %q: write it like 1h30m, 90s, 2:00:00 (hours) or 1-12 (days-hours); a bare number is minutes", s)
	}
	return messages.Duration(d), nil
}

// slurmDuration adds up the days and up to three fields. After days, the first field is hours. Without days, one field
// is minutes, and two fields are minutes and seconds.
func slurmDuration(m []string) messages.Duration {
	units := []time.Duration{time.Hour, time.Minute, time.Second}
	if m[1] == "" && m[4] == "" {
		units = units[1:]
	}
	total := time.Duration(number64(m[1])) * 24 * time.Hour
	for i, unit := range units {
		if i+2 < len(m) {
			total += time.Duration(number64(m[i+2])) * unit
		}
	}
	return messages.Duration(total)
}

// number64 reads decimal digits. The regular expression that found the digits limits their number, so the result fits
// in 64 bits. For "" it returns 0.
func number64(s string) int64 {
	n, _ := strconv.ParseInt(s, 10, 64)
	return n
}

// UnmarshalYAML reads a size of memory.
func (s *size) UnmarshalYAML(n ast.Node) error {
	text, ok := scalar(n)
	if !ok {
		return refuse(n, "must be a size such as 512M or 2G")
	}
	bytes, err := parseSize(text)
	if err != nil {
		return refuse(n, "%v", err)
	}
	*s = size(bytes)
	return nil
}

// UnmarshalYAML reads a size of memory, or the word "all".
func (m *memory) UnmarshalYAML(n ast.Node) error {
	text, ok := scalar(n)
	if !ok {
		return refuse(n, "must be a size such as 512M or 2G, or all")
	}
	bytes, err := parseMemory(text)
	if err != nil {
		return refuse(n, "%v", err)
	}
	*m = memory(bytes)
	return nil
}

// UnmarshalYAML reads a number of GPUs, and their type if the job needs a certain type.
func (g *gpus) UnmarshalYAML(n ast.Node) (err error) {
	text, ok := scalar(n)
	if !ok {
		return refuse(n, "must be a number of GPUs, or a number and a type like 2:a100")
	}
	if g.number, g.kind, err = parseGPUs(text); err != nil {
		return refuse(n, "%v", err)
	}
	return nil
}

// parseSize reads a size as sbatch does: a number and a letter for the unit. Without a letter the unit is the
// mebibyte.
func parseSize(text string) (bytes int64, err error) {
	digits, shift := strings.TrimSuffix(strings.TrimSuffix(strings.ToUpper(text), "B"), "I"), 20
	if at := strings.IndexByte("KMGT", last(digits)); at >= 0 {
		digits, shift = digits[:len(digits)-1], 10*(at+1)
	}
	v, parseErr := strconv.ParseFloat(digits, 64)
	if v *= math.Pow(2, float64(shift)); parseErr != nil || !(v >= 0) || v >= 1<<62 {
		return 0, fmt.Errorf("%q: must be a size such as 512M or 2G", text)
	}
	return int64(v), nil
}

func last(s string) byte {
	if s == "" {
		return ' '
	}
	return s[len(s)-1]
}
