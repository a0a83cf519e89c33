package demo

import (
	"cmp"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// collect combines the files that a job's last stage wrote to the directory `out`: the file "result", or the parts
// result-0, result-1, … The result begins with the header of the first part. Then come all rows, sorted by the number
// at their beginning. Rows without a number come last.
func collect(out string) (string, error) {
	whole, err := os.ReadFile(filepath.Join(out, "result"))
	if err == nil {
		return string(whole), nil
	}
	var rows []string
	parts := 0
	for ; ; parts++ {
		part, err := os.ReadFile(filepath.Join(out, "result-"+strconv.Itoa(parts)))
		if os.IsNotExist(err) && parts > 0 {
			break
		}
		if err != nil {
			return "", err
		}
		rows = append(rows, slices.Collect(strings.Lines(string(part)))...)
	}
	if len(rows) > 1 {
		slices.SortStableFunc(rows[1:], func(a, b string) int { return cmp.Compare(leading(a), leading(b)) })
	}
	return strings.Join(rows, ""), nil
}

// leading returns the number at the beginning of a row, or infinity if there is none.
func leading(row string) float64 {
	first, _, _ := strings.Cut(strings.TrimSpace(row), " ")
	number, err := strconv.ParseFloat(first, 64)
	if err != nil {
		return math.Inf(1)
	}
	return number
}

// firstDifference describes the first difference between two texts, or returns "".
func firstDifference(got, want string) string {
	if got == want {
		return ""
	}
	g, w := strings.Split(got, "\n"), strings.Split(want, "\n")
	i := 0
	for i < len(g) && i < len(w) && g[i] == w[i] {
		i++
	}
	return fmt.Sprintf("line %d is %q, the known answer has %q", i+1, lineOr(g, i), lineOr(w, i))
}

func lineOr(lines []string, i int) string {
	if i < len(lines) {
		return lines[i]
	}
	return "(nothing)"
}
