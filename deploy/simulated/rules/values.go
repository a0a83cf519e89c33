package rules

import (
	"slices"

	"github.com/goccy/go-yaml/ast"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/yamlfile"
)

// durations refuses what is none; the YAML reader would not say where it stands.
func (d *document) durations() error {
	for key, pair := range d.pairs() {
		if !slices.Contains([]string{"slot", "granule", "half_life"}, key) {
			continue
		}
		var x messages.Duration
		switch err := yamlfile.Value(pair.Value, &x); {
		case err != nil:
			return d.Errorf(pair.Value, "%s: %.64q is no time: write it like 1h30m, 90s, or as a number of seconds", key, pair.Value.GetToken().Value)
		case x == 0 && key == "granule":
			return d.Errorf(pair.Value, "granule: must be at least 1s, is 0")
		}
	}
	return nil
}

// synonyms are parameters with another name for the same: one of them has to be left out.
var synonyms = map[string]string{"orders": "search", "reserve": "price", "mode": "variant"}

// once refuses parameters beside their synonyms, which would be ignored. In a highest-bid
// market reserve is something else than price, and a batch-queue has no variant.
func (d *document) once(mechanism string) error {
	for key, pair := range d.pairs() {
		if other := synonyms[key]; mechanism != HighestBid && d.says(other) {
			return d.Errorf(pair.Key, "%s: says the same as %s: leave one of them out", key, other)
		}
	}
	return nil
}

// wholes are the parameters that are whole numbers. The YAML reader would cut their
// fractions off.
var wholes = []string{"C", "groups", "N", "nodes", "draws", "seed", "T", "orders", "M"}

// positive are the whole numbers that are at least 1; of the others 0 has a meaning.
var positive = []string{"groups", "T", "orders", "M"}

// counts refuses fractions of whole numbers, and 0 for positive ones.
func (d *document) counts() error {
	for key, pair := range d.pairs() {
		inside := []*ast.MappingValueNode{pair}
		if nested := yamlfile.Pairs(pair.Value); key == "search" && nested != nil {
			inside = nested
		}
		for _, p := range inside {
			_, fraction := p.Value.(*ast.FloatNode)
			name := p.Key.GetToken().Value
			if fraction && slices.Contains(wholes, name) {
				return d.Errorf(p.Value, "%s: must be a whole number, is %.64s", name, p.Value.String())
			}
			if n, ok := p.Value.(*ast.IntegerNode); ok && n.Value == uint64(0) && slices.Contains(positive, name) {
				return d.Errorf(p.Value, "%s: must be at least 1, is 0", name)
			}
		}
	}
	return nil
}
