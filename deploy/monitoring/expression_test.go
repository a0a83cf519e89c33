package monitoring

import (
	"regexp"
	"slices"
	"strings"
)

// names has the names in an expression of PromQL.
type names struct{ metrics, labels, functions []string }

var (
	// String literals and ranges such as [5m] or [1d:5m] contain no names.
	literal = regexp.MustCompile(`"[^"]*"|\[[^\]]*\]`)
	// matchers finds label matchers such as {label="value", …}. It is used after each string literal in the text was
	// replaced by one character.
	matchers = regexp.MustCompile(`\{([^}]*)\}`)
	label    = regexp.MustCompile(`([a-z_]+)\s*(?:=~|!~|!=|=)`)
	// grouping matches the label lists of an expression, such as "by (a, b)".
	grouping = regexp.MustCompile(`\b(by|without|on|ignoring|group_left|group_right)\s*\(([^)]*)\)`)
	word     = regexp.MustCompile(`([a-zA-Z_:][a-zA-Z0-9_:]*)\s*(\(?)`)
	// number matches a number in an expression. A number can contain letters, as in 5e9 or 0x1f.
	number   = regexp.MustCompile(`\b[0-9][0-9a-z.]*\b`)
	keywords = []string{"and", "or", "unless", "bool", "offset"}
	// aggregations are functions that may have a grouping, such as "by (site)", before the bracket.
	aggregations = []string{"sum", "min", "max", "avg", "count"}
)

// namesIn returns the names in an expression. It is no parser: for an expression that Prometheus refuses, the result
// may be wrong.
func namesIn(expression string) (n names) {
	rest := literal.ReplaceAllString(strings.ReplaceAll(expression, "$__rate_interval", "5m"), " ")
	for _, m := range matchers.FindAllStringSubmatch(literal.ReplaceAllString(expression, "_"), -1) {
		for _, l := range label.FindAllStringSubmatch(m[1], -1) {
			n.labels = append(n.labels, l[1])
		}
	}
	rest = matchers.ReplaceAllString(rest, " ")
	for _, m := range grouping.FindAllStringSubmatch(rest, -1) {
		for _, l := range strings.Split(m[2], ",") {
			n.labels = append(n.labels, strings.TrimSpace(l))
		}
	}
	rest = number.ReplaceAllString(grouping.ReplaceAllString(rest, " "), " ")
	for _, m := range word.FindAllStringSubmatch(rest, -1) {
		switch {
		case slices.Contains(keywords, m[1]):
		case m[2] == "(" || slices.Contains(aggregations, m[1]):
			n.functions = append(n.functions, m[1])
		default:
			n.metrics = append(n.metrics, m[1])
		}
	}
	return n
}

// balanced reports whether all brackets close in the right order.
func balanced(expression string) bool {
	var open []rune
	pairs := map[rune]rune{')': '(', ']': '[', '}': '{'}
	for _, r := range literal.ReplaceAllString(expression, "") {
		switch r {
		case '(', '{', '[':
			open = append(open, r)
		case ')', '}', ']':
			if len(open) == 0 || open[len(open)-1] != pairs[r] {
				return false
			}
			open = open[:len(open)-1]
		}
	}
	return len(open) == 0
}
