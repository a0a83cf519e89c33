package embedded

import (
	"fmt"
	"strings"

	"github.com/candor-grid/candor/messages/spelling"
)

// Problem is one error in a configuration.
type Problem struct {
	Path    string // path of the field, such as "markets[0].mechanism"
	Message string // says what is wrong, and how to correct it
}

// Error writes "path: message".
func (p Problem) Error() string { return p.Path + ": " + p.Message }

// Problems has all errors in a configuration, in the order of its fields.
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

// didYouMean returns a suggestion as the end of a sentence, or "" if no known word is similar.
func didYouMean(word string, known []string) string {
	if k := spelling.Nearest(word, known); k != "" {
		return fmt.Sprintf("; did you mean %q?", k)
	}
	return ""
}
