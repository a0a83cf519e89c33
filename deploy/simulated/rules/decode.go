package rules

import (
	"cmp"
	"slices"
	"strings"

	"github.com/goccy/go-yaml/ast"

	"github.com/candor-grid/candor/deploy/simulated/bids"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/yamlfile"
)

// Decode reads a market. Its errors are Invalid and begin with name:line:column.
func Decode(name string, text []byte) (*Market, error) {
	file, err := yamlfile.Parse(name, text)
	if err != nil {
		return nil, err
	}
	if file.Documents != 1 {
		return nil, messages.Errorf(messages.Invalid, "%s:1:1: write one document, which describes the market; the file has %d documents", name, file.Documents)
	}
	d, m := &document{yamlfile.Reader{File: file}}, &Market{Name: "main", Bids: bids.Default()}
	if m.Mechanism, err = d.mechanism(); err != nil {
		return nil, err
	}
	m.defaults()
	d.Decode(m)
	if err := cmp.Or(d.Err(), d.belong(m.Mechanism), d.once(m.Mechanism)); err != nil {
		return nil, err
	}
	m.resolve(d.at("search") != nil)
	if err := m.check(); err != nil {
		return nil, d.locate(err)
	}
	return m, nil
}

type document struct{ yamlfile.Reader }

// mechanism reads the mechanism's name first, because this name decides which other fields are allowed.
func (d *document) mechanism() (string, error) {
	pair := d.at("mechanism")
	if pair == nil {
		return "", messages.Errorf(messages.Invalid, "%s:1:1: mechanism: is missing; write one of %s", d.Name, strings.Join(Mechanisms(), ", "))
	}
	name := ""
	if err := yamlfile.Value(pair.Value, &name); err != nil || parameters[name] == nil {
		return "", d.Errorf(pair.Value, "mechanism: must be one of %s, is %.64q", strings.Join(Mechanisms(), ", "), pair.Value.String())
	}
	return name, nil
}

// at returns a key at the top level with its value, or nil.
func (d *document) at(key string) *ast.MappingValueNode {
	for _, pair := range yamlfile.Pairs(d.Root) {
		if pair.Key.GetToken().Value == key {
			return pair
		}
	}
	return nil
}

// belong returns an error for parameters of other mechanisms.
func (d *document) belong(mechanism string) error {
	for _, pair := range yamlfile.Pairs(d.Root) {
		if key := pair.Key.GetToken().Value; !slices.Contains(common, key) && !slices.Contains(parameters[mechanism], key) {
			return d.Errorf(pair.Key, "%s: mechanism %s has no such parameter; it has %s", key, mechanism, strings.Join(parameters[mechanism], ", "))
		}
	}
	return nil
}

// synonyms are pairs of names for the same parameter. A document may have only one name of each pair.
var synonyms = map[string]string{"orders": "search", "reserve": "price", "mode": "variant"}

// This method returns an error if the document has a parameter and also its synonym, because one of them would be
// ignored. In a highest-bid market, reserve and price have different meanings, and a batch queue has no variant.
func (d *document) once(mechanism string) error {
	for key, other := range synonyms {
		if pair := d.at(key); mechanism != HighestBid && pair != nil && d.at(other) != nil {
			return d.Errorf(pair.Key, "%s: has the same meaning as %s: leave one of the two out", key, other)
		}
	}
	return nil
}

// locate puts file, line and column in front of an error that begins with a path.
func (d *document) locate(err error) error {
	text := messages.Detail(err)
	path, rest, _ := strings.Cut(text, ":")
	for key, other := range synonyms { // the file used the synonym
		if d.at(key) != nil && d.at(other) == nil && (path == other || path == other+"."+key) {
			path, text = key, key+":"+rest
		}
	}
	n, _ := d.Find(path)
	return d.Errorf(n, "%s", text)
}
