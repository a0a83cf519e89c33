package embedded

import (
	"fmt"
	"strings"

	"github.com/candor-grid/candor/messages/spelling"
)

// Problem is one thing that is wrong with a configuration.
type Problem struct {
	Path    string // path of the field, such as "markets[0].mechanism"
	Message string // what is wrong, and how to correct it
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

func (ps *Problems) addf(path, format string, args ...any) {
	*ps = append(*ps, Problem{Path: path, Message: fmt.Sprintf(format, args...)})
}

// didYouMean returns the suggestion at the end of a sentence, if there is one.
func didYouMean(word string, known []string) string {
	if k := spelling.Nearest(word, known); k != "" {
		return fmt.Sprintf("; did you mean %q?", k)
	}
	return ""
}
