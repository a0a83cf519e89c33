package jobfile

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml/ast"
)

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

// parseSize reads a size as sbatch does: a number of mebibytes, or of what the
// letter behind it says.
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
