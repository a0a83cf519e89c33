package serve

import (
	"fmt"
	"strings"

	"github.com/goccy/go-yaml/ast"

	"github.com/candor-grid/candor/deploy/embedded"
)

// locate finds the node that a path leads to, or the nearest above it that the
// file has; the second result says whether the file has all of it.
func (d *document) locate(path string) (ast.Node, bool) {
	n := d.root
	for _, step := range strings.FieldsFunc(path, func(r rune) bool { return r == '.' || r == '[' || r == ']' }) {
		next := d.step(d.plain(n), step)
		if next == nil {
			return n, false
		}
		n = next
	}
	return n, n != nil
}

func (d *document) step(n ast.Node, step string) ast.Node {
	if sequence, ok := n.(*ast.SequenceNode); ok {
		var i int
		if _, err := fmt.Sscanf(step, "%d", &i); err == nil && i < len(sequence.Values) {
			return sequence.Values[i]
		}
		return nil
	}
	pairs, _ := pairsOf(n)
	for _, pair := range pairs {
		if pair.Key.GetToken().Value == step {
			return pair.Value
		}
	}
	return nil
}

// note adds the problems of a configuration at their places in the file.
func (d *document) note(problems embedded.Problems) {
	for _, p := range problems {
		n, _ := d.locate(p.Path)
		if n == nil {
			d.found = append(d.found, finding{1, 1, p.Error()})
			continue
		}
		d.addf(n, "%s", p.Error())
	}
}
