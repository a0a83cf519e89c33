package embedded

import (
	"fmt"
	"strings"
)

// Problem is one thing that is wrong with a configuration.
type Problem struct {
	Path    string // of the field, as in "markets[0].mechanism"
	Message string // what is wrong, and what to do
}

// Error writes "path: message".
func (p Problem) Error() string { return p.Path + ": " + p.Message }

// Problems is everything that is wrong with a configuration, in the order of
// its fields.
type Problems []Problem

// Error writes a line for each problem.
func (ps Problems) Error() string {
	lines := make([]string, len(ps))
	for i, p := range ps {
		lines[i] = p.Error()
	}
	return strings.Join(lines, "\n")
}

// addf notes a problem.
func (ps *Problems) addf(path, format string, args ...any) {
	*ps = append(*ps, Problem{Path: path, Message: fmt.Sprintf(format, args...)})
}

// Nearest returns the word that was most likely meant by one that is not among
// the known, "" if none is near: at most a third of its letters differ.
func Nearest(word string, known []string) string {
	best, least := "", len(word)/3+1
	for _, k := range known {
		if d := distance(word, k); d < least || d == least && best == "" {
			best, least = k, d
		}
	}
	return best
}

// didYouMean is the suggestion at the end of a sentence, if there is one.
func didYouMean(word string, known []string) string {
	if k := Nearest(word, known); k != "" {
		return fmt.Sprintf("; did you mean %q?", k)
	}
	return ""
}

// distance is the number of letters to insert, remove or replace to make b
// from a (Levenshtein), in O(len(a)·len(b)).
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := 1; i <= len(a); i++ {
		diagonal := row[0]
		row[0] = i
		for j := 1; j <= len(b); j++ {
			change := diagonal
			if a[i-1] != b[j-1] {
				change++
			}
			diagonal = row[j]
			row[j] = min(change, row[j]+1, row[j-1]+1)
		}
	}
	return row[len(b)]
}
